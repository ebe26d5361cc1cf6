"use strict";
// From bytes to nodes: the grammar, the names and the types of a program. Every error that can
// be found is reported; a faulty statement still defines its name, so that one mistake is
// one error.

const { isUtf8 } = require("node:buffer");
const { ArgumentReader, brief } = require("./arguments.js");
const { LIMITS, Fault, ops, laterOps, infer } = require("./types.js");

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

/** Splits a line up to its `:`, comment or end: its fields {text, at}, and where the `:` is (or -1). */
function fieldsOf(line) {
  const fields = [];
  const field = /[ \t]*([^ \t#]+)/y;
  for (let match; (match = field.exec(line));) {
    const at = field.lastIndex - match[1].length;
    if (match[1] === ":") return { fields, colon: at };
    fields.push({ text: match[1], at });
  }
  return { fields, colon: -1 };
}

class Reader extends ArgumentReader {
  outputs = null;
  count = 0; // statements so far
  names = new Map(); // name → its node, or null where the statement that defines it is faulty
  scopes = new Map(); // body of a CALL → its PARAMs by slot, null where two of a slot clash
  scopeSteps = 0; // nodes visited to find all these PARAMs

  /** Reads a whole program: afterwards `errors` is empty and `outputs` are its output nodes, or not. */
  read(bytes) {
    this.line = { number: 1, text: "" };
    let number = 0;
    for (const lineBytes of linesOf(bytes)) {
      this.line = { number: ++number, text: lineBytes.toString("utf8") };
      const valid = isUtf8(lineBytes);
      if (!valid) this.reportBadByte(lineBytes);
      if (number === 1) this.header();
      if (this.stopped) return this;
      if (number === 1 && !this.isHeadless) continue;
      if (valid) this.statement();
      else this.poison(fieldsOf(this.line.text).fields);
    }
    if (number === 0) this.header();
    if (!this.outputs)
      this.report("E203", 0, "expected a `return` with the outputs before the end of the program");
    return this;
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
    const { line } = this;
    if (line.text.startsWith("\ufeff")) {
      this.report("E103", 0, "expected UTF-8 without a byte-order mark");
      Object.assign(line, { text: line.text.slice(1), column: undefined });
    }
    const {
      fields: [word, version, ...rest],
      colon,
    } = fieldsOf(line.text);
    if (word?.text === "uops" && version && version.text !== "1") {
      this.report("E102", version.at, `expected version 1 of the format, got \`${brief(version.text)}\``);
      this.stopped = true;
    } else if (word?.text !== "uops" || !version || rest.length || colon >= 0) {
      this.report("E101", 0, "expected the header `uops 1` in the first line");
      this.isHeadless = true;
    }
  }

  statement() {
    const { fields, colon } = fieldsOf(this.line.text);
    const before = this.errors.length;
    if (fields.length === 0 && colon < 0) return;
    if (fields[0]?.text === "return") this.returns(fields.slice(1), colon);
    else if (fields[1]?.text !== "=") {
      if (this.isHeadless && (this.line.number === 1 || fields[0]?.text === "uops")) return; // is E101 already
      this.report(
        "E104",
        fields[0]?.at ?? colon,
        "expected `name = OP sources : argument` or `return names`",
      );
    } else if (this.outputs)
      this.report("E107", fields[0].at, "expected nothing after `return`, got a statement");
    else if (this.isWellFormed(fields)) this.define(fields, colon);
    if (this.errors.length > before) this.poison(fields);
  }

  /** Remembers what a faulty statement defines: uses of the name are no errors of their own. */
  poison([first, equals]) {
    if (equals?.text === "=" && isName(first.text) && !this.names.has(first.text))
      this.names.set(first.text, null);
    if (first?.text === "return") this.outputs ??= [];
  }

  isWellFormed([name, , op, ...sources]) {
    const before = this.errors.length;
    if (!isName(name.text)) this.report("E104", name.at, "expected a name before `=`");
    if (!op) this.report("E104", name.at, "expected an op after `=`");
    else if (!OP.test(op.text)) this.report("E104", op.at, "expected an op, in capitals, after `=`");
    for (const { text, at } of sources) {
      if (!isName(text)) this.report("E104", at, "expected the name of a source, or ` : ` and the argument");
    }
    return this.errors.length === before;
  }

  returns(fields, colon) {
    const before = this.errors.length;
    if (this.outputs) return this.report("E107", 0, "expected nothing after `return`, got another `return`");
    if (colon >= 0) this.report("E106", colon, "expected only names after `return`, got `:`");
    else if (fields.length === 0) this.report("E106", 0, "expected at least one name after `return`");
    for (const { text, at } of fields) {
      if (!isName(text)) this.report("E106", at, "expected only names after `return`");
    }
    if (this.errors.length > before) return;
    this.outputs = fields.map((field) => this.lookup(field));
    if (!this.outputs.includes(null)) this.paramsOf(this.outputs);
  }

  lookup({ text, at }) {
    if (this.names.has(text)) return this.names.get(text);
    this.report("E201", at, `\`${brief(text)}\` is not defined: a name is defined on a line before its uses`);
    return null;
  }

  define([name, , op, ...sources], colon) {
    const before = this.errors.length;
    if (++this.count > LIMITS.nodes) {
      this.stopped = true;
      return this.report("E501", 0, `expected at most ${LIMITS.nodes} nodes`);
    }
    if (this.names.has(name.text)) this.report("E202", name.at, `\`${brief(name.text)}\` is defined already`);
    const node = {
      op: op.text,
      src: sources.map((field) => this.lookup(field)),
      line: this.line,
      at: op.at,
    };
    const json = colon < 0 ? undefined : this.json(colon + 1);
    if (Object.hasOwn(ops, node.op)) {
      this.countSources(node);
      node.arg = this.argument(node, json);
    } else if (Object.hasOwn(laterOps, node.op)) {
      this.report(
        "E302",
        op.at,
        `${node.op} is an op of week ${laterOps[node.op]}, this compiler knows week 1`,
      );
    } else this.report("E301", op.at, `there is no op \`${brief(node.op)}\``);
    if (this.errors.length > before || node.src.includes(null)) return this.poison([name, { text: "=" }]);
    const placeOf = (source) => (sources[source] ?? op).at;
    const type = this.attempt(
      () => (node.op === "CALL" ? this.typeOfCall(node.src) : infer(node.op, node.src, node.arg)),
      placeOf,
    );
    this.names.set(name.text, type && Object.assign(node, type));
  }

  countSources({ op, src, at }) {
    const { sources } = ops[op];
    if (op === "CALL" && src.length === 0)
      this.report("E303", at, "expected CALL body arguments, got no source");
    if (op !== "CALL" && src.length !== sources) {
      this.report("E303", at, `${op} has ${sources} source${sources === 1 ? "" : "s"}, got ${src.length}`);
    }
  }

  // ---- CALL ----

  /** The body's type, once the arguments are seen to match its PARAMs; null where two of these clash. */
  typeOfCall([body, ...args]) {
    if (!this.scopes.has(body)) {
      const before = this.errors.length;
      const params = this.paramsOf([body]);
      this.scopes.set(body, this.errors.length === before ? params : null);
    }
    if (this.scopeSteps > 4 * LIMITS.nodes) {
      this.stopped = true;
      throw new Fault(
        "E501",
        -1,
        `expected the bodies of all CALLs to have at most ${4 * LIMITS.nodes} nodes`,
      );
    }
    const params = this.scopes.get(body);
    if (!params) return null;
    let count = 0n;
    for (const slot of params.keys()) if (slot >= count) count = slot + 1n;
    if (count !== BigInt(args.length)) {
      throw new Fault(
        "E407",
        -1,
        `expected an argument for every slot of the body, ${count} in all, got ${args.length}`,
      );
    }
    for (const [slot, { dtype, shape }] of params) {
      const arg = args[Number(slot)];
      if (arg.dtype !== dtype || arg.shape !== shape) {
        const [due, got] = [`${dtype.name} [${shape}]`, `${arg.dtype.name} [${arg.shape}]`];
        throw new Fault("E407", Number(slot) + 1, `expected ${due}, as slot ${slot} of the body, got ${got}`);
      }
    }
    return { dtype: body.dtype, shape: body.shape };
  }

  /** The PARAMs by slot that `roots` depend on; those in the body of a CALL belong to the CALL. */
  paramsOf(roots) {
    const params = new Map();
    const visited = new Set(roots);
    for (const node of visited) {
      // a Set that grows is walked to its end, in order
      if (node.op === "PARAM") this.addParam(params, node);
      for (let k = node.op === "CALL" ? 1 : 0; k < node.src.length; k++) visited.add(node.src[k]);
    }
    this.scopeSteps += visited.size;
    return params;
  }

  addParam(params, node) {
    const { slot, range } = node.arg;
    const other = params.get(slot) ?? node;
    params.set(slot, other);
    if (node.dtype === other.dtype && node.shape === other.shape && String(range) === String(other.arg.range))
      return;
    const [first, second] = other.line.number < node.line.number ? [other, node] : [node, other];
    if (!second.isReported)
      this.report(
        "E408",
        second.at,
        `slot ${slot} is another PARAM in line ${first.line.number}`,
        second.line,
      );
    second.isReported = true;
  }
}

module.exports = { Reader };
