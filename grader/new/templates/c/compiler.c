// `compiler VERB [options]` reads a program from standard input. Its answer goes to standard
// output with exit status 0; faults of the program go to standard error with exit status 1, each as
// FILE:LINE:COL: CODE message.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_program(size_t *length) {
  size_t capacity = 1 << 16;
  char *text = malloc(capacity);
  *length = 0;
  while (text) {
    *length += fread(text + *length, 1, capacity - *length, stdin);
    if (*length < capacity) return text;
    text = realloc(text, capacity *= 2);
  }
  fputs("<stdin>:1:1: E504 the program does not fit into memory\n", stderr);
  exit(1);
}

int main(int count, char **words) {
  const char *verb = count > 1 ? words[1] : "";
  if (strcmp(verb, "simplify") != 0 && strcmp(verb, "compile") != 0) {
    fprintf(stderr, "expected one of the verbs simplify, compile, got \"%s\"\n", verb);
    return 1;
  }
  size_t length;
  char *program = read_program(&length);
  fprintf(stderr, "<stdin>:1:1: E000 %s of these %zu bytes is not implemented\n", verb, length);
  free(program);
  return 1;
}
