// Which values an integer or a bool can have.

#include "uops.h"

static const Interval unknown = {0, 0, false};

Interval interval(Wide lo, Wide hi) { return (Interval){lo, hi, true}; }

static Interval hull(Interval a, Interval b) {
  if (!a.is_known || !b.is_known) return a.is_known ? a : b;
  return interval(a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi);
}

Interval product(Interval a, Interval b) {
  const Wide x[] = {a.lo, a.hi}, y[] = {b.lo, b.hi};
  Interval result = unknown;
  for (int k = 0; k < 4; k++) {
    Wide corner;
    if (__builtin_mul_overflow(x[k / 2], y[k % 2], &corner)) return unknown;
    result = hull(result, interval(corner, corner));
  }
  return result;
}

static Interval quotient_part(Interval a, Wide lo, Wide hi) {
  if (lo > hi) return unknown;
  Interval at_lo = interval(floor_div(a.lo, lo), floor_div(a.hi, lo));
  Interval at_hi = interval(floor_div(a.lo, hi), floor_div(a.hi, hi));
  if (lo < 0) at_lo = interval(at_lo.hi, at_lo.lo), at_hi = interval(at_hi.hi, at_hi.lo);
  return hull(at_lo, at_hi);
}

// Division is monotonic in a divisor below, at and above zero, each by itself.
static Interval quotient(Interval a, Interval b) {
  Interval below = quotient_part(a, b.lo, b.hi < -1 ? b.hi : -1);
  Interval above = quotient_part(a, b.lo > 1 ? b.lo : 1, b.hi);
  Interval at = b.lo <= 0 && 0 <= b.hi ? interval(0, 0) : unknown;
  return hull(hull(below, above), at);
}

static Interval rest(Interval a, Interval b) {
  if (b.lo == 0 && b.hi == 0) return a;
  if (b.lo == b.hi && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
    return interval(floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo));
  }
  if (b.lo < 0 || a.lo < 0) return b.lo > 0 ? interval(0, b.hi - 1) : unknown;
  return interval(0, b.lo > 0 && b.hi <= a.hi ? b.hi - 1 : a.hi);  // x % 0 is x
}

static Interval difference(Interval a, Interval b) {
  if (a.hi < b.lo || b.hi < a.lo) return interval(1, 1);
  return a.lo == a.hi && b.lo == b.hi ? interval(0, 0) : unknown;
}

Interval interval_of(const Node *node) { return interval(node->lo, node->hi); }

// The interval of the exact result of an op on integers or bools.
static Interval exact_interval(const Node *node) {
  Interval a = interval_of(node->src[0]), b = node->count > 1 ? interval_of(node->src[1]) : unknown;
  switch (node->op) {
    case CAST: return node->dtype == DTYPE_BOOL ? difference(a, interval(0, 0)) : a;
    case NEG: return interval(-a.hi, -a.lo);
    case ADD: return interval(a.lo + b.lo, a.hi + b.hi);
    case MUL: return product(a, b);
    case MAX: return interval(a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi);
    case FLOORDIV: return quotient(a, b);
    case FLOORMOD: return rest(a, b);
    case CMPLT: return a.hi < b.lo ? interval(1, 1) : a.lo >= b.hi ? interval(0, 0) : unknown;
    case CMPNE: return difference(a, b);
    case WHERE: return hull(b, interval_of(node->src[2]));
    default: return unknown;
  }
}

// What leaves the dtype wraps to anywhere in it.
void set_interval(Node *node) {
  const DtypeInfo *info = &dtypes[node->dtype];
  Interval found = unknown;
  if (node->op == PARAM && node->arg.has_range) found = interval(node->arg.lo, node->arg.hi);
  if (node->op == CONST) found = interval(node->arg.value.integer, node->arg.value.integer);
  if (node->count && dtypes[node->src[node->count - 1]->dtype].kind != FLOAT)
    found = exact_interval(node);
  if (!found.is_known || found.lo < info->lo || found.hi > info->hi)
    found = interval(info->lo, info->hi);
  node->lo = found.lo;
  node->hi = found.hi;
}
