// A week-1 compiler: `compiler simplify [--week N]` is a filter from a program to a simplified
// one in canonical form. Errors go to standard error, with exit status 1.

#include "uops.h"

#include <string.h>

static int complain(const char *sentence) {
  fprintf(stderr, "%s\n", sentence);
  return 1;
}

int main(int count, char **words) {
  static const Language week1 = {1, ops, NULL};
  if (count < 2 || strcmp(words[1], "simplify") != 0)
    return complain("this compiler knows the verb `simplify` only");
  bool has_week = count == 4 && strcmp(words[2], "--week") == 0 && is_week(words[3]);
  if (count != 2 && !has_week) return complain("usage: simplify [--week N]");
  Answer answer = answer_of(&week1, read_all(stdin, SIZE_MAX), false, write_program);
  return print_answer(&answer);
}
