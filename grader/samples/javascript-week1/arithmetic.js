"use strict";
// The dtypes, and constant folding exactly as each of them computes.
//
// An integer or a bool is a BigInt (false is 0n, true is 1n) and a float is a Number, which holds
// every value of every float dtype exactly. `dtype.fit` brings an exact result back into the
// dtype: it wraps an integer and rounds a float to nearest even.

const integer = (bits, signed) => ({
  kind: "integer",
  lo: signed ? -(1n << BigInt(bits - 1)) : 0n,
  hi: (1n << BigInt(signed ? bits - 1 : bits)) - 1n,
  fit: (value) => (signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value)),
});

const float = (precision, maxExponent) => ({
  kind: "float",
  precision,
  maxExponent,
  fit: (value) => (precision === 53 ? value : round(value, precision, maxExponent)),
});

const dtypes = {
  bool: { kind: "bool", lo: 0n, hi: 1n, fit: (value) => value },
  int8: integer(8, true),
  int16: integer(16, true),
  int32: integer(32, true),
  int64: integer(64, true),
  uint8: integer(8, false),
  uint16: integer(16, false),
  uint32: integer(32, false),
  uint64: integer(64, false),
  float16: float(11, 15),
  bfloat16: float(8, 127),
  float32: float(24, 127),
  float64: float(53, 1023),
};
for (const [name, dtype] of Object.entries(dtypes)) dtype.name = name;

const bits = new DataView(new ArrayBuffer(8));

/** The e of 2^e ≤ |value| < 2^(e+1); float64's subnormals count as 2^-1023. */
function exponentOf(value) {
  bits.setFloat64(0, value);
  return ((bits.getUint16(0) >> 4) & 0x7ff) - 1023;
}

/** `value` to the nearest float of so many bits, ties to even, with subnormals and overflow. */
function round(value, precision, maxExponent) {
  if (!Number.isFinite(value)) return value;
  const exponent = Math.max(exponentOf(value), 1 - maxExponent);
  const unit = 2 ** (exponent - precision + 1); // the distance between neighbours near value
  const shift = 1.5 * 2 ** 52; // a float64 this large has no fraction: adding it rounds
  const nearest = (Math.abs(value) / unit + shift - shift) * unit;
  const largest = (2 - 2 ** (1 - precision)) * 2 ** maxExponent;
  const magnitude = nearest > largest ? Infinity : nearest;
  return value < 0 || Object.is(value, -0) ? -magnitude : magnitude;
}

/**
 * An integer as a float of the dtype, rounded once. Number(value) would be a first rounding, so
 * past 53 bits the lowest kept bit stands for all that are cut off ("round to odd").
 */
function integerToFloat(value, dtype) {
  const magnitude = value < 0n ? -value : value;
  if (dtype.precision === 53 || magnitude < 1n << 53n) return dtype.fit(Number(value));
  const kept = (magnitude >> 11n) | BigInt((magnitude & 0x7ffn) !== 0n);
  return dtype.fit(Number(value < 0n ? -kept : kept) * 2 ** 11);
}

/** CAST of a constant. A float that the integer dtype cannot hold may become anything: 0 here. */
function cast(value, from, to) {
  if (to.kind === "bool") return BigInt(value != 0);
  if (to.kind === "float") {
    return from.kind === "float" ? to.fit(value) : integerToFloat(value, to);
  }
  if (from.kind !== "float") return to.fit(value);
  if (!Number.isFinite(value)) return 0n;
  const whole = BigInt(Math.trunc(value));
  return to.lo <= whole && whole <= to.hi ? whole : 0n;
}

/** Whether every value of `from` is a value of `to`, so that the CAST loses nothing. */
function holds(to, from) {
  if (from.kind === "bool") return true;
  if (from.kind === "float") {
    return to.kind === "float" && to.precision >= from.precision && to.maxExponent >= from.maxExponent;
  }
  if (to.kind === "float") return from.hi < 1n << BigInt(to.precision);
  return to.kind === "integer" && to.lo <= from.lo && from.hi <= to.hi;
}

function floorDiv(a, b) {
  if (b === 0n) return 0n;
  const quotient = a / b; // BigInt division rounds toward zero
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

function floorMod(a, b) {
  if (b === 0n) return a;
  const rest = a % b;
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

function maximum(a, b) {
  if (a !== a) return a; // NaN
  return b !== b || b > a ? b : a;
}

/** EXP2 and LOG2 of a float64 are left to the program: libraries differ in the last bit. */
const narrow = (compute) => (dtype, a) => (dtype.precision === 53 ? undefined : dtype.fit(compute(a)));

/** op → (dtype of the result, values…) → the value, or undefined to leave the op alone. */
const fold = {
  NEG: (dtype, a) => dtype.fit(-a),
  RECIP: (dtype, a) => dtype.fit(1 / a),
  EXP2: narrow((a) => 2 ** a),
  LOG2: narrow(Math.log2),
  ADD: (dtype, a, b) => dtype.fit(a + b),
  MUL: (dtype, a, b) => dtype.fit(a * b),
  MAX: (dtype, a, b) => maximum(a, b),
  FLOORDIV: (dtype, a, b) => dtype.fit(floorDiv(a, b)),
  FLOORMOD: (dtype, a, b) => floorMod(a, b),
  CMPLT: (dtype, a, b) => BigInt(a < b),
  CMPNE: (dtype, a, b) => BigInt(a !== b),
  WHERE: (dtype, condition, a, b) => (condition ? a : b),
};

module.exports = { dtypes, fold, cast, holds, floorDiv, floorMod };
