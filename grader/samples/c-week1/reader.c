// From bytes to nodes: the grammar, the names and the types of a program. Every error that can
// be found is reported; a faulty statement still defines its name, so that one mistake is
// one error.

#include "uops.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Columns count characters. The last answer is kept, so that many errors in a line cost one pass.
static int column_of(Line *line, size_t at) {
  if (line->column == 0 || at < line->seen) line->column = 1, line->seen = 0;
  for (; line->seen < at; line->seen++)
    line->column += (line->text.data[line->seen] & 0xc0) != 0x80;
  return line->column;
}

bool report(Reader *reader, Line *line, const char *code, size_t at, const char *format, ...) {
  char message[300];
  if (line->is_broken) return false;
  line->is_broken = strcmp(code, "E103") == 0;
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  Error *error = allocate(sizeof *error);
  char *copy = allocate(strlen(message) + 1);
  *error =
      (Error){code, strcpy(copy, message), line, at, reader->errors.count, column_of(line, at)};
  push(&reader->errors, error);
  return false;
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

// Splits the line up to its `:`, comment or end.
static void split(Reader *reader) {
  Text text = reader->line->text;
  reader->fields.count = reader->end = 0;
  reader->has_colon = false;
  for (size_t at = 0;;) {
    while (at < text.length && (text.data[at] == ' ' || text.data[at] == '\t')) at++;
    size_t start = at;
    while (at < text.length && text.data[at] != ' ' && text.data[at] != '\t' &&
           text.data[at] != '#')
      at++;
    if (at == start) return;
    Field *field = allocate(sizeof *field);
    *field = (Field){{text.data + start, at - start}, start};
    reader->has_colon = equals(field->text, ":");
    reader->end = reader->has_colon ? start : at;
    if (reader->has_colon) return;
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
  if (reader->fields.count == 0) return;
  Text name = field_at(reader, 0)->text;
  const char *equals = memchr(name.data, '=', name.length);  // of `a=NEG b` too
  if (equals) name.length = (size_t)(equals - name.data);
  if (name.length && is_name(name)) define_name(reader, name, &faulty);
}

static Node *use_name(Reader *reader, const Field *field) {
  Node *node = find_name(reader, field->text);
  if (node) return node;
  HERE("E201", field->at, "`%s` is not defined: a name is defined on a line before its uses",
       brief(field->text));
  return &faulty;
}

// ---- statements --------------------------------------------------------------------------------

static bool is_equals(Text text) { return equals(text, "="); }

// Whether the fields are a name, `=`, an op and names; the first that is not is E104.
static bool is_well_formed(Reader *reader) {
  static const struct {
    bool (*fits)(Text text);
    const char *what;
  } grammar[] = {{is_name, "a name"},
                 {is_equals, "`=`"},
                 {is_op, "an op, in capitals"},
                 {is_name, "the name of a source, or ` : ` and the argument"}};
  for (size_t k = 0; k < 3 || k < reader->fields.count; k++) {
    const Field *field = field_at(reader, k);
    if (field && grammar[k < 3 ? k : 3].fits(field->text)) continue;
    size_t at = field ? field->at : reader->end, glued = 0;
    while (field && is_one_of(field->text.data[glued], LOWER DIGITS "_.%")) glued++;
    if (field && (field->text.data[glued] == '=' || field->text.data[glued] == ':'))
      at += glued;  // to a `=` or `:` without blanks
    const char *got = field ? brief(field->text) : reader->has_colon ? ":" : "";
    return HERE("E104", at,
                *got ? "expected %s, got `%s`" : "expected %s, got the end of the line%s",
                grammar[k < 3 ? k : 3].what, got);
  }
  return true;
}

static void check_source_count(Reader *reader, const Node *node) {
  const OpInfo *op = &reader->language->ops[node->op];
  if (op->least <= node->count && node->count <= op->most) return;
  const char *due = op->least == op->most ? ""
                    : op->most == INT_MAX ? " or more"
                                          : format(" to %d", op->most);
  HERE("E303", node->at, "%s has %d%s source%s, got %d", op->name, op->least, due,
       op->least == 1 && op->most == 1 ? "" : "s", node->count);
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

// Whether the op is one of the language.
static bool is_known_op(Reader *reader, const Node *node, const Field *op) {
  int week = node->op < OPS ? ops[node->op].week : 0;
  if (week == 0) return HERE("E301", op->at, "there is no op `%s`", brief(op->text));
  if (week <= reader->language->week) return true;
  return HERE("E302", op->at, "%s is an op of week %d, expected one of week %d", brief(op->text),
              week, reader->language->week);
}

static bool infer(Reader *reader, Node *node, Fault *fault) {
  if (node->op == CALL) return infer_call(reader, node, fault);
  return reader->language->ops[node->op].infer(node, fault);
}

static void define(Reader *reader) {
  size_t before = reader->errors.count;
  Field *name = field_at(reader, 0), *op = field_at(reader, 2);
  if (++reader->statements > MAX_NODES) {
    reader->is_stopped = true;
    HERE("E501", name->at, "expected at most %d nodes", MAX_NODES);
    return;
  }
  if (find_name(reader, name->text))
    HERE("E202", name->at, "`%s` is defined already", brief(name->text));
  Node *node = read_node(reader);
  const Json *json = reader->has_colon ? read_json(reader, reader->end + 1) : NULL;
  if (is_known_op(reader, node, op)) {
    check_source_count(reader, node);
    if (json || !reader->has_colon) read_argument(reader, node, json);
  }
  Fault fault;
  if (reader->errors.count > before || node->is_faulty) {
    node = &faulty;
  } else if (!infer(reader, node, &fault)) {
    HERE(fault.code, op->at, "%s", fault.message);
    node = &faulty;
  }
  define_name(reader, name->text, node);
}

static void read_return(Reader *reader) {
  reader->has_returned = true;
  reader->return_line = reader->line;
  size_t wrong = 1;
  while (wrong < reader->fields.count && is_name(field_at(reader, wrong)->text)) wrong++;
  const Field *field = field_at(reader, wrong);
  if (field || wrong == 1 || reader->has_colon) {
    HERE("E106", field ? field->at : reader->end,
         "expected the names of outputs after `return`, and only names");
    return;
  }
  reader->outputs_at = allocate(wrong * sizeof *reader->outputs_at);
  for (size_t i = 1; i < wrong; i++) {
    reader->outputs_at[i - 1] = field_at(reader, i)->at;
    push(&reader->outputs, use_name(reader, field_at(reader, i)));
  }
}

static void read_statement(Reader *reader) {
  split(reader);
  const Field *first = field_at(reader, 0);
  if (!first && !reader->has_colon) return;
  if (reader->is_headless && field_is(reader, 0, "uops")) {
    reader->is_headless = false;  // the header is here, too late: that is E101 already
    return;
  }
  if (reader->has_returned) {
    HERE("E107", first ? first->at : reader->end, "expected nothing after `return`");
    return;
  }
  if (field_is(reader, 0, "return")) {
    read_return(reader);
    return;
  }
  size_t before = reader->errors.count;
  if (!reader->line->is_broken && is_well_formed(reader)) define(reader);
  if (reader->line->is_broken || reader->errors.count > before) poison(reader);
}

static void read_header(Reader *reader) {
  split(reader);
  const Field *word = field_at(reader, 0), *version = field_at(reader, 1);
  if (!field_is(reader, 0, "uops")) {
    HERE("E101", word ? word->at : 0, "expected the header `uops 1` in the first line");
    reader->is_headless = true;
  } else if (!field_is(reader, 1, "1")) {
    HERE("E102", version ? version->at : word->at, "expected the header `uops 1`, of version 1");
    reader->is_stopped = true;
  } else if (reader->fields.count > 2 || reader->has_colon) {
    const Field *more = field_at(reader, 2);
    HERE("E104", more ? more->at : reader->end, "expected nothing after the header");
  }
}

static void check_mark(Reader *reader) {
  Text *text = &reader->line->text;
  if (text->length < 3 || memcmp(text->data, "\xef\xbb\xbf", 3) != 0) return;
  HERE("E103", 0, "expected UTF-8 without a byte-order mark");
  *text = (Text){text->data + 3, text->length - 3};
}

static void read_line(Reader *reader, int number, Text text) {
  reader->line = allocate(sizeof *reader->line);
  *reader->line = (Line){.number = number, .text = text};
  if (number == 1) check_mark(reader);
  size_t bad = first_bad_character(reader->line->text);
  if (bad < reader->line->text.length) HERE("E103", bad, "expected UTF-8, got a byte that is none");
  if (number == 1) read_header(reader);
  if (number > 1 || reader->is_headless) read_statement(reader);
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
    HERE("E203", reader->line->text.length, "expected a `return` with the outputs at the end");
  if (reader->errors.count == 0) check_program(reader);
}
