// The ops of week 2, beside those of week 1: how an argument is read, what a node is, and what is
// asked of a whole program.

#include "storage.h"

#include <limits.h>
#include <string.h>

// ---- arguments ---------------------------------------------------------------------------------

static void read_buffer(Reader *reader, const Json *json, Argument *arg) {
  const Json *none;
  read_storage(reader, json, NULL, arg, &none);
}

static void read_alloc(Reader *reader, const Json *json, Argument *arg) {
  static const char *const words[] = {"MEM", "LOCAL", "REG"};
  const Json *space;
  read_storage(reader, json, "addrspace", arg, &space);
  for (int k = 0; k < 3 && space && space->kind == JSON_STRING; k++) {
    if (equals(space->text, words[k])) arg->addrspace = words[k];
  }
  if (!space || arg->addrspace) return;
  HERE(space->kind == JSON_STRING ? "E311" : "E306", reader->argument_at,
       "expected \"MEM\", \"LOCAL\" or \"REG\" as address space");
}

// ---- dtype, shape and place --------------------------------------------------------------------

bool is_storage(const Node *node) {
  return node->op == PARAM || node->op == BUFFER || node->op == ALLOC;
}

static bool expect_place(const Node *x, Fault *fault) {
  return x->root || fail(fault, "E409", -1, "expected a place, got %s", ops[x->op].name);
}

static bool expect_dtype(const Node *x, Dtype dtype, const char *code, Fault *fault) {
  if (x->dtype == dtype) return true;
  return fail(fault, code, -1, "expected %s, got %s", dtypes[dtype].name, dtypes[x->dtype].name);
}

// A gate, the source k if there is one, is a bool, a scalar or of the place's shape.
static bool expect_gate(const Node *node, int k, Fault *fault) {
  if (node->count <= k) return true;
  const Node *gate = node->src[k];
  const Shape *shape = node->src[0]->shape;
  if (!expect_dtype(gate, DTYPE_BOOL, "E402", fault)) return false;
  if (gate->shape == scalar() || gate->shape == shape) return true;
  return fail(fault, "E403", -1, "expected a gate of shape %s or [], got %s", shape_text(shape),
              shape_text(gate->shape));
}

static bool infer_index(Node *node, Fault *fault) {
  Node *x = node->src[0];
  if (!expect_place(x, fault) || !expect_values(node, 1, fault)) return false;
  int indices = node->count - 1, rank = 0;
  if (indices > x->shape->rank) {
    return fail(fault, "E405", -1, "expected at most %d indices, got %d", x->shape->rank, indices);
  }
  int64_t sizes[MAX_RANK];
  for (int axis = 0; axis < x->shape->rank; axis++) {
    const Node *index = axis < indices ? node->src[axis + 1] : NULL;
    if (!index) {
      sizes[rank++] = x->shape->sizes[axis];
    } else if (dtypes[index->dtype].kind != INTEGER || index->shape->rank > 1) {
      return fail(fault, "E411", -1, "expected an integer scalar or list as index, got %s %s",
                  dtypes[index->dtype].name, shape_text(index->shape));
    } else if (index->shape->rank) {
      sizes[rank++] = index->shape->sizes[0];
    }
  }
  node->dtype = x->dtype;
  node->shape = check_size(shape_of(rank, sizes), fault);
  node->root = x->root;
  node->is_indexed = true;
  return node->shape;
}

static bool infer_load(Node *node, Fault *fault) {
  const Node *x = node->src[0], *other = node->count > 2 ? node->src[2] : NULL;
  if (!expect_place(x, fault) || !expect_values(node, 1, fault)) return false;
  if (!expect_gate(node, 1, fault)) return false;
  if (other && !expect_dtype(other, x->dtype, "E401", fault)) return false;
  if (other && broadcast(other->shape, x->shape, fault) != x->shape) {
    return fail(fault, "E403", -1, "expected a shape that broadcasts to %s, got %s",
                shape_text(x->shape), shape_text(other->shape));
  }
  node->dtype = x->dtype;
  node->shape = x->shape;
  return true;
}

