// From a program to C, in the plainest way: every value is computed once and held, a scalar in a
// variable, an array in the workspace. So nothing is read later than its node says. Only what a
// single op uses, and what reads nothing that may change, is computed in the loop of its user.
// Storage seen through INDEX and AFTER is found by index arithmetic where it is used.

#include "storage.h"

#include <string.h>

enum {
  ALIGNMENT = 64,
  LONGEST_CHAIN = 64  // of values that are computed in the loop of their last user
};

// What is known of a node, by its number.
typedef struct {
  const Node *user;  // the one that uses it, NULL if there are several
  int users, chain;  // the length of the chain to it where it is computed in its user's loop, or 0
  bool is_output;
  const Node *base;              // the node itself, or what is behind AFTERs
  const char *variable, *array;  // where its value is held
} Plan;

typedef struct {
  Plan *plans;
  Buffer statics, lines;
  int depth, names;
  size_t workspace;  // bytes
} Renderer;

// The indices of an element, as texts.
typedef struct {
  const char *of[MAX_RANK];
} Indices;

static Plan *plan_of(const Renderer *to, const Node *node) { return &to->plans[node->number]; }

static bool is_elementwise(const Node *node) { return ops[node->op].kinds; }

// Whether what a node gives may be another later on: it is storage that can be written.
static bool is_mutable(const Node *node) { return node->root && node->root->op != PARAM; }

// ---- texts -------------------------------------------------------------------------------------

#define LINE(...)                                                                 \
  (append(&to->lines, "%*s", 2 * to->depth, ""), append(&to->lines, __VA_ARGS__), \
   append(&to->lines, "\n"))

static const char *fresh(Renderer *to, char letter) { return format("%c%d", letter, to->names++); }

// An expression by name, so that it is computed once.
static const char *named(Renderer *to, const char *type, const char *text, char letter) {
  if (text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789")] == '\0') return text;
  const char *name = fresh(to, letter);
  LINE("const %s %s = %s;", type, name, text);
  return name;
}

// Opens loops over a shape.
static Indices open_loops(Renderer *to, const Shape *shape) {
  Indices at;
  for (int axis = 0; axis < shape->rank; axis++) {
    at.of[axis] = "0";
    if (shape->sizes[axis] == 1) continue;
    const char *i = at.of[axis] = fresh(to, 'i');
    LINE("for (int64_t %s = 0; %s < %lld; %s++) {", i, i, (long long)shape->sizes[axis], i);
    to->depth++;
  }
  return at;
}

static void close_loops(Renderer *to, int depth) {
  while (to->depth > depth) {
    to->depth--;
    LINE("}");
  }
}

static const char *flat(const Shape *shape, const Indices *at) {
  const char *sum = NULL;
  long long stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    const char *i = at->of[axis], *term = stride == 1 ? i : format("%s * %lld", i, stride);
    if (strcmp(i, "0") != 0) sum = sum ? format("%s + %s", term, sum) : term;
    stride *= shape->sizes[axis];
  }
  return sum ? sum : "0";
}

// ---- elements ----------------------------------------------------------------------------------

static const char *computed(Renderer *to, const Node *node, const Indices *at);
static const char *value(Renderer *to, const Node *node, const Indices *at, const char *gate);

// The indices in the place that an INDEX takes a part of.
static Indices indexed(Renderer *to, const Node *node, const Indices *at, const char *gate) {
  Indices own;
  int next = 0;
  for (int axis = 0; axis < node->src[0]->shape->rank; axis++) {
    const Node *index = axis + 1 < node->count ? node->src[axis + 1] : NULL;
    Indices within = {{next < node->shape->rank ? at->of[next] : NULL}};
    if (!index || index->shape->rank) next++;
    own.of[axis] = within.of[0];
    if (!index) continue;
    if (index->shape->rank && index->shape->sizes[0] == 1) within.of[0] = "0";
    const char *text = format("(int64_t)%s", value(to, index, &within, gate));
    own.of[axis] = named(to, "int64_t", text, 't');
  }
  return own;
}

// The element of a node at indices; it may be read where the gate, if there is one, is true.
static const char *element(Renderer *to, const Node *node, const Indices *at, const char *gate) {
  Indices own = *at;
  for (node = plan_of(to, node)->base; node->op == INDEX; node = plan_of(to, node->src[0])->base)
    own = indexed(to, node, &own, gate);
  const Plan *plan = plan_of(to, node);
  if (node->op == CONST) return c_constant(node->arg.value, node->dtype);
  return plan->variable ? plan->variable : format("%s[%s]", plan->array, flat(node->shape, &own));
}

