// The argument of a statement: one JSON value of the form that its op demands.

#include "uops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *describe(const Json *json) {
  static const char *kinds[] = {"null", "true", "false", "", "", "", "a list", "an object"};
  if (*kinds[json->kind]) return kinds[json->kind];
  const char *text = brief(json->text);
  if (json->kind != JSON_STRING) return text;
  char *quoted = allocate(strlen(text) + 3);
  sprintf(quoted, "\"%s\"", text);
  return quoted;
}

// Fills values[k] with the value of the k-th key, NULL where it is missing or not an object.
static void read_object(Reader *reader, const Json *json, const char *const *keys, int required,
                        int count, const Json **values) {
  for (int k = 0; k < count; k++) values[k] = NULL;
  if (json->kind != JSON_OBJECT) {
    HERE("E306", json->at, "expected an object with the key \"%s\", got %s", keys[0],
         describe(json));
    return;
  }
  for (const Json *entry = json->first; entry; entry = entry->next) {
    int k = 0;
    while (k < count && !equals(entry->key, keys[k])) k++;
    if (k == count) HERE("E308", entry->key_at, "there is no key \"%s\" here", brief(entry->key));
    else if (values[k]) HERE("E309", entry->key_at, "the key \"%s\" is repeated", keys[k]);
    else values[k] = entry;
  }
  for (int k = 0; k < required; k++) {
    if (!values[k]) HERE("E307", json->at, "expected the key \"%s\"", keys[k]);
  }
}

static bool read_dtype(Reader *reader, const Json *json, Dtype *dtype) {
  if (json->kind != JSON_STRING)
    return HERE("E306", json->at, "expected a dtype in quotes, got %s", describe(json)), false;
  for (*dtype = 0; *dtype < DTYPES; ++*dtype) {
    if (equals(json->text, dtypes[*dtype].name)) return true;
  }
  HERE("E310", json->at, "expected a dtype like int32 or float32, got %s", describe(json));
  return false;
}

// An integer of an interval; below it is the error `code`, above it `code_above`.
static bool read_integer(Reader *reader, const Json *json, Wide lo, Wide hi, const char *code,
                         const char *code_above, Wide *value) {
  if (json->kind != JSON_INTEGER)
    return HERE("E306", json->at, "expected an integer, got %s", describe(json)), false;
  bool is_negative = json->text.data[0] == '-';
  Wide magnitude = 0;
  for (size_t i = is_negative; i < json->text.length && magnitude <= (Wide)1 << 65; i++) {
    magnitude = 10 * magnitude + (json->text.data[i] - '0');
  }
  *value = is_negative ? -magnitude : magnitude;
  if (lo <= *value && *value <= hi) return true;
  HERE(*value < lo ? code : code_above, json->at, "expected an integer in its bounds, got %s",
       describe(json));
  return false;
}

static bool read_integer_of(Reader *reader, const Json *json, Dtype dtype, Wide *value) {
  return read_integer(reader, json, dtypes[dtype].lo, dtypes[dtype].hi, "E312", "E312", value);
}

static void read_float(Reader *reader, const Json *json, Dtype dtype, double *value) {
  static const struct {
    const char *word;
    double value;
  } special[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};
  for (int i = 0; i < 3 && json->kind == JSON_STRING; i++) {
    *value = special[i].value;
    if (equals(json->text, special[i].word)) return;
  }
  if (json->kind != JSON_INTEGER && json->kind != JSON_NUMBER) {
    HERE("E306", json->at, "expected a number, \"inf\", \"-inf\" or \"nan\", got %s",
         describe(json));
    return;
  }
  *value = fit_float(strtod(json->text.data, NULL), dtype);  // something that is no digit follows
  if (isinf(*value))
    HERE("E312", json->at, "%s does not reach so far; infinity is written \"inf\"",
         dtypes[dtype].name);
}

static const Shape *read_shape(Reader *reader, const Json *json) {
  int64_t sizes[MAX_RANK];
  size_t before = reader->errors.count;
  int rank = 0;
  if (json->kind != JSON_ARRAY)
    return HERE("E306", json->at, "expected a list of sizes, got %s", describe(json)), NULL;
  if (json->count > MAX_RANK)
    return HERE("E502", json->at, "expected at most %d axes, got %zu", MAX_RANK, json->count), NULL;
  for (const Json *item = json->first; item; item = item->next) {
    Wide size;
    if (read_integer(reader, item, 0, (Wide)1 << 53, "E311", "E503", &size))
      sizes[rank++] = (int64_t)size;
  }
  if (reader->errors.count > before) return NULL;
  if (is_too_large(rank, sizes))
    return HERE("E503", json->at, "expected at most 2^47 elements"), NULL;
  return shape_of(rank, sizes);
}

