"use strict";
// The ops of weeks 2 and 3, beside those of week 1: how an argument is read, and what a node is.
//
// A node is a value, a place {writable, indexed}, an effect (of dtype `effect`), or a RANGE. `open`
// is the set of the RANGEs that it depends on and that nothing closes.

const base = "../javascript-week1";
const { dtypes } = require(`${base}/arithmetic.js`);
const { argumentText, postorder } = require(`${base}/writer.js`);
const { SCALAR, Fault, shapeOf, checkSize, broadcast, ops, laterOps } = require(`${base}/types.js`);

const effect = { kind: "effect", name: "no value" };
const STORAGE = { writable: true, indexed: false };
const NONE = new Set();

// ---- what sources have to be --------------------------------------------------------------------

const isEffect = ({ dtype }) => dtype === effect;
const isValue = (x) => !isEffect(x) && !x.place?.indexed;

function expect(holds, code, message) {
  if (!holds) throw new Fault(code, message);
}

function expectValues(src) {
  for (const x of src) expect(isValue(x), "E409", `expected a value, got ${x.op}`);
}

/** A CALL gives a value or has an effect; its arguments are values. */
const expectCallable = (body, args) => expectValues(isEffect(body) ? args : [body, ...args]);

const expectPlace = (x) => expect(x.place, "E409", `expected a place, got ${x.op}`);
const expectMovable = (x) => expect(!isEffect(x), "E409", `expected a value or a place, got ${x.op}`);

function expectGate(gate, { shape }) {
  if (!gate) return;
  expectValues([gate]);
  expect(gate.dtype === dtypes.bool, "E402", `expected a bool gate, got ${gate.dtype.name}`);
  const fits = gate.shape === SCALAR || gate.shape === shape;
  expect(fits, "E403", `expected a gate of shape [${shape}] or [], got [${gate.shape}]`);
}

function expectRanges(ranges) {
  for (const [k, range] of ranges.entries()) {
    expect(range.op === "RANGE", "E409", `expected a RANGE, got ${range.op}`);
    expect(!ranges.includes(range, k + 1), "E415", "expected each RANGE to be closed once");
  }
}

function expectAxes(axes, { shape }) {
  for (const axis of axes)
    expect(axis < shape.length, "E405", `expected an axis below ${shape.length}, got ${axis}`);
}

const expectPairs = (pairs, { shape }) =>
  expect(pairs.length === shape.length, "E406", `expected ${shape.length} pairs, got ${pairs.length}`);

// ---- dtype, shape and place of a node -----------------------------------------------------------

/** Of a movement op: storage stays storage, if its elements stay distinct. */
function moved(x, sizes, isDistinct = true) {
  const shape = checkSize(shapeOf(sizes));
  const place = x.place && { ...x.place, writable: x.place.writable && (isDistinct || shape === x.shape) };
  return { dtype: x.dtype, shape, place };
}

const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

