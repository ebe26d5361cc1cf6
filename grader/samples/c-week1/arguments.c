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

// Reports an error of the argument that is being read; false.
#define WRONG(code, ...) HERE(code, reader->argument_at, __VA_ARGS__)

// Fills values[k] with the value of the k-th key, NULL where it is missing or not an object.
static void read_object(Reader *reader, const Json *json, const char *const *keys, int required,
                        int count, const Json **values) {
  for (int k = 0; k < count; k++) values[k] = NULL;
  if (json->kind != JSON_OBJECT) {
    WRONG("E306", "expected an object with the key \"%s\", got %s", keys[0], describe(json));
    return;
  }
  for (const Json *entry = json->first; entry; entry = entry->next) {
    int k = 0;
    while (k < count && !equals(entry->key, keys[k])) k++;
    if (k == count) WRONG("E308", "there is no key \"%s\" here", brief(entry->key));
    else if (values[k]) WRONG("E309", "the key \"%s\" is repeated", keys[k]);
    else values[k] = entry;
  }
  for (int k = 0; k < required; k++) {
    if (!values[k]) WRONG("E307", "expected the key \"%s\"", keys[k]);
  }
}

static bool read_dtype(Reader *reader, const Json *json, Dtype *dtype) {
  if (json->kind != JSON_STRING)
    return WRONG("E306", "expected a dtype in quotes, got %s", describe(json));
  for (*dtype = 0; *dtype < DTYPES; ++*dtype) {
    if (equals(json->text, dtypes[*dtype].name)) return true;
  }
  return WRONG("E310", "expected a dtype like int32 or float32, got %s", describe(json));
}

// What an integer says; past 25 digits, some integer outside every dtype instead.
static Wide integer_of(Text text) {
  bool is_negative = text.data[0] == '-';
  Wide magnitude = text.length > 25 ? (Wide)1 << 80 : 0;
  for (size_t i = is_negative; i < text.length && text.length <= 25; i++) {
    magnitude = 10 * magnitude + (text.data[i] - '0');
  }
  return is_negative ? -magnitude : magnitude;
}

// So many integers from lo to hi, the first at `json`; others are the error `code`.
static bool read_integers(Reader *reader, const Json *json, size_t count, const char *code, Wide lo,
                          Wide hi, Wide *values) {
  const Json *outside = NULL;
  for (size_t i = 0; i < count; i++, json = json->next) {
    if (json->kind != JSON_INTEGER)
      return WRONG("E306", "expected an integer, got %s", describe(json));
    values[i] = integer_of(json->text);
    if (!outside && (values[i] < lo || values[i] > hi)) outside = json;
  }
  return !outside || WRONG(code, "expected an integer in its bounds, got %s", describe(outside));
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
    WRONG("E306", "expected a number, \"inf\", \"-inf\" or \"nan\", got %s", describe(json));
    return;
  }
  *value = fit_float(strtod(json->text.data, NULL), dtype);  // something that is no digit follows
  if (isinf(*value)) {
    WRONG("E312", "%s does not reach %s; infinity is written \"inf\"", dtypes[dtype].name,
          describe(json));
  }
}

static const Shape *read_shape(Reader *reader, const Json *json) {
  if (json->kind != JSON_ARRAY)
    return WRONG("E306", "expected a list of sizes, got %s", describe(json)), NULL;
  Wide *values = allocate(json->count * sizeof *values);
  int64_t *sizes = allocate(json->count * sizeof *sizes);
  if (!read_integers(reader, json->first, json->count, "E311", 0, dtypes[INT64].hi, values))
    return NULL;
  for (size_t axis = 0; axis < json->count; axis++) sizes[axis] = (int64_t)values[axis];
  return shape_of((int)json->count, sizes);
}

