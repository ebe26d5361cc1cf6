// What the files of this compiler share. Memory lives as long as the process: nothing is freed.

#ifndef UOPS_H
#define UOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// ---- store.c: memory, texts and hash tables ----------------------------------------------------

typedef struct {
  const char *data;
  size_t length;
} Text;

void *allocate(size_t size);  // zeroed
bool equals(Text text, const char *word);
const char *brief(Text text);  // a copy to quote in a message, cut where it is long

#define PRINTF(pattern, values) __attribute__((format(printf, pattern, values)))

const char *format(const char *pattern, ...) PRINTF(1, 2);  // a new text

typedef struct {
  char *data;
  size_t length, capacity;
} Buffer;

void append(Buffer *buffer, const char *pattern, ...) PRINTF(2, 3);

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

typedef enum { BOOL, INTEGER, FLOAT, NOTHING } Kind;
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
  DTYPES,
  EFFECT = DTYPES  // of what has no value
} Dtype;

typedef struct {
  const char *name;
  Kind kind;
  Wide lo, hi;                  // of an integer or bool
  int precision, max_exponent;  // of a float
} DtypeInfo;

extern const DtypeInfo dtypes[DTYPES + 1];

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
  BUFFER,
  ALLOC,
  INDEX,
  LOAD,
  STORE,
  AFTER,
  RESHAPE,
  EXPAND,
  PERMUTE,
  FLIP,
  PAD,
  SHRINK,
  REDUCE,
  RANGE,
  END,
  STAGE,
  KERNEL,
  SPECIAL,
  BARRIER,
  MMA,
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
  int64_t slot;  // of PARAM, BUFFER and ALLOC, as the rest
  const Shape *shape;
  const char *addrspace;  // NULL: not said
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
  struct Node *root;  // of a place: the storage that it is a part of
  bool is_indexed;    // of a place: it is no value any more
  // of a node that was read
  Line *line;
  size_t at;
  bool is_faulty;
  List *params, *others;  // of the body of a CALL: see slots_of in scopes.c
  bool *is_stored;        // of the body of a CALL: whether it stores into the PARAM of a slot
  // of a simplified node
  Wide lo, hi;  // the interval of an integer or bool
  bool is_scoped;  // differs from call to call of a body: it depends on PARAMs or ALLOCs
  bool is_tied;  // to storage that may be written: what is made of it depends on the order
  // of a walk
  unsigned visit;
  size_t number;       // in the written program
  struct Node *image;  // what the node became
} Node;

enum { MAX_NODES = 1000000, MAX_BODY_NODES = 8000000, MAX_RANK = 32 };
static const int64_t MAX_ELEMENTS = (int64_t)1 << 47;

typedef struct {
  const char *code;
  long at;  // an index into the line; -1: the op of the statement
  char message[240];
} Fault;

bool fail(Fault *fault, const char *code, long at, const char *format, ...) PRINTF(4, 5);  // false

typedef struct Reader Reader;
typedef struct Json Json;

typedef struct {
  const char *name;
  int week;
  int least, most;  // sources
  unsigned kinds;   // that an elementwise op takes
  bool gives_bool, commutes;
  const char *example;  // of an argument that has to be there
  void (*read)(Reader *reader, const Json *json, Argument *arg);  // NULL: it takes none
  bool (*infer)(Node *node, Fault *fault);                        // sets dtype, shape and place
} OpInfo;

// The ops of week 1, and the names of those of later weeks.
extern const OpInfo ops[OPS];

// What a reader and a simplifier ask of a language.
typedef struct {
  int week;
  const OpInfo *ops;
  void (*check_program)(Reader *reader, const List *scope);  // NULL: nothing more
} Language;

const Shape *shape_of(int rank, const int64_t *sizes);
const Shape *scalar(void);
const char *shape_text(const Shape *shape);
// The shape itself, NULL after a fault: an axis of size 0 counts as 1.
const Shape *check_size(const Shape *shape, Fault *fault);
// The shape of an elementwise op, as NumPy broadcasts; NULL after a fault.
const Shape *broadcast(const Shape *a, const Shape *b, Fault *fault);
bool is_value(const Node *node);
bool expect_values(const Node *node, int first, Fault *fault);  // from the first source on
bool infer_storage(Node *node, Fault *fault);

// Lists every node that the roots depend on, sources first, each once.
typedef bool Enters(const Node *from, int source);  // NULL: every source
List postorder(Node *const *roots, size_t count, Enters *enters);

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

struct Json {
  JsonKind kind;
  Text text;  // of a number, and of a string without its quotes and escapes
  Text key;   // in an object
  struct Json *parent, *first, *last, *next;
  size_t count;
};

Json *parse_json(Text line, size_t *at, Fault *fault);  // moves *at behind the value

// ---- reader.c, arguments.c and scopes.c ---------------------------------------------------------

typedef struct {
  Text text;
  size_t at;
} Field;

typedef struct {
  const char *code, *message;
  const Line *line;
  size_t at, order;
  int column;
} Error;

struct Reader {
  const Language *language;
  List errors, fields, outputs;
  Line *line, *return_line;
  size_t *outputs_at;       // where each output stands in it
  size_t end, argument_at;  // of the fields of the line: where a `:` is, or else the last one ends
  bool has_colon;
  Table names;
  size_t statements, scope_steps;
  bool has_returned, is_headless, is_stopped;
};

void read_program(Reader *reader, Text bytes);
bool report(Reader *reader, Line *line, const char *code, size_t at, const char *format, ...)
    PRINTF(5, 6);  // false

// Reports an error in the line that `reader` is at; false.
#define HERE(code, at, ...) report(reader, reader->line, code, at, __VA_ARGS__)

Json *read_json(Reader *reader, size_t at);                        // NULL after a report
void read_argument(Reader *reader, Node *node, const Json *json);  // NULL: there is none
void read_param(Reader *reader, const Json *json, Argument *arg);
void read_constant(Reader *reader, const Json *json, Argument *arg);
void read_cast(Reader *reader, const Json *json, Argument *arg);
void read_call_name(Reader *reader, const Json *json, Argument *arg);

// A storage's slot, dtype and shape, and the value of an optional key. False if there is no dtype
// or no shape; NULL for a key that there is not, or that is not allowed.
bool read_storage(Reader *reader, const Json *json, const char *option, Argument *arg,
                  const Json **value);

List scope_of(Node *const *roots, size_t count);  // what they need, without the bodies of CALLs
void check_slots(Reader *reader, const List *nodes, Op storage);
void check_program(Reader *reader);
bool infer_call(Reader *reader, Node *node, Fault *fault);

// ---- intervals.c, simplify.c and writer.c
// --------------------------------------------------------------

typedef struct {
  Wide lo, hi;
  bool is_known;
} Interval;

Interval interval(Wide lo, Wide hi);
Interval product(Interval a, Interval b);
Interval interval_of(const Node *node);
void set_interval(Node *node);  // of an integer or bool

// What the outputs become, with CALLs inlined; NULL after a report. A plain graph has constants
// folded and is not simplified else.
Node **simplify(Reader *reader, bool is_plain);
void write_program(Buffer *out, Node **outputs, size_t count);

// ---- answer.c ----------------------------------------------------------------------------------

typedef struct {
  int status;
  Buffer out, err;
} Answer;

typedef void Writer(Buffer *out, Node **outputs, size_t count);

Text read_all(FILE *file, size_t limit);
bool is_week(const char *word);
Answer answer_of(const Language *language, Text program, bool is_plain, Writer *write);
void print(const Buffer *buffer, FILE *file);
int print_answer(const Answer *answer);  // the status

#endif
