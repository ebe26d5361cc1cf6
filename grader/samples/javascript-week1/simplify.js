"use strict";
// The simplifier. A node is simplified when it is made: from sources that are simplified already,
// it becomes a constant, one of its sources, or itself, found in or added to the graph's table.

const { dtypes, fold, cast, holds, floorDiv, floorMod } = require("./arithmetic.js");
const { LIMITS, SCALAR, Fault, week1: language, infer } = require("./types.js");
const { format, postorder } = require("./writer.js");

// ---- intervals --------------------------------------------------------------------------------

const least = (values) => values.reduce((a, b) => (b < a ? b : a));
const greatest = (values) => values.reduce((a, b) => (b > a ? b : a));
const hull = (values) => [least(values), greatest(values)];
const corners = (a, b, combine) => hull([a.lo, a.hi].flatMap((x) => [combine(x, b.lo), combine(x, b.hi)]));

/** The parts of a divisor's interval where division is monotonic: below, at and above zero. */
function partsOf({ lo, hi }) {
  return [
    [lo, hi < -1n ? hi : -1n],
    [lo > 0n ? lo : 0n, hi < 0n ? hi : 0n],
    [lo > 1n ? lo : 1n, hi],
  ]
    .filter(([from, to]) => from <= to)
    .map(([from, to]) => ({ lo: from, hi: to }));
}

function floorModInterval(a, b) {
  if (b.lo === 0n && b.hi === 0n) return [a.lo, a.hi];
  if (b.lo === b.hi && floorDiv(a.lo, b.lo) === floorDiv(a.hi, b.lo)) {
    return [floorMod(a.lo, b.lo), floorMod(a.hi, b.lo)];
  }
  if (b.lo < 0n || a.lo < 0n) return b.lo > 0n ? [0n, b.hi - 1n] : undefined;
  return [0n, b.lo > 0n && b.hi <= a.hi ? b.hi - 1n : a.hi]; // x % 0 is x
}

/** op → (sources…) → the interval of its exact result, or undefined for any value of the dtype. */
const intervals = {
  NEG: (a) => [-a.hi, -a.lo],
  ADD: (a, b) => [a.lo + b.lo, a.hi + b.hi],
  MUL: (a, b) => corners(a, b, (x, y) => x * y),
  MAX: (a, b) => [greatest([a.lo, b.lo]), greatest([a.hi, b.hi])],
  FLOORDIV: (a, b) => hull(partsOf(b).flatMap((part) => corners(a, part, floorDiv))),
  FLOORMOD: floorModInterval,
  CMPLT: (a, b) => (a.hi < b.lo ? [1n, 1n] : a.lo >= b.hi ? [0n, 0n] : undefined),
  CMPNE: (a, b) => {
    if (a.hi < b.lo || b.hi < a.lo) return [1n, 1n];
    return isFixed(a) && isFixed(b) ? [0n, 0n] : undefined;
  },
  WHERE: (condition, a, b) => hull([a.lo, a.hi, b.lo, b.hi]),
};

/** The interval [lo, hi] of an integer or bool node; [] for a float. */
function intervalOf(op, src, arg, dtype, row) {
  if (dtype.kind === "float") return [];
  let interval;
  if (op === "PARAM") interval = arg.range;
  else if (row.infer && !Object.hasOwn(intervals, op)) interval = row.interval?.(src, arg);
  else if (src.at(-1).dtype.kind === "float") interval = undefined;
  else if (op !== "CAST") interval = intervals[op](...src);
  else if (dtype.kind !== "bool") interval = [src[0].lo, src[0].hi];
  else interval = intervals.CMPNE(src[0], { lo: 0n, hi: 0n });
  const [lo, hi] = interval ?? [dtype.lo, dtype.hi];
  return lo < dtype.lo || hi > dtype.hi ? [dtype.lo, dtype.hi] : [lo, hi]; // past the dtype it wraps
}

// ---- linear forms -----------------------------------------------------------------------------

const STRIDE = BigInt(LIMITS.elements); // no tensor has a larger one

