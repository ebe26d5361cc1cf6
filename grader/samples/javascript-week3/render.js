"use strict";
// From a simplified program to C, in the plainest way: every value is computed once and held, a
// scalar in a variable, an array in the workspace. So nothing is read later than its node says. Only
// what a single op uses, and what reads nothing that may change, is computed in the loop of its user.
// Storage seen through INDEX, AFTER and movement ops is found by index arithmetic where it is used.

const base = "../javascript-week1";
const { postorder } = require(`${base}/writer.js`);
const { dtypes } = require(`${base}/arithmetic.js`);
const { NONE, isEffect, rootOf } = require("./language.js");
const c = require("./ctypes.js");

const ALIGNMENT = 64;
const LONGEST_CHAIN = 64; // of values that are computed in the loop of their last user
const product = (sizes) => sizes.reduce((a, b) => a * b, 1);
const isSimple = (text) => /^\w+$/.test(text);
const isWithin = (some, all) => [...some].every((item) => all.has(item));

/** Whether what a node gives may be another later on: it is storage that can be written. */
const isMutable = (node) => node.place && rootOf(node).op !== "PARAM";

/** Whether a node's elements are computed from those of its sources, one by one. */
const isElementwise = (node) =>
  !(node.op in statements || node.op in moves || node.op === "CONST" || node.op === "AFTER" || node.place);

class Renderer {
  users = new Map(); // node → its one user, or null
  fused = new Map(); // node that is computed in its user's loop → the length of the chain to it
  lines = [];
  indent = "  ";
  count = 0; // of names
  workspace = 0; // bytes
  statics = [];
  storage = new Map(); // PARAM, BUFFER, ALLOC → the name of its array
  held = new Map(); // node → its value: a name, or {array}
  indices = new Map(); // INDEX → its indices, fixed

  line(text) {
    this.lines.push(this.indent + text);
  }

  fresh(letter) {
    return `${letter}${this.count++}`;
  }

  /** A block of C around what `inside` emits. */
  block(head, inside) {
    this.line(`${head} {`);
    this.indent += "  ";
    inside();
    this.indent = this.indent.slice(2);
    this.line("}");
  }

  /** Loops over a shape, and within them what `inside` emits for the indices. */
  loops(shape, inside, indices = []) {
    if (indices.length === shape.length) return inside(indices);
    const size = shape[indices.length];
    if (size === 1) return this.loops(shape, inside, [...indices, "0"]);
    const i = this.fresh("i");
    return this.block(`for (int64_t ${i} = 0; ${i} < ${size}; ${i}++)`, () =>
      this.loops(shape, inside, [...indices, i]),
    );
  }

  /** An expression that is used more than once, by name. */
  named(type, text, letter = "t") {
    if (isSimple(text)) return text;
    const name = this.fresh(letter);
    this.line(`const ${type} ${name} = ${text};`);
    return name;
  }

  index(text) {
    return this.named("int64_t", text);
  }

  both(gate, condition) {
    if (!condition) return gate;
    return this.named("int", gate ? `${gate} && ${condition}` : condition, "g");
  }

  // ---- where things are ----

  /** A new array in the workspace, at least a byte long. */
  array(dtype, shape) {
    const name = this.fresh("a");
    const type = c.typeOf(dtype);
    this.statics.push(`  ${type} *${name} = (${type} *)((char *)workspace + ${this.workspace});`);
    const bytes = Math.max(1, product(shape)) * c.bytesOf(dtype);
    this.workspace += Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    return name;
  }

  storageOf(node) {
    if (!this.storage.has(node)) this.storage.set(node, this.declare(node));
    return this.storage.get(node);
  }

  declare({ op, arg, dtype, shape }) {
    if (op === "ALLOC") return this.array(dtype, shape);
    const type = c.typeOf(dtype);
    const name = this.fresh(op === "PARAM" ? "p" : "b");
    this.statics.push(
      op === "PARAM"
        ? `  const ${type} *${name} = inputs[${arg.slot}];`
        : `  static ${type} ${name}[${Math.max(1, product(shape))}] __attribute__((aligned(${ALIGNMENT})));`,
    );
    return name;
  }

