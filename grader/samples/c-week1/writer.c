// The canonical form: names %0 %1 … in depth-first post-order from the outputs, one way to write
// each argument.

#include "uops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_integer(Buffer *out, Wide value) {
  append(out, "%s%llu", value < 0 ? "-" : "", (unsigned long long)(value < 0 ? -value : value));
}

// Finds the shortest decimal digits that read back as `magnitude`: their count. Below a power of
// two the neighbours are nearer than above: the number above the nearest may read back alone.
static int shortest_digits(double magnitude, Dtype dtype, char *digits, int *exponent) {
  for (int places = 0;; places++) {
    char text[40];
    snprintf(text, sizeof text, "%.*e", places, magnitude);
    char *power = strchr(text, 'e');
    *exponent = atoi(power + 1);
    if (places) memmove(text + 1, text + 2, (size_t)(power - text - 2));  // over the point
    text[places + 1] = '\0';
    unsigned long long nearest = strtoull(text, NULL, 10);
    for (unsigned above = 0; above <= 1; above++) {
      snprintf(text, sizeof text, "%llue%d", nearest + above, *exponent - places);
      if (fit_float(strtod(text, NULL), dtype) == magnitude)
        return sprintf(digits, "%llu", nearest + above);
    }
  }
}

// A float as JavaScript writes it: 12, 0.001 or, from 1e+21 and below 1e-6 on, with an exponent.
static void write_float(Buffer *out, double value, Dtype dtype) {
  if (!isfinite(value)) {
    append(out, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
    return;
  }
  char digits[24];
  int exponent, count = shortest_digits(fabs(value), dtype, digits, &exponent);
  if (signbit(value)) append(out, "-");
  if (exponent < -6 || exponent > 20) {
    append(out, "%c%s%se%+d", digits[0], count > 1 ? "." : "", digits + 1, exponent);
    return;
  }
  for (int place = exponent < 0 ? 0 : exponent; place >= 0 || exponent - place < count; place--) {
    int index = exponent - place;  // of the digit that counts 10^place
    append(out, "%s%c", place == -1 ? "." : "", 0 <= index && index < count ? digits[index] : '0');
  }
}

static void write_constant(Buffer *out, Value value, Dtype dtype) {
  if (dtypes[dtype].kind == FLOAT) write_float(out, value.real, dtype);
  else if (dtypes[dtype].kind == BOOL) append(out, value.integer ? "true" : "false");
  else write_integer(out, value.integer);
}

static void write_argument(Buffer *out, const Node *node) {
  const Argument *arg = &node->arg;
  const char *dtype = dtypes[arg->dtype].name;
  if (node->op == CAST) append(out, " : \"%s\"", dtype);
  if (node->op == CONST) {
    append(out, " : {\"value\": ");
    write_constant(out, arg->value, arg->dtype);
    append(out, ", \"dtype\": \"%s\"}", dtype);
  }
  if (!arg->shape) return;
  append(out, " : {\"slot\": %lld, \"dtype\": \"%s\", \"shape\": %s", (long long)arg->slot, dtype,
         shape_text(arg->shape));
  if (arg->has_range) {
    append(out, ", \"range\": [");
    write_integer(out, arg->lo);
    append(out, ", ");
    write_integer(out, arg->hi);
    append(out, "]");
  }
  if (arg->addrspace) append(out, ", \"addrspace\": \"%s\"", arg->addrspace);
  append(out, "}");
}

void write_program(Buffer *out, Node **outputs, size_t count) {
  List order = postorder(outputs, count, NULL);
  append(out, "uops 1\n");
  for (size_t i = 0; i < order.count; i++) {
    Node *node = order.items[i];
    node->number = i;
    append(out, "%%%zu = %s", i, ops[node->op].name);
    for (int k = 0; k < node->count; k++) append(out, " %%%zu", node->src[k]->number);
    write_argument(out, node);
    append(out, "\n");
  }
  append(out, "return");
  for (size_t i = 0; i < count; i++) append(out, " %%%zu", outputs[i]->number);
  append(out, "\n");
}
