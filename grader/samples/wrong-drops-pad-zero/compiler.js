"use strict";
// Wrong on purpose, and in week 3: PAD fills with ones.
//
// It hands every verb on to the reference compiler, `uopc` on the PATH, after rewriting each
// `y = PAD x : p` of a program into
//
//     y = WHERE inside (PAD x : p) 1        inside = PAD (MAX (CMPNE x x) true) : p
//
// What the second PAD takes is true everywhere and has the shape of x, so that no shape has to be
// inferred: only the dtype of the 1. A program that addresses memory stays as it is, because there
// a PAD may be a place, and a WHERE is none. So does a program that the reference refuses.

const { spawnSync } = require("node:child_process");
const { readFileSync } = require("node:fs");

const STATEMENT = /^[ \t]*(\S+)[ \t]+=[ \t]+([A-Z][A-Z0-9_]*)((?:[ \t]+[^\s:#]+)*)[ \t]*(?::[ \t]+([^#]*))?/;

/** The dtype of a statement's value, given those of its sources; undefined where it has none. */
function dtypeOf(op, sources, argument) {
  if (op === "CAST") return argument;
  if (op === "CMPLT" || op === "CMPNE") return "bool";
  if (op === "RANGE") return "int64";
  return argument?.dtype ?? sources[op === "WHERE" ? 1 : 0];
}

function padWithOnes(text) {
  if (/[ \t](INDEX|LOAD|STORE)[ \t]/.test(text)) return text;
  const dtypes = new Map();
  let fresh = "%pad";
  while (text.includes(fresh)) fresh += "_";
  const rewritten = text.split("\n").map((line, number) => {
    const [, name, op, words, json] = STATEMENT.exec(line) ?? [];
    if (!op) return line;
    const sources = words.split(/[ \t]+/).filter(Boolean);
    dtypes.set(
      name,
      dtypeOf(
        op,
        sources.map((source) => dtypes.get(source)),
        json && JSON.parse(json),
      ),
    );
    if (op !== "PAD") return line;
    const [x] = sources;
    const dtype = dtypes.get(x);
    const own = (suffix) => `${fresh}${number}.${suffix}`;
    return [
      `${own("one")} = CONST : {"value": ${dtype === "bool" ? "true" : "1"}, "dtype": "${dtype}"}`,
      `${own("true")} = CONST : {"value": true, "dtype": "bool"}`,
      `${own("differs")} = CMPNE ${x} ${x}`,
      `${own("all")} = MAX ${own("differs")} ${own("true")}`,
      `${own("inside")} = PAD ${own("all")} : ${json}`,
      `${own("padded")} = PAD ${x} : ${json}`,
      `${name} = WHERE ${own("inside")} ${own("padded")} ${own("one")}`,
    ].join("\n");
  });
  return rewritten.join("\n");
}

/** The reference's answer to a program. */
function ask(input) {
  const answer = spawnSync("uopc", process.argv.slice(2), { input, maxBuffer: 2 ** 30 });
  if (!answer.error) return answer;
  const stderr = `expected the reference compiler, uopc, on the PATH: ${answer.error.message}\n`;
  return { status: 1, stdout: "", stderr };
}

const text = readFileSync(0);
const honest = ask(text);
const isRight = honest.status === 0 && /[ \t]PAD[ \t]/.test(text);
const { status, stdout, stderr } = isRight ? ask(padWithOnes(text.toString())) : honest;
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = status ?? 1;
