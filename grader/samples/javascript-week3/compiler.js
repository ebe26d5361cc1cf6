"use strict";
// A compiler of weeks 1 to 3: `node compiler.js VERB` with the verb `simplify [--week N]` or
// `compile --target c`; `node compiler.js serve` answers many requests in one process.

const base = "../javascript-week1";
const { errorsText, run, week1 } = require(`${base}/compiler.js`);
const { Reader } = require(`${base}/reader.js`);
const { simplify } = require(`${base}/simplify.js`);
const { languageOf } = require("./language.js");
const moves = require("./moves.js");
const { render } = require("./render.js");

// What is compiled has its CALLs inlined and is else as it was: a simpler value may need no LOAD any
// more, behind which a STORE has to wait.
const simpler = { ...week1, identities: { ...week1.identities, ...moves } };
const plain = { ...week1, identities: {}, intervalOf: () => [] };
const verbs = {
  simplify: { tables: simpler, print: week1.format },
  "compile --target c": { tables: plain, print: render },
};

/** The answer to a request: {status, stdout, stderr}. */
function answer(words, bytes) {
  const refuse = (stderr) => ({ status: 1, stdout: "", stderr });
  const [, verb, week = "3"] = /^(.*?)(?: --week ([1-9][0-9]*))?$/.exec(words.join(" "));
  if (!Object.hasOwn(verbs, verb))
    return refuse(`expected one of the verbs ${Object.keys(verbs).join(", ")}, got ${JSON.stringify(verb)}\n`);
  const language = languageOf(Number(week));
  const reader = new Reader(language).read(bytes);
  const { tables, print } = verbs[verb];
  const outputs = reader.errors.length
    ? null
    : simplify(reader.outputs, { ...tables, language }, reader.report.bind(reader));
  if (!reader.errors.length) return { status: 0, stdout: print(outputs), stderr: "" };
  return refuse(errorsText(reader));
}

run(process.argv.slice(2), answer);