static bool infer_store(Node *node, Fault *fault) {
  const Node *x = node->src[0], *value = node->src[1];
  if (!expect_place(x, fault) || !expect_values(node, 1, fault)) return false;
  if (!expect_dtype(value, x->dtype, "E401", fault)) return false;
  if (value->shape != x->shape) {
    return fail(fault, "E403", -1, "expected the shape %s, got %s", shape_text(x->shape),
                shape_text(value->shape));
  }
  node->dtype = EFFECT;
  node->shape = scalar();
  return expect_gate(node, 2, fault);
}

static bool infer_after(Node *node, Fault *fault) {
  (void)fault;
  const Node *x = node->src[0];
  node->dtype = x->dtype;
  node->shape = x->shape;
  node->root = x->root;
  node->is_indexed = x->is_indexed;
  return true;
}

// ---- the whole program -------------------------------------------------------------------------

// Whether a node of a scope stores into PARAMs of it: their slots are marked, if marks are given.
static bool stores_into_params(const Node *node, bool *is_stored) {
  bool is_found = false;
  for (int k = 0; k < node->count; k++) {
    bool is_written =
        node->op == STORE ? k == 0 : node->op == CALL && k && node->src[0]->is_stored[k - 1];
    const Node *root = node->src[k]->root;
    if (!is_written || !root || root->op != PARAM) continue;
    is_found = true;
    if (is_stored) is_stored[root->arg.slot] = true;
  }
  return is_found;
}

// Sets `is_stored` of the bodies of all CALLs, those that are called within others first.
static void mark_bodies(const List *nodes) {
  for (size_t i = 0; i < nodes->count; i++) {
    const Node *call = nodes->items[i];
    if (call->op != CALL || call->src[0]->is_stored) continue;
    bool *is_stored = call->src[0]->is_stored = allocate((size_t)call->count);
    List scope = scope_of(call->src, 1);
    for (size_t k = 0; k < scope.count; k++) stores_into_params(scope.items[k], is_stored);
  }
}

static void check_program_of_week2(Reader *reader, const List *scope) {
  List all = postorder((Node **)reader->outputs.items, reader->outputs.count, NULL);
  check_slots(reader, scope, ALLOC);
  check_slots(reader, &all, BUFFER);
  for (size_t i = 0; i < reader->outputs.count; i++) {
    const Node *output = reader->outputs.items[i];
    if (is_value(output)) continue;
    report(reader, reader->return_line, "E413", reader->outputs_at[i], "expected a value, got %s",
           ops[output->op].name);
  }
  mark_bodies(&all);
  for (size_t i = 0; i < scope->count; i++) {
    const Node *node = scope->items[i];
    if (!stores_into_params(node, NULL)) continue;
    report(reader, node->line, "E414", node->at, "expected no STORE into an input of the program");
  }
}

#define STORAGE_EXAMPLE "{\"slot\": 0, \"dtype\": \"float32\", \"shape\": [2]}"

const Language *language_of(int week) {
  static OpInfo all[OPS];
  static Language language = {.ops = all, .check_program = check_program_of_week2};
  memcpy(all, ops, sizeof all);
  all[BUFFER] = (OpInfo){
      "BUFFER", 2, 0, 0, .read = read_buffer, .example = STORAGE_EXAMPLE, .infer = infer_storage};
  all[ALLOC] = (OpInfo){
      "ALLOC", 2, 0, 0, .read = read_alloc, .example = STORAGE_EXAMPLE, .infer = infer_storage};
  all[INDEX] = (OpInfo){"INDEX", 2, 1, INT_MAX, .infer = infer_index};
  all[LOAD] = (OpInfo){"LOAD", 2, 1, 3, .infer = infer_load};
  all[STORE] = (OpInfo){"STORE", 2, 2, 3, .infer = infer_store};
  all[AFTER] = (OpInfo){"AFTER", 2, 1, INT_MAX, .infer = infer_after};
  language.week = week;
  return &language;
}