  static flat(shape, at) {
    const terms = at.flatMap((i, axis) => {
      const stride = product(shape.slice(axis + 1));
      return i === "0" ? [] : [stride === 1 ? i : `${i} * ${stride}`];
    });
    return terms.join(" + ") || "0";
  }

  /** The element of a node at indices: {text, gate}, where it may be read if the gate is true. */
  element(node, at, gate) {
    for (; !this.held.has(node) && (node.op === "AFTER" || node.op in moves); [node] = node.src)
      if (node.op !== "AFTER") [at, gate] = moves[node.op](this, node, at, gate);
    const held = this.held.get(node);
    if (typeof held === "string") return { text: held, gate };
    if (node.op === "CONST") return { text: c.constant(node.arg.value, node.dtype), gate };
    return { text: `${held?.array ?? this.storageOf(node)}[${Renderer.flat(node.shape, at)}]`, gate };
  }

  /** The value at indices, by name: 0 where the gate is false. */
  value(node, at, gate) {
    if (this.fused.has(node)) return this.named(c.typeOf(node.dtype), this.computed(node, at), "x");
    const element = this.element(node, at, gate);
    const text = element.gate ? `${element.gate} ? ${element.text} : 0` : element.text;
    return node.op === "CONST" ? element.text : this.named(c.typeOf(node.dtype), text, "x");
  }

  /** The value of an operand that is broadcast to a shape. */
  operand(node, shape, at, gate) {
    const aligned = at.slice(shape.length - node.shape.length);
    return this.value(node, aligned.map((i, axis) => (node.shape[axis] === 1 ? "0" : i)), gate);
  }

  // ---- statements ----

  /** Holds a value of a node: `compute` emits what it needs at indices and gives its text. */
  hold(node, compute) {
    const { dtype, shape } = node;
    if (!shape.length) {
      this.held.set(node, this.scalar(c.typeOf(dtype), compute([])));
      return;
    }
    const array = this.array(dtype, shape);
    this.loops(shape, (at) => this.line(`${array}[${Renderer.flat(shape, at)}] = ${compute(at)};`));
    this.held.set(node, { array });
  }

  scalar(type, text) {
    const name = this.fresh("v");
    this.line(`${type} ${name} = ${text};`);
    return name;
  }

  /** Emits what one node does or computes; its sources are there. */
  emit(node, open) {
    if (node.op in statements) statements[node.op](this, node, open);
    else if (isElementwise(node) && !this.isLeftToUser(node)) this.hold(node, (at) => this.computed(node, at));
  }

  /** An element of an elementwise node. */
  computed({ op, src, dtype, shape }, at) {
    return c.apply(op, src, dtype, src.map((source) => this.operand(source, shape, at)));
  }

  isLeftToUser(node) {
    const user = this.users.get(node);
    const chain = 1 + Math.max(...node.src.map((source) => this.fused.get(source) ?? 0));
    const isOnce = user?.op === "REDUCE" ? user.src.length === 1 : user && isElementwise(user);
    if (!isOnce || (user.op !== "REDUCE" && user.shape !== node.shape)) return false;
    if (user.open.size !== node.open.size || node.src.some(isMutable) || chain > LONGEST_CHAIN) return false;
    this.fused.set(node, chain);
    return true;
  }

  /** Emits all that the roots need and that depends on open RANGEs only, in order. */
  emitAll(roots, open, emitted, then = () => {}) {
    const needs = (node) => {
      if (emitted.has(node)) return [];
      // What END repeats is not done before its loop, even if it does not depend on its RANGEs.
      return node.op === "END" ? [...node.src[0].src, ...node.src.slice(1)] : node.src;
    };
    for (const node of postorder(roots, needs)) {
      if (!emitted.has(node) && isWithin(node.open ?? NONE, open)) {
        emitted.add(node);
        this.emit(node, { ranges: open, emitted });
      }
      then(node);
    }
  }

