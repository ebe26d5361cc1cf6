"use strict";
// The errors in a line, and the argument of a statement: one JSON value of the form that its op
// demands. What reads a part of an argument returns undefined after a report.

const { dtypes } = require("./arithmetic.js");
const { parseJson } = require("./json.js");
const { LIMITS, SCALAR, Fault, shapeOf, elementsOf } = require("./types.js");

const brief = (text) => (text.length > 40 ? text.slice(0, 40) + "…" : text);

/** A JSON value in an error: a string or number as it is written, the rest by their kind. */
function describe({ kind, text }) {
  if (kind === "string") return JSON.stringify(brief(text));
  return kind === "integer" || kind === "number" ? brief(text) : kind;
}

const examples = {
  PARAM: '{"slot": 0, "dtype": "float32", "shape": [2, 3]}',
  CONST: '{"value": 1, "dtype": "int32"}',
  CAST: '"int32"',
};

class ArgumentReader {
  errors = [];

  report(code, at, message, line = this.line) {
    this.errors.push({
      code,
      message,
      at,
      line: line.number,
      column: this.columnOf(line, at),
      text: line.text,
    });
  }

  /** Columns count characters. The last answer is kept, so that many errors in a line cost one pass. */
  columnOf(line, at) {
    if (line.column === undefined || at < line.seen) Object.assign(line, { column: 1, seen: 0 });
    for (; line.seen < at; line.seen += line.text.codePointAt(line.seen) > 0xffff ? 2 : 1) line.column++;
    return line.column;
  }

  /** Runs an action and reports the Fault it may throw, at the place that `placeOf` finds for it. */
  attempt(action, placeOf = (at) => at) {
    try {
      return action();
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      this.report(fault.code, placeOf(fault.at), fault.message);
      return null;
    }
  }

  /** The JSON value that ends the line, or null after a report. */
  json(start) {
    const { text } = this.line;
    return this.attempt(() => {
      const { value, end } = parseJson(text, start);
      const rest = /[ \t]*([^ \t])?/y;
      rest.lastIndex = end;
      if ((rest.exec(text)[1] ?? "#") === "#") return value;
      throw new Fault("E105", rest.lastIndex - 1, "expected the end of the line after the JSON value");
    });
  }

  argument({ op, at }, json) {
    const readers = {
      PARAM: this.param,
      CONST: this.constant,
      CAST: this.dtype,
      CALL: this.callName,
    };
    if (json === null) return;
    if (json && op in readers) return readers[op].call(this, json);
    if (json) this.report("E305", json.at, `${op} takes no argument`);
    else if (op in readers && op !== "CALL")
      this.report("E304", at, `expected an argument, like ${op} : ${examples[op]}`);
  }

  param(json) {
    const { slot, dtype, shape, range } = this.object(json, ["slot", "dtype", "shape"], ["range"]);
    const arg = {
      slot: slot && this.integer(slot, 0n, dtypes.int64.hi, "E311", "a slot is an integer from 0"),
      dtype: dtype && this.dtype(dtype),
      shape: shape && this.shape(shape),
    };
    if (range && arg.dtype && arg.shape) arg.range = this.range(range, arg);
    return arg;
  }

  constant(json) {
    const keys = this.object(json, ["value", "dtype"]);
    const dtype = keys.dtype && this.dtype(keys.dtype);
    if (!keys.value || !dtype) return;
    const read = { bool: this.truth, integer: this.integerOf, float: this.floatOf }[dtype.kind];
    return { value: read.call(this, keys.value, dtype), dtype };
  }

  callName(json) {
    const { name } = this.object(json, ["name"]);
    if (name && name.kind !== "string")
      this.report("E306", name.at, `expected a string, got ${describe(name)}`);
  }

  /** The values of an object's keys. */
  object(json, required, optional = []) {
    const values = {};
    if (json.kind !== "object") {
      this.report(
        "E306",
        json.at,
        `expected an object with the keys ${required.join(", ")}, got ${describe(json)}`,
      );
      return values;
    }
    for (const { key, at, value } of json.entries) {
      if (!required.includes(key) && !optional.includes(key))
        this.report("E308", at, `there is no key "${brief(key)}" here`);
      else if (key in values) this.report("E309", at, `the key "${key}" is repeated`);
      else values[key] = value;
    }
    for (const key of required)
      if (!(key in values)) this.report("E307", json.at, `expected the key "${key}"`);
    return values;
  }

  dtype(json) {
    if (json.kind === "string" && Object.hasOwn(dtypes, json.text)) return dtypes[json.text];
    if (json.kind === "string")
      this.report("E310", json.at, `expected one of ${Object.keys(dtypes).join(" ")}`);
    else this.report("E306", json.at, `expected a dtype in quotes, got ${describe(json)}`);
  }

  truth(json) {
    if (json.kind === "true" || json.kind === "false") return BigInt(json.kind === "true");
    this.report("E306", json.at, `expected true or false, got ${describe(json)}`);
  }

  /** An integer of an interval; below it is the error `code`, above it `codeAbove`. */
  integer(json, lo, hi, code, rule, codeAbove = code) {
    if (json.kind !== "integer")
      return this.report("E306", json.at, `expected an integer, got ${describe(json)}`);
    const long = json.text.length > 25; // spare BigInt a megabyte of digits
    const value = long ? (json.text[0] === "-" ? lo - 1n : hi + 1n) : BigInt(json.text);
    if (lo <= value && value <= hi) return value;
    this.report(value < lo ? code : codeAbove, json.at, `${rule}, got ${describe(json)}`);
  }

  integerOf(json, { lo, hi, name }) {
    return this.integer(json, lo, hi, "E312", `${name} holds ${lo} to ${hi}`);
  }

  floatOf(json, dtype) {
    const special = { inf: Infinity, "-inf": -Infinity, nan: NaN };
    if (json.kind === "string" && Object.hasOwn(special, json.text)) return special[json.text];
    if (json.kind !== "integer" && json.kind !== "number") {
      return this.report("E306", json.at, `expected a number, "inf", "-inf" or "nan", got ${describe(json)}`);
    }
    const value = dtype.fit(Number(json.text));
    if (Number.isFinite(value)) return value;
    this.report("E312", json.at, `${dtype.name} does not reach so far; infinity is written "inf"`);
  }

  shape(json) {
    const before = this.errors.length;
    if (json.kind !== "array")
      return this.report("E306", json.at, `expected a list of sizes, got ${describe(json)}`);
    if (json.items.length > LIMITS.rank) {
      return this.report("E502", json.at, `expected at most ${LIMITS.rank} axes, got ${json.items.length}`);
    }
    const sizeOf = (item) => this.integer(item, 0n, 2n ** 53n, "E311", "a size is an integer from 0", "E503");
    const sizes = json.items.map((item) => Number(sizeOf(item)));
    if (this.errors.length > before) return;
    if (elementsOf(sizes) <= LIMITS.elements) return shapeOf(sizes);
    this.report("E503", json.at, "expected at most 2^47 elements");
  }

  range(json, { dtype, shape }) {
    if (dtype.kind !== "integer" || shape !== SCALAR)
      return this.report("E311", json.at, "only an integer scalar has a range");
    if (json.kind !== "array" || json.items.length !== 2)
      return this.report("E306", json.at, "expected a range [lo, hi]");
    const [lo, hi] = json.items.map((item) => this.integerOf(item, dtype));
    if (lo > hi) this.report("E311", json.at, "expected a range [lo, hi] with lo at most hi");
    return [lo, hi];
  }
}

module.exports = { ArgumentReader, brief };
