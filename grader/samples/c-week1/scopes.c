// What can be seen of a whole scope only: a program, or the body of a CALL.

#include "uops.h"

#include <stdlib.h>

static bool is_in_scope(const Node *from, int source) { return from->op != CALL || source > 0; }

List scope_of(Node *const *roots, size_t count) { return postorder(roots, count, is_in_scope); }

static int by_slot_and_line(const void *left, const void *right) {
  const Node *a = *(Node *const *)left, *b = *(Node *const *)right;
  if (a->arg.slot != b->arg.slot) return a->arg.slot < b->arg.slot ? -1 : 1;
  return a->line->number - b->line->number;
}

static bool is_same_storage(const Argument *a, const Argument *b) {
  bool same_range = a->has_range == b->has_range && a->lo == b->lo && a->hi == b->hi;
  return a->dtype == b->dtype && a->shape == b->shape && a->addrspace == b->addrspace && same_range;
}

// Of the PARAMs among nodes, or another storage, the first of each slot in the text, by slot, and
// in `others` those that differ from it.
static List slots_of(const List *nodes, Op storage, List *others) {
  List all = {0}, firsts = {0};
  for (size_t i = 0; i < nodes->count; i++) {
    Node *node = nodes->items[i];
    if (node->op == storage) push(&all, node);
  }
  if (all.count) qsort(all.items, all.count, sizeof *all.items, by_slot_and_line);
  for (size_t i = 0; i < all.count; i++) {
    Node *node = all.items[i], *first = firsts.count ? firsts.items[firsts.count - 1] : NULL;
    if (!first || first->arg.slot != node->arg.slot) push(&firsts, node);
    else if (!is_same_storage(&first->arg, &node->arg)) push(others, node);
  }
  free(all.items);
  return firsts;
}

void check_slots(Reader *reader, const List *nodes, Op storage) {
  List others = {0};
  free(slots_of(nodes, storage, &others).items);
  for (size_t i = 0; i < others.count; i++) {
    Node *node = others.items[i];
    report(reader, node->line, "E408", node->at, "slot %lld is another %s in a line before",
           (long long)node->arg.slot, ops[storage].name);
  }
}

void check_program(Reader *reader) {
  List scope = scope_of((Node **)reader->outputs.items, reader->outputs.count);
  check_slots(reader, &scope, PARAM);
  if (reader->language->check_program) reader->language->check_program(reader, &scope);
}

// Finds the PARAMs of a body, once.
static void find_params(Reader *reader, Node *body) {
  if (body->params) return;
  List scope = scope_of(&body, 1);
  reader->scope_steps += scope.count;
  body->params = allocate(sizeof *body->params);
  body->others = allocate(sizeof *body->others);
  *body->params = slots_of(&scope, PARAM, body->others);
  free(scope.items);
}

bool infer_call(Reader *reader, Node *node, Fault *fault) {
  Node *body = node->src[0];
  if (!expect_values(node, 1, fault)) return false;
  if (body->is_indexed) {
    return fail(fault, "E409", -1, "expected a body that is a value or an effect, got a place");
  }
  find_params(reader, body);
  if (reader->scope_steps > MAX_BODY_NODES) {
    reader->is_stopped = true;
    return fail(fault, "E501", -1, "expected the bodies of all CALLs to have at most %d nodes",
                MAX_BODY_NODES);
  }
  if (body->others->count) {
    const Node *other = body->others->items[0];
    return fail(fault, "E408", -1, "expected one PARAM of slot %lld in the body, got two",
                (long long)other->arg.slot);
  }
  List params = *body->params;
  int64_t last = params.count ? ((Node *)params.items[params.count - 1])->arg.slot : -1;
  if (last != node->count - 2) {
    return fail(fault, "E407", -1,
                "expected an argument for each of the body's slots 0 to %lld, got %d",
                (long long)last, node->count - 1);
  }
  for (size_t i = 0; i < params.count; i++) {
    const Node *param = params.items[i], *arg = node->src[param->arg.slot + 1];
    if (arg->dtype == param->dtype && arg->shape == param->shape) continue;
    return fail(fault, "E407", -1, "expected %s %s, as the body's PARAM, got %s %s",
                dtypes[param->dtype].name, shape_text(param->shape), dtypes[arg->dtype].name,
                shape_text(arg->shape));
  }
  node->dtype = body->dtype;
  node->shape = body->shape;
  return true;
}
