// The simplifier. A node is simplified when it is made: from sources that are simplified already,
// it becomes a constant, one of its sources, or itself, found in or added to the table of nodes.

#include "uops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The program in hand.
static struct {
  const Language *language;
  bool is_plain;       // constants are folded, and nothing is simplified else
  bool is_param_tied;  // a PARAM may be that of a body, for storage that may be written
  size_t to_inline;    // nodes that CALLs may still make
  int64_t free_slot;   // that no ALLOC has, nor any after it
  Fault fault;         // why a node was not made
} graph;

static Node *make(Op op, Node *const *src, int count, Argument arg);

static Node *constant(Dtype dtype, Value value) {
  return make(CONST, NULL, 0, (Argument){.dtype = dtype, .value = value});
}

static Node *combine(Op op, Node *a, Node *b) {
  return make(op, (Node *[]){a, b}, 2, (Argument){0});
}

static bool is_float(const Node *node) { return dtypes[node->dtype].kind == FLOAT; }

// Whether one value is all that an integer or bool node can have.
static bool is_fixed(const Node *node) { return !is_float(node) && node->lo == node->hi; }

// ---- linear forms ------------------------------------------------------------------------------

enum { DEPTH = 8, MAX_TERMS = 1 << DEPTH };

// A sum Σ coefficients[i]·terms[i] + constant.
typedef struct {
  Node *terms[MAX_TERMS];
  Wide coefficients[MAX_TERMS], constant;
  int count;
} Form;

// Adds factor·node to a form that is equal to the nodes modulo 2^n, whatever wraps on the way. Sums
// are opened `depth` steps down, products by a constant up to factors that no tensor has as a
// stride; what is not opened is a term.
static void add_to(Form *form, Node *node, Wide factor, int depth) {
  Node *a = node->count > 0 ? node->src[0] : NULL, *b = node->count > 1 ? node->src[1] : NULL;
  Wide scaled = node->op == MUL && is_fixed(b) ? factor * b->lo : (Wide)MAX_ELEMENTS + 1;
  if (is_fixed(node)) {
    form->constant += factor * node->lo;
  } else if (depth && node->op == ADD) {
    add_to(form, a, factor, depth - 1);
    add_to(form, b, factor, depth - 1);
  } else if (depth && node->op == NEG) {
    add_to(form, a, -factor, depth - 1);
  } else if (depth && -MAX_ELEMENTS <= scaled && scaled <= MAX_ELEMENTS) {
    add_to(form, a, scaled, depth - 1);
  } else {
    int i = 0;
    while (i < form->count && form->terms[i] != node) i++;
    if (i == form->count) form->terms[form->count++] = node;
    form->coefficients[i] += factor;
  }
}

// The bounds of the exact value of a form.
static Interval bounds_of(const Form *form) {
  Interval sum = interval(form->constant, form->constant);
  for (int i = 0; i < form->count; i++) {
    Wide c = form->coefficients[i];
    Interval part = product(interval_of(form->terms[i]), interval(c, c));
    sum = interval(sum.lo + part.lo, sum.hi + part.hi);
  }
  return sum;
}

// x as d·quotient + rest with 0 ≤ rest < d. False unless x is its form exactly, which it is if that
// stays within the dtype, and the rest lies between two multiples of d.
static bool split(Node *x, Wide d, Form *quotient, Form *rest) {
  *rest = (Form){.count = 0};
  add_to(rest, x, 1, DEPTH);
  *quotient = *rest;
  Interval all = bounds_of(rest);
  if (all.lo < dtypes[x->dtype].lo || all.hi > dtypes[x->dtype].hi) return false;
  for (int i = 0; i < rest->count; i++) {
    quotient->coefficients[i] /= d;  // toward zero
    rest->coefficients[i] %= d;
  }
  all = bounds_of(rest);
  quotient->constant = floor_div(all.lo, d);
  rest->constant -= quotient->constant * d;
  return quotient->constant == floor_div(all.hi, d);
}

