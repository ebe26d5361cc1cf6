// JSON by hand. Numbers stay text, so that integers stay exact; the entries of an object stay a
// list, so that a repeated key is seen.

#include "uops.h"

#include <string.h>

enum { DEPTH = 64 };  // of containers within each other

typedef struct {
  Text text;
  size_t at;
  Fault *fault;
} Scanner;

// The next character that is not blank, -1 at the end of the line.
static int peek(Scanner *scanner) {
  const Text *text = &scanner->text;
  while (scanner->at < text->length && strchr(" \t\r", text->data[scanner->at]) &&
         text->data[scanner->at])
    scanner->at++;
  return scanner->at < text->length ? (unsigned char)text->data[scanner->at] : -1;
}

static bool expected(Scanner *scanner, const char *what) {
  size_t end = scanner->at + 1;
  while (end < scanner->text.length && (scanner->text.data[end] & 0xc0) == 0x80) end++;
  Text got = {scanner->text.data + scanner->at, end - scanner->at};
  if (scanner->at < scanner->text.length) {
    return fail(scanner->fault, "E105", (long)scanner->at, "expected %s, got `%s`", what,
                brief(got));
  }
  return fail(scanner->fault, "E105", (long)scanner->at, "expected %s, got the end of the line",
              what);
}

// Reads so many hexadecimal digits; -1 if there are fewer.
static long hex(Text text, size_t at, size_t digits) {
  long value = 0;
  for (size_t i = at; i < at + digits; i++) {
    const char *all = "0123456789abcdef0123456789ABCDEF";
    const char *digit = i < text.length && text.data[i] ? strchr(all, text.data[i]) : NULL;
    if (!digit) return -1;
    value = value * 16 + (digit - all) % 16;
  }
  return value;
}

static size_t put_utf8(char *out, long code) {
  if (code < 0x80) return out[0] = (char)code, 1;
  size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)((0xf00 >> length & 0xff) | code);
  return length;
}

// Reads the escape behind a backslash at *at, and moves *at behind it: its length in UTF-8, or 0.
static size_t escape(Text text, size_t *at, char *out) {
  const char *names = "\"\\/bfnrt", *codes = "\"\\/\b\f\n\r\t";
  char letter = *at < text.length ? text.data[(*at)++] : 0;
  const char *found = letter ? strchr(names, letter) : NULL;
  if (found) return *out = codes[found - names], 1;
  long code = letter == 'u' ? hex(text, *at, 4) : -1;
  if (code < 0) return 0;
  *at += 4;
  if (code >> 10 == 0x36 && *at + 1 < text.length && text.data[*at] == '\\' &&
      text.data[*at + 1] == 'u') {
    long low = hex(text, *at + 2, 4);
    if (low >> 10 == 0x37) {
      *at += 6;
      code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
    }
  }
  return put_utf8(out, code);
}

static bool string(Scanner *scanner, Text *result) {
  Text text = scanner->text;
  size_t closed = ++scanner->at;
  while (closed < text.length && text.data[closed] != '"')
    closed += text.data[closed] == '\\' ? 2 : 1;
  char *out = allocate(closed - scanner->at + 1);
  *result = (Text){out, 0};
  while (scanner->at < text.length && (unsigned char)text.data[scanner->at] >= ' ') {
    size_t next = scanner->at + 1, length = 1;
    char letter = text.data[scanner->at];
    if (letter == '"') return scanner->at = next, true;
    if (letter == '\\') length = escape(text, &next, out + result->length);
    else out[result->length] = letter;
    if (length == 0) return expected(scanner, "an escape that JSON has");
    result->length += length;
    scanner->at = next;
  }
  return expected(scanner, "a character of a string or its `\"`");
}

static size_t digits(Text text, size_t at) {
  size_t end = at;
  while (end < text.length && '0' <= text.data[end] && text.data[end] <= '9') end++;
  return end - at;
}

// The length of the number at `at`, 0 if there is none.
static size_t number(Text text, size_t at, JsonKind *kind) {
  size_t end = at + (at < text.length && text.data[at] == '-');
  size_t whole = digits(text, end);
  if (whole == 0) return 0;
  end += text.data[end] == '0' ? 1 : whole;
  *kind = JSON_INTEGER;
  if (end < text.length && text.data[end] == '.' && digits(text, end + 1)) {
    end += 1 + digits(text, end + 1);
    *kind = JSON_NUMBER;
  }
  if (end < text.length && (text.data[end] == 'e' || text.data[end] == 'E')) {
    size_t power =
        end + 1 +
        (end + 1 < text.length && (text.data[end + 1] == '+' || text.data[end + 1] == '-'));
    if (digits(text, power)) {
      end = power + digits(text, power);
      *kind = JSON_NUMBER;
    }
  }
  return end - at;
}

static bool read_scalar(Scanner *scanner, Json *value) {
  static const struct {
    const char *word;
    JsonKind kind;
  } words[] = {{"true", JSON_TRUE}, {"false", JSON_FALSE}, {"null", JSON_NULL}};
  Text rest = {scanner->text.data + scanner->at, scanner->text.length - scanner->at};
  value->kind = JSON_STRING;
  if (rest.length && rest.data[0] == '"') return string(scanner, &value->text);
  size_t length = number(scanner->text, scanner->at, &value->kind);
  for (int i = 0; i < 3 && length == 0; i++) {
    size_t word = strlen(words[i].word);
    if (rest.length < word || memcmp(rest.data, words[i].word, word) != 0) continue;
    length = word;
    value->kind = words[i].kind;
  }
  if (length == 0) return expected(scanner, "a JSON value");
  value->text = (Text){rest.data, length};
  scanner->at += length;
  return true;
}

static bool read_key(Scanner *scanner, Json *value) {
  if (peek(scanner) != '"') return expected(scanner, "a key in double quotes");
  if (!string(scanner, &value->key)) return false;
  if (peek(scanner) != ':') return expected(scanner, "`:`");
  scanner->at++;
  return true;
}

static char closer(const Json *container) { return container->kind == JSON_OBJECT ? '}' : ']'; }

static void add_entry(Json *parent, Json *value) {
  if (parent->last) parent->last->next = value;
  else parent->first = value;
  parent->last = value;
  parent->count++;
}

Json *parse_json(Text line, size_t *at, Fault *fault) {
  Scanner scanner = {line, *at, fault};
  int depth = 0;
  for (Json *parent = NULL;;) {
    Json *value = allocate(sizeof *value);
    value->parent = parent;
    if (parent && parent->kind == JSON_OBJECT && !read_key(&scanner, value)) return NULL;
    int first = peek(&scanner);
    if (first == '{' || first == '[') {
      if (depth == DEPTH) return expected(&scanner, "at most 64 open brackets"), NULL;
      value->kind = first == '{' ? JSON_OBJECT : JSON_ARRAY;
      scanner.at++;
      if (peek(&scanner) != closer(value)) {
        parent = value;
        depth++;
        continue;
      }
      scanner.at++;
    } else if (!read_scalar(&scanner, value)) {
      return NULL;
    }
    for (;;) {  // the value is complete; it may complete the container it stands in, and so on
      parent = value->parent;
      if (!parent) return *at = scanner.at, value;
      add_entry(parent, value);
      if (peek(&scanner) == ',') break;
      if (peek(&scanner) != closer(parent)) {
        expected(&scanner, parent->kind == JSON_OBJECT ? "`,` or `}`" : "`,` or `]`");
        return NULL;
      }
      scanner.at++;
      depth--;
      value = parent;
    }
    scanner.at++;
  }
}