/**
 * An integer node as a sum Σ c·t + constant, where `terms` is t → c. It is equal to the node modulo
 * 2^n, whatever wraps on the way. Sums are opened `depth` steps down, products by a constant up to
 * factors of STRIDE; what is not opened is a term.
 */
function linear(node, factor = 1n, depth = 8, form = { terms: new Map(), constant: 0n }) {
  const [a, b] = node.src;
  const scaled = node.op === "MUL" && isFixed(b) ? factor * b.lo : undefined;
  if (isFixed(node)) form.constant += factor * node.lo;
  else if (depth && node.op === "ADD") for (const source of [a, b]) linear(source, factor, depth - 1, form);
  else if (depth && node.op === "NEG") linear(a, -factor, depth - 1, form);
  else if (depth && scaled !== undefined && -STRIDE <= scaled && scaled <= STRIDE)
    linear(a, scaled, depth - 1, form);
  else form.terms.set(node, (form.terms.get(node) ?? 0n) + factor);
  return form;
}

/** The bounds of the exact value of a form. */
function boundsOf({ terms, constant }) {
  const ends = [...terms].map(([t, c]) => hull([c * t.lo, c * t.hi]));
  return ends.reduce(([lo, hi], end) => [lo + end[0], hi + end[1]], [constant, constant]);
}

/**
 * x as d·quotient + rest with 0 ≤ rest < d, both as forms. Undefined unless x is its form exactly,
 * which it is if that stays within the dtype, and the rest lies between two multiples of d.
 */
function split(x, d) {
  const { terms, constant } = linear(x);
  const [lo, hi] = boundsOf({ terms, constant });
  if (lo < x.dtype.lo || hi > x.dtype.hi) return undefined;
  const eachTerm = (of) => new Map([...terms].map(([t, c]) => [t, of(c)]));
  const rest = { terms: eachTerm((c) => c % d), constant };
  const [turns, last] = boundsOf(rest).map((bound) => floorDiv(bound, d));
  if (turns !== last) return undefined;
  rest.constant -= turns * d;
  return { quotient: { terms: eachTerm((c) => c / d), constant: turns }, rest };
}

/** The node of a form, the constant last. */
function build(graph, { terms, constant }, dtype) {
  const number = (value) => graph.constant(dtype.fit(value), dtype);
  const parts = [...terms].filter(([, c]) => c).map(([t, c]) => graph.make("MUL", [t, number(c)]));
  if (constant || !parts.length) parts.push(number(constant));
  return parts.reduce((sum, part) => graph.make("ADD", [sum, part]));
}

/** The quotient or the rest of x by a constant d > 0, where `split` finds it. */
function divide(graph, x, d, part) {
  const parts = isFixed(d) && d.lo > 0n ? split(x, d.lo) : undefined;
  return parts && build(graph, parts[part], x.dtype);
}

// ---- identities -------------------------------------------------------------------------------

/** Whether one value is all that an integer or bool node can have. */
const isFixed = ({ lo, hi }) => lo !== undefined && lo === hi;

/** Whether a node is known to be the number everywhere: an integer's interval, a float's CONST. */
const is = (node, number) =>
  node.dtype.kind === "float"
    ? node.op === "CONST" && node.arg.value === number
    : isFixed(node) && node.lo == number;

/** (x + c) + d → x + (c + d), for integers, where c and d are constants; MUL alike. */
function reassociate(graph, op, a, b) {
  if (a.dtype.kind === "float" || a.op !== op || a.src[1].op !== "CONST" || b.op !== "CONST")
    return undefined;
  return graph.make(op, [a.src[0], graph.make(op, [a.src[1], b])]);
}

/** A CAST of a CAST whose middle dtype changes nothing. */
function castOnce(graph, x, dtype) {
  if (x.op !== "CAST") return undefined;
  const [from, middle] = [x.src[0].dtype, x.dtype];
  const cutsOff =
    [from, middle, dtype].every(({ kind }) => kind === "integer") &&
    dtype.hi - dtype.lo <= middle.hi - middle.lo;
  return holds(middle, from) || cutsOff ? graph.make("CAST", [x.src[0]], dtype) : undefined;
}

