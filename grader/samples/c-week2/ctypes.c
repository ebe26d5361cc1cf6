// Scalars in C: the type of each dtype, its constants, and each op on them.
//
// float16 and bfloat16 are stored as their bits and computed in float. That rounds twice, to the
// same value as once: a float has more than twice their digits.

#include "storage.h"

#include <math.h>
#include <string.h>

static bool is_half(Dtype dtype) { return dtype == FLOAT16 || dtype == BFLOAT16; }
static bool is_signed(Dtype dtype) { return dtypes[dtype].lo < 0; }

const char *c_type(Dtype dtype) {
  if (dtype == DTYPE_BOOL) return "uint8_t";
  if (is_half(dtype)) return "uint16_t";
  if (dtype == FLOAT32) return "float";
  return dtype == FLOAT64 ? "double" : format("%s_t", dtypes[dtype].name);
}

size_t c_bytes(Dtype dtype) {
  static const size_t bytes[DTYPES] = {
      [DTYPE_BOOL] = 1, [INT8] = 1,    [INT16] = 2,  [INT32] = 4,  [INT64] = 8,
      [UINT8] = 1,      [UINT16] = 2,  [UINT32] = 4, [UINT64] = 8, [FLOAT16] = 2,
      [BFLOAT16] = 2,   [FLOAT32] = 4, [FLOAT64] = 8};
  return bytes[dtype];
}

// A stored value as one to compute with, and back.
static const char *loaded(Dtype dtype, const char *x) {
  return is_half(dtype) ? format("%s_value(%s)", dtypes[dtype].name, x) : x;
}

static const char *stored(Dtype dtype, const char *x) {
  if (is_half(dtype)) return format("%s_bits(%s)", dtypes[dtype].name, x);
  return format("(%s)(%s)", c_type(dtype), x);
}

static const char *real(double value) {
  if (isfinite(value)) return format("%a", value);
  return isnan(value) ? "(double)NAN" : value > 0 ? "(double)INFINITY" : "-(double)INFINITY";
}

const char *c_constant(Value value, Dtype dtype) {
  Wide integer = value.integer;
  if (dtypes[dtype].kind == FLOAT) return stored(dtype, real(value.real));
  if (dtypes[dtype].kind == BOOL) return integer ? "1" : "0";
  if (integer == dtypes[INT64].lo) return "(-9223372036854775807LL - 1)";
  if (integer < 0) return format("((%s)%lldLL)", c_type(dtype), (long long)integer);
  return format("((%s)%lluULL)", c_type(dtype), (unsigned long long)integer);
}

// An integer from a double, toward zero; 0 where the dtype has no such value.
static const char *truncated(Dtype dtype, const char *x) {
  const DtypeInfo *to = &dtypes[dtype];
  const char *above = dtype == INT64 ? format("%s >= %.1f", x, (double)to->lo)
                                     : format("%s > %.1f", x, (double)(to->lo - 1));
  return format("%s && %s < %.1f ? (%s)%s : 0", above, x, (double)(to->hi + 1), c_type(dtype), x);
}

static const char *converted(Dtype from, Dtype to, const char *x) {
  const char *value = loaded(from, x);
  if (from == to) return x;
  if (to == DTYPE_BOOL) return format("%s != 0", value);
  if (dtypes[to].kind == INTEGER && dtypes[from].kind == FLOAT)
    return truncated(to, format("(double)%s", value));
  if (!is_half(to)) return format("(%s)%s", c_type(to), value);
  if (from != INT64 && from != UINT64) return stored(to, format("(double)%s", value));
  return stored(to, format("%s_to_odd(%s)", dtypes[from].name, x));
}

static const char *divided(Op op, Dtype dtype, const char *a, const char *b) {
  const char *name = op == FLOORDIV ? "floor_div" : "floor_mod";
  if (is_signed(dtype)) return format("(%s)%s(%s, %s)", c_type(dtype), name, a, b);
  return op == FLOORDIV ? format("%s ? %s / %s : 0", b, a, b)
                        : format("%s ? %s %% %s : %s", b, a, b, a);
}

// An op on integers modulo 2^n.
static const char *wrapped(Dtype dtype, const char *a, const char *sign, const char *b) {
  return format("(%s)((uint64_t)%s %s (uint64_t)%s)", c_type(dtype), a, sign, b);
}

static const char *apply_integer(Op op, Dtype dtype, const char *a, const char *b) {
  switch (op) {
    case NEG: return wrapped(dtype, "0", "-", a);
    case ADD: return wrapped(dtype, a, "+", b);
    case MUL: return wrapped(dtype, a, "*", b);
    case MAX: return format("%s > %s ? %s : %s", a, b, a, b);
    case CMPLT: return format("%s < %s", a, b);
    case CMPNE: return format("%s != %s", a, b);
    default: return divided(op, dtype, a, b);
  }
}

