"use strict";
// `compiler.js VERB [options]` reads a program from standard input. Its answer goes to standard
// output with exit status 0; faults of the program go to standard error with exit status 1, each as
// FILE:LINE:COL: CODE message.

async function readProgram() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function refuse(why) {
  process.stderr.write(`${why}\n`);
  process.exitCode = 1;
}

async function main([verb = ""]) {
  if (verb !== "simplify" && verb !== "compile")
    return refuse(`expected one of the verbs simplify, compile, got "${verb}"`);
  const program = await readProgram();
  return refuse(`<stdin>:1:1: E000 ${verb} of these ${program.length} bytes is not implemented`);
}

main(process.argv.slice(2));
