"use strict";
// Wrong on purpose: what is printed is the outputs of a program in a notation of its own.

const { main, week1 } = require("../javascript-week1/compiler.js");

const format = (outputs) =>
  outputs.map(({ op, dtype }) => `(${op.toLowerCase()} :: ${dtype.name})\n`).join("");

main(process.argv.slice(2), { ...week1, format });