/**
 * op → (graph, sources…, arg) → an equal node, or undefined. Constants stand on the right here.
 * A node may be replaced only by one of its own shape: `make` sees to that.
 */
const identities = {
  CAST: (graph, x, dtype) => (x.dtype === dtype ? x : castOnce(graph, x, dtype)),
  NEG: (graph, x) => (x.op === "NEG" ? x.src[0] : undefined),
  ADD: (graph, a, b) => (is(b, 0) ? a : reassociate(graph, "ADD", a, b)),
  MUL: (graph, a, b) => {
    if (is(b, 1) || (a === b && a.dtype === dtypes.bool)) return a;
    return reassociate(graph, "MUL", a, b);
  },
  MAX: (graph, a, b) => {
    if (a === b || a.lo >= b.hi || is(b, -Infinity)) return a;
    return b.lo >= a.hi ? b : undefined;
  },
  FLOORDIV: (graph, a, b) => (is(b, 1) ? a : divide(graph, a, b, "quotient")),
  FLOORMOD: (graph, a, b) => (is(b, 0) || (a.lo >= 0n && a.hi < b.lo) ? a : divide(graph, a, b, "rest")),
  CMPLT: (graph, a, b) => (a === b ? graph.constant(0n, dtypes.bool) : undefined),
  CMPNE: (graph, a, b) => {
    if (a === b && a.dtype.kind !== "float") return graph.constant(0n, dtypes.bool); // but NaN ≠ NaN
    if (a.dtype !== dtypes.bool) return undefined;
    if (is(b, 0)) return a;
    return is(b, 1) && a.op === "CMPNE" && a.src[0].dtype === dtypes.bool && is(a.src[1], 1)
      ? a.src[0]
      : undefined;
  },
  WHERE: (graph, condition, a, b) => {
    if (a === b || is(condition, 1)) return a;
    if (is(condition, 0)) return b;
    return a.dtype === dtypes.bool && is(a, 1) && is(b, 0) ? condition : undefined;
  },
};

// ---- the graph --------------------------------------------------------------------------------

const isConstant = ({ op }) => op === "CONST";
const commutative = new Set(["ADD", "MUL", "MAX", "CMPNE"]);

class Graph {
  nodes = new Map(); // key → the one node of its op, sources and argument
  isParamTied = false; // whether a PARAM may be that of a body, for storage that may be written

  constructor(tables) {
    this.tables = tables;
  }

  constant(value, dtype) {
    const key = `${dtype.name} ${Object.is(value, -0) ? "-0" : value}`;
    const interval = dtype.kind === "float" ? [] : [value, value];
    return this.nodes.get(key) ?? this.add(key, "CONST", [], { value, dtype }, dtype, SCALAR, interval);
  }

  /** What stands for a node where its value is asked for: a constant, if that is all it can be. */
  valueOf(node) {
    const isAlways = isFixed(node) && node.shape === SCALAR && !node.isTied && node.op !== "RANGE";
    return isAlways ? this.constant(node.lo, node.dtype) : node;
  }

  /** The simplified node for another one, on simplified sources; `now` gives that of any below it. */
  image(node, src, now, arg = node.arg) {
    const { keepTurns } = this.tables.language;
    const kept = keepTurns && this.isTied(node.op, src) ? keepTurns(this, node, src, now) : src;
    return this.make(node.op, kept, arg);
  }