// The value at indices, by name or a constant: 0 where there is a gate and it is false.
static const char *value(Renderer *to, const Node *node, const Indices *at, const char *gate) {
  const char *type = c_type(node->dtype);
  const Plan *plan = plan_of(to, node);
  if (plan->chain) return named(to, type, computed(to, node, at), 'x');
  const char *text = element(to, node, at, gate);
  if (plan->base->op == CONST) return text;
  return named(to, type, gate ? format("%s ? %s : 0", gate, text) : text, 'x');
}

// The value of an operand that is broadcast to a shape.
static const char *operand(Renderer *to, const Node *node, const Shape *shape, const Indices *at) {
  Indices own;
  for (int axis = 0; axis < node->shape->rank; axis++) {
    bool is_single = node->shape->sizes[axis] == 1;
    own.of[axis] = is_single ? "0" : at->of[axis + shape->rank - node->shape->rank];
  }
  return value(to, node, &own, NULL);
}

static const char *computed(Renderer *to, const Node *node, const Indices *at) {
  const char *args[3];
  for (int k = 0; k < node->count; k++) args[k] = operand(to, node->src[k], node->shape, at);
  return c_apply(node, args);
}

static const char *read(Renderer *to, const Node *node, const Indices *at) {
  const Node *place = node->src[0];
  if (node->count == 1) return value(to, place, at, NULL);
  const char *gate = operand(to, node->src[1], node->shape, at);
  const char *found = value(to, place, at, gate);
  if (node->count == 2) return found;
  return format("%s ? %s : %s", gate, found, operand(to, node->src[2], node->shape, at));
}

// ---- statements --------------------------------------------------------------------------------