const inferred = {
  PARAM: (src, { dtype, shape }) => ({ dtype, shape: checkSize(shape), place: STORAGE }),
  BUFFER: (src, { dtype, shape }) => ({ dtype, shape: checkSize(shape), place: STORAGE }),
  ALLOC: (src, { dtype, shape }) => ({ dtype, shape: checkSize(shape), place: STORAGE }),

  INDEX([x, ...indices]) {
    expectPlace(x);
    expectValues(indices);
    const rank = x.shape.length;
    expect(indices.length <= rank, "E405", `expected at most ${rank} indices, got ${indices.length}`);
    for (const { dtype, shape } of indices) {
      const fits = dtype.kind === "integer" && shape.length < 2;
      expect(fits, "E411", `expected an integer scalar or list as index, got ${dtype.name} [${shape}]`);
    }
    const sizes = [...indices.flatMap(({ shape }) => shape), ...x.shape.slice(indices.length)];
    const place = { writable: x.place.writable, indexed: true };
    return { dtype: x.dtype, shape: checkSize(shapeOf(sizes)), place };
  },

  LOAD([x, gate, other]) {
    expectPlace(x);
    expectGate(gate, x);
    if (other) {
      expectValues([other]);
      expect(other.dtype === x.dtype, "E401", `expected ${x.dtype.name}, got ${other.dtype.name}`);
      const fits = broadcast(other.shape, x.shape) === x.shape;
      expect(fits, "E403", `expected a shape that broadcasts to [${x.shape}], got [${other.shape}]`);
    }
    return { dtype: x.dtype, shape: x.shape };
  },

  STORE([x, value, gate]) {
    expectPlace(x);
    expectValues([value]);
    expect(x.place.writable, "E414", "expected a place of distinct elements, not one of EXPAND or PAD");
    expect(value.dtype === x.dtype, "E401", `expected ${x.dtype.name}, got ${value.dtype.name}`);
    expect(value.shape === x.shape, "E403", `expected the shape [${x.shape}], got [${value.shape}]`);
    expectGate(gate, x);
    return { dtype: effect, shape: SCALAR };
  },

  AFTER: ([{ dtype, shape, place }]) => ({ dtype, shape, place }),

  RESHAPE([x], { sizes }) {
    expectMovable(x);
    const [due, got] = [product(x.shape), product(sizes)];
    expect(due === got, "E404", `expected ${due} elements, got ${got}`);
    return moved(x, sizes);
  },

  EXPAND([x], { sizes }) {
    expectMovable(x);
    const kept = sizes.slice(sizes.length - x.shape.length);
    const fits = sizes.length >= x.shape.length && x.shape.every((n, k) => n === 1 || n === kept[k]);
    expect(fits, "E412", `expected a shape that [${x.shape}] broadcasts to, got [${sizes}]`);
    return moved(x, sizes, false);
  },

  PERMUTE([x], { axes }) {
    expectMovable(x);
    expect(axes.length === x.shape.length, "E406", `expected ${x.shape.length} axes, got ${axes.length}`);
    expectAxes(axes, x);
    return moved(x, axes.map((axis) => x.shape[axis]));
  },

  FLIP([x], { axes }) {
    expectMovable(x);
    expectAxes(axes, x);
    return moved(x, x.shape);
  },

  PAD([x], { pairs }) {
    expectMovable(x);
    expectPairs(pairs, x);
    return moved(x, x.shape.map((size, axis) => pairs[axis][0] + size + pairs[axis][1]), false);
  },

  SHRINK([x], { pairs }) {
    expectMovable(x);
    expectPairs(pairs, x);
    for (const [axis, [, end]] of pairs.entries())
      expect(end <= x.shape[axis], "E410", `expected an end of at most ${x.shape[axis]}, got ${end}`);
    return moved(x, pairs.map(([start, end]) => end - start));
  },

  REDUCE([x, ...ranges], { combine, axes }) {
    expectValues([x]);
    expect(combine !== "ADD" || x.dtype !== dtypes.bool, "E402", "expected numbers to add, got bool");
    expect(axes <= x.shape.length, "E405", `expected at most ${x.shape.length} axes, got ${axes}`);
    expect(!ranges.length || !axes, "E406", "expected axes 0 where RANGEs are reduced");
    expectRanges(ranges);
    return { dtype: x.dtype, shape: shapeOf(x.shape.slice(axes)) };
  },

  RANGE([bound]) {
    if (bound) {
      expectValues([bound]);
      const fits = bound.dtype.kind === "integer" && bound.shape === SCALAR;
      expect(fits, "E411", `expected an integer scalar as bound, got ${bound.dtype.name} [${bound.shape}]`);
    }
    return { dtype: dtypes.int64, shape: SCALAR };
  },

  END([x, ...ranges]) {
    expect(isEffect(x), "E409", `expected an effect, got ${x.op}`);
    expectRanges(ranges);
    return { dtype: effect, shape: SCALAR };
  },
};

/** Sets what a node is behind its type: its open RANGEs. */
function complete(node) {
  const { op, src } = node;
  let open = NONE;
  for (const source of src) {
    const more = source.open ?? NONE;
    if (more.size && more !== open) open = open.size ? new Set([...open, ...more]) : more;
  }
  if (op === "RANGE") open = new Set([...open, node]);
  if (op === "END" || op === "REDUCE") {
    const closed = src.slice(1);
    if (closed.length) open = new Set([...open].filter((range) => !closed.includes(range)));
  }
  node.open = open;
}

