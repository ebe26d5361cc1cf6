"use strict";
// Wrong on purpose: constants are divided as most languages do, so that -7 FLOORDIV 2 is -3, not -4.

const { main, week1 } = require("../javascript-week1/compiler.js");

const divideTowardZero = (dtype, a, b) => (b === 0n ? 0n : dtype.fit(a / b));

main(process.argv.slice(2), { ...week1, fold: { ...week1.fold, FLOORDIV: divideTowardZero } });