  /** The loops that a node closes, the first one outermost unless it is bounded by a later one. */
  closing(node, { ranges, emitted }, inside) {
    const nest = (pending, open, done) => {
      const next = pending.find((range) => [...range.open].every((r) => r === range || open.has(r)));
      if (!next) {
        this.emitAll([node.src[0]], open, done);
        return inside();
      }
      const name = this.fresh("r");
      return this.block(`for (int64_t ${name} = 0; ${name} < ${this.end(next)}; ${name}++)`, () => {
        const within = new Set([...open, next]);
        const rest = pending.filter((range) => range !== next);
        const mine = new Set(done).add(next);
        this.held.set(next, name);
        if (rest.length) this.emitAll([...node.src[0].src, ...rest], within, mine);
        nest(rest, within, mine);
      });
    };
    const outside = this.held;
    this.held = new Map(outside); // what is held within a loop is gone behind it
    nest(node.src.slice(1), ranges, emitted);
    this.held = outside;
  }

  /** Where a RANGE ends: its size, or a bound that is less. */
  end({ src: [bound], arg: { size } }) {
    if (!bound) return String(size);
    const value = this.value(bound, []);
    const isLess = bound.dtype.lo < 0n ? `${value} < ${size}` : `(uint64_t)${value} < ${size}u`;
    return this.named("int64_t", `${isLess} ? (int64_t)${value} : ${size}`, "n");
  }

  render(outputs) {
    const written = new Set();
    for (const user of postorder(outputs))
      for (const source of user.src) this.users.set(source, this.users.has(source) ? null : user);
    for (const output of outputs) this.users.set(output, null);
    this.emitAll(outputs, NONE, new Set(), (node) => {
      if (written.has(node) || !outputs.includes(node)) return;
      written.add(node);
      for (const [k, output] of outputs.entries()) if (output === node) this.write(k, node);
    });
    return [
      c.PRELUDE,
      `size_t program_workspace(void) {\n  return ${this.workspace};\n}\n`,
      "void program(void *const *inputs, void *const *outputs, void *workspace) {",
      "  (void)inputs, (void)outputs, (void)workspace;",
      ...this.statics,
      ...this.lines,
      "}\n",
    ].join("\n");
  }

  write(k, node) {
    const type = c.typeOf(node.dtype);
    this.loops(node.shape, (at) => {
      const value = this.value(node, at);
      this.line(`((${type} *)outputs[${k}])[${Renderer.flat(node.shape, at)}] = ${value};`);
    });
  }
}

/** op → the indices of the source's element, and the gate under which there is one. */
const moves = {
  INDEX: (to, node, at, gate) => {
    const rest = [...at];
    const chosen = to.indices.get(node).map((index) => {
      const own = index.shape.length ? [rest.shift()] : [];
      return to.index(`(int64_t)${to.value(index, own, gate)}`);
    });
    return [[...chosen, ...rest], gate];
  },
  RESHAPE: (to, { src: [x], shape }, at, gate) => {
    if (!product(x.shape)) return [x.shape.map(() => "0"), gate];
    const flat = to.index(Renderer.flat(shape, at));
    const indices = x.shape.map((size, axis) => {
      const stride = product(x.shape.slice(axis + 1));
      return size === 1 ? "0" : to.index(`${flat} / ${stride} % ${size}`);
    });
    return [indices, gate];
  },
  EXPAND: (to, { src: [x], shape }, at, gate) => [
    at.slice(shape.length - x.shape.length).map((i, axis) => (x.shape[axis] === 1 ? "0" : i)),
    gate,
  ],
  PERMUTE: (to, { arg: { axes } }, at, gate) => [axes.map((_, axis) => at[axes.indexOf(axis)]), gate],
  FLIP: (to, { arg: { axes }, shape }, at, gate) => [
    at.map((i, axis) => (axes.includes(axis) ? to.index(`${shape[axis] - 1} - ${i}`) : i)),
    gate,
  ],
  SHRINK: (to, { arg: { pairs } }, at, gate) => [
    at.map((i, axis) => (pairs[axis][0] ? to.index(`${i} + ${pairs[axis][0]}`) : i)),
    gate,
  ],
  PAD: (to, { src: [x], arg: { pairs } }, at, gate) => {
    const indices = at.map((i, axis) => (pairs[axis][0] ? to.index(`${i} - ${pairs[axis][0]}`) : i));
    const inside = indices.flatMap((i, axis) => {
      const [before, after] = pairs[axis];
      return before || after ? [`${i} >= 0 && ${i} < ${x.shape[axis]}`] : [];
    });
    return [indices, to.both(gate, inside.join(" && "))];
  },
};