/** A function that gives the first of the RANGEs that are equal, and any other node as it is. */
function rangesOnce() {
  const numbers = new Map(); // what a node is made of → its number
  const ranges = new Map(); // number → the first RANGE that has it
  return (node) => {
    if (node.op !== "RANGE") return node;
    for (const each of postorder([node], ({ src }) => src.filter(({ number }) => number === undefined))) {
      const key = [each.op, ...each.src.map(({ number }) => number), argumentText(each)].join(" ");
      if (!numbers.has(key)) numbers.set(key, numbers.size);
      each.number = numbers.get(key);
    }
    if (!ranges.has(node.number)) ranges.set(node.number, node);
    return ranges.get(node.number);
  };
}

// ---- arguments ----------------------------------------------------------------------------------

const NATURAL = { lo: 0n, hi: dtypes.int64.hi };

const naturals = (reader, items, what) => reader.integers(items, "E311", NATURAL, what)?.map(Number);

function storage(reader, json, optional = []) {
  const { slot, dtype, shape, addrspace } = reader.object(json, ["slot", "dtype", "shape"], optional);
  const read = {
    slot: slot && reader.integers([slot], "E311", NATURAL, "a slot from 0")?.[0],
    dtype: dtype && reader.dtype(dtype),
  };
  const sizes = shape && reader.list(shape) && naturals(reader, shape.items, "sizes from 0");
  const space = addrspace && word(reader, addrspace, ["MEM", "LOCAL", "REG"]);
  if (!read.dtype || !sizes) return read;
  const where = space ? `, "addrspace": "${space}"` : "";
  const text = `{"slot": ${read.slot}, "dtype": "${read.dtype.name}", "shape": [${sizes.join(", ")}]${where}}`;
  return { ...read, shape: shapeOf(sizes), text };
}

function word(reader, json, words) {
  if (json.kind !== "string") return reader.wrong("E306", `expected one of ${words.join(", ")} in quotes`);
  if (!words.includes(json.text)) return reader.wrong("E311", `expected one of ${words.join(", ")}`);
  return json.text;
}

function sizes(reader, json) {
  const found = reader.list(json) && naturals(reader, json.items, "sizes from 0");
  return found ? { sizes: found, text: `[${found.join(", ")}]` } : {};
}

function axes(reader, json) {
  const found = reader.list(json) && naturals(reader, json.items, "axes from 0");
  if (!found) return {};
  if (new Set(found).size < found.length) reader.wrong("E311", "expected each axis once");
  return { axes: found, text: `[${found.join(", ")}]` };
}

function pairs(reader, json, isOrdered = false) {
  if (!reader.list(json) || !json.items.every((item) => reader.list(item, 2))) return {};
  const found = json.items.map(({ items }) => naturals(reader, items, "bounds from 0"));
  if (!found.every(Boolean)) return {};
  if (isOrdered && found.some(([start, end]) => start > end))
    reader.wrong("E311", "expected bounds [start, end] with start at most end");
  return { pairs: found, text: `[${found.map((pair) => `[${pair.join(", ")}]`).join(", ")}]` };
}

function reduction(reader, json) {
  const { op, axes: count } = reader.object(json, ["op", "axes"]);
  const combine = op && word(reader, op, ["ADD", "MUL", "MAX"]);
  const [number] = (count && naturals(reader, [count], "a number of axes")) ?? [];
  return { combine, axes: number, text: `{"op": "${combine}", "axes": ${number}}` };
}

function range(reader, json) {
  const { id, size } = reader.object(json, ["id", "size"]);
  const [name] = (id && reader.integers([id], "E311", NATURAL, "an id from 0")) ?? [];
  const [length] = (size && naturals(reader, [size], "a size from 0")) ?? [];
  return { id: name, size: length, text: `{"id": ${name}, "size": ${length}}` };
}

// ---- the whole program --------------------------------------------------------------------------

