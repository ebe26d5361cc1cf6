// Shapes, the ops of week 1, the dtype and shape of a node, and the walk over a graph.

#include "uops.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fail(Fault *fault, const char *code, long at, const char *format, ...) {
  va_list values;
  va_start(values, format);
  *fault = (Fault){.code = code, .at = at};
  vsnprintf(fault->message, sizeof fault->message, format, values);
  va_end(values);
  return false;
}

enum {
  BOOLS = 1 << BOOL,
  INTEGERS = 1 << INTEGER,
  FLOATS = 1 << FLOAT,
  NUMBERS = INTEGERS | FLOATS,
  ALL = BOOLS | NUMBERS
};

// ---- shapes ------------------------------------------------------------------------------------

static bool same_shape(const void *entry, const void *key) {
  const Shape *a = entry, *b = key;
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof *a->sizes) == 0;
}

const Shape *shape_of(int rank, const int64_t *sizes) {
  static Table shapes;
  size_t bytes = (size_t)rank * sizeof *sizes;
  Shape *shape = allocate(sizeof *shape + bytes);
  shape->rank = rank;
  if (bytes) memcpy(shape->sizes, sizes, bytes);
  uint64_t hash = hash_bytes((uint64_t)rank, shape->sizes, bytes);
  const Shape *known = lookup(&shapes, hash, same_shape, shape);
  if (known) return known;
  insert(&shapes, hash, shape);
  return shape;
}

const Shape *scalar(void) {
  static const Shape *shape;
  if (!shape) shape = shape_of(0, NULL);
  return shape;
}

const char *shape_text(const Shape *shape) {
  char *text = allocate((size_t)shape->rank * 22 + 3), *end = text;
  *end++ = '[';
  for (int axis = 0; axis < shape->rank; axis++) {
    end += sprintf(end, axis ? ", %lld" : "%lld", (long long)shape->sizes[axis]);
  }
  *end++ = ']';
  return text;
}

const Shape *check_size(const Shape *shape, Fault *fault) {
  Wide elements = 1;
  if (shape->rank > MAX_RANK) {
    fail(fault, "E502", -1, "expected at most %d axes, got %d", MAX_RANK, shape->rank);
    return NULL;
  }
  for (int axis = 0; axis < shape->rank && elements <= MAX_ELEMENTS; axis++) {
    if (shape->sizes[axis]) elements *= shape->sizes[axis];
  }
  if (elements <= MAX_ELEMENTS) return shape;
  fail(fault, "E503", -1, "expected at most 2^47 elements, got the shape %s", shape_text(shape));
  return NULL;
}

const Shape *broadcast(const Shape *a, const Shape *b, Fault *fault) {
  if (a == b || b->rank == 0) return a;
  if (a->rank == 0) return b;
  int rank = a->rank > b->rank ? a->rank : b->rank;
  int64_t sizes[MAX_RANK];
  for (int axis = 0; axis < rank; axis++) {
    int in_a = axis - rank + a->rank, in_b = axis - rank + b->rank;
    int64_t m = in_a < 0 ? 1 : a->sizes[in_a], n = in_b < 0 ? 1 : b->sizes[in_b];
    if (m != n && m != 1 && n != 1) {
      fail(fault, "E403", -1, "expected shapes that broadcast, got %s and %s", shape_text(a),
           shape_text(b));
      return NULL;
    }
    sizes[axis] = m == 1 ? n : m;
  }
  return check_size(shape_of(rank, sizes), fault);
}

// ---- types -------------------------------------------------------------------------------------

static bool check_dtypes(const Node *node, int first, Fault *fault) {
  const DtypeInfo *condition = &dtypes[node->src[0]->dtype], *a = &dtypes[node->src[first]->dtype],
                  *b = &dtypes[node->src[node->count - 1]->dtype];
  if (node->op == WHERE && condition->kind != BOOL)
    return fail(fault, "E402", -1, "expected a bool condition, got %s", condition->name);
  if (a != b) {
    return fail(fault, "E401", -1, "expected sources of one dtype, got %s and %s: add a CAST",
                a->name, b->name);
  }
  if (!(ops[node->op].kinds >> a->kind & 1))
    return fail(fault, "E402", -1, "%s does not take %s", ops[node->op].name, a->name);
  return true;
}

bool is_value(const Node *node) { return node->dtype != EFFECT && !node->is_indexed; }

bool expect_values(const Node *node, int first, Fault *fault) {
  for (int k = first; k < node->count; k++) {
    if (!is_value(node->src[k]))
      return fail(fault, "E409", -1, "expected a value, got %s", ops[node->src[k]->op].name);
  }
  return true;
}

bool infer_storage(Node *node, Fault *fault) {
  node->dtype = node->arg.dtype;
  node->shape = check_size(node->arg.shape, fault);
  node->root = node;
  return node->shape;
}