static Node *number(Dtype dtype, Wide value) {
  return constant(dtype, cast((Value){.integer = value}, dtype, dtype));
}

// The node of a form, the constant last.
static Node *build(const Form *form, Dtype dtype) {
  Node *sum = NULL;
  for (int i = 0; i < form->count; i++) {
    if (form->coefficients[i] == 0) continue;
    Node *part = combine(MUL, form->terms[i], number(dtype, form->coefficients[i]));
    sum = sum ? combine(ADD, sum, part) : part;
  }
  if (sum && form->constant == 0) return sum;
  Node *last = number(dtype, form->constant);
  return sum ? combine(ADD, sum, last) : last;
}

// The quotient (or else the rest) of x by a constant d > 0, where `split` finds it.
static Node *divide(Node *x, const Node *d, bool wants_quotient) {
  Form quotient, rest;
  if (!is_fixed(d) || d->lo <= 0 || !split(x, d->lo, &quotient, &rest)) return NULL;
  return build(wants_quotient ? &quotient : &rest, x->dtype);
}

// ---- identities --------------------------------------------------------------------------------

// Whether a node is known to be the number everywhere: an integer's interval, a float's CONST.
static bool is(const Node *node, double number) {
  if (is_float(node)) return node->op == CONST && node->arg.value.real == number;
  return is_fixed(node) && (double)node->lo == number;
}

// (x + c) + d → x + (c + d), for integers, where c and d are constants; MUL alike.
static Node *reassociate(Op op, Node *a, Node *b) {
  if (is_float(a) || a->op != op || a->src[1]->op != CONST || b->op != CONST) return NULL;
  return combine(op, a->src[0], combine(op, a->src[1], b));
}

// A CAST to the same dtype, or of a CAST whose middle dtype changes nothing.
static Node *simplify_cast(Node *x, Dtype to) {
  if (x->dtype == to) return x;
  if (x->op != CAST) return NULL;
  const DtypeInfo *from = &dtypes[x->src[0]->dtype], *middle = &dtypes[x->dtype],
                  *info = &dtypes[to];
  bool cuts_off = from->kind == INTEGER && middle->kind == INTEGER && info->kind == INTEGER &&
                  info->hi - info->lo <= middle->hi - middle->lo;
  if (!cuts_off && !holds(x->dtype, x->src[0]->dtype)) return NULL;
  return make(CAST, x->src, 1, (Argument){.dtype = to});
}

static Node *simplify_max(Node *a, Node *b) {
  if (a == b) return a;
  if (is_float(a)) return is(b, -INFINITY) ? a : NULL;
  return a->lo >= b->hi ? a : b->lo >= a->hi ? b : NULL;
}

static Node *simplify_cmpne(Node *a, Node *b) {
  if (a == b && !is_float(a)) return constant(DTYPE_BOOL, (Value){.integer = 0});  // but NaN ≠ NaN
  if (a->dtype != DTYPE_BOOL) return NULL;
  if (is(b, 0)) return a;
  bool negates_twice =
      is(b, 1) && a->op == CMPNE && a->src[0]->dtype == DTYPE_BOOL && is(a->src[1], 1);
  return negates_twice ? a->src[0] : NULL;
}

static Node *simplify_where(Node *condition, Node *a, Node *b) {
  if (a == b || is(condition, 1)) return a;
  if (is(condition, 0)) return b;
  return a->dtype == DTYPE_BOOL && is(a, 1) && is(b, 0) ? condition : NULL;
}

