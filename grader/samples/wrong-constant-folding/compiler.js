"use strict";
// Wrong on purpose: a sum of int8 constants stops at the largest or smallest int8 instead of
// wrapping around. Its output is a valid program, with another value.

const { main, week1 } = require("../javascript-week1/compiler.js");

function saturatingAdd(dtype, a, b) {
  if (dtype.name !== "int8") return week1.fold.ADD(dtype, a, b);
  const sum = a + b;
  return sum > dtype.hi ? dtype.hi : sum < dtype.lo ? dtype.lo : sum;
}

main(process.argv.slice(2), { ...week1, fold: { ...week1.fold, ADD: saturatingAdd } });
