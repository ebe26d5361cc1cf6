// Memory, texts, lists and hash tables.

#include "uops.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory) {
  if (memory) return memory;
  fputs("<stdin>:1:1: E501 expected a program that fits into the memory of this machine\n", stderr);
  exit(1);
}

void *allocate(size_t size) {
  static char *block;
  static size_t left;
  size = (size + 15) & ~(size_t)15;
  if (size > left) {
    left = size > (1 << 20) ? size : 1 << 20;
    block = checked(calloc(left, 1));
  }
  left -= size;
  block += size;
  return block - size;
}

bool equals(Text text, const char *word) {
  return text.length == strlen(word) && memcmp(text.data, word, text.length) == 0;
}

const char *brief(Text text) {
  size_t length = text.length;
  if (length > 40) {
    length = 40;
    while (length > 0 && (text.data[length] & 0xc0) == 0x80) length--;  // not within a character
  }
  char *copy = allocate(length + 4);
  for (size_t i = 0; i < length; i++)
    copy[i] = (unsigned char)text.data[i] < ' ' ? ' ' : text.data[i];
  if (length < text.length) memcpy(copy + length, "…", 3);
  return copy;
}

void append(Buffer *buffer, const char *pattern, ...) {
  for (;;) {
    size_t left = buffer->capacity - buffer->length;
    char *end = left ? buffer->data + buffer->length : NULL;
    va_list values;
    va_start(values, pattern);
    size_t length = (size_t)vsnprintf(end, left, pattern, values);
    va_end(values);
    if (length < left) {
      buffer->length += length;
      return;
    }
    buffer->capacity = 2 * buffer->capacity + length + 1;
    buffer->data = checked(realloc(buffer->data, buffer->capacity));
  }
}

const char *format(const char *pattern, ...) {
  va_list values;
  va_start(values, pattern);
  int length = vsnprintf(NULL, 0, pattern, values);
  va_end(values);
  char *text = allocate((size_t)length + 1);
  va_start(values, pattern);
  vsnprintf(text, (size_t)length + 1, pattern, values);
  va_end(values);
  return text;
}

void push(List *list, void *item) {
  if (list->count == list->capacity) {
    list->capacity = 2 * list->capacity + 8;
    list->items = checked(realloc(list->items, list->capacity * sizeof *list->items));
  }
  list->items[list->count++] = item;
}

uint64_t hash_bytes(uint64_t seed, const void *data, size_t size) {
  const unsigned char *bytes = data;
  uint64_t hash = seed ^ 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash ^ hash >> 29;
}

void *lookup(const Table *table, uint64_t hash, Same *same, const void *key) {
  if (!table->capacity) return NULL;
  for (size_t i = hash & (table->capacity - 1);; i = (i + 1) & (table->capacity - 1)) {
    void *entry = table->slots[i].entry;
    if (!entry || (table->slots[i].hash == hash && same(entry, key))) return entry;
  }
}

static void place(Table *table, uint64_t hash, void *entry) {
  size_t i = hash & (table->capacity - 1);
  while (table->slots[i].entry) i = (i + 1) & (table->capacity - 1);
  table->slots[i].hash = hash;
  table->slots[i].entry = entry;
}

void insert(Table *table, uint64_t hash, void *entry) {
  if (2 * table->used >= table->capacity) {
    Table old = *table;
    table->capacity = old.capacity ? 2 * old.capacity : 64;
    table->slots = checked(calloc(table->capacity, sizeof *table->slots));
    for (size_t i = 0; i < old.capacity; i++) {
      if (old.slots[i].entry) place(table, old.slots[i].hash, old.slots[i].entry);
    }
    free(old.slots);
  }
  table->used++;
  place(table, hash, entry);
}