const ALL = [1, Infinity];
const week2 = {
  PARAM: { ...ops.PARAM, infer: inferred.PARAM },
  BUFFER: {
    sources: 0,
    read: (reader, json) => storage(reader, json),
    example: '{"slot": 0, "dtype": "float32", "shape": [2]}',
  },
  ALLOC: {
    sources: 0,
    read: (reader, json) => storage(reader, json, ["addrspace"]),
    example: '{"slot": 0, "dtype": "float32", "shape": [2]}',
  },
  INDEX: { sources: ALL },
  LOAD: { sources: [1, 3] },
  STORE: { sources: [2, 3] },
  AFTER: { sources: ALL },
};
const week3 = {
  RESHAPE: { sources: 1, read: sizes, example: "[2, 3]" },
  EXPAND: { sources: 1, read: sizes, example: "[2, 3]" },
  PERMUTE: { sources: 1, read: axes, example: "[1, 0]" },
  FLIP: { sources: 1, read: axes, example: "[0]" },
  PAD: { sources: 1, read: (reader, json) => pairs(reader, json), example: "[[1, 1]]" },
  SHRINK: { sources: 1, read: (reader, json) => pairs(reader, json, true), example: "[[0, 2]]" },
  REDUCE: { sources: ALL, read: reduction, example: '{"op": "ADD", "axes": 1}' },
  RANGE: {
    sources: [0, 1],
    read: range,
    example: '{"id": 0, "size": 4}',
    interval: (src, { size }) => [0n, size ? BigInt(size) - 1n : 0n],
  },
  END: { sources: [2, Infinity] },
};
for (const rows of [week2, week3])
  for (const [op, row] of Object.entries(rows)) row.infer = inferred[op];

/** The storage that a place is a part of. */
function rootOf(place) {
  while (place.op !== "PARAM" && place.op !== "BUFFER" && place.op !== "ALLOC") {
    if (!place.src.length || !place.place) return place;
    [place] = place.src;
  }
  return place;
}

/** The slots of the PARAMs that nodes of one scope store into; `tell` learns of each store. */
function storedSlots(reader, roots, known, tell = () => {}) {
  const slots = new Set();
  const note = (node, place) => {
    const root = rootOf(place);
    if (root.op !== "PARAM") return;
    slots.add(root.arg.slot);
    tell(node);
  };
  for (const node of reader.scopeOf(roots)) {
    if (node.op === "STORE") note(node, node.src[0]);
    if (node.op !== "CALL") continue;
    const [body, ...args] = node.src;
    if (!known.has(body)) known.set(body, storedSlots(reader, [body], known));
    for (const slot of known.get(body)) note(node, args[Number(slot)]);
  }
  return slots;
}

function checkProgram(reader) {
  const scope = reader.scopeOf(reader.outputs);
  reader.checkSlots("ALLOC", scope);
  const everything = new Set(reader.outputs);
  for (const { src } of everything) for (const source of src) everything.add(source);
  reader.checkSlots("BUFFER", everything);
  const { fields, line } = reader.returned;
  for (const [k, output] of reader.outputs.entries()) {
    const { at } = fields[k];
    if (!isValue(output)) reader.report("E413", at, `expected a value, got ${output.op}`, line);
    else if (output.open?.size) reader.report("E415", at, "expected every RANGE to be closed", line);
  }
  storedSlots(reader, reader.outputs, new Map(), ({ at, line: where }) =>
    reader.report("E414", at, "expected no STORE into an input of the program", where),
  );
}

/** Sources with which a node is still carried out in each turn of its loops, if simpler ones need no RANGE. */
function keepTurns(graph, { op, open }, src, now) {
  if (op === "RANGE" || !open.size) return src;
  const lost = [...open].map(now).filter((range) => !src.some((source) => source.open?.has(range)));
  return lost.length ? [graph.make("AFTER", [src[0], ...new Set(lost)]), ...src.slice(1)] : src;
}

/** The language of a week, as a reader and a simplifier want it. */
function languageOf(week) {
  const known = { ...ops, ...(week > 1 ? week2 : {}), ...(week > 2 ? week3 : {}) };
  if (week < 2) return { week: 1, ops, laterOps };
  const hooks = { expectValues, expectCallable, complete, firstOf: rangesOnce(), checkProgram, keepTurns };
  return { week: Math.min(week, 3), ops: known, laterOps, ...hooks };
}

module.exports = { languageOf, isEffect, rootOf, NONE };
