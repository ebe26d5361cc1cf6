// The canonical form: names %0 %1 … in depth-first post-order from the outputs, one way to write
// each argument.

#include "uops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_integer(Wide value) {
  if (value < 0) putchar('-');
  printf("%llu", (unsigned long long)(value < 0 ? -value : value));
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
static void write_float(double value, Dtype dtype) {
  if (!isfinite(value)) {
    fputs(isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"", stdout);
    return;
  }
  char digits[24];
  int exponent, count = shortest_digits(fabs(value), dtype, digits, &exponent);
  if (signbit(value)) putchar('-');
  if (exponent < -6 || exponent > 20) {
    printf("%c%s%se%+d", digits[0], count > 1 ? "." : "", digits + 1, exponent);
    return;
  }
  for (int place = exponent < 0 ? 0 : exponent; place >= 0 || exponent - place < count; place--) {
    int index = exponent - place;  // of the digit that counts 10^place
    if (place == -1) putchar('.');
    putchar(0 <= index && index < count ? digits[index] : '0');
  }
}

static void write_argument(const Node *node) {
  const Argument *arg = &node->arg;
  const char *dtype = dtypes[arg->dtype].name;
  if (node->op == CAST) printf(" : \"%s\"", dtype);
  if (node->op == CONST) {
    fputs(" : {\"value\": ", stdout);
    if (dtypes[arg->dtype].kind == FLOAT) write_float(arg->value.real, arg->dtype);
    else if (dtypes[arg->dtype].kind == BOOL) fputs(arg->value.integer ? "true" : "false", stdout);
    else write_integer(arg->value.integer);
    printf(", \"dtype\": \"%s\"}", dtype);
  }
  if (node->op == PARAM) {
    printf(" : {\"slot\": %lld, \"dtype\": \"%s\", \"shape\": %s", (long long)arg->slot, dtype,
           shape_text(arg->shape));
    if (arg->has_range) {
      fputs(", \"range\": [", stdout);
      write_integer(arg->lo);
      fputs(", ", stdout);
      write_integer(arg->hi);
      putchar(']');
    }
    putchar('}');
  }
}

void write_program(Node **outputs, size_t count) {
  List order = postorder(outputs, count, NULL);
  puts("uops 1");
  for (size_t i = 0; i < order.count; i++) {
    Node *node = order.items[i];
    node->number = i;
    printf("%%%zu = %s", i, ops[node->op].name);
    for (int k = 0; k < node->count; k++) printf(" %%%zu", node->src[k]->number);
    write_argument(node);
    putchar('\n');
  }
  fputs("return", stdout);
  for (size_t i = 0; i < count; i++) printf(" %%%zu", outputs[i]->number);
  putchar('\n');
}