static void read_range(Reader *reader, const Json *json, Argument *arg) {
  const DtypeInfo *dtype = &dtypes[arg->dtype];
  Wide range[2];
  if (json->kind != JSON_ARRAY || json->count != 2) {
    WRONG("E306", "expected a range [lo, hi]");
  } else if (dtype->kind != INTEGER || arg->shape != scalar()) {
    WRONG("E311", "only an integer scalar has a range");
  } else if (read_integers(reader, json->first, 2, "E311", dtype->lo, dtype->hi, range)) {
    if (range[0] > range[1]) WRONG("E311", "expected a range [lo, hi] with lo at most hi");
    arg->has_range = true;
    arg->lo = range[0];
    arg->hi = range[1];
  }
}

bool read_storage(Reader *reader, const Json *json, const char *option, Argument *arg,
                  const Json **value) {
  const char *const keys[] = {"slot", "dtype", "shape", option};
  const Json *values[4] = {NULL};
  Wide slot = 0;
  read_object(reader, json, keys, 3, option ? 4 : 3, values);
  if (values[0]) read_integers(reader, values[0], 1, "E311", 0, dtypes[INT64].hi, &slot);
  bool has_dtype = values[1] && read_dtype(reader, values[1], &arg->dtype);
  if (values[2]) arg->shape = read_shape(reader, values[2]);
  arg->slot = (int64_t)slot;
  *value = values[3];
  return has_dtype && arg->shape;
}

void read_param(Reader *reader, const Json *json, Argument *arg) {
  const Json *range;
  if (read_storage(reader, json, "range", arg, &range) && range) read_range(reader, range, arg);
}

void read_cast(Reader *reader, const Json *json, Argument *arg) {
  read_dtype(reader, json, &arg->dtype);
}

void read_constant(Reader *reader, const Json *json, Argument *arg) {
  static const char *const keys[] = {"value", "dtype"};
  const Json *values[2];
  read_object(reader, json, keys, 2, 2, values);
  if (!values[1] || !read_dtype(reader, values[1], &arg->dtype) || !values[0]) return;
  const DtypeInfo *dtype = &dtypes[arg->dtype];
  JsonKind kind = values[0]->kind;
  if (dtype->kind == FLOAT) {
    read_float(reader, values[0], arg->dtype, &arg->value.real);
  } else if (dtype->kind == INTEGER) {
    read_integers(reader, values[0], 1, "E312", dtype->lo, dtype->hi, &arg->value.integer);
  } else if (kind == JSON_TRUE || kind == JSON_FALSE) {
    arg->value.integer = kind == JSON_TRUE;
  } else {
    WRONG("E306", "expected true or false, got %s", describe(values[0]));
  }
}

void read_call_name(Reader *reader, const Json *json, Argument *arg) {
  (void)arg;  // a name means nothing
  static const char *const keys[] = {"name"};
  const Json *value;
  read_object(reader, json, keys, 0, 1, &value);
  if (value && value->kind != JSON_STRING)
    WRONG("E306", "expected a name in quotes, got %s", describe(value));
}

static size_t next_field(Text text, size_t at) {
  while (at < text.length && (text.data[at] == ' ' || text.data[at] == '\t')) at++;
  return at;
}

// The JSON value that ends the line, or NULL after a report.
Json *read_json(Reader *reader, size_t at) {
  Fault fault;
  Text text = reader->line->text;
  reader->argument_at = next_field(text, at);
  Json *json = parse_json(text, &at, &fault);
  if (!json) return HERE(fault.code, (size_t)fault.at, "%s", fault.message), NULL;
  at = next_field(text, at);
  if (at == text.length || text.data[at] == '#') return json;
  return HERE("E105", at, "expected the end of the line after the JSON value"), NULL;
}

void read_argument(Reader *reader, Node *node, const Json *json) {
  const OpInfo *op = &reader->language->ops[node->op];
  if (json && op->read) op->read(reader, json, &node->arg);
  else if (json) WRONG("E305", "%s takes no argument", op->name);
  else if (op->example)
    HERE("E304", node->at, "expected an argument, like %s : %s", op->name, op->example);
}
