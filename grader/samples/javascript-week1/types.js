"use strict";
// Shapes, the ops of week 1, and the dtype and shape of a node: they follow from its sources.

const { dtypes } = require("./arithmetic.js");

const LIMITS = { nodes: 1_000_000, bodies: 8_000_000, rank: 32, elements: 2 ** 47 };

/** An error at an index into a line or, where there is none, at the op of a statement. */
class Fault extends Error {
  constructor(code, message, at) {
    super(message);
    Object.assign(this, { code, at });
  }
}

const shapes = new Map();

/** The one array for a list of sizes, so that equal shapes are the same object. */
function shapeOf(sizes) {
  const key = sizes.join();
  if (!shapes.has(key)) shapes.set(key, sizes);
  return shapes.get(key);
}

const SCALAR = shapeOf([]);

/** The shape itself, once its size is seen to be allowed: an axis of size 0 counts as 1. */
function checkSize(shape) {
  if (shape.length > LIMITS.rank)
    throw new Fault("E502", `expected at most ${LIMITS.rank} axes, got ${shape.length}`);
  if (shape.reduce((product, size) => product * (size || 1), 1) > LIMITS.elements)
    throw new Fault("E503", `expected at most 2^47 elements, got the shape [${shape}]`);
  return shape;
}

/** The shape of an elementwise op, as NumPy broadcasts. */
function broadcast(a, b) {
  if (a === b || b === SCALAR) return a;
  if (a === SCALAR) return b;
  const rank = Math.max(a.length, b.length);
  const sizes = Array.from({ length: rank }, (_, axis) => {
    const m = a[axis - rank + a.length] ?? 1;
    const n = b[axis - rank + b.length] ?? 1;
    if (m !== n && m !== 1 && n !== 1) {
      throw new Fault(
        "E403",
        `expected shapes that broadcast, got [${a}] and [${b}]: ${m} does not meet ${n}`,
      );
    }
    return m === 1 ? n : m;
  });
  return shapeOf(checkSize(sizes));
}

const numbers = ["integer", "float"];
const all = ["bool", ...numbers];

/**
 * op → the number of its sources, the kinds they may be, its result's dtype if not theirs; how its
 * argument is read, and an example of one if it has to be there. A later week's ops may also have
 * `infer(src, arg)`, and at least `sources` of them if that is [least, most].
 */
const ops = {
  PARAM: {
    sources: 0,
    read: (reader, json) => reader.param(json),
    example: '{"slot": 0, "dtype": "float32", "shape": [2, 3]}',
  },
  CONST: {
    sources: 0,
    read: (reader, json) => reader.constant(json),
    example: '{"value": 1, "dtype": "int32"}',
  },
  CALL: { sources: [1, Infinity], read: (reader, json) => reader.callName(json) }, // a body and its arguments
  CAST: { sources: 1, kinds: all, read: (reader, json) => reader.dtype(json), example: '"int32"' },
  NEG: { sources: 1, kinds: numbers },
  RECIP: { sources: 1, kinds: ["float"] },
  EXP2: { sources: 1, kinds: ["float"] },
  LOG2: { sources: 1, kinds: ["float"] },
  ADD: { sources: 2, kinds: numbers },
  MUL: { sources: 2, kinds: all },
  MAX: { sources: 2, kinds: all },
  FLOORDIV: { sources: 2, kinds: ["integer"] },
  FLOORMOD: { sources: 2, kinds: ["integer"] },
  CMPLT: { sources: 2, kinds: numbers, result: dtypes.bool },
  CMPNE: { sources: 2, kinds: all, result: dtypes.bool },
  WHERE: { sources: 3, kinds: all },
};

const namesByWeek = {
  2: "BUFFER ALLOC INDEX LOAD STORE AFTER",
  3: "RESHAPE EXPAND PERMUTE FLIP PAD SHRINK REDUCE RANGE END",
  4: "STAGE",
  7: "KERNEL SPECIAL BARRIER MMA",
};

/** The week of each op that this compiler knows by name only. */
const laterOps = {};
for (const [week, names] of Object.entries(namesByWeek)) {
  for (const name of names.split(" ")) laterOps[name] = week;
}

/** What a reader and a simplifier ask of a language: its week, its ops, and those of later weeks. */
const week1 = { week: 1, ops, laterOps };

/** The {dtype, shape} of any node but a CALL; a Fault where the sources do not fit. */
function infer(op, src, arg, language = week1) {
  const own = language.ops[op].infer;
  if (own) return own(src, arg);
  language.expectValues?.(src);
  return elementwise(op, src, arg);
}

function elementwise(op, src, arg) {
  if (op === "PARAM") return { dtype: arg.dtype, shape: checkSize(arg.shape) };
  if (op === "CONST") return { dtype: arg.dtype, shape: SCALAR };
  const { kinds, result } = ops[op];
  if (op === "WHERE" && src[0].dtype !== dtypes.bool)
    throw new Fault("E402", `expected a bool condition, got ${src[0].dtype.name}`);
  const [first, second = first] = (op === "WHERE" ? src.slice(1) : src).map(({ dtype }) => dtype);
  if (first !== second)
    throw new Fault(
      "E401",
      `expected sources of one dtype, got ${first.name} and ${second.name}: add a CAST`,
    );
  if (!kinds.includes(first.kind))
    throw new Fault("E402", `expected a source of kind ${kinds.join(" or ")}, got ${first.name}`);
  const dtype = op === "CAST" ? arg : (result ?? first);
  return { dtype, shape: src.map(({ shape }) => shape).reduce(broadcast) };
}

module.exports = {
  LIMITS,
  SCALAR,
  Fault,
  shapeOf,
  checkSize,
  broadcast,
  ops,
  laterOps,
  week1,
  infer,
};