// An equal node, or NULL. Constants stand on the right here. Only a node of the same shape may
// replace another: `make` sees to that.
static Node *identity(const Node *node) {
  Node *a = node->count > 0 ? node->src[0] : NULL, *b = node->count > 1 ? node->src[1] : NULL;
  switch (node->op) {
    case CAST: return simplify_cast(a, node->dtype);
    case NEG: return a->op == NEG ? a->src[0] : NULL;
    case ADD: return is(b, 0) ? a : reassociate(ADD, a, b);
    case MUL: return is(b, 1) || (a == b && a->dtype == DTYPE_BOOL) ? a : reassociate(MUL, a, b);
    case MAX: return simplify_max(a, b);
    case FLOORDIV: return is(b, 1) ? a : divide(a, b, true);
    case FLOORMOD: return is(b, 0) || (a->lo >= 0 && a->hi < b->lo) ? a : divide(a, b, false);
    case CMPLT: return a == b ? constant(DTYPE_BOOL, (Value){.integer = 0}) : NULL;
    case CMPNE: return simplify_cmpne(a, b);
    case WHERE: return simplify_where(a, b, node->src[2]);
    default: return NULL;
  }
}

// ---- the graph ---------------------------------------------------------------------------------

static uint64_t hash_node(const Node *node) {
  const Argument *arg = &node->arg;
  uint64_t hash = hash_bytes(node->op, &arg->dtype, sizeof arg->dtype);
  hash = hash_bytes(hash, &arg->value.integer, sizeof arg->value.integer);
  hash = hash_bytes(hash, &arg->value.real, sizeof arg->value.real);
  hash = hash_bytes(hash, &arg->slot, sizeof arg->slot);
  return hash_bytes(hash, node->src, (size_t)node->count * sizeof *node->src);
}

static bool same_node(const void *entry, const void *key) {
  const Node *a = entry, *b = key;
  const Argument *x = &a->arg, *y = &b->arg;
  if (a->op != b->op || a->count != b->count || x->dtype != y->dtype) return false;
  if (a->count) return memcmp(a->src, b->src, (size_t)a->count * sizeof *a->src) == 0;
  if (a->op == CONST) {  // the bits of a float, because -0.0 is another constant than 0.0
    return x->value.integer == y->value.integer &&
           memcmp(&x->value.real, &y->value.real, sizeof x->value.real) == 0;
  }
  return x->slot == y->slot && x->shape == y->shape && x->addrspace == y->addrspace &&
         x->has_range == y->has_range && x->lo == y->lo && x->hi == y->hi;
}

static Node *intern(const Node *node) {
  static Table nodes;
  uint64_t hash = hash_node(node);
  Node *known = lookup(&nodes, hash, same_node, node);
  if (known) return known;
  Node *added = allocate(sizeof *added);
  *added = *node;
  if (node->root == node) added->root = added;
  added->is_scoped = node->op == PARAM || node->op == ALLOC;
  for (int k = 0; k < node->count; k++) added->is_scoped |= node->src[k]->is_scoped;
  insert(&nodes, hash, added);
  return added;
}

static bool is_elementwise(Op op) { return ops[op].kinds; }

static bool fold_node(const Node *node, Value *folded) {
  Value values[3] = {{0}};
  if (!is_elementwise(node->op)) return false;
  for (int k = 0; k < node->count; k++) {
    if (node->src[k]->op != CONST) return false;
    values[k] = node->src[k]->arg.value;
  }
  *folded = (Value){0};
  return fold(node->op, node->src[0]->dtype, node->dtype, values, folded);
}

static bool is_known(const Node *node) { return node->op == CONST || is_fixed(node); }

// Whether a node stays as it is. What reads or writes storage may not go away: a STORE may wait for
// it, and an effect happens only if an output depends on it.
static bool is_kept(const Node *node) { return graph.is_plain || node->is_tied; }

// What stands for a node where its value is asked for: a constant, if that is all it can be.
static Node *value_of(Node *node) {
  bool is_constant = is_fixed(node) && node->shape == scalar() && !is_kept(node);
  if (node->op == CONST || !is_constant) return node;
  return constant(node->dtype, (Value){.integer = node->lo});
}

