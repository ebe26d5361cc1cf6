// From bytes to nodes: the grammar, the names and the types of a program. Every error that can
// be found is reported; a faulty statement still defines its name, so that one mistake is
// one error.

#include "uops.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  Text text;
  size_t at;
} Field;

// Columns count characters. The last answer is kept, so that many errors in a line cost one pass.
static int column_of(Line *line, size_t at) {
  if (line->column == 0 || at < line->seen) line->column = 1, line->seen = 0;
  for (; line->seen < at; line->seen++)
    line->column += (line->text.data[line->seen] & 0xc0) != 0x80;
  return line->column;
}

void report(Reader *reader, Line *line, const char *code, size_t at, const char *format, ...) {
  char message[300];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  Error *error = allocate(sizeof *error);
  char *copy = allocate(strlen(message) + 1);
  *error =
      (Error){code, strcpy(copy, message), line, at, reader->errors.count, column_of(line, at)};
  push(&reader->errors, error);
}

// ---- texts -------------------------------------------------------------------------------------

static bool is_one_of(char letter, const char *others) {
  return ('A' <= letter && letter <= 'Z') || (letter && strchr(others, letter));
}

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static bool is_name(Text text) {
  if (!is_one_of(text.data[0], LOWER "_%") || equals(text, "return") || equals(text, "uops"))
    return false;
  for (size_t i = 1; i < text.length; i++) {
    if (!is_one_of(text.data[i], LOWER DIGITS "_.%")) return false;
  }
  return true;
}

static bool is_op(Text text) {
  for (size_t i = 0; i < text.length; i++) {
    if (!is_one_of(text.data[i], i ? DIGITS "_" : "")) return false;
  }
  return true;
}

// The index of the first character that is not UTF-8, or the length.
static size_t first_bad_character(Text text) {
  const unsigned char *bytes = (const unsigned char *)text.data;
  for (size_t at = 0, length; at < text.length; at += length) {
    unsigned char lead = bytes[at];
    length = lead < 0x80   ? 1
             : lead < 0xc2 ? 0
             : lead < 0xe0 ? 2
             : lead < 0xf0 ? 3
             : lead < 0xf5 ? 4
                           : 0;
    if (length == 0 || at + length > text.length) return at;
    for (size_t i = 1; i < length; i++) {
      if ((bytes[at + i] & 0xc0) != 0x80) return at;
    }
    bool overlong =
        (lead == 0xe0 && bytes[at + 1] < 0xa0) || (lead == 0xf0 && bytes[at + 1] < 0x90);
    bool surrogate = lead == 0xed && bytes[at + 1] > 0x9f;
    if (overlong || surrogate || (lead == 0xf4 && bytes[at + 1] > 0x8f)) return at;
  }
  return text.length;
}

// Splits the line up to its `:`, comment or end; answers where the `:` is, or the line's length.
static size_t split(Reader *reader) {
  Text text = reader->line->text;
  reader->fields.count = 0;
  for (size_t at = 0;;) {
    while (at < text.length && (text.data[at] == ' ' || text.data[at] == '\t')) at++;
    size_t start = at;
    while (at < text.length && text.data[at] != ' ' && text.data[at] != '\t' &&
           text.data[at] != '#')
      at++;
    if (at == start) return text.length;
    Field *field = allocate(sizeof *field);
    *field = (Field){{text.data + start, at - start}, start};
    if (equals(field->text, ":")) return start;
    push(&reader->fields, field);
  }
}

static Field *field_at(Reader *reader, size_t index) {
  return index < reader->fields.count ? reader->fields.items[index] : NULL;
}

static bool field_is(Reader *reader, size_t index, const char *word) {
  Field *field = field_at(reader, index);
  return field && equals(field->text, word);
}

// ---- names -------------------------------------------------------------------------------------

typedef struct {
  Text text;
  Node *node;
} Name;

static bool same_name(const void *entry, const void *key) {
  const Text *a = &((const Name *)entry)->text, *b = key;
  return a->length == b->length && memcmp(a->data, b->data, a->length) == 0;
}

static Node *find_name(Reader *reader, Text text) {
  Name *name = lookup(&reader->names, hash_bytes(0, text.data, text.length), same_name, &text);
  return name ? name->node : NULL;
}

// The first definition of a name counts.
static void define_name(Reader *reader, Text text, Node *node) {
  if (find_name(reader, text)) return;
  Name *name = allocate(sizeof *name);
  *name = (Name){text, node};
  insert(&reader->names, hash_bytes(0, text.data, text.length), name);
}

static Node faulty = {.is_faulty = true};

// Remembers what a faulty statement defines: uses of the name are no errors of their own.
static void poison(Reader *reader) {
  if (field_is(reader, 1, "=") && is_name(field_at(reader, 0)->text))
    define_name(reader, field_at(reader, 0)->text, &faulty);
  if (field_is(reader, 0, "return")) reader->has_returned = true;
}

static Node *use_name(Reader *reader, const Field *field) {
  Node *node = find_name(reader, field->text);
  if (node) return node;
  HERE("E201", field->at, "`%s` is not defined: a name is defined on a line before its uses",
       brief(field->text));
  return &faulty;
}