  /** The simplified node for an op on simplified sources. */
  make(op, sources, arg) {
    if (op === "CONST") return this.constant(arg.value, arg.dtype);
    const { ops, complete } = this.tables.language;
    const isElementwise = Boolean(ops[op].kinds);
    const known = (node) => isConstant(node) || isFixed(node);
    const src = sources.map((source, k) => (k || isElementwise ? this.valueOf(source) : source)); // but places
    if (commutative.has(op) && known(src[0]) && !known(src[1])) src.reverse();
    const type = infer(op, src, arg, this.tables.language);
    const { dtype, shape } = type;
    const value = src.length && src.every(isConstant) ? this.fold(op, src, arg, dtype) : undefined;
    if (value !== undefined) return this.constant(value, dtype);
    const interval = this.tables.intervalOf(op, src, arg, dtype, ops[op]);
    const isTied = this.isTied(op, src);
    if (!isTied) {
      const [lo, hi] = interval;
      if (isElementwise && shape === SCALAR && isFixed({ lo, hi })) return this.constant(lo, dtype);
      const simpler = this.tables.identities[op]?.(this, ...src, arg);
      if (simpler?.shape === shape) return simpler;
    }
    const key = [
      op,
      ...src.map(({ id }) => id),
      op === "PARAM" ? [arg.slot, dtype.name, shape, "range", arg.range] : [dtype.name, arg?.text],
    ].join();
    const kept = this.nodes.get(key);
    if (kept) return kept;
    const node = Object.assign(this.add(key, op, src, arg, dtype, shape, interval), type, { isTied });
    complete?.(node);
    return node;
  }

  /**
   * Whether a node stays as it is, because it depends on storage that may be written: a STORE may wait for
   * what it reads.
   */
  isTied(op, src) {
    const isStorage = op === "BUFFER" || op === "ALLOC" || (op === "PARAM" && this.isParamTied);
    return isStorage || src.some((source) => source.isTied);
  }

  fold(op, src, arg, dtype) {
    const values = src.map((source) => source.arg.value);
    return op === "CAST" ? cast(values[0], src[0].dtype, arg) : this.tables.fold[op]?.(dtype, ...values);
  }

  add(key, op, src, arg, dtype, shape, [lo, hi]) {
    const isScoped = op === "PARAM" || op === "ALLOC" || src.some((source) => source.isScoped);
    const node = { id: this.nodes.size, op, src, arg, dtype, shape, lo, hi, isScoped };
    this.nodes.set(key, node);
    return node;
  }
}

// ---- programs ---------------------------------------------------------------------------------

/** An ALLOC's argument with a slot that no other has. */
function withFreshSlot(arg, budget) {
  const slot = budget.slot++;
  return { ...arg, slot, text: arg.text.replace(/"slot": [0-9]+/, `"slot": ${slot}`) };
}

/**
 * The body of a CALL with its PARAMs replaced, and ALLOCs of its own. `budget` bounds what all CALLs of a
 * program make.
 */
function inline(graph, [called, ...args], budget) {
  const body = graph.valueOf(called);
  const replaced = new Map();
  const now = (node) => replaced.get(node) ?? node;
  for (const node of postorder([body], ({ src }) => src.filter(({ isScoped }) => isScoped))) {
    if (--budget.nodes < 0)
      throw new Fault("E501", `expected at most ${LIMITS.nodes} nodes once the CALLs are inlined`);
    if (!node.isScoped) continue;
    const arg = node.op === "ALLOC" ? withFreshSlot(node.arg, budget) : node.arg;
    replaced.set(
      node,
      node.op === "PARAM" ? args[Number(node.arg.slot)] : graph.image(node, node.src.map(now), now, arg),
    );
  }
  return now(body);
}

/** The outputs of a program, as the reader gives them, simplified. */
function simplify(outputs, tables, report) {
  const graph = new Graph(tables);
  const order = postorder(outputs);
  const has = (name) => order.some(({ op }) => op === name);
  graph.isParamTied = has("CALL") && (has("BUFFER") || has("ALLOC"));
  const slots = order.filter(({ op }) => op === "ALLOC").map(({ arg }) => arg.slot);
  const budget = { nodes: LIMITS.nodes, slot: 1n + slots.reduce((a, b) => (a > b ? a : b), -1n) };
  const simplified = new Map();
  const now = (node) => simplified.get(node);
  for (const node of order) {
    const src = node.src.map(now);
    try {
      simplified.set(node, node.op === "CALL" ? inline(graph, src, budget) : graph.image(node, src, now));
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      return report(fault.code, node.at, fault.message, node.line);
    }
  }
  return outputs.map((node) => graph.valueOf(now(node)));
}

/** What another simplifier may replace, table by table. */
const week1 = { language, intervalOf, fold, identities, format };

module.exports = { week1, simplify };
