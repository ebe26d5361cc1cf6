"use strict";
// Scalars in C: the type of each dtype, its constants, and each op on them.
//
// float16 and bfloat16 are stored as their bits and computed in float. That rounds twice, to the
// same value as once: a float has more than twice their digits.

const NAMES = {
  bool: "uint8_t",
  float16: "uint16_t",
  bfloat16: "uint16_t",
  float32: "float",
  float64: "double",
};
const typeOf = ({ name }) => NAMES[name] ?? `${name}_t`;
const BYTES = { bool: 1, float16: 2, bfloat16: 2 };
const bytesOf = ({ name }) => BYTES[name] ?? Number(name.replace(/\D/g, "")) / 8;

const isHalf = ({ name }) => name === "float16" || name === "bfloat16";
const isWide = ({ name }) => name === "int64" || name === "uint64";
const computed = (dtype) => (isHalf(dtype) ? "float" : typeOf(dtype));

/** A stored value as one to compute with, and back. */
const load = (dtype, x) => (isHalf(dtype) ? `${dtype.name}_value(${x})` : x);
const store = (dtype, x) => (isHalf(dtype) ? `${dtype.name}_bits(${x})` : `(${typeOf(dtype)})(${x})`);

function constant(value, dtype) {
  if (dtype.kind === "bool") return String(value);
  if (dtype.kind === "integer") {
    const text = value === -(1n << 63n) ? "(-9223372036854775807LL - 1)" : `${value}LL`;
    return `((${typeOf(dtype)})${value >= 1n << 63n ? `${value}ULL` : text})`;
  }
  return store(dtype, real(value));
}

function real(value) {
  if (Number.isNaN(value)) return "(double)NAN";
  if (!Number.isFinite(value)) return value > 0 ? "(double)INFINITY" : "-(double)INFINITY";
  const text = Object.is(value, -0) ? "-0" : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** An integer from a float, toward zero; 0 where the dtype has no such value. */
function truncated(dtype, x) {
  const signed = dtype.lo < 0n;
  const low = isWide(dtype) && signed ? `(x) >= -9223372036854775808.0` : `(x) > ${dtype.lo - 1n}.0`;
  const test = `${low} && (x) < ${dtype.hi + 1n}.0`.replaceAll("(x)", x);
  return `${test} ? (${typeOf(dtype)})${x} : 0`;
}

function cast(from, to, x) {
  if (from === to) return x;
  if (to.kind === "bool") return `${load(from, x)} != 0`;
  if (to.kind === "integer")
    return from.kind === "float" ? truncated(to, `(double)${load(from, x)}`) : `(${typeOf(to)})${x}`;
  if (!isHalf(to)) return `(${typeOf(to)})${load(from, x)}`;
  return store(to, isWide(from) ? `${from.name}_to_odd(${x})` : `(double)${load(from, x)}`);
}

const wrapped = (dtype, a, sign, b) => `(${typeOf(dtype)})((uint64_t)${a} ${sign} (uint64_t)${b})`;

/** op → (operands' dtype, operands…) → C, for dtypes of each kind. */
const integer = {
  NEG: (dtype, a) => wrapped(dtype, 0, "-", a),
  ADD: (dtype, a, b) => wrapped(dtype, a, "+", b),
  MUL: (dtype, a, b) => wrapped(dtype, a, "*", b),
  MAX: (dtype, a, b) => `${a} > ${b} ? ${a} : ${b}`,
  FLOORDIV: (dtype, a, b) =>
    dtype.lo < 0n ? `(${typeOf(dtype)})floor_div(${a}, ${b})` : `${b} ? ${a} / ${b} : 0`,
  FLOORMOD: (dtype, a, b) =>
    dtype.lo < 0n ? `(${typeOf(dtype)})floor_mod(${a}, ${b})` : `${b} ? ${a} % ${b} : ${a}`,
  CMPLT: (dtype, a, b) => `${a} < ${b}`,
  CMPNE: (dtype, a, b) => `${a} != ${b}`,
};
const bool = {
  MUL: (dtype, a, b) => `${a} & ${b}`,
  MAX: (dtype, a, b) => `${a} | ${b}`,
  CMPNE: (dtype, a, b) => `${a} != ${b}`,
};
const one = ({ name }, word) => (name === "float64" ? word : `${word}f`);
const float = {
  NEG: (dtype, a) => `-${a}`,
  RECIP: (dtype, a) => `1 / ${a}`,
  EXP2: (dtype, a) => `${one(dtype, "exp2")}(${a})`,
  LOG2: (dtype, a) => `${one(dtype, "log2")}(${a})`,
  ADD: (dtype, a, b) => `${a} + ${b}`,
  MUL: (dtype, a, b) => `${a} * ${b}`,
  MAX: (dtype, a, b) => `${a} != ${a} || ${a} > ${b} ? ${a} : ${b}`,
  CMPLT: integer.CMPLT,
  CMPNE: integer.CMPNE,
};
const meaning = { integer, bool, float };

/** The C of an elementwise op: `args` are names or constants, the result is as it is stored. */
function apply(op, src, dtype, args) {
  if (op === "WHERE") return `${args[0]} ? ${args[1]} : ${args[2]}`;
  const from = src[0].dtype;
  if (op === "CAST") return cast(from, dtype, args[0]);
  const result = meaning[from.kind][op](from, ...args.map((arg) => load(from, arg)));
  return dtype.kind === "float" ? store(dtype, result) : result;
}

/** REDUCE: where it begins, and one step, both in the dtype that it computes with. */
function identity(combine, dtype) {
  if (combine !== "MAX") return combine === "MUL" ? "1" : "0";
  return dtype.kind === "float" ? "-INFINITY" : constant(dtype.lo, dtype);
}
const combined = (combine, dtype, sum, x) => meaning[dtype.kind][combine](dtype, sum, load(dtype, x));

const PRELUDE = `#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* No product is fused into a sum: each op rounds. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

static inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0) return a;
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline float float16_value(uint16_t bits) {
  _Float16 x;
  memcpy(&x, &bits, sizeof x);
  return (float)x;
}

static inline uint16_t float16_bits(double value) {
  _Float16 x = (_Float16)value;
  uint16_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float bfloat16_value(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &wide, sizeof x);
  return x;
}

/* To float first, toward an odd last bit where that is not exact, so that only one rounding counts. */
static inline uint16_t bfloat16_bits(double value) {
  if (value != value) return 0x7fc0;
  float near = (float)value;
  uint32_t bits;
  memcpy(&bits, &near, sizeof bits);
  if ((double)near != value && bits % 2 == 0) bits += fabs((double)near) > fabs(value) ? -1 : 1;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline double uint64_to_odd(uint64_t x) {
  return x >> 53 ? (double)(x >> 11 | ((x & 0x7ff) != 0)) * 2048 : (double)x;
}

static inline double int64_to_odd(int64_t x) {
  return x < 0 ? -uint64_to_odd(0 - (uint64_t)x) : uint64_to_odd((uint64_t)x);
}
`;

module.exports = { PRELUDE, typeOf, bytesOf, computed, store, constant, apply, identity, combined };