// ---- CALL --------------------------------------------------------------------------------------

static bool is_in_scope(const Node *from, int source) { return from->op != CALL || source > 0; }

static int by_slot_and_line(const void *left, const void *right) {
  const Node *a = *(Node *const *)left, *b = *(Node *const *)right;
  if (a->arg.slot != b->arg.slot) return a->arg.slot < b->arg.slot ? -1 : 1;
  return a->line->number - b->line->number;
}

static bool is_same_param(const Argument *a, const Argument *b) {
  bool same_range = a->has_range == b->has_range && a->lo == b->lo && a->hi == b->hi;
  return a->dtype == b->dtype && a->shape == b->shape && same_range;
}

// The PARAMs that the roots depend on, by slot, each slot once; a CALL's body has its own.
static List params_of(Reader *reader, Node **roots, size_t count) {
  List order = postorder(roots, count, is_in_scope), all = {0}, params = {0};
  reader->scope_steps += order.count;
  for (size_t i = 0; i < order.count; i++) {
    Node *node = order.items[i];
    if (node->op == PARAM) push(&all, node);
  }
  free(order.items);
  if (all.count) qsort(all.items, all.count, sizeof *all.items, by_slot_and_line);
  for (size_t i = 0; i < all.count; i++) {
    Node *node = all.items[i], *first = params.count ? params.items[params.count - 1] : NULL;
    if (!first || first->arg.slot != node->arg.slot) {
      push(&params, node);
    } else if (!is_same_param(&first->arg, &node->arg) && !node->is_reported) {
      node->is_reported = true;
      report(reader, node->line, "E408", node->at, "slot %lld is another PARAM in line %d",
             (long long)node->arg.slot, first->line->number);
    }
  }
  free(all.items);
  return params;
}

static bool infer_call(Reader *reader, Node *node, Fault *fault) {
  Node *body = node->src[0];
  if (!body->params) {
    size_t before = reader->errors.count;
    body->params = allocate(sizeof *body->params);
    *body->params = params_of(reader, &body, 1);
    body->has_clash = reader->errors.count > before;
  }
  if (reader->scope_steps > 4 * (size_t)MAX_NODES) {
    reader->is_stopped = true;
    return fail(fault, "E501", -1, "expected the bodies of all CALLs to have at most %d nodes",
                4 * MAX_NODES);
  }
  node->is_faulty = body->has_clash;
  if (node->is_faulty) return true;
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
    return fail(fault, "E407", (long)param->arg.slot + 1,
                "expected %s %s, as the body's PARAM, got %s %s", dtypes[param->dtype].name,
                shape_text(param->shape), dtypes[arg->dtype].name, shape_text(arg->shape));
  }
  node->dtype = body->dtype;
  node->shape = body->shape;
  return true;
}

// ---- statements --------------------------------------------------------------------------------

static bool is_well_formed(Reader *reader) {
  size_t before = reader->errors.count;
  Field *name = field_at(reader, 0), *op = field_at(reader, 2);
  if (!is_name(name->text)) HERE("E104", name->at, "expected a name before `=`");
  if (!op) HERE("E104", name->at, "expected an op after `=`");
  else if (!is_op(op->text)) HERE("E104", op->at, "expected an op, in capitals, after `=`");
  for (size_t i = 3; i < reader->fields.count; i++) {
    Field *source = field_at(reader, i);
    if (!is_name(source->text))
      HERE("E104", source->at, "expected the name of a source, or ` : ` and the argument");
  }
  return reader->errors.count == before;
}

static void check_source_count(Reader *reader, const Node *node) {
  const OpInfo *op = &ops[node->op];
  if (node->op == CALL && node->count == 0)
    HERE("E303", node->at, "expected CALL body arguments, got no source");
  if (node->op != CALL && node->count != op->sources) {
    HERE("E303", node->at, "%s has %d source%s, got %d", op->name, op->sources,
         op->sources == 1 ? "" : "s", node->count);
  }
}

static Node *read_node(Reader *reader) {
  Field *op = field_at(reader, 2);
  Node *node = allocate(sizeof *node);
  *node = (Node){.line = reader->line, .at = op->at, .count = (int)reader->fields.count - 3};
  node->src = allocate((size_t)node->count * sizeof *node->src);
  for (int k = 0; k < node->count; k++) {
    node->src[k] = use_name(reader, field_at(reader, (size_t)k + 3));
    if (node->src[k]->is_faulty) node->is_faulty = true;
  }
  while (node->op < OPS && !equals(op->text, ops[node->op].name)) node->op++;
  return node;
}