// A new array in the workspace, at least a byte long.
static const char *new_array(Renderer *to, Dtype dtype, const Shape *shape) {
  const char *name = fresh(to, 'a'), *type = c_type(dtype);
  append(&to->statics, "  %s *%s = (%s *)((char *)workspace + %zu);\n", type, name, type,
         to->workspace);
  size_t bytes = c_bytes(dtype);
  for (int axis = 0; axis < shape->rank; axis++) bytes *= (size_t)shape->sizes[axis];
  to->workspace += (bytes ? bytes + ALIGNMENT - 1 : ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  return name;
}

static void declare(Renderer *to, const Node *node) {
  Plan *plan = plan_of(to, node);
  const char *type = c_type(node->dtype);
  if (node->op == ALLOC) {
    plan->array = new_array(to, node->dtype, node->shape);
    return;
  }
  plan->array = fresh(to, node->op == PARAM ? 'p' : 'b');
  if (node->op == PARAM) {
    append(&to->statics, "  const %s *%s = inputs[%lld];\n", type, plan->array,
           (long long)node->arg.slot);
    return;
  }
  size_t count = 1;
  for (int axis = 0; axis < node->shape->rank; axis++) count *= (size_t)node->shape->sizes[axis];
  append(&to->statics, "  static %s %s[%zu] __attribute__((aligned(%d)));\n", type, plan->array,
         count ? count : 1, ALIGNMENT);
}

typedef const char *Compute(Renderer *to, const Node *node, const Indices *at);

// Holds the value of a node.
static void hold(Renderer *to, const Node *node, Compute *compute) {
  Plan *plan = plan_of(to, node);
  int depth = to->depth;
  const char *array = node->shape->rank ? new_array(to, node->dtype, node->shape) : NULL;
  Indices at = open_loops(to, node->shape);
  const char *text = compute(to, node, &at);
  if (array) {
    LINE("%s[%s] = %s;", array, flat(node->shape, &at), text);
    plan->array = array;
  } else {
    plan->variable = fresh(to, 'v');
    LINE("const %s %s = %s;", c_type(node->dtype), plan->variable, text);
  }
  close_loops(to, depth);
}

static void store(Renderer *to, const Node *node) {
  const Node *place = node->src[0];
  int depth = to->depth;
  Indices at = open_loops(to, place->shape);
  const char *gate = node->count > 2 ? operand(to, node->src[2], place->shape, &at) : NULL;
  const char *what = value(to, node->src[1], &at, NULL);
  const char *where = element(to, place, &at, gate);
  if (gate) LINE("if (%s) %s = %s;", gate, where, what);
  else LINE("%s = %s;", where, what);
  close_loops(to, depth);
}

static void write_output(Renderer *to, const Node *node, size_t k) {
  int depth = to->depth;
  Indices at = open_loops(to, node->shape);
  const char *text = value(to, node, &at, NULL);
  LINE("((%s *)outputs[%zu])[%s] = %s;", c_type(node->dtype), k, flat(node->shape, &at), text);
  close_loops(to, depth);
}

// Whether a node is computed in the loop of its user.
static bool is_left_to_user(Renderer *to, const Node *node) {
  Plan *plan = plan_of(to, node);
  int chain = 1;
  for (int k = 0; k < node->count; k++) {
    const Node *source = node->src[k];
    if (is_mutable(source)) return false;
    if (chain <= plan_of(to, source)->chain) chain = plan_of(to, source)->chain + 1;
  }
  if (!plan->user || !is_elementwise(plan->user) || plan->user->shape != node->shape) return false;
  if (chain <= LONGEST_CHAIN) plan->chain = chain;
  return plan->chain;
}

// Emits what one node does or computes; its sources are there.
static void emit(Renderer *to, const Node *node) {
  if (is_storage(node)) declare(to, node);
  else if (node->op == LOAD) hold(to, node, read);
  else if (node->op == STORE) store(to, node);
  else if (is_elementwise(node) && !is_left_to_user(to, node)) hold(to, node, computed);
}

// ---- programs ----------------------------------------------------------------------------------

static Node *new_node(Op op, const Node *x, Node **src, int count) {
  Node *node = allocate(sizeof *node);
  *node = (Node){.op = op, .src = src, .count = count, .dtype = x->dtype, .shape = x->shape};
  return node;
}

// Indices, and what is stored, are fixed before they could be written: STORE p b → STORE p l with
// w = AFTER b p b and l = LOAD w, where b can be written. So for each node anew, once all is there.
static void fix_values(Node *node) {
  Node **fixed = allocate((size_t)node->count * sizeof *fixed);
  for (int k = 0; k < node->count; k++) {
    fixed[k] = node->src[k];
    if (k == 0 || !is_mutable(node->src[k])) continue;
    Node **waits = allocate((size_t)(node->count + 1) * sizeof *waits);
    waits[0] = node->src[k];
    memcpy(waits + 1, node->src, (size_t)node->count * sizeof *waits);
    Node **place = allocate(sizeof *place);
    *place = new_node(AFTER, node->src[k], waits, node->count + 1);
    (*place)->root = node->src[k]->root;
    fixed[k] = new_node(LOAD, node->src[k], place, 1);
  }
  node->src = fixed;
}

// The nodes of a program in order, numbered and with their users.
static List planned(Renderer *to, Node **outputs, size_t count) {
  List nodes = postorder(outputs, count, NULL);
  for (size_t i = 0; i < nodes.count; i++) {
    Node *node = nodes.items[i];
    if (node->op == INDEX || node->op == STORE) fix_values(node);
  }
  nodes = postorder(outputs, count, NULL);
  to->plans = allocate(nodes.count * sizeof *to->plans);
  for (size_t i = 0; i < nodes.count; i++) {
    Node *node = nodes.items[i];
    node->number = i;
    to->plans[i].base = node->op == AFTER ? plan_of(to, node->src[0])->base : node;
    for (int k = 0; k < node->count; k++) {
      Plan *source = plan_of(to, node->src[k]);
      source->user = source->users++ ? NULL : node;
    }
  }
  for (size_t k = 0; k < count; k++) {
    plan_of(to, outputs[k])->user = NULL;
    plan_of(to, outputs[k])->is_output = true;
  }
  return nodes;
}

void render(Buffer *out, Node **outputs, size_t count) {
  Renderer *to = &(Renderer){.depth = 1};
  append(&to->statics, "  (void)inputs, (void)outputs, (void)workspace;\n");
  append(&to->lines, "%s", "");
  List nodes = planned(to, outputs, count);
  for (size_t i = 0; i < nodes.count; i++) {
    const Node *node = nodes.items[i];
    emit(to, node);
    for (size_t k = 0; k < count && plan_of(to, node)->is_output; k++) {
      if (outputs[k] == node) write_output(to, node, k);
    }
  }
  append(out, "%s", c_prelude);
  append(out, "size_t program_workspace(void) {\n  return %zu;\n}\n\n", to->workspace);
  append(out, "void program(void *const *inputs, void *const *outputs, void *workspace) {\n");
  append(out, "%s%s}\n", to->statics.data, to->lines.data);
}
