/* One page's graph while its blank nodes get names: statements, and what is known of each node.
 *
 * graphs.c reads the statements and writes the lines; colours.c tells the nodes apart. */
#ifndef QUADLOOM_GRAPHS_H
#define QUADLOOM_GRAPHS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST 16

typedef struct {
    const char *at;
    size_t length;
} span;

/* One statement. `subject` and `object` are numbers of blank nodes, -1 for other terms. */
typedef struct {
    span terms[3];
    PyObject *tuple; /* borrowed */
    int32_t subject, object;
} statement;

/* What is hashed of a statement for one node, or a line with the statement it came from. */
typedef struct {
    span text;
    int32_t number;
} mark;

/* All that lives while one graph is written; freed together. */
typedef struct {
    Py_ssize_t count;
    statement *statements;
    int32_t *table; /* labels of blank nodes by hash: number of the node, -1 = free */
    size_t slots;
    int32_t nodes;
    span *labels;
    unsigned char (*colours)[DIGEST];
    unsigned char (*first)[DIGEST];
    unsigned char (*after)[DIGEST];
    unsigned char *named, *alike;
    mark *marks;
    char *text; /* of marks or lines */
    char *joined;
    PyObject *digest, *roles, *role;
} graph;

static inline int compare_spans(span one, span other) {
    size_t shorter = one.length < other.length ? one.length : other.length;
    int order = memcmp(one.at, other.at, shorter);
    return order != 0 ? order : (one.length > other.length) - (one.length < other.length);
}

static inline int by_text(const void *one, const void *other) {
    return compare_spans(((const mark *)one)->text, ((const mark *)other)->text);
}

/* The digest of a text. -1 = an exception is set. */
int hashed(const graph *graph, const char *text, size_t length, unsigned char *colour);

/* Gives every node a colour of its own. 1 = done, 0 = Python must do it, -1 = an exception is set. */
int colour(graph *graph);

#endif
