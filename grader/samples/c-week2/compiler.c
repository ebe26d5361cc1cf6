// A compiler of weeks 1 and 2: `compiler VERB [--week N]` with the verb `simplify` or
// `compile --target c`; `compiler serve` answers many requests, each in a child of its own.

#define _POSIX_C_SOURCE 200809L

#include "storage.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static Answer answer(int count, const char *const *words, Text program) {
  int week = 2;
  if (count > 2 && strcmp(words[count - 2], "--week") == 0 && is_week(words[count - 1])) {
    if (strcmp(words[count - 1], "1") == 0) week = 1;
    count -= 2;
  }
  bool compiles = count == 3 && strcmp(words[0], "compile") == 0 &&
                  strcmp(words[1], "--target") == 0 && strcmp(words[2], "c") == 0;
  if (compiles) return answer_of(language_of(week), program, true, render);
  if (count == 1 && strcmp(words[0], "simplify") == 0)
    return answer_of(language_of(week), program, false, write_program);
  Answer refusal = {.status = 1};
  append(&refusal.err, "expected the verb simplify or compile --target c, and perhaps --week N\n");
  return refusal;
}

// Answers a request, which is a line of JSON with the program behind it.
static void answer_request(const Json *verb, Text program) {
  const char **words = allocate(verb->count * sizeof *words);
  int count = 0;
  for (const Json *word = verb->first; word; word = word->next) {
    words[count++] = format("%.*s", (int)word->text.length, word->text.data);
  }
  Answer given = answer(count, words, program);
  printf("{\"status\": %d, \"stdout\": %zu, \"stderr\": %zu}\n", given.status, given.out.length,
         given.err.length);
  print(&given.out, stdout);
  print(&given.err, stdout);
  fflush(stdout);
}

static const Json *entry(const Json *object, const char *key) {
  const Json *found = object->first;
  while (found && !equals(found->key, key)) found = found->next;
  return found;
}

static int serve(void) {
  char *line = NULL;
  size_t capacity = 0;
  for (ssize_t length; (length = getline(&line, &capacity, stdin)) > 0;) {
    Fault fault;
    size_t at = 0;
    Json *request = parse_json((Text){line, (size_t)length - 1}, &at, &fault);
    const Json *verb = request ? entry(request, "verb") : NULL;
    const Json *bytes = request ? entry(request, "bytes") : NULL;
    if (!verb || !bytes) return 1;
    Text program = read_all(stdin, strtoull(bytes->text.data, NULL, 10));
    pid_t child = fork();
    if (child == 0) {
      answer_request(verb, program);
      _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
    if (WIFSIGNALED(status)) raise(WTERMSIG(status));
    if (status) return 1;
    free((char *)program.data);
  }
  return 0;
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "serve") == 0) return serve();
  Answer given = answer(count - 1, (const char *const *)words + 1, read_all(stdin, SIZE_MAX));
  return print_answer(&given);
}