static const char *apply_bool(Op op, const char *a, const char *b) {
  return format("%s %s %s", a, op == MUL ? "&" : op == MAX ? "|" : "!=", b);
}

// On values to compute with: a bool or such a value.
static const char *apply_float(Op op, Dtype dtype, const char *a, const char *b) {
  const char *suffix = dtype == FLOAT64 ? "" : "f";
  switch (op) {
    case NEG: return format("-%s", a);
    case RECIP: return format("1 / %s", a);
    case EXP2: return format("exp2%s(%s)", suffix, a);
    case LOG2: return format("log2%s(%s)", suffix, a);
    case ADD: return format("%s + %s", a, b);
    case MUL: return format("%s * %s", a, b);
    case MAX: return format("%s != %s || %s > %s ? %s : %s", a, a, a, b, a, b);
    case CMPLT: return format("%s < %s", a, b);
    default: return format("%s != %s", a, b);
  }
}

const char *c_apply(const Node *node, const char *const *args) {
  Dtype from = node->src[0]->dtype;
  const char *a = args[0], *b = node->count > 1 ? args[1] : NULL;
  if (node->op == WHERE) return format("%s ? %s : %s", a, b, args[2]);
  if (node->op == CAST) return converted(from, node->dtype, a);
  if (dtypes[from].kind == BOOL) return apply_bool(node->op, a, b);
  if (dtypes[from].kind == INTEGER) return apply_integer(node->op, from, a, b);
  const char *result = apply_float(node->op, from, loaded(from, a), b ? loaded(from, b) : NULL);
  return node->dtype == DTYPE_BOOL ? result : stored(node->dtype, result);
}

const char c_prelude[] =
    "#include <math.h>\n"
    "#include <stddef.h>\n"
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "\n"
    "/* No product is fused into a sum: each op rounds. */\n"
    "#ifdef __clang__\n"
    "#pragma STDC FP_CONTRACT OFF\n"
    "#else\n"
    "#pragma GCC optimize(\"fp-contract=off\")\n"
    "#endif\n"
    "\n"
    "static inline int64_t floor_div(int64_t a, int64_t b) {\n"
    "  if (b == 0) return 0;\n"
    "  if (b == -1) return (int64_t)(0 - (uint64_t)a);\n"
    "  return a / b - (a % b != 0 && (a < 0) != (b < 0));\n"
    "}\n"
    "\n"
    "static inline int64_t floor_mod(int64_t a, int64_t b) {\n"
    "  if (b == 0) return a;\n"
    "  if (b == -1) return 0;\n"
    "  int64_t rest = a % b;\n"
    "  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
    "}\n"
    "\n"
    "static inline float float16_value(uint16_t bits) {\n"
    "  _Float16 x;\n"
    "  memcpy(&x, &bits, sizeof x);\n"
    "  return (float)x;\n"
    "}\n"
    "\n"
    "static inline uint16_t float16_bits(double value) {\n"
    "  _Float16 x = (_Float16)value;\n"
    "  uint16_t bits;\n"
    "  memcpy(&bits, &x, sizeof bits);\n"
    "  return bits;\n"
    "}\n"
    "\n"
    "static inline float bfloat16_value(uint16_t bits) {\n"
    "  uint32_t wide = (uint32_t)bits << 16;\n"
    "  float x;\n"
    "  memcpy(&x, &wide, sizeof x);\n"
    "  return x;\n"
    "}\n"
    "\n"
    "/* To float first, toward an odd last bit where that is not exact: only one rounding counts. "
    "*/\n"
    "static inline uint16_t bfloat16_bits(double value) {\n"
    "  if (value != value) return 0x7fc0;\n"
    "  float near = (float)value;\n"
    "  uint32_t bits;\n"
    "  memcpy(&bits, &near, sizeof bits);\n"
    "  if ((double)near != value && bits % 2 == 0) bits += fabs((double)near) > fabs(value) ? -1 : "
    "1;\n"
    "  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);\n"
    "}\n"
    "\n"
    "static inline double uint64_to_odd(uint64_t x) {\n"
    "  return x >> 53 ? (double)(x >> 11 | ((x & 0x7ff) != 0)) * 2048 : (double)x;\n"
    "}\n"
    "\n"
    "static inline double int64_to_odd(int64_t x) {\n"
    "  return x < 0 ? -uint64_to_odd(0 - (uint64_t)x) : uint64_to_odd((uint64_t)x);\n"
    "}\n"
    "\n";
