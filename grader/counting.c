/* Behind a program whose loads and stores call the functions below, as gcc's instrumentation for
   AddressSanitizer in kernels makes them: counts them, and returns the counts as three more outputs. */

#define UNSEEN __attribute__((no_sanitize_address))
#define SIZED(size)                                                                             \
    UNSEEN void __asan_load##size##_noabort(void *p) { (void)p; counted(0, size); }             \
    UNSEEN void __asan_store##size##_noabort(void *p) { (void)p; counted(1, size); }

static long long counts[3]; /* loads, stores, bytes of both */

UNSEEN static void counted(int store, long long bytes) {
    counts[store]++;
    counts[2] += bytes;
}

SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)

UNSEEN void __asan_loadN_noabort(void *p, long long bytes) { (void)p; counted(0, bytes); }
UNSEEN void __asan_storeN_noabort(void *p, long long bytes) { (void)p; counted(1, bytes); }
UNSEEN void __asan_handle_no_return(void) {}

UNSEEN void *counted_memset(void *to, int value, size_t bytes) {
    counted(1, (long long)bytes);
    return __builtin_memset(to, value, bytes);
}

UNSEEN void *counted_memcpy(void *to, const void *from, size_t bytes) {
    counted(0, (long long)bytes);
    counted(1, (long long)bytes);
    return __builtin_memcpy(to, from, bytes);
}

UNSEEN void *counted_memmove(void *to, const void *from, size_t bytes) {
    counted(0, (long long)bytes);
    counted(1, (long long)bytes);
    return __builtin_memmove(to, from, bytes);
}

UNSEEN void program(void *const *in, void *const *out, void *workspace) {
    typedef void Program(void *const *, void *const *, void *);
    for (int i = 0; i < 3; i++) counts[i] = 0;
    ((Program *)counted_program)(in, out, workspace);
    for (int i = 0; i < 3; i++) *(long long *)out[OUTPUTS + i] = counts[i];
}