// The simplified node for an op on simplified sources; NULL after a fault, which only a CALL can
// bring: an argument may be no place where the body wants one.
static Node *make(Op op, Node *const *src, int count, Argument arg) {
  Node **sources = allocate((size_t)count * sizeof *sources);
  for (int k = 0; k < count; k++) sources[k] = k || is_elementwise(op) ? value_of(src[k]) : src[k];
  if (ops[op].commutes && is_known(sources[0]) && !is_known(sources[1])) {
    Node *known = sources[0];
    sources[0] = sources[1];
    sources[1] = known;
  }
  if (isnan(arg.value.real)) arg.value.real = NAN;  // one NaN of the many
  Node node = {.op = op, .count = count, .src = sources, .arg = arg};
  node.is_tied = op == BUFFER || op == ALLOC || (op == PARAM && graph.is_param_tied);
  for (int k = 0; k < count; k++) node.is_tied |= sources[k]->is_tied;
  Value value;
  if (!graph.language->ops[op].infer(&node, &graph.fault)) return NULL;
  if (fold_node(&node, &value)) return constant(node.dtype, value);
  if (!is_float(&node)) set_interval(&node);
  if (is_kept(&node)) return intern(&node);
  Node *simpler = is_elementwise(op) ? value_of(&node) : &node;
  if (simpler == &node) simpler = identity(&node);
  return simpler && simpler->shape == node.shape ? simpler : intern(&node);
}

// ---- programs ----------------------------------------------------------------------------------

static bool is_scoped(const Node *from, int source) { return from->src[source]->is_scoped; }

// The body of a CALL with its PARAMs replaced, and ALLOCs of its own; NULL after a fault.
static Node *inline_call(const Node *call) {
  Node *body = value_of(call->src[0]->image);
  if (!body->is_scoped) return body;
  List order = postorder(&body, 1, is_scoped);
  Node **became = (Node **)order.items;
  for (size_t i = 0; i < order.count; i++) {
    Node *node = became[i], **sources = allocate((size_t)node->count * sizeof *sources);
    if (graph.to_inline-- == 0) {
      fail(&graph.fault, "E501", -1, "expected at most %d nodes once the CALLs are inlined",
           MAX_NODES);
      return NULL;
    }
    for (int k = 0; k < node->count; k++) {
      sources[k] = node->src[k]->is_scoped ? became[node->src[k]->number] : node->src[k];
    }
    node->number = i;
    Argument arg = node->arg;
    if (node->op == ALLOC) arg.slot = graph.free_slot++;
    became[i] = node->op == PARAM ? call->src[node->arg.slot + 1]->image
                                  : make(node->op, sources, node->count, arg);
    if (!became[i]) return NULL;
  }
  Node *result = became[order.count - 1];
  free(order.items);
  return result;
}

static Node *image_of(const Node *node) {
  if (node->op == CALL) return inline_call(node);
  Node **sources = allocate((size_t)node->count * sizeof *sources);
  for (int k = 0; k < node->count; k++) sources[k] = node->src[k]->image;
  return make(node->op, sources, node->count, node->arg);
}

static bool contains(const List *nodes, Op op) {
  for (size_t i = 0; i < nodes->count; i++) {
    if (((const Node *)nodes->items[i])->op == op) return true;
  }
  return false;
}

Node **simplify(Reader *reader, bool is_plain) {
  size_t count = reader->outputs.count;
  graph.language = reader->language;
  graph.is_plain = is_plain;
  graph.to_inline = MAX_NODES;
  List order = postorder((Node **)reader->outputs.items, count, NULL);
  graph.is_param_tied =
      contains(&order, CALL) && (contains(&order, BUFFER) || contains(&order, ALLOC));
  for (size_t i = 0; i < order.count; i++) {
    const Node *node = order.items[i];
    if (node->op == ALLOC && node->arg.slot >= graph.free_slot) graph.free_slot = node->arg.slot + 1;
  }
  for (size_t i = 0; i < order.count; i++) {
    Node *node = order.items[i];
    node->image = image_of(node);
    if (node->image) continue;
    report(reader, node->line, graph.fault.code, node->at, "%s", graph.fault.message);
    return NULL;
  }
  Node **outputs = allocate(count * sizeof *outputs);
  for (size_t i = 0; i < count; i++) {
    Node *image = ((Node *)reader->outputs.items[i])->image;
    outputs[i] = value_of(image);
  }
  return outputs;
}