static void read_range(Reader *reader, const Json *json, Argument *arg) {
  if (dtypes[arg->dtype].kind != INTEGER || arg->shape != scalar()) {
    HERE("E311", json->at, "only an integer scalar has a range");
  } else if (json->kind != JSON_ARRAY || json->count != 2) {
    HERE("E306", json->at, "expected a range [lo, hi]");
  } else {
    bool has_lo = read_integer_of(reader, json->first, arg->dtype, &arg->lo);
    bool has_hi = read_integer_of(reader, json->last, arg->dtype, &arg->hi);
    if (has_lo && has_hi && arg->lo > arg->hi)
      HERE("E311", json->at, "expected a range [lo, hi] with lo at most hi");
    arg->has_range = true;
  }
}

static void read_param(Reader *reader, const Json *json, Argument *arg) {
  static const char *const keys[] = {"slot", "dtype", "shape", "range"};
  const Json *values[4];
  Wide slot = 0;
  read_object(reader, json, keys, 3, 4, values);
  if (values[0]) read_integer(reader, values[0], 0, dtypes[INT64].hi, "E311", "E311", &slot);
  bool has_dtype = values[1] && read_dtype(reader, values[1], &arg->dtype);
  if (values[2]) arg->shape = read_shape(reader, values[2]);
  if (values[3] && has_dtype && arg->shape) read_range(reader, values[3], arg);
  arg->slot = (int64_t)slot;
}

static void read_constant(Reader *reader, const Json *json, Argument *arg) {
  static const char *const keys[] = {"value", "dtype"};
  const Json *values[2];
  read_object(reader, json, keys, 2, 2, values);
  if (!values[1] || !read_dtype(reader, values[1], &arg->dtype) || !values[0]) return;
  const Json *value = values[0];
  if (dtypes[arg->dtype].kind == FLOAT) read_float(reader, value, arg->dtype, &arg->value.real);
  else if (dtypes[arg->dtype].kind == INTEGER)
    read_integer_of(reader, value, arg->dtype, &arg->value.integer);
  else if (value->kind == JSON_TRUE || value->kind == JSON_FALSE)
    arg->value.integer = value->kind == JSON_TRUE;
  else HERE("E306", value->at, "expected true or false, got %s", describe(value));
}

static void read_call_name(Reader *reader, const Json *json) {
  static const char *const keys[] = {"name"};
  const Json *value;
  read_object(reader, json, keys, 1, 1, &value);
  if (value && value->kind != JSON_STRING)
    HERE("E306", value->at, "expected a string, got %s", describe(value));
}

// The JSON value that ends the line, or NULL after a report.
Json *read_json(Reader *reader, size_t at) {
  Fault fault;
  Text text = reader->line->text;
  Json *json = parse_json(text, &at, &fault);
  if (!json) return HERE(fault.code, (size_t)fault.at, "%s", fault.message), NULL;
  while (at < text.length && (text.data[at] == ' ' || text.data[at] == '\t')) at++;
  if (at == text.length || text.data[at] == '#') return json;
  return HERE("E105", at, "expected the end of the line after the JSON value"), NULL;
}

void read_argument(Reader *reader, Node *node, const Json *json) {
  static const char *const examples[OPS] = {
      [PARAM] = "{\"slot\": 0, \"dtype\": \"float32\", \"shape\": [2, 3]}",
      [CONST] = "{\"value\": 1, \"dtype\": \"int32\"}",
      [CAST] = "\"int32\""};
  const char *name = ops[node->op].name;
  if (!json && examples[node->op])
    HERE("E304", node->at, "expected an argument, like %s : %s", name, examples[node->op]);
  if (!json) return;
  switch (node->op) {
    case PARAM: read_param(reader, json, &node->arg); break;
    case CONST: read_constant(reader, json, &node->arg); break;
    case CAST: read_dtype(reader, json, &node->arg.dtype); break;
    case CALL: read_call_name(reader, json); break;
    default: HERE("E305", json->at, "%s takes no argument", name);
  }
}
