// The dtypes, and constant folding exactly as each of them computes.
//
// A double holds every value of every float dtype, and the sums and products of two values of a
// narrower dtype round to it as the exact ones do: only one more rounding is needed.

#include "uops.h"

#include <math.h>

__extension__ typedef unsigned __int128 UnsignedWide;

#define SIGNED(bits)   INTEGER, -((Wide)1 << (bits - 1)), ((Wide)1 << (bits - 1)) - 1, 0, 0
#define UNSIGNED(bits) INTEGER, 0, ((Wide)1 << bits) - 1, 0, 0

const DtypeInfo dtypes[DTYPES + 1] = {
    [DTYPE_BOOL] = {"bool", BOOL, 0, 1, 0, 0},
    [INT8] = {"int8", SIGNED(8)},
    [INT16] = {"int16", SIGNED(16)},
    [INT32] = {"int32", SIGNED(32)},
    [INT64] = {"int64", SIGNED(64)},
    [UINT8] = {"uint8", UNSIGNED(8)},
    [UINT16] = {"uint16", UNSIGNED(16)},
    [UINT32] = {"uint32", UNSIGNED(32)},
    [UINT64] = {"uint64", UNSIGNED(64)},
    [FLOAT16] = {"float16", FLOAT, 0, 0, 11, 15},
    [BFLOAT16] = {"bfloat16", FLOAT, 0, 0, 8, 127},
    [FLOAT32] = {"float32", FLOAT, 0, 0, 24, 127},
    [FLOAT64] = {"float64", FLOAT, 0, 0, 53, 1023},
    [EFFECT] = {"no value", NOTHING, 0, 1, 0, 0},
};

// An exact integer modulo 2^n, into the dtype's interval.
static Wide fit_integer(UnsignedWide value, Dtype dtype) {
  Wide lo = dtypes[dtype].lo;
  UnsignedWide span = (UnsignedWide)(dtypes[dtype].hi - lo);
  return (Wide)((value - (UnsignedWide)lo) & span) + lo;
}

// A double to the nearest value of the dtype, ties to even, with subnormals and overflow.
double fit_float(double value, Dtype dtype) {
  int precision = dtypes[dtype].precision, max_exponent = dtypes[dtype].max_exponent;
  if (precision == 53 || !isfinite(value) || value == 0) return value;
  int exponent = ilogb(value);
  if (exponent < 1 - max_exponent) exponent = 1 - max_exponent;
  double unit = ldexp(1, exponent - precision + 1);  // the distance between neighbours near value
  double nearest = rint(value / unit) * unit;
  double largest = ldexp(2 - ldexp(1, 1 - precision), max_exponent);
  return fabs(nearest) > largest ? copysign(INFINITY, value) : nearest;
}

// An integer as a float, rounded once. A plain conversion to double would be a first rounding, so
// past 53 bits the lowest kept bit stands for all that are cut off ("round to odd").
static double integer_to_float(Wide value, Dtype dtype) {
  Wide magnitude = value < 0 ? -value : value;
  if (dtypes[dtype].precision == 53 || magnitude < (Wide)1 << 53)
    return fit_float((double)value, dtype);
  Wide kept = magnitude >> 11 | ((magnitude & 0x7ff) != 0);
  return fit_float(ldexp((double)(value < 0 ? -kept : kept), 11), dtype);
}

// A float that the integer dtype cannot hold may become anything: 0 here.
Value cast(Value value, Dtype from, Dtype to) {
  bool is_float = dtypes[from].kind == FLOAT;
  if (dtypes[to].kind == BOOL)
    return (Value){.integer = is_float ? value.real != 0 : value.integer != 0};
  if (dtypes[to].kind == FLOAT) {
    return (Value){.real =
                       is_float ? fit_float(value.real, to) : integer_to_float(value.integer, to)};
  }
  if (!is_float) return (Value){.integer = fit_integer((UnsignedWide)value.integer, to)};
  if (!(fabs(value.real) < 0x1p65)) return (Value){.integer = 0};
  Wide whole = (Wide)value.real;
  return (Value){.integer = dtypes[to].lo <= whole && whole <= dtypes[to].hi ? whole : 0};
}

bool holds(Dtype to_dtype, Dtype from_dtype) {
  const DtypeInfo *to = &dtypes[to_dtype], *from = &dtypes[from_dtype];
  if (from->kind == BOOL) return true;
  if (from->kind == FLOAT) {
    return to->kind == FLOAT && to->precision >= from->precision &&
           to->max_exponent >= from->max_exponent;
  }
  if (to->kind == FLOAT) return from->hi < (Wide)1 << to->precision;
  return to->kind == INTEGER && to->lo <= from->lo && from->hi <= to->hi;
}

Wide floor_div(Wide a, Wide b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));  // C's division rounds toward zero
}

Wide floor_mod(Wide a, Wide b) {
  if (b == 0) return a;
  Wide rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static bool fold_float(Op op, Dtype dtype, double a, double b, double *folded) {
  // EXP2 and LOG2 of a float64 are left to the program: libraries differ in the last bit.
  if ((op == EXP2 || op == LOG2) && dtypes[dtype].precision == 53) return false;
  double exact = op == NEG           ? -a
                 : op == RECIP       ? 1 / a
                 : op == EXP2        ? exp2(a)
                 : op == LOG2        ? log2(a)
                 : op == ADD         ? a + b
                 : op == MUL         ? a * b
                 : isnan(a)          ? a  // MAX from here on
                 : isnan(b) || b > a ? b
                                     : a;
  *folded = fit_float(exact, dtype);
  return true;
}

static Wide fold_integer(Op op, Dtype dtype, Wide a, Wide b) {
  UnsignedWide x = (UnsignedWide)a, y = (UnsignedWide)b;
  switch (op) {
    case NEG: return fit_integer(-x, dtype);
    case ADD: return fit_integer(x + y, dtype);
    case MUL: return fit_integer(x * y, dtype);
    case FLOORDIV: return fit_integer((UnsignedWide)floor_div(a, b), dtype);
    case FLOORMOD: return floor_mod(a, b);
    default: return a > b ? a : b;  // MAX
  }
}

bool fold(Op op, Dtype from, Dtype result, const Value *values, Value *folded) {
  Value a = values[0], b = values[1];
  bool is_float = dtypes[from].kind == FLOAT;
  if (op == WHERE) {
    *folded = a.integer ? b : values[2];
  } else if (op == CAST) {
    *folded = cast(a, from, result);
  } else if (op == CMPLT) {
    folded->integer = is_float ? a.real < b.real : a.integer < b.integer;
  } else if (op == CMPNE) {
    folded->integer = is_float ? a.real != b.real : a.integer != b.integer;
  } else if (is_float) {
    return fold_float(op, result, a.real, b.real, &folded->real);
  } else {
    folded->integer = fold_integer(op, result, a.integer, b.integer);
  }
  return true;
}
