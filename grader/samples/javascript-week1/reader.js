"use strict";
// From bytes to nodes: the grammar, the names and the types of a program. Every error that can
// be found is reported; a faulty statement still defines its name, so that one mistake is
// one error.

const { isUtf8 } = require("node:buffer");
const { ArgumentReader, brief } = require("./arguments.js");
const { LIMITS, Fault, week1, infer } = require("./types.js");

const NAME = /^[A-Za-z_%][A-Za-z0-9_.%]*$/;
const OP = /^[A-Z][A-Z0-9_]*$/;
const isName = (text) => NAME.test(text) && text !== "return" && text !== "uops";

/** The lines' bytes without their ends, `\n` or `\r\n`. */
function* linesOf(bytes) {
  for (let start = 0, end; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(10, start);
    if (end < 0) return yield bytes.subarray(start);
    yield bytes.subarray(start, end > start && bytes[end - 1] === 13 ? end - 1 : end);
  }
}

/** A line's fields {text, at} and their end: the `:` or, with the text "", where the last one ends. */
function fieldsOf(line) {
  const fields = [];
  const pattern = /[ \t]*([^ \t#]+)/y;
  let at = 0;
  for (let match; (match = pattern.exec(line)); at = pattern.lastIndex) {
    const field = { text: match[1], at: pattern.lastIndex - match[1].length };
    if (field.text === ":") return { fields, end: field };
    fields.push(field);
  }
  return { fields, end: { text: "", at } };
}

/** What the fields of a statement are, in order; behind these three come sources. */
const GRAMMAR = [
  { what: "a name", fits: isName },
  { what: "`=`", fits: (text) => text === "=" },
  { what: "an op, in capitals", fits: (text) => OP.test(text) },
];
const SOURCE = { what: "the name of a source, or ` : ` and the argument", fits: isName };

const isSameParam = (a, b) =>
  a.dtype === b.dtype &&
  a.shape === b.shape &&
  String(a.arg.range) === String(b.arg.range) &&
  a.arg.text === b.arg.text;

class Reader extends ArgumentReader {
  outputs = null;
  count = 0; // statements so far
  names = new Map(); // name → its node, or null where the statement that defines it is faulty
  scopes = new Map(); // body of a CALL → its PARAMs, as `slotsOf` gives them
  scopeSteps = 0; // nodes visited to find all these PARAMs

  constructor(language = week1) {
    super();
    this.language = language;
  }

  /** Reads a whole program: afterwards `errors` is empty and `outputs` are its output nodes, or not. */
  read(bytes) {
    this.line = { number: 1, text: "" };
    let number = 0;
    for (const lineBytes of linesOf(bytes)) {
      this.line = { number: ++number, text: lineBytes.toString("utf8") };
      if (number === 1) this.checkMark();
      if (!isUtf8(lineBytes)) this.reportBadByte(lineBytes);
      if (number === 1) this.header();
      if (number > 1 || this.isHeadless) this.statement();
      if (this.stopped) return this;
    }
    if (number === 0) this.header();
    if (!this.outputs)
      this.report("E203", this.line.text.length, "expected a `return` with the outputs at the end");
    if (this.errors.length === 0) this.checkProgram();
    return this;
  }

  checkMark() {
    if (!this.line.text.startsWith("\ufeff")) return;
    this.report("E103", 0, "expected UTF-8 without a byte-order mark");
    this.line.text = this.line.text.slice(1);
  }

  /** Decoding put U+FFFD where the bytes are not UTF-8: the first byte that differs is at fault. */
  reportBadByte(lineBytes) {
    const decoded = Buffer.from(this.line.text);
    let index = 0;
    while (decoded[index] === lineBytes[index]) index++;
    while ((decoded[index] & 0xc0) === 0x80) index--; // to the start of the character
    const at = decoded.subarray(0, index).toString("utf8").length;
    this.report("E103", at, "expected UTF-8, got a byte that is none");
  }

  // ---- statements ----

  header() {
    const { fields, end } = fieldsOf(this.line.text);
    const [word, version, more = end] = fields;
    if (word?.text !== "uops") {
      this.report("E101", word?.at ?? 0, "expected the header `uops 1` in the first line");
      this.isHeadless = true;
    } else if (version?.text !== "1") {
      this.report("E102", (version ?? word).at, "expected the header `uops 1`, of version 1");
      this.stopped = true;
    } else if (more.text) this.report("E104", more.at, "expected nothing after the header");
  }

  statement() {
    const { fields, end } = fieldsOf(this.line.text);
    const [first = end] = fields;
    if (!first.text) return;
    if (this.isHeadless && first.text === "uops") {
      this.isHeadless = false; // the header is here, too late: that is E101 already
      return;
    }
    if (this.outputs) return this.report("E107", first.at, "expected nothing after `return`");
    if (first.text === "return") return this.returns(fields.slice(1), end);
    const before = this.errors.length;
    if (!this.line.isBroken && this.isWellFormed(fields, end)) this.define(fields, end);
    if (this.line.isBroken || this.errors.length > before) this.poison(first);
  }

  /** Remembers what a faulty statement defines: uses of the name are no errors of their own. */
  poison({ text }) {
    const [name] = text.split("=", 1); // of `a=NEG b` too
    if (isName(name) && !this.names.has(name)) this.names.set(name, null);
  }

  isWellFormed(fields, end) {
    for (let k = 0; k < Math.max(GRAMMAR.length, fields.length); k++) {
      const { what, fits } = GRAMMAR[k] ?? SOURCE;
      const { text, at } = fields[k] ?? end;
      if (fits(text)) continue;
      const [glued] = /^[A-Za-z0-9_.%]+(?=[=:])|/.exec(text); // to a `=` or `:` without blanks
      const got = text ? `\`${brief(text)}\`` : "the end of the line";
      this.report("E104", at + glued.length, `expected ${what}, got ${got}`);
      return false;
    }
    return true;
  }

  returns(fields, end) {
    const isOver = fields.length > 0 && !end.text;
    const wrong = fields.find(({ text }) => !isName(text)) ?? (isOver ? undefined : end);
    if (wrong) this.report("E106", wrong.at, "expected the names of outputs after `return`, and only names");
    this.outputs = wrong ? [] : fields.map((field) => this.lookup(field));
    this.returned = { fields, line: this.line };
  }

  lookup({ text, at }) {
    if (this.names.has(text)) return this.names.get(text);
    this.report("E201", at, `\`${brief(text)}\` is not defined: a name is defined on a line before its uses`);
    return null;
  }

  define([name, , op, ...sources], end) {
    const before = this.errors.length;
    if (++this.count > LIMITS.nodes) {
      this.stopped = true;
      return this.report("E501", name.at, `expected at most ${LIMITS.nodes} nodes`);
    }
    if (this.names.has(name.text)) this.report("E202", name.at, `\`${brief(name.text)}\` is defined already`);
    const node = {
      op: op.text,
      src: sources.map((field) => this.lookup(field)),
      line: this.line,
      at: op.at,
    };
    const json = end.text ? this.json(end.at + 1) : undefined;
    const { ops, laterOps, week } = this.language;
    if (Object.hasOwn(ops, node.op)) {
      this.countSources(node);
      node.arg = this.argument(node, json);
    } else if (Object.hasOwn(laterOps, node.op)) {
      const message = `${node.op} is an op of week ${laterOps[node.op]}, expected one of week ${week}`;
      this.report("E302", op.at, message);
    } else this.report("E301", op.at, `there is no op \`${brief(node.op)}\``);
    if (this.errors.length > before || node.src.includes(null)) return this.poison(name);
    const type = this.attempt(op.at, () =>
      node.op === "CALL" ? this.typeOfCall(node.src) : infer(node.op, node.src, node.arg, this.language),
    );
    if (!type) return this.poison(name);
    Object.assign(node, type);
    this.language.complete?.(node);
    this.names.set(name.text, this.language.firstOf?.(node) ?? node);
  }

  countSources({ op, src, at }) {
    const [least, most] = [this.language.ops[op].sources].flat();
    if (least <= src.length && src.length <= (most ?? least)) return;
    const due = most === undefined ? least : most === Infinity ? `${least} or more` : `${least} to ${most}`;
    this.report("E303", at, `expected ${due} sources of ${op}, got ${src.length}`);
  }

  // ---- CALL ----

  /** The body's type, once the arguments are seen to match its PARAMs. */
  typeOfCall([body, ...args]) {
    this.language.expectCallable?.(body, args);
    if (!this.scopes.has(body)) this.scopes.set(body, this.slotsOf(this.scopeOf([body])));
    if (this.scopeSteps > LIMITS.bodies) {
      this.stopped = true;
      throw new Fault("E501", `expected the bodies of all CALLs to have at most ${LIMITS.bodies} nodes`);
    }
    const { params, others } = this.scopes.get(body);
    if (others.length)
      throw new Fault("E408", `expected one PARAM of slot ${others[0].arg.slot} in the body, got two`);
    let count = 0n;
    for (const slot of params.keys()) if (slot >= count) count = slot + 1n;
    if (count !== BigInt(args.length)) {
      const message = `expected an argument for every slot of the body, ${count} in all`;
      throw new Fault("E407", `${message}, got ${args.length}`);
    }
    for (const [slot, { dtype, shape }] of params) {
      const arg = args[Number(slot)];
      if (arg.dtype === dtype && arg.shape === shape) continue;
      const [due, got] = [`${dtype.name} [${shape}]`, `${arg.dtype.name} [${arg.shape}]`];
      throw new Fault("E407", `expected ${due} for slot ${slot} of the body, got ${got}`);
    }
    return { dtype: body.dtype, shape: body.shape };
  }

  /** Of the PARAMs among nodes, or another storage: the first of each slot, and those that differ. */
  slotsOf(nodes, storage = "PARAM") {
    const found = [...nodes].filter(({ op }) => op === storage);
    found.sort((a, b) => a.line.number - b.line.number);
    const params = new Map();
    for (const node of found) if (!params.has(node.arg.slot)) params.set(node.arg.slot, node);
    const others = found.filter((node) => !isSameParam(node, params.get(node.arg.slot)));
    return { params, others };
  }

  /** The nodes that `roots` depend on, without the bodies of CALLs, whose storage belongs to the CALL. */
  scopeOf(roots) {
    const visited = new Set(roots);
    for (const { op, src } of visited) {
      // a Set that grows is walked to its end, in order
      for (let k = op === "CALL" ? 1 : 0; k < src.length; k++) visited.add(src[k]);
    }
    this.scopeSteps += visited.size;
    return visited;
  }

  /** What can be seen of the whole program only. */
  checkProgram() {
    this.checkSlots("PARAM", this.scopeOf(this.outputs));
    this.language.checkProgram?.(this);
  }

  checkSlots(storage, nodes) {
    const { params, others } = this.slotsOf(nodes, storage);
    for (const { arg, at, line } of others) {
      const first = params.get(arg.slot).line.number;
      this.report("E408", at, `slot ${arg.slot} is another ${storage} in line ${first}`, line);
    }
  }
}

module.exports = { Reader };
