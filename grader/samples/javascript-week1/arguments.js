"use strict";
// The errors in a line, and the argument of a statement: one JSON value of the form that its op
// demands. What reads a part of an argument returns undefined after a report.

const { dtypes } = require("./arithmetic.js");
const { parseJson } = require("./json.js");
const { SCALAR, Fault, shapeOf } = require("./types.js");

const brief = (text) => (text.length > 40 ? text.slice(0, 40) + "…" : text);

/** A JSON value in an error: a string or number as it is written, the rest by their kind. */
function describe({ kind, text }) {
  if (kind === "string") return JSON.stringify(brief(text));
  return kind === "integer" || kind === "number" ? brief(text) : kind;
}

/** What an integer says; past 25 digits, some integer outside every dtype instead. */
const integerOf = ({ text }) => (text.length > 25 ? (text.startsWith("-") ? -1n : 1n) << 80n : BigInt(text));

class ArgumentReader {
  errors = [];

  /** One error; where a byte is not UTF-8 (E103), the line has no other. */
  report(code, at, message, line = this.line) {
    if (line.isBroken) return;
    line.isBroken = code === "E103";
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

  /** Runs an action and reports the Fault that it may throw; one without a place is `at` this index. */
  attempt(at, action) {
    try {
      return action();
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault;
      this.report(fault.code, fault.at ?? at, fault.message);
      return null;
    }
  }

  /** The JSON value that ends the line, or null after a report. */
  json(start) {
    const { text } = this.line;
    const nextField = (at) => at + text.slice(at).search(/[^ \t]|$/);
    this.argumentAt = nextField(start);
    return this.attempt(start, () => {
      const { value, end } = parseJson(text, start);
      const at = nextField(end);
      if ((text[at] ?? "#") === "#") return value;
      throw new Fault("E105", "expected the end of the line after the JSON value", at);
    });
  }

  /** An error of the argument that is being read. */
  wrong(code, message) {
    this.report(code, this.argumentAt, message);
  }

  argument({ op, at }, json) {
    const { read, example } = this.language.ops[op];
    if (json === null) return; // is reported already
    if (json && read) return read(this, json);
    if (json) this.wrong("E305", `${op} takes no argument`);
    else if (example) this.report("E304", at, `expected an argument, like ${op} : ${example}`);
  }

  param(json) {
    const { slot, dtype, shape, range } = this.object(json, ["slot", "dtype", "shape"], ["range"]);
    const natural = { lo: 0n, hi: dtypes.int64.hi };
    const arg = {
      slot: slot && this.integers([slot], "E311", natural, "a slot from 0")?.[0],
      dtype: dtype && this.dtype(dtype),
    };
    const sizes = shape && this.list(shape) && this.integers(shape.items, "E311", natural, "sizes from 0");
    if (sizes) arg.shape = shapeOf(sizes.map(Number));
    if (range && arg.dtype && arg.shape) arg.range = this.range(range, arg);
    return arg;
  }

  range(json, { dtype, shape }) {
    if (!this.list(json, 2)) return;
    if (dtype.kind !== "integer" || shape !== SCALAR)
      return this.wrong("E311", "only an integer scalar has a range");
    const range = this.integers(json.items, "E311", dtype, `a range within ${dtype.name}`);
    if (range && range[0] > range[1])
      this.wrong("E311", `expected a range [lo, hi] with lo at most hi, got [${range.join(", ")}]`);
    return range;
  }

  constant(json) {
    const { value, dtype: name } = this.object(json, ["value", "dtype"]);
    const dtype = name && this.dtype(name);
    if (!value || !dtype) return;
    if (dtype.kind === "float") return { value: this.float(value, dtype), dtype };
    if (dtype.kind === "integer")
      return { value: this.integers([value], "E312", dtype, `a value of ${dtype.name}`)?.[0], dtype };
    if (value.kind !== "true" && value.kind !== "false")
      this.wrong("E306", `expected true or false, got ${describe(value)}`);
    return { value: BigInt(value.kind === "true"), dtype };
  }

  float(json, dtype) {
    const special = { inf: Infinity, "-inf": -Infinity, nan: NaN };
    if (json.kind === "string" && Object.hasOwn(special, json.text)) return special[json.text];
    if (json.kind !== "integer" && json.kind !== "number")
      return this.wrong("E306", `expected a number, "inf", "-inf" or "nan", got ${describe(json)}`);
    const value = dtype.fit(Number(json.text));
    if (Number.isFinite(value)) return value;
    this.wrong("E312", `${dtype.name} does not reach ${describe(json)}; infinity is written "inf"`);
  }

  callName(json) {
    const { name } = this.object(json, [], ["name"]);
    if (name && name.kind !== "string")
      this.wrong("E306", `expected a name in quotes, got ${describe(name)}`);
  }

  dtype(json) {
    if (json.kind !== "string")
      return this.wrong("E306", `expected a dtype in quotes, got ${describe(json)}`);
    if (Object.hasOwn(dtypes, json.text)) return dtypes[json.text];
    this.wrong("E310", `expected a dtype like int32 or float32, got ${describe(json)}`);
  }

  /** The values of an object's keys. */
  object(json, required, optional = []) {
    const values = {};
    if (json.kind !== "object") {
      const keys = [...required, ...optional].join(", ");
      this.wrong("E306", `expected an object with the keys ${keys}, got ${describe(json)}`);
      return values;
    }
    for (const { key, value } of json.entries) {
      if (!required.includes(key) && !optional.includes(key))
        this.wrong("E308", `there is no key "${brief(key)}" here`);
      else if (key in values) this.wrong("E309", `the key "${key}" is repeated`);
      else values[key] = value;
    }
    for (const key of required) if (!(key in values)) this.wrong("E307", `expected the key "${key}"`);
    return values;
  }

  /** Whether a value is a list, of so many items if that is said. */
  list(json, length = json.items?.length) {
    const fits = json.kind === "array" && json.items.length === length;
    if (!fits)
      this.wrong("E306", `expected a list${length ? ` of ${length} integers` : ""}, got ${describe(json)}`);
    return fits;
  }

  /** Integers from lo to hi; others are the error `code`. */
  integers(items, code, { lo, hi }, what) {
    const other = items.find(({ kind }) => kind !== "integer");
    if (other) return this.wrong("E306", `expected ${what}, got ${describe(other)}`);
    const outside = items.find((item) => integerOf(item) < lo || integerOf(item) > hi);
    if (outside) return this.wrong(code, `expected ${what}, got ${describe(outside)}`);
    return items.map(integerOf);
  }
}

module.exports = { ArgumentReader, brief };
