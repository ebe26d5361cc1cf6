/* Calls a compiled program as often as it is told to, on arrays that its parent fills and reads.

   harness LIBRARY THREADS OUTPUTS BYTES...

   BYTES are those of the inputs (-1 for an absent slot; with a ! behind it: never changed) and, the
   last OUTPUTS of them, of the outputs.
   First it prints the addresses of all arrays on one line. Then each line "CALLS TOKEN" of its
   standard input makes it call the program CALLS times and print TOKEN. Before each call but the
   last, one word of the inputs is changed, and put back after it, so that no two calls see the same
   inputs. The clock and the right results are the parent's, which reaches the arrays through
   /proc/PID/mem. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FAULT = 3, HUGE_PAGE = 2 << 20, PATTERN = 0xA5 };

typedef void Program(void *const *, void *const *, void *);

static uint64_t state;

static void stop(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    _exit(FAULT);
}

static void *allocate(long bytes) {
    if (bytes < 0) return NULL;
    size_t size = ((size_t)bytes / HUGE_PAGE + 2) * HUGE_PAGE;
    char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) stop("mmap", "no memory for an array");
    char *data = base + (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE);
    if (bytes >= HUGE_PAGE) madvise(data, (size_t)bytes, MADV_HUGEPAGE);
    memset(data, PATTERN, (size_t)bytes);
    return data;
}

static uint64_t random_number(void) { /* xorshift64 (Marsaglia, 2003) */
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void call(Program *program, void **in, void **out, void *workspace, int inputs,
                 const long *bytes, const int *changing, int last) {
    uint32_t *word = NULL, kept = 0;
    int slot = inputs ? changing[random_number() % (uint64_t)inputs] : 0;
    if (!last && inputs && bytes[slot] >= 4) {
        word = (uint32_t *)in[slot] + random_number() % (uint64_t)(bytes[slot] / 4);
        kept = *word;
        *word ^= 1u << random_number() % 23; /* a bit of the mantissa of a float */
    }
    program(in, out, workspace);
    if (word) *word = kept;
}

int main(int argc, char **argv) {
    if (argc < 5) stop("harness", "expected LIBRARY THREADS OUTPUTS BYTES...");
    setenv("OMP_NUM_THREADS", argv[2], 1);
    int count = argc - 4, outputs = atoi(argv[3]), inputs = count - outputs;
    long bytes[count];
    int changing[count], free_inputs = 0;
    void *arrays[count + 1];
    for (int i = 0; i < count; i++) {
        bytes[i] = atol(argv[4 + i]);
        if (i < inputs && !strchr(argv[4 + i], '!')) changing[free_inputs++] = i;
    }
    for (int i = 0; i < count; i++) printf("%lu ", (unsigned long)(arrays[i] = allocate(bytes[i])));
    puts("");
    fflush(stdout);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) stop("cannot load the library", dlerror());
    Program *program = (Program *)(uintptr_t)dlsym(library, "program");
    if (!program) stop("expected an exported function", "program");
    size_t (*size)(void) = (size_t (*)(void))(uintptr_t)dlsym(library, "program_workspace");
    void *workspace = allocate(size ? (long)size() : 0);
    long calls;
    unsigned long long token;
    while (scanf("%ld %llu", &calls, &token) == 2) {
        state = token | 1;
        for (long i = 1; i <= calls; i++)
            call(program, arrays, arrays + inputs, workspace, free_inputs, bytes, changing,
                 i == calls);
        printf("%llu\n", token);
        fflush(stdout);
    }
    _exit(0);
}
