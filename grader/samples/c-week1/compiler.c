// A week-1 compiler: `compiler simplify [--week N]` is a filter from a program to a simplified
// one in canonical form. Errors go to standard error, with exit status 1.

#include "uops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 100 };  // of the excerpt of a source line below an error

// An error as FILE:LINE:COL: CODE message, the source line (or a window of it) and a caret.
static void print_error(const Error *error) {
  Text text = error->line->text;
  size_t from = error->at > WIDTH - 20 ? error->at - WIDTH / 2 : 0, columns = 0;
  while (from < text.length && (text.data[from] & 0xc0) == 0x80) from++;
  fprintf(stderr, "<stdin>:%d:%d: %s %s\n    ", error->line->number, error->column, error->code,
          error->message);
  for (size_t i = from; i < text.length && i < from + WIDTH; i++) {
    unsigned char byte = (unsigned char)text.data[i];
    if (i < error->at && (byte & 0xc0) != 0x80) columns++;
    bool is_control = byte < ' ' || byte == 0x7f;
    fputc(is_control || (byte >= 0x80 && strcmp(error->code, "E103") == 0) ? ' ' : byte, stderr);
  }
  fprintf(stderr, "\n    %*s^\n", (int)columns, "");
}

static int by_place(const void *left, const void *right) {
  const Error *a = *(Error *const *)left, *b = *(Error *const *)right;
  if (a->line->number != b->line->number) return a->line->number - b->line->number;
  if (a->column != b->column) return a->column - b->column;
  return a->order < b->order ? -1 : 1;
}

static Text read_input(void) {
  size_t capacity = 1 << 16, length = 0;
  char *data = malloc(capacity);
  while (data) {
    length += fread(data + length, 1, capacity - length - 1, stdin);
    if (length + 1 < capacity) break;
    data = realloc(data, capacity *= 2);
  }
  if (!data) exit(1);
  data[length] = '\0';
  return (Text){data, length};
}

static int complain(const char *sentence) {
  fprintf(stderr, "%s\n", sentence);
  return 1;
}

static bool is_week(const char *word) {
  return '1' <= *word && *word <= '9' && strspn(word, "0123456789") == strlen(word);
}

int main(int count, char **words) {
  if (count < 2 || strcmp(words[1], "simplify") != 0)
    return complain("this compiler knows the verb `simplify` only");
  bool has_week = count == 4 && strcmp(words[2], "--week") == 0 && is_week(words[3]);
  if (count != 2 && !has_week) return complain("usage: simplify [--week N]");
  static Reader reader;
  read_program(&reader, read_input());
  Node **outputs = allocate(reader.outputs.count * sizeof *outputs);
  if (reader.errors.count == 0 && simplify(&reader, outputs)) {
    write_program(outputs, reader.outputs.count);
    return 0;
  }
  setvbuf(stderr, NULL, _IOFBF, 1 << 16);
  qsort(reader.errors.items, reader.errors.count, sizeof *reader.errors.items, by_place);
  for (size_t i = 0; i < reader.errors.count; i++) print_error(reader.errors.items[i]);
  return 1;
}
