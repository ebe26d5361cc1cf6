// What the files of week 2 share, beside those of week 1.

#ifndef STORAGE_H
#define STORAGE_H

#include "../c-week1/uops.h"

// ---- language.c --------------------------------------------------------------------------------

const Language *language_of(int week);  // 1 or 2
bool is_storage(const Node *node);      // PARAM, BUFFER or ALLOC

// ---- ctypes.c: scalars in C --------------------------------------------------------------------

extern const char c_prelude[];
const char *c_type(Dtype dtype);  // as which it is stored
size_t c_bytes(Dtype dtype);
const char *c_constant(Value value, Dtype dtype);
// An elementwise op on stored values, by name or constants; the result is as it is stored.
const char *c_apply(const Node *node, const char *const *args);

// ---- render.c ----------------------------------------------------------------------------------

void render(Buffer *out, Node **outputs, size_t count);

#endif
