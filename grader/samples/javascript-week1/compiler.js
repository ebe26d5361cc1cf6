"use strict";
// A week-1 compiler: `node compiler.js simplify [--week N]` is a filter from a program to a
// simplified one in canonical form. Errors go to standard error, with exit status 1.

const { Reader } = require("./reader.js");
const { week1, simplify } = require("./simplify.js");

const WIDTH = 100; // of the excerpt of a source line below an error

/** An error as FILE:LINE:COL: CODE message, the source line (or a window of it) and a caret. */
function errorText({ code, line, column, message, text, at }) {
  const from = at > WIDTH - 20 ? at - WIDTH / 2 : 0;
  const excerpt = text.slice(from, from + WIDTH).replace(/[\p{Cc}\ufffd]/gu, " ");
  return `<stdin>:${line}:${column}: ${code} ${message}\n    ${excerpt}\n    ${" ".repeat(at - from)}^\n`;
}

function complain(text) {
  process.stderr.write(text);
  process.exitCode = 1;
}

async function readInput() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Runs one verb; `tables` may replace parts of the simplifier. */
async function main(words, tables = week1) {
  const [verb, option, week, ...rest] = words;
  if (verb !== "simplify")
    return complain(`this compiler knows the verb \`simplify\` only, got ${JSON.stringify(verb ?? "")}\n`);
  if (option !== undefined && !(option === "--week" && /^[1-9][0-9]*$/.test(week) && !rest.length)) {
    return complain("usage: simplify [--week N]\n");
  }
  const reader = new Reader(tables.language).read(await readInput());
  const outputs = reader.errors.length ? null : simplify(reader.outputs, tables, reader.report.bind(reader));
  if (!reader.errors.length) return process.stdout.write(tables.format(outputs));
  const errors = reader.errors.sort((a, b) => a.line - b.line || a.column - b.column);
  return complain(errors.map(errorText).join(""));
}

if (require.main === module) main(process.argv.slice(2));

module.exports = { main, errorText, readInput, week1 };
