"use strict";
// A week-1 compiler: `node compiler.js simplify [--week N]` is a filter from a program to a
// simplified one in canonical form. Errors go to standard error, with exit status 1.
// `node compiler.js serve` answers many requests in one process.

const { Reader } = require("./reader.js");
const { week1, simplify } = require("./simplify.js");

const WIDTH = 100; // of the excerpt of a source line below an error

/** An error as FILE:LINE:COL: CODE message, the source line (or a window of it) and a caret. */
function errorText({ code, line, column, message, text, at }) {
  const from = at > WIDTH - 20 ? at - WIDTH / 2 : 0;
  const excerpt = text.slice(from, from + WIDTH).replace(/[\p{Cc}\ufffd]/gu, " ");
  return `<stdin>:${line}:${column}: ${code} ${message}\n    ${excerpt}\n    ${" ".repeat(at - from)}^\n`;
}

/** All errors that a reader found, by line and column. */
function errorsText({ errors }) {
  return errors.sort((a, b) => a.line - b.line || a.column - b.column).map(errorText).join("");
}

async function readInput() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The answer to a request: {status, stdout, stderr}; `tables` may replace parts of the simplifier. */
function answer(words, bytes, tables) {
  const refuse = (stderr) => ({ status: 1, stdout: "", stderr });
  const [verb, option, week, ...rest] = words;
  if (verb !== "simplify")
    return refuse(`this compiler knows the verb \`simplify\` only, got ${JSON.stringify(verb ?? "")}\n`);
  if (option !== undefined && !(option === "--week" && /^[1-9][0-9]*$/.test(week) && !rest.length)) {
    return refuse("usage: simplify [--week N]\n");
  }
  const reader = new Reader(tables.language).read(bytes);
  const outputs = reader.errors.length ? null : simplify(reader.outputs, tables, reader.report.bind(reader));
  if (!reader.errors.length) return { status: 0, stdout: tables.format(outputs), stderr: "" };
  return refuse(errorsText(reader));
}

/** Requests on standard input, each a line of JSON and a program; answers alike. */
async function serve(answerTo) {
  let bytes = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    bytes = Buffer.concat([bytes, chunk]);
    for (let end; (end = bytes.indexOf(10)) >= 0; ) {
      const request = JSON.parse(bytes.subarray(0, end).toString());
      const next = end + 1 + request.bytes;
      if (bytes.length < next) break;
      const { status, ...texts } = answerTo(request.verb, bytes.subarray(end + 1, next));
      const [stdout, stderr] = [texts.stdout, texts.stderr].map((text) => Buffer.from(text));
      const head = JSON.stringify({ status, stdout: stdout.length, stderr: stderr.length });
      process.stdout.write(Buffer.concat([Buffer.from(head + "\n"), stdout, stderr]));
      bytes = bytes.subarray(next);
    }
  }
}

/** Answers one request, its words and standard input, or many. */
async function run(words, answerTo) {
  if (words.join() === "serve") return serve(answerTo);
  const { status, stdout, stderr } = answerTo(words, await readInput());
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = status;
}

const main = (words, tables = week1) => run(words, (verb, bytes) => answer(verb, bytes, tables));

if (require.main === module) main(process.argv.slice(2));

module.exports = { main, run, errorsText, week1 };
