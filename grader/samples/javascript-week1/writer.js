"use strict";
// The canonical form: names %0 %1 … in depth-first post-order from the outputs, one way to write
// each argument.

/** Every node that the roots need, sources first, each once; `needs(node)` lists its sources. */
function postorder(roots, needs = ({ src }) => src) {
  const order = [];
  const entered = new Set();
  const stack = [];
  const enter = (node) => {
    if (!entered.has(node)) stack.push({ node, src: needs(node), next: 0 });
    entered.add(node);
  };
  for (const root of roots) {
    enter(root);
    while (stack.length) {
      const top = stack.at(-1);
      if (top.next < top.src.length) enter(top.src[top.next++]);
      else order.push(stack.pop().node);
    }
  }
  return order;
}

/** The number of fewest decimal digits that reads back as `magnitude`. */
function shortest(magnitude, dtype) {
  for (let places = 0; ; places++) {
    const [digits, exponent] = magnitude.toExponential(places).replace(".", "").split("e");
    // Halfway between two numbers toExponential takes the larger: the even one comes first. Below a
    // power of two the neighbours are nearer than above: the number above may read back alone.
    const nearest = BigInt(digits) - (isOddTie(magnitude, digits) ? 1n : 0n);
    for (const candidate of [nearest, nearest + 1n]) {
      const number = Number(`${candidate}e${exponent - places}`);
      if (dtype.fit(number) === magnitude) return number;
    }
  }
}

/** Whether `digits` are odd and the exact value of `magnitude` lies half a digit below them. */
function isOddTie(magnitude, digits) {
  if (digits.at(-1) % 2 === 0) return false;
  const exact = magnitude
    .toExponential(digits.length + 39)
    .replace(".", "")
    .split("e")[0];
  return /^50*$/.test(exact.slice(digits.length));
}

/** A float as JavaScript writes it: 12, 0.001 or, from 1e+21 and below 1e-6 on, with an exponent. */
function floatText(value, dtype) {
  if (Number.isNaN(value)) return '"nan"';
  if (!Number.isFinite(value)) return value > 0 ? '"inf"' : '"-inf"';
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  return sign + shortest(Math.abs(value), dtype);
}

function valueText(value, dtype) {
  if (dtype.kind === "float") return floatText(value, dtype);
  return String(dtype.kind === "bool" ? value === 1n : value);
}

/** The argument of a node as JSON, "" where it has none. */
function argumentText({ op, arg }) {
  if (op === "CAST") return `"${arg.name}"`;
  if (op === "CONST") return `{"value": ${valueText(arg.value, arg.dtype)}, "dtype": "${arg.dtype.name}"}`;
  if (op !== "PARAM") return arg?.text ?? "";
  const range = arg.range ? `, "range": [${arg.range.join(", ")}]` : "";
  return `{"slot": ${arg.slot}, "dtype": "${arg.dtype.name}", "shape": [${arg.shape.join(", ")}]${range}}`;
}

/** The program that returns `outputs`, as text. */
function format(outputs) {
  const names = new Map();
  const lines = ["uops 1"];
  for (const node of postorder(outputs)) {
    const argument = argumentText(node);
    const sources = node.src.map((source) => ` ${names.get(source)}`).join("");
    names.set(node, `%${names.size}`);
    lines.push(`${names.get(node)} = ${node.op}${sources}${argument && ` : ${argument}`}`);
  }
  lines.push(`return ${outputs.map((node) => names.get(node)).join(" ")}`);
  return lines.join("\n") + "\n";
}

module.exports = { argumentText, format, postorder };