static void define(Reader *reader, size_t colon) {
  size_t before = reader->errors.count;
  Field *name = field_at(reader, 0), *op = field_at(reader, 2);
  if (++reader->statements > MAX_NODES) {
    reader->is_stopped = true;
    HERE("E501", 0, "expected at most %d nodes", MAX_NODES);
    return;
  }
  if (find_name(reader, name->text))
    HERE("E202", name->at, "`%s` is defined already", brief(name->text));
  Node *node = read_node(reader);
  bool has_argument = colon < reader->line->text.length;
  const Json *json = has_argument ? read_json(reader, colon + 1) : NULL;
  int week = week_of_later_op(op->text);
  if (node->op < OPS) {
    check_source_count(reader, node);
    if (json || !has_argument) read_argument(reader, node, json);
  } else if (week) {
    HERE("E302", op->at, "%s is an op of week %d, this compiler knows week 1", brief(op->text),
         week);
  } else {
    HERE("E301", op->at, "there is no op `%s`", brief(op->text));
  }
  Fault fault;
  if (reader->errors.count > before || node->is_faulty) {
    node = &faulty;
  } else if (!(node->op == CALL ? infer_call(reader, node, &fault) : infer(node, &fault))) {
    HERE(fault.code, fault.at < 0 ? op->at : field_at(reader, (size_t)fault.at + 3)->at, "%s",
         fault.message);
    node = &faulty;
  }
  define_name(reader, name->text, node);
}

static void read_return(Reader *reader, size_t colon) {
  size_t before = reader->errors.count;
  if (reader->has_returned) {
    HERE("E107", 0, "expected nothing after `return`, got another `return`");
    return;
  }
  if (colon < reader->line->text.length)
    HERE("E106", colon, "expected only names after `return`, got `:`");
  else if (reader->fields.count == 1) HERE("E106", 0, "expected at least one name after `return`");
  for (size_t i = 1; i < reader->fields.count; i++) {
    Field *field = field_at(reader, i);
    if (!is_name(field->text)) HERE("E106", field->at, "expected only names after `return`");
  }
  reader->has_returned = true;
  if (reader->errors.count > before) return;
  bool is_complete = true;
  for (size_t i = 1; i < reader->fields.count; i++) {
    Node *node = use_name(reader, field_at(reader, i));
    if (node->is_faulty) is_complete = false;
    push(&reader->outputs, node);
  }
  if (is_complete)
    free(params_of(reader, (Node **)reader->outputs.items, reader->outputs.count).items);
}

static void read_statement(Reader *reader) {
  size_t before = reader->errors.count, colon = split(reader);
  bool has_colon = colon < reader->line->text.length;
  if (reader->fields.count == 0 && !has_colon) return;
  if (field_is(reader, 0, "return")) {
    read_return(reader, colon);
  } else if (!field_is(reader, 1, "=")) {
    if (reader->is_headless && (reader->line->number == 1 || field_is(reader, 0, "uops")))
      return;  // is E101 already
    HERE("E104", reader->fields.count ? field_at(reader, 0)->at : colon,
         "expected `name = OP sources : argument` or `return names`");
  } else if (reader->has_returned) {
    HERE("E107", field_at(reader, 0)->at, "expected nothing after `return`, got a statement");
  } else if (is_well_formed(reader)) {
    define(reader, colon);
  }
  if (reader->errors.count > before) poison(reader);
}

static void read_header(Reader *reader) {
  Line *line = reader->line;
  if (line->text.length >= 3 && memcmp(line->text.data, "\xef\xbb\xbf", 3) == 0) {
    HERE("E103", 0, "expected UTF-8 without a byte-order mark");
    *line = (Line){line->number, {line->text.data + 3, line->text.length - 3}, 0, 0};
  }
  bool has_colon = split(reader) < line->text.length, is_header = field_is(reader, 0, "uops");
  Field *version = field_at(reader, 1);
  if (is_header && version && !equals(version->text, "1")) {
    HERE("E102", version->at, "expected version 1 of the format, got `%s`", brief(version->text));
    reader->is_stopped = true;
  } else if (!is_header || reader->fields.count != 2 || has_colon) {
    HERE("E101", 0, "expected the header `uops 1` in the first line");
    reader->is_headless = true;
  }
}

static void read_line(Reader *reader, int number, Text text) {
  reader->line = allocate(sizeof *reader->line);
  *reader->line = (Line){number, text, 0, 0};
  size_t bad = first_bad_character(text);
  if (bad < text.length) HERE("E103", bad, "expected UTF-8, got a byte that is none");
  if (number == 1) read_header(reader);
  if (reader->is_stopped || (number == 1 && !reader->is_headless)) return;
  if (bad == text.length) {
    read_statement(reader);
  } else {
    split(reader);
    poison(reader);
  }
}

void read_program(Reader *reader, Text bytes) {
  int number = 0;
  for (size_t start = 0, end; start < bytes.length; start = end + 1) {
    const char *newline = memchr(bytes.data + start, '\n', bytes.length - start);
    end = newline ? (size_t)(newline - bytes.data) : bytes.length;
    bool has_return = newline && end > start && bytes.data[end - 1] == '\r';
    read_line(reader, ++number, (Text){bytes.data + start, end - start - has_return});
    if (reader->is_stopped) return;
  }
  if (number == 0) read_line(reader, 1, (Text){bytes.data, 0});
  if (!reader->has_returned)
    HERE("E203", 0, "expected a `return` with the outputs before the end of the program");
}
