"use strict";
// JSON by hand, because JSON.parse rounds integers, hides repeated keys and gives no places.

const { Fault } = require("./types.js");

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
    throw new Fault("E105", at, `expected ${expected}, got ${got}`);
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
    let end = at + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
    try {
      this.at = end + 1;
      return JSON.parse(text.slice(at, end + 1));
    } catch {
      throw new Fault("E105", at, "expected a closed string with valid escapes and no control characters");
    }
  }

  /** Appends the entry of the next key, whose value is still to come. */
  key(object) {
    if (this.peek() !== '"') this.fail("a key in double quotes");
    object.entries.push({ at: this.at, key: this.string(), value: null });
    this.take(":");
  }

  scalar() {
    const { at } = this;
    if (this.text[at] === '"') return { kind: "string", at, text: this.string() };
    NUMBER_OR_WORD.lastIndex = at;
    const text = NUMBER_OR_WORD.exec(this.text)?.[0] ?? this.fail("a JSON value");
    this.at += text.length;
    const kind = /^[tfn]/.test(text) ? text : /[.eE]/.test(text) ? "number" : "integer";
    return { kind, at, text };
  }
}

/**
 * Parses the JSON value at `start`: {value, end}. A value is {kind, at} and its content: numbers
 * stay text, an object is a list of entries. The open containers are a list and not the stack of
 * the language, so that no nesting is too deep.
 */
function parseJson(text, start) {
  const scanner = new Scanner(text, start);
  const open = [];
  for (;;) {
    const first = scanner.peek();
    let value;
    if (first === "{" || first === "[") {
      value = {
        at: scanner.at++,
        ...(first === "{" ? { kind: "object", entries: [] } : { kind: "array", items: [] }),
      };
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
