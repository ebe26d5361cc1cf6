"use strict";
// Identities of movement ops, in the form of week 1's: op → (graph, source, arg) → an equal node, or
// undefined.

const text = (numbers) => `[${numbers.join(", ")}]`;
const shaped = (sizes) => ({ sizes, text: text(sizes) });
const along = (axes) => ({ axes, text: text(axes) });

/** Of a movement that leaves every element where it is, the source. */
const unless = (moves, x) => (moves ? undefined : x);

module.exports = {
  RESHAPE: (graph, x, { sizes }) =>
    String(sizes) === String(x.shape)
      ? x
      : x.op === "RESHAPE"
        ? graph.make("RESHAPE", [x.src[0]], shaped(sizes))
        : undefined,
  EXPAND: (graph, x, { sizes }) => unless(String(sizes) !== String(x.shape), x),
  PERMUTE: (graph, x, { axes }) => {
    if (x.op === "PERMUTE")
      return graph.make("PERMUTE", [x.src[0]], along(axes.map((axis) => x.arg.axes[axis])));
    return unless(axes.some((axis, k) => axis !== k), x);
  },
  FLIP: (graph, x, { axes }) => {
    if (x.op !== "FLIP") return unless(axes.some((axis) => x.shape[axis] !== 1), x);
    const once = [...axes, ...x.arg.axes].filter((axis) => axes.includes(axis) !== x.arg.axes.includes(axis));
    return graph.make("FLIP", [x.src[0]], along(once.sort((a, b) => a - b)));
  },
  PAD: (graph, x, { pairs }) => unless(pairs.some(([before, after]) => before || after), x),
  SHRINK: (graph, x, { pairs }) =>
    unless(pairs.some(([start, end], axis) => start || end !== x.shape[axis]), x),
};
