// What the files of this compiler share. Memory lives as long as the process: nothing is freed.

#ifndef UOPS_H
#define UOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- store.c: memory, texts and hash tables ----------------------------------------------------

typedef struct {
  const char *data;
  size_t length;
} Text;

void *allocate(size_t size);  // zeroed
bool equals(Text text, const char *word);
const char *brief(Text text);  // a copy to quote in a message, cut where it is long

typedef struct {
  void **items;
  size_t count, capacity;
} List;

void push(List *list, void *item);

typedef struct {
  struct {
    uint64_t hash;
    void *entry;
  } *slots;
  size_t used, capacity;
} Table;

typedef bool Same(const void *entry, const void *key);

uint64_t hash_bytes(uint64_t seed, const void *data, size_t size);
void *lookup(const Table *table, uint64_t hash, Same *same, const void *key);  // NULL if absent
void insert(Table *table, uint64_t hash, void *entry);

// ---- arithmetic.c: the dtypes, and constants exactly as each of them computes ------------------

__extension__ typedef __int128 Wide;  // holds every value of every integer dtype

typedef enum { BOOL, INTEGER, FLOAT } Kind;
typedef enum {
  DTYPE_BOOL,
  INT8,
  INT16,
  INT32,
  INT64,
  UINT8,
  UINT16,
  UINT32,
  UINT64,
  FLOAT16,
  BFLOAT16,
  FLOAT32,
  FLOAT64,
  DTYPES
} Dtype;

typedef struct {
  const char *name;
  Kind kind;
  Wide lo, hi;                  // of an integer or bool
  int precision, max_exponent;  // of a float
} DtypeInfo;

extern const DtypeInfo dtypes[DTYPES];

typedef struct {
  Wide integer;  // of an integer or bool (0 or 1)
  double real;   // of a float
} Value;

typedef enum {
  PARAM,
  CONST,
  CALL,
  CAST,
  NEG,
  RECIP,
  EXP2,
  LOG2,
  ADD,
  MUL,
  MAX,
  FLOORDIV,
  FLOORMOD,
  CMPLT,
  CMPNE,
  WHERE,
  OPS
} Op;

double fit_float(double value, Dtype dtype);
Wide floor_div(Wide a, Wide b);
Wide floor_mod(Wide a, Wide b);
Value cast(Value value, Dtype from, Dtype to);
bool holds(Dtype to, Dtype from);  // whether the CAST loses nothing
bool fold(Op op, Dtype from, Dtype result, const Value *values, Value *folded);  // false: leave it

// ---- types.c: nodes, and the dtype and shape of each -------------------------------------------

typedef struct {
  int rank;
  int64_t sizes[];
} Shape;  // equal shapes are the same object

typedef struct {
  Dtype dtype;   // of PARAM, CONST, CAST
  Value value;   // of CONST
  int64_t slot;  // of PARAM, as the rest
  const Shape *shape;
  bool has_range;
  Wide lo, hi;
} Argument;

typedef struct {
  int number;
  Text text;
  size_t seen;  // the column of this index is the last one that was asked for
  int column;
  bool is_broken;  // not UTF-8: no other error of the line is reported
} Line;

typedef struct Node {
  Op op;
  int count;
  struct Node **src;
  Argument arg;
  Dtype dtype;
  const Shape *shape;
  // of a node that was read
  Line *line;
  size_t at;
  bool is_faulty;
  List *params, *others;  // of the body of a CALL: see params_of in reader.c
  // of a simplified node
  Wide lo, hi;  // the interval of an integer or bool
  bool has_param;
  // of a walk
  unsigned visit;
  size_t number;       // in the written program
  struct Node *image;  // what the node became
} Node;

typedef struct {
  const char *name;
  int sources;  // -1: a body and its arguments
  unsigned kinds;
  bool gives_bool, commutes;
} OpInfo;

enum { MAX_NODES = 1000000, MAX_BODY_NODES = 8000000, MAX_RANK = 32 };
static const int64_t MAX_ELEMENTS = (int64_t)1 << 47;

typedef struct {
  const char *code;
  long at;  // an index into the line; -1: the op of the statement
  char message[240];
} Fault;

bool fail(Fault *fault, const char *code, long at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));  // false

extern const OpInfo ops[OPS];
int week_of_later_op(Text name);  // 0 if there is none

const Shape *shape_of(int rank, const int64_t *sizes);
const Shape *scalar(void);
const char *shape_text(const Shape *shape);
bool infer(Node *node, Fault *fault);  // sets dtype and shape, of any node but a CALL

// Lists every node that the roots depend on, sources first, each once.
typedef bool Enters(const Node *from, int source);  // NULL: every source
List postorder(Node **roots, size_t count, Enters *enters);

// ---- json.c ------------------------------------------------------------------------------------

typedef enum {
  JSON_NULL,
  JSON_TRUE,
  JSON_FALSE,
  JSON_INTEGER,
  JSON_NUMBER,
  JSON_STRING,
  JSON_ARRAY,
  JSON_OBJECT
} JsonKind;

typedef struct Json {
  JsonKind kind;
  Text text;  // of a number, and of a string without its quotes and escapes
  Text key;   // in an object
  struct Json *parent, *first, *last, *next;
  size_t count;
} Json;

Json *parse_json(Text line, size_t *at, Fault *fault);  // moves *at behind the value

// ---- reader.c and arguments.c ------------------------------------------------------------------

typedef struct {
  const char *code, *message;
  const Line *line;
  size_t at, order;
  int column;
} Error;

typedef struct {
  List errors, fields, outputs;
  Line *line;
  size_t end, argument_at;  // of the fields of the line: where a `:` is, or else the last one ends
  bool has_colon;
  Table names;
  size_t statements, scope_steps;
  bool has_returned, is_headless, is_stopped;
} Reader;

void read_program(Reader *reader, Text bytes);
bool report(Reader *reader, Line *line, const char *code, size_t at, const char *format, ...)
    __attribute__((format(printf, 5, 6)));  // false

// Reports an error in the line that `reader` is at; false.
#define HERE(code, at, ...) report(reader, reader->line, code, at, __VA_ARGS__)

Json *read_json(Reader *reader, size_t at);                        // NULL after a report
void read_argument(Reader *reader, Node *node, const Json *json);  // NULL: there is none

// ---- simplify.c and writer.c -------------------------------------------------------------------

bool simplify(Reader *reader, Node **outputs);  // false after a report
void write_program(Node **outputs, size_t count);

#endif
