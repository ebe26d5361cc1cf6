"use strict";
// JSON by hand, because JSON.parse rounds integers, hides repeated keys and gives no places.

const { Fault } = require("./types.js");

const DEPTH = 64; // of containers within each other
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER_OR_WORD = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null/y;
const closers = { object: "}", array: "]" };

/** A place in a line that moves on as tokens are taken; what is not JSON is a Fault E105. */
class Scanner {
  constructor(text, at) {
    Object.assign(this, { text, at });
  }

  fail(expected) {
    const { text, at } = this;
    const got =
      at < text.length ? `\`${String.fromCodePoint(text.codePointAt(at))}\`` : "the end of the line";
    throw new Fault("E105", `expected ${expected}, got ${got}`, at);
  }

  peek() {
    while (this.at < this.text.length && " \t\r".includes(this.text[this.at])) this.at++;
    return this.text[this.at];
  }

  take(character, expected = `\`${character}\``) {
    if (this.peek() !== character) this.fail(expected);
    this.at++;
  }

  string() {
    const { text, at } = this;
    for (this.at++; text[this.at] !== '"'; this.at++) {
      if (!(text[this.at] >= " ")) this.fail('a character of a string or its `"`');
      if (text[this.at] !== "\\") continue;
      ESCAPE.lastIndex = this.at;
      if (!ESCAPE.test(text)) this.fail("an escape that JSON has");
      this.at = ESCAPE.lastIndex - 1;
    }
    this.at++;
    return JSON.parse(text.slice(at, this.at));
  }

  /** Appends the entry of the next key, whose value is still to come. */
  key(object) {
    if (this.peek() !== '"') this.fail("a key in double quotes");
    object.entries.push({ key: this.string(), value: null });
    this.take(":");
  }

  scalar() {
    if (this.text[this.at] === '"') return { kind: "string", text: this.string() };
    NUMBER_OR_WORD.lastIndex = this.at;
    const text = NUMBER_OR_WORD.exec(this.text)?.[0] ?? this.fail("a JSON value");
    this.at += text.length;
    const kind = /^[tfn]/.test(text) ? text : /[.eE]/.test(text) ? "number" : "integer";
    return { kind, text };
  }
}

/**
 * Parses the JSON value at `start`: {value, end}. A value is {kind} and its content: numbers stay
 * text, an object is a list of entries.
 */
function parseJson(text, start) {
  const scanner = new Scanner(text, start);
  const open = [];
  for (;;) {
    const first = scanner.peek();
    let value;
    if (first === "{" || first === "[") {
      if (open.length === DEPTH) scanner.fail(`at most ${DEPTH} open brackets`);
      value = first === "{" ? { kind: "object", entries: [] } : { kind: "array", items: [] };
      scanner.at++;
      if (scanner.peek() !== closers[value.kind]) {
        open.push(value);
        if (value.kind === "object") scanner.key(value);
        continue;
      }
      scanner.at++;
    } else {
      value = scanner.scalar();
    }
    for (;;) {
      // the value is complete; it may complete the container it stands in, and so on
      const parent = open.at(-1);
      if (!parent) return { value, end: scanner.at };
      if (parent.kind === "array") parent.items.push(value);
      else parent.entries.at(-1).value = value;
      if (scanner.peek() === ",") {
        scanner.at++;
        if (parent.kind === "object") scanner.key(parent);
        break;
      }
      const closer = closers[parent.kind];
      scanner.take(closer, `\`,\` or \`${closer}\``);
      value = open.pop();
    }
  }
}

module.exports = { parseJson };
