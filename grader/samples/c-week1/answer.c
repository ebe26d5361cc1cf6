// What a command reads and prints.

#include "uops.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 100 };  // of the excerpt of a source line below an error

// An error as FILE:LINE:COL: CODE message, the source line (or a window of it) and a caret.
static void write_error(Buffer *out, const Error *error) {
  Text text = error->line->text;
  size_t from = error->at > WIDTH - 20 ? error->at - WIDTH / 2 : 0, columns = 0;
  while (from < text.length && (text.data[from] & 0xc0) == 0x80) from++;
  append(out, "<stdin>:%d:%d: %s %s\n    ", error->line->number, error->column, error->code,
         error->message);
  for (size_t i = from; i < text.length && i < from + WIDTH; i++) {
    unsigned char byte = (unsigned char)text.data[i];
    if (i < error->at && (byte & 0xc0) != 0x80) columns++;
    bool is_control = byte < ' ' || byte == 0x7f;
    bool is_shown = !is_control && (byte < 0x80 || strcmp(error->code, "E103") != 0);
    append(out, "%c", is_shown ? byte : ' ');
  }
  append(out, "\n    %*s^\n", (int)columns, "");
}

static int by_place(const void *left, const void *right) {
  const Error *a = *(Error *const *)left, *b = *(Error *const *)right;
  if (a->line->number != b->line->number) return a->line->number - b->line->number;
  if (a->column != b->column) return a->column - b->column;
  return a->order < b->order ? -1 : 1;
}

Answer answer_of(const Language *language, Text program, bool is_plain, Writer *write) {
  Reader reader = {.language = language};
  Answer answer = {0};
  read_program(&reader, program);
  Node **outputs = reader.errors.count ? NULL : simplify(&reader, is_plain);
  if (outputs) {
    write(&answer.out, outputs, reader.outputs.count);
    return answer;
  }
  answer.status = 1;
  qsort(reader.errors.items, reader.errors.count, sizeof *reader.errors.items, by_place);
  for (size_t i = 0; i < reader.errors.count; i++) write_error(&answer.err, reader.errors.items[i]);
  return answer;
}

// Up to so many bytes, a zero behind them.
Text read_all(FILE *file, size_t limit) {
  size_t capacity = 1 << 16, length = 0, got = 1;
  char *data = malloc(capacity);
  while (data && got && length < limit) {
    size_t room = capacity - length - 1;
    got = fread(data + length, 1, room < limit - length ? room : limit - length, file);
    length += got;
    if (length + 1 == capacity) data = realloc(data, capacity *= 2);
  }
  if (!data) exit(1);
  data[length] = '\0';
  return (Text){data, length};
}

bool is_week(const char *word) {
  return '1' <= *word && *word <= '9' && strspn(word, "0123456789") == strlen(word);
}

void print(const Buffer *buffer, FILE *file) {
  if (buffer->length) fwrite(buffer->data, 1, buffer->length, file);
}

int print_answer(const Answer *answer) {
  print(&answer->out, stdout);
  print(&answer->err, stderr);
  return answer->status;
}
