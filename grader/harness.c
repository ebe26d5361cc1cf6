/* Runs a compiled program on arrays read from files, and writes what it returns to files.

   harness LIBRARY PLAN

   PLAN is a text file of numbers: the number of threads, of calls, of inputs, of outputs, then
   the bytes of every input (-1 for an absent slot) and of every output. Call k reads its inputs, one
   after the other, from the file in.k and writes its outputs to out.k. With no calls it prints how many
   bytes of workspace a call takes.

   Every array lies between two pages that may not be touched, as close to the second one as an
   alignment of 64 bytes allows; the bytes left over on both sides are filled with a pattern and checked.
   AddressSanitizer, where this is built with it, knows that they may not be touched.
   Inputs are read-only during the call, outputs and workspace are filled with a pattern before it.
   Nothing here is trusted by the grader but the bytes of out.k, which it compares itself. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, PATTERN = 0xA5, FAULT = 3 };

typedef void Program(void *const *, void *const *, void *);

void __asan_poison_memory_region(void const volatile *, size_t) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *, size_t) __attribute__((weak));

typedef struct {
    char kind[12];
    int number;
    long bytes;                /* -1: absent */
    unsigned char *base;       /* the first, untouchable page */
    size_t mapped;             /* bytes between the two untouchable pages */
    unsigned char *data;
} Array;

static Array *arrays;
static int array_count;
static size_t page;
static int call_number;
static const char *program_error;   /* what a checked build of the reference has to say */

static void stop(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    _exit(FAULT);
}

/* Says which array a forbidden access hit, and dies of the same signal. */
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)context;
    char text[200];
    unsigned char *at = info->si_addr;
    int length = snprintf(text, sizeof text, "call %d: access to the address %p", call_number, (void *)at);
    for (int i = 0; i < array_count; i++) {
        Array *a = &arrays[i];
        if (a->bytes <= 0 || at < a->base || at >= a->base + a->mapped + 2 * page) continue;
        long offset = (long)(at - a->data);
        const char *what = offset >= 0 && offset < a->bytes ? "write to" : "access outside";
        length = snprintf(text, sizeof text, "call %d: %s %s %d, at byte %ld of %ld",
                          call_number, what, a->kind, a->number, offset, a->bytes);
    }
    text[length++] = '\n';
    if (write(2, text, (size_t)length) < 0) _exit(FAULT);
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_faults(void) {
    static unsigned char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

static void allocate(Array *a) {
    if (a->bytes <= 0) return;
    size_t size = (size_t)a->bytes;
    a->mapped = (size + page - 1) / page * page;
    a->base = mmap(NULL, a->mapped + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a->base == MAP_FAILED) stop("mmap", "no memory for an array");
    unsigned char *first = a->base + page;
    if (mprotect(first, a->mapped, PROT_READ | PROT_WRITE)) stop("mprotect", "no memory for an array");
    a->data = first + (a->mapped - size) / ALIGNMENT * ALIGNMENT;
    memset(first, PATTERN, a->mapped);
    if (!__asan_poison_memory_region) return;
    __asan_poison_memory_region(first, a->mapped);
    __asan_unpoison_memory_region(a->data, size);
}

static void forget(Array *a) {
    if (a->bytes > 0) munmap(a->base, a->mapped + 2 * page);
    a->data = NULL;
}

static void check_edges(const Array *a) {
    if (a->bytes <= 0) return;
    const unsigned char *first = a->base + page, *last = first + a->mapped;
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(first, a->mapped);
    for (const unsigned char *at = first; at < last; at++) {
        if (at == a->data) at += a->bytes;
        if (at < last && *at != PATTERN) {
            fprintf(stderr, "call %d: write outside %s %d, at byte %ld of %ld\n", call_number, a->kind,
                    a->number, (long)(at - a->data), a->bytes);
            _exit(FAULT);
        }
    }
}

/* Reads or writes all bytes of an array. */
static void transfer(int file, Array *a, int writing) {
    for (long done = 0; done < a->bytes;) {
        size_t rest = (size_t)(a->bytes - done);
        ssize_t count = writing ? write(file, a->data + done, rest) : read(file, a->data + done, rest);
        if (count <= 0) stop("file", "an array could not be read or written");
        done += count;
    }
}

static int open_numbered(const char *name, int number, int flags) {
    char path[32];
    snprintf(path, sizeof path, "%s.%d", name, number);
    int file = open(path, flags, 0600);
    if (file < 0) stop(path, "cannot be opened");
    return file;
}

static void call(Program *program, Array *workspace, int inputs, int outputs) {
    void *in[inputs + 1], *out[outputs + 1];
    int file = open_numbered("in", call_number, O_RDONLY);
    for (int i = 0; i < array_count; i++) allocate(&arrays[i]);
    for (int i = 0; i < inputs; i++) {
        Array *a = &arrays[i];
        transfer(file, a, 0);
        if (a->bytes > 0) mprotect(a->base + page, a->mapped, PROT_READ);
        in[i] = a->data;
    }
    close(file);
    for (int i = 0; i < outputs; i++) out[i] = arrays[inputs + i].data;
    program(in, out, workspace->data);
    if (program_error && *program_error) stop("the checked build", program_error);
    file = open_numbered("out", call_number, O_WRONLY | O_CREAT | O_TRUNC);
    for (int i = 0; i < outputs; i++) transfer(file, &arrays[inputs + i], 1);
    close(file);
    for (int i = 0; i < array_count; i++) check_edges(&arrays[i]);
    for (int i = 0; i < array_count; i++) forget(&arrays[i]);
}

static long number(FILE *plan) {
    long value;
    if (fscanf(plan, "%ld", &value) != 1) stop("plan", "expected a number");
    return value;
}

static void describe(Array *a, const char *kind, int index, long bytes) {
    snprintf(a->kind, sizeof a->kind, "%s", kind);
    a->number = index;
    a->bytes = bytes;
}

int main(int argc, char **argv) {
    if (argc != 3) stop("harness", "expected LIBRARY PLAN");
    FILE *plan = fopen(argv[2], "r");
    if (!plan) stop(argv[2], "cannot be opened");
    page = (size_t)sysconf(_SC_PAGESIZE);
    char threads[24];
    snprintf(threads, sizeof threads, "%ld", number(plan));
    setenv("OMP_NUM_THREADS", threads, 1);
    int calls = (int)number(plan), inputs = (int)number(plan), outputs = (int)number(plan);
    array_count = inputs + outputs + 1;
    arrays = calloc((size_t)array_count, sizeof *arrays);
    for (int i = 0; i < inputs; i++) describe(&arrays[i], "input", i, number(plan));
    for (int i = 0; i < outputs; i++) describe(&arrays[inputs + i], "output", i, number(plan));
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) stop("cannot load the library", dlerror());
    Program *program = (Program *)(uintptr_t)dlsym(library, "program");
    if (!program) stop("expected an exported function", "program");
    program_error = dlsym(library, "program_error");
    size_t (*size)(void) = (size_t (*)(void))(uintptr_t)dlsym(library, "program_workspace");
    Array *workspace = &arrays[array_count - 1];
    describe(workspace, "workspace", 0, size ? (long)size() : 0);
    if (!calls) {
        printf("%ld\n", workspace->bytes);
        fflush(stdout);
    }
    watch_faults();
    for (call_number = 0; call_number < calls; call_number++) call(program, workspace, inputs, outputs);
    _exit(0);
}