static bool infer_constant(Node *node, Fault *fault) {
  (void)fault;
  node->dtype = node->arg.dtype;
  node->shape = scalar();
  return true;
}

static bool infer_elementwise(Node *node, Fault *fault) {
  int first = node->op == WHERE ? 1 : 0;
  if (!expect_values(node, 0, fault) || !check_dtypes(node, first, fault)) return false;
  const OpInfo *op = &ops[node->op];
  node->dtype = node->op == CAST ? node->arg.dtype
                : op->gives_bool ? DTYPE_BOOL
                                 : node->src[first]->dtype;
  node->shape = scalar();
  for (int k = 0; k < node->count && node->shape; k++) {
    node->shape = broadcast(node->shape, node->src[k]->shape, fault);
  }
  return node->shape;
}

// ---- the ops -----------------------------------------------------------------------------------

#define ELEMENTWISE(sources) 1, sources, sources, .infer = infer_elementwise
#define LATER(op, number)    [op] = {.name = #op, .week = number}

const OpInfo ops[OPS] = {
    [PARAM] = {"PARAM", 1, 0, 0, .read = read_param, .infer = infer_storage,
               .example = "{\"slot\": 0, \"dtype\": \"float32\", \"shape\": [2, 3]}"},
    [CONST] = {"CONST", 1, 0, 0, .read = read_constant, .infer = infer_constant,
               .example = "{\"value\": 1, \"dtype\": \"int32\"}"},
    [CALL] = {"CALL", 1, 1, INT_MAX, .read = read_call_name},  // its type: see infer_call
    [CAST] = {"CAST", ELEMENTWISE(1), .kinds = ALL, .read = read_cast, .example = "\"int32\""},
    [NEG] = {"NEG", ELEMENTWISE(1), .kinds = NUMBERS},
    [RECIP] = {"RECIP", ELEMENTWISE(1), .kinds = FLOATS},
    [EXP2] = {"EXP2", ELEMENTWISE(1), .kinds = FLOATS},
    [LOG2] = {"LOG2", ELEMENTWISE(1), .kinds = FLOATS},
    [ADD] = {"ADD", ELEMENTWISE(2), .kinds = NUMBERS, .commutes = true},
    [MUL] = {"MUL", ELEMENTWISE(2), .kinds = ALL, .commutes = true},
    [MAX] = {"MAX", ELEMENTWISE(2), .kinds = ALL, .commutes = true},
    [FLOORDIV] = {"FLOORDIV", ELEMENTWISE(2), .kinds = INTEGERS},
    [FLOORMOD] = {"FLOORMOD", ELEMENTWISE(2), .kinds = INTEGERS},
    [CMPLT] = {"CMPLT", ELEMENTWISE(2), .kinds = NUMBERS, .gives_bool = true},
    [CMPNE] = {"CMPNE", ELEMENTWISE(2), .kinds = ALL, .gives_bool = true, .commutes = true},
    [WHERE] = {"WHERE", ELEMENTWISE(3), .kinds = ALL},
    LATER(BUFFER, 2),
    LATER(ALLOC, 2),
    LATER(INDEX, 2),
    LATER(LOAD, 2),
    LATER(STORE, 2),
    LATER(AFTER, 2),
    LATER(RESHAPE, 3),
    LATER(EXPAND, 3),
    LATER(PERMUTE, 3),
    LATER(FLIP, 3),
    LATER(PAD, 3),
    LATER(SHRINK, 3),
    LATER(REDUCE, 3),
    LATER(RANGE, 3),
    LATER(END, 3),
    LATER(STAGE, 4),
    LATER(KERNEL, 7),
    LATER(SPECIAL, 7),
    LATER(BARRIER, 7),
    LATER(MMA, 7),
};

// ---- the walk ----------------------------------------------------------------------------------

typedef struct {
  Node *node;
  int next;
} Step;

List postorder(Node *const *roots, size_t count, Enters *enters) {
  static unsigned visit;
  static Step *stack;
  static size_t capacity;
  List order = {0};
  visit++;
  for (size_t i = 0; i < count; i++) {
    size_t depth = 0;
    Node *next = roots[i];
    for (;;) {
      if (next && next->visit != visit) {
        next->visit = visit;
        if (depth == capacity) {
          capacity = 2 * capacity + 1024;
          stack = realloc(stack, capacity * sizeof *stack);
          if (!stack) abort();
        }
        stack[depth++] = (Step){next, 0};
      }
      if (depth == 0) break;
      Step *top = &stack[depth - 1];
      next = NULL;
      if (top->next == top->node->count) {
        push(&order, top->node);
        depth--;
      } else {
        int k = top->next++;
        if (!enters || enters(top->node, k)) next = top->node->src[k];
      }
    }
  }
  return order;
}
