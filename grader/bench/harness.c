/* Calls a compiled program as often as it is told to, on arrays that its parent fills and reads.

   harness LIBRARY THREADS OUTPUTS BYTES...

   BYTES are those of the inputs (-1 for an absent slot; with a ! behind it: never changed) and, the
   last OUTPUTS of them, of the outputs.
   First it prints address and room of every array on one line; then it answers each line
   "CALLS CHANGES SEED TOKEN" of its standard input with TOKEN, when it has

   - loaded the library, where CALLS is -1,
   - made so many changes to the inputs, which follow from SEED,
   - called the program CALLS times, each time after one more change and after spoiling a word of
     every output, so that no two calls see the same inputs, and what is not computed shows.

   A change flips a bit of the mantissa of a float. In the room behind an array, which ends at a page that
   cannot be touched, lies a pattern. A program that is called once finds its inputs read-only; for more
   calls that would cost too much, and the parent compares them afterwards. The clock and the right
   results are the parent's, which reaches the arrays through /proc/PID/mem. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FAULT = 3, PAGE = 4 << 10, HUGE_PAGE = 2 << 20, PATTERN = 0xA5, MANTISSA = 23 };

typedef void Program(void *const *, void *const *, void *);

typedef struct {
    long bytes;     /* -1: absent */
    int fixed;      /* never changed */
    size_t room;    /* bytes up to the page that cannot be touched */
    char *data;
} Array;

static Array *arrays;
static int inputs, outputs;
static uint64_t words; /* that may be changed, of all inputs */

static void stop(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    _exit(FAULT);
}

/* Says which array a forbidden access hit, and dies of the same signal. */
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    char text[100], *at = info->si_addr;
    for (int i = 0; i < inputs + outputs; i++) {
        Array *a = &arrays[i];
        if (a->bytes < 0 || at < a->data - PAGE || at >= a->data + a->room + PAGE) continue;
        int length = snprintf(text, sizeof text, "%s %s %d, at byte %ld of %ld\n",
                              at >= a->data && at < a->data + a->bytes ? "write to" : "access outside",
                              i < inputs ? "input" : "output", i < inputs ? i : i - inputs,
                              (long)(at - a->data), a->bytes);
        if (write(2, text, (size_t)length) < 0) _exit(FAULT);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_faults(void) {
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

/* Large arrays lie in huge pages, and small ones in pages. */
static void allocate(Array *a) {
    if (a->bytes < 0) return;
    size_t grain = a->bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE;
    a->room = ((size_t)a->bytes + grain - 1) / grain * grain;
    size_t mapped = a->room + 2 * HUGE_PAGE;
    char *base = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) stop("mmap", "no memory for an array");
    a->data = base + (HUGE_PAGE - (uintptr_t)base % HUGE_PAGE);
    if (mprotect(a->data, a->room, PROT_READ | PROT_WRITE)) stop("mprotect", "no memory for an array");
    if (grain == HUGE_PAGE) madvise(a->data, a->room, MADV_HUGEPAGE);
    memset(a->data, PATTERN, a->room);
}

static void protect(int how) {
    for (int i = 0; i < inputs; i++)
        if (arrays[i].room && mprotect(arrays[i].data, arrays[i].room, how))
            stop("mprotect", "the inputs cannot be protected");
}

/* The mixing function of SplitMix64 (Steele, Lea, Flood, 2014) of the counter-th of its states. */
static uint64_t random_number(uint64_t seed, uint64_t counter) {
    uint64_t z = seed + (counter + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void change(uint64_t random) {
    uint64_t word = words ? (random >> 8) % words : 0;
    for (int i = 0; words && i < inputs; i++) {
        uint64_t here = arrays[i].fixed ? 0 : (uint64_t)arrays[i].bytes / 4;
        if (word < here) {
            ((uint32_t *)arrays[i].data)[word] ^= 1u << (random & 0xFF) % MANTISSA;
            return;
        }
        word -= here;
    }
}

static void spoil(uint64_t random) {
    for (int i = inputs; i < inputs + outputs; i++)
        if (arrays[i].bytes >= 4)
            ((uint32_t *)arrays[i].data)[(random >> 8) % ((uint64_t)arrays[i].bytes / 4)] = ~0u; /* NaN */
}

static Program *load(const char *name, void **workspace) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) stop("cannot load the library", dlerror());
    Program *program = (Program *)(uintptr_t)dlsym(library, "program");
    if (!program) stop("expected an exported function", "program");
    size_t (*size)(void) = (size_t (*)(void))(uintptr_t)dlsym(library, "program_workspace");
    Array scratch = {.bytes = size ? (long)size() : 0};
    allocate(&scratch);
    *workspace = scratch.data;
    return program;
}

/* The next line of standard input, without a buffer that a program could lock or fill. */
static int heard(char *line, size_t most) {
    for (size_t length = 0; length < most - 1;) {
        ssize_t count = read(0, line + length, most - 1 - length);
        if (count <= 0) return 0;
        length += (size_t)count;
        line[length] = 0;
        if (line[length - 1] == '\n') return 1;
    }
    return 0;
}

static void describe(Array *a, const char *bytes) {
    a->bytes = atol(bytes);
    a->fixed = a->bytes < 0 || strchr(bytes, '!');
}

int main(int argc, char **argv) {
    if (argc < 5) stop("harness", "expected LIBRARY THREADS OUTPUTS BYTES...");
    setenv("OMP_NUM_THREADS", argv[2], 1);
    int count = argc - 4;
    outputs = atoi(argv[3]);
    inputs = count - outputs;
    arrays = calloc((size_t)count, sizeof *arrays);
    void *pointers[count], *workspace = NULL;
    for (int i = 0; i < count; i++) {
        describe(&arrays[i], argv[4 + i]);
        allocate(&arrays[i]);
        pointers[i] = arrays[i].data;
        if (i < inputs && !arrays[i].fixed) words += (uint64_t)arrays[i].bytes / 4;
        printf("%lu %zu ", (unsigned long)(uintptr_t)arrays[i].data, arrays[i].room);
    }
    puts("");
    fflush(stdout);
    watch_faults();
    Program *program = NULL;
    char line[100];
    long calls, changes;
    unsigned long long seed, token;
    while (heard(line, sizeof line)) {
        if (sscanf(line, "%ld %ld %llu %llu", &calls, &changes, &seed, &token) != 4)
            stop("harness", "expected CALLS CHANGES SEED TOKEN");
        if (calls < 0) program = load(argv[1], &workspace);
        for (long i = 0; i < changes; i++) change(random_number(seed, (uint64_t)i));
        for (long i = 0; i < calls; i++) {
            uint64_t random = random_number(seed, (uint64_t)(changes + i));
            change(random);
            spoil(random * 0x9E3779B97F4A7C15u);
            if (calls == 1) protect(PROT_READ);
            program(pointers, pointers + inputs, workspace);
            if (calls == 1) protect(PROT_READ | PROT_WRITE);
        }
        int length = snprintf(line, sizeof line, "%llu\n", token);
        if (write(1, line, (size_t)length) != length) _exit(FAULT);
    }
    _exit(0);
}