/** op → what is emitted for a node that is more than a value of its sources' elements. */
const statements = {
  RANGE: () => {},

  INDEX: (to, node) => to.indices.set(node, node.src.slice(1).map((index) => fixed(to, index))),

  LOAD: (to, node) => {
    const [place, gate, other] = node.src;
    to.hold(node, (at) => {
      if (!gate) return to.value(place, at);
      const own = to.operand(gate, node.shape, at);
      const value = to.value(place, at, own);
      return other ? `${own} ? ${value} : ${to.operand(other, node.shape, at)}` : value;
    });
  },

  STORE: (to, { src: [place, ...sources] }) => {
    const [value, gate] = sources.map((source) => fixed(to, source));
    to.loops(place.shape, (at) => {
      const own = gate && to.operand(gate, place.shape, at);
      const what = to.value(value, at);
      const where = to.element(place, at, own);
      to.line(`${where.gate ? `if (${where.gate}) ` : ""}${where.text} = ${what};`);
    });
  },

  END: (to, node, open) => to.closing(node, open, () => {}),

  REDUCE: (to, node, open) => (node.src.length > 1 ? overRanges : overAxes)(to, node, open),
};

/** A node whose value is what that of the given one is now, also when storage is written. */
function fixed(to, node) {
  if (!isMutable(node)) return node;
  const copy = { ...node, op: "LOAD", src: [node], place: undefined };
  to.hold(copy, (at) => to.value(node, at));
  return copy;
}

function overAxes(to, node) {
  const { src: [x], arg, dtype } = node;
  to.hold(node, (at) => {
    const sum = to.fresh("s");
    to.line(`${c.computed(dtype)} ${sum} = ${c.identity(arg.combine, dtype)};`);
    to.loops(x.shape.slice(0, arg.axes), (over) => {
      const value = to.value(x, [...over, ...at]);
      to.line(`${sum} = ${c.combined(arg.combine, dtype, sum, value)};`);
    });
    return c.store(dtype, sum);
  });
}

function overRanges(to, node, open) {
  const { src: [x], arg, dtype, shape } = node;
  const wide = c.computed(dtype) === "float" ? dtypes.float32 : dtype;
  const sums = to.array(wide, shape);
  const sum = (at) => `${sums}[${Renderer.flat(shape, at)}]`;
  to.loops(shape, (at) => to.line(`${sum(at)} = ${c.identity(arg.combine, dtype)};`));
  to.closing(node, open, () =>
    to.loops(shape, (at) => {
      const value = to.value(x, at);
      const before = to.named(c.computed(dtype), sum(at), "x");
      to.line(`${sum(at)} = ${c.combined(arg.combine, dtype, before, value)};`);
    }),
  );
  to.hold(node, (at) => c.store(dtype, sum(at)));
}

/** The C of a program's outputs. */
const render = (outputs) => new Renderer().render(outputs);

module.exports = { render };
