/* quadloom.native.graphs: the canonical lines of a page's graph. See graphs.pyi for what it promises and
 * quadloom.syntaxes.rdf.blank_nodes, which has the twin in Python, for why blank nodes get the names they get. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST 16
#define ANCESTORS 8
static const char WHO[] = "who\n";
static const char FIRST[] = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>";

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

static void release(graph *graph) {
    free(graph->statements);
    free(graph->table);
    free(graph->labels);
    free(graph->colours);
    free(graph->first);
    free(graph->after);
    free(graph->named);
    free(graph->alike);
    free(graph->marks);
    free(graph->text);
    free(graph->joined);
}

static int is_blank(span term) { return term.length > 1 && term.at[0] == '_' && term.at[1] == ':'; }

static int equals(span term, const char *text) {
    return term.length == strlen(text) && memcmp(term.at, text, term.length) == 0;
}

static int compare_spans(span one, span other) {
    size_t shorter = one.length < other.length ? one.length : other.length;
    int order = memcmp(one.at, other.at, shorter);
    return order != 0 ? order : (one.length > other.length) - (one.length < other.length);
}

static int by_text(const void *one, const void *other) {
    return compare_spans(((const mark *)one)->text, ((const mark *)other)->text);
}

static int by_number(const void *one, const void *other) {
    int32_t left = ((const mark *)one)->number, right = ((const mark *)other)->number;
    return left != right ? (left > right) - (left < right) : by_text(one, other);
}

static int32_t node_of(graph *graph, span label) {
    uint64_t hash = 14695981039346656037u;
    for (size_t at = 0; at < label.length; at++) {
        hash = (hash ^ (unsigned char)label.at[at]) * 1099511628211u;
    }
    size_t slot = (size_t)(hash ^ (hash >> 32)) & (graph->slots - 1);
    while (graph->table[slot] >= 0) {
        if (compare_spans(graph->labels[graph->table[slot]], label) == 0) {
            return graph->table[slot];
        }
        slot = (slot + 1) & (graph->slots - 1);
    }
    graph->labels[graph->nodes] = label;
    return graph->table[slot] = graph->nodes++;
}

/* Copies the parts behind each other to `*end`. */
static span written(char **end, const char *sign, span one, span other) {
    char *start = *end;
    *(*end)++ = *sign;
    memcpy(*end, one.at, one.length);
    *end += one.length;
    memcpy(*end, other.at, other.length);
    *end += other.length;
    return (span){start, (size_t)(*end - start)};
}

static int hashed(const graph *graph, const char *text, size_t length, unsigned char *colour) {
    PyObject *data = PyBytes_FromStringAndSize(text, (Py_ssize_t)length);
    PyObject *found = data != NULL ? PyObject_CallFunctionObjArgs(graph->digest, data, NULL) : NULL;
    Py_XDECREF(data);
    char *bytes;
    Py_ssize_t size;
    int failed = found == NULL || PyBytes_AsStringAndSize(found, &bytes, &size) < 0 || size != DIGEST;
    if (!failed) {
        memcpy(colour, bytes, DIGEST);
    } else if (found != NULL && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "a digest has 16 bytes");
    }
    Py_XDECREF(found);
    return failed ? -1 : 0;
}

/* The colours of nodes: hashes of the first `start` bytes of `joined` and their distinct marks, one a line. Marks are
 * sorted here. With `only`, nodes that it does not flag keep their colour. */
static int colour_nodes(graph *graph, size_t count, size_t start, const unsigned char *only) {
    qsort(graph->marks, count, sizeof(mark), by_number);
    size_t at = 0;
    for (int32_t node = 0; node < graph->nodes; node++) {
        size_t length = start, begin = at;
        for (; at < count && graph->marks[at].number == node; at++) {
            span text = graph->marks[at].text;
            if (at > begin && compare_spans(graph->marks[at - 1].text, text) == 0) {
                continue;
            }
            if (at > begin) {
                graph->joined[length++] = '\n';
            }
            memcpy(graph->joined + length, text.at, text.length);
            length += text.length;
        }
        if ((only == NULL || only[node]) && hashed(graph, graph->joined, length, graph->colours[node]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int compare_colours(const void *one, const void *other) {
    return memcmp(((const mark *)one)->text.at, ((const mark *)other)->text.at, DIGEST);
}

/* Flags nodes that share their colour with another; returns how many there are. */
static int32_t flag_alike(graph *graph) {
    int32_t found = 0;
    for (int32_t node = 0; node < graph->nodes; node++) {
        graph->marks[node] = (mark){{(const char *)graph->colours[node], DIGEST}, node};
        graph->alike[node] = 0;
    }
    qsort(graph->marks, (size_t)graph->nodes, sizeof(mark), compare_colours);
    for (int32_t at = 1; at < graph->nodes; at++) {
        if (compare_colours(&graph->marks[at - 1], &graph->marks[at]) == 0) {
            int32_t one = graph->marks[at - 1].number, other = graph->marks[at].number;
            found += !graph->alike[one] + !graph->alike[other];
            graph->alike[one] = graph->alike[other] = 1;
        }
    }
    return found;
}

/* Nodes without a name take in the colours of what refers to them, round by round. */
static int add_ancestors(graph *graph, int rounds) {
    memcpy(graph->first, graph->colours, (size_t)graph->nodes * DIGEST);
    for (int round = 0; round < rounds; round++) {
        size_t count = 0;
        char *end = graph->text;
        for (Py_ssize_t at = 0; at < graph->count; at++) {
            const statement *one = &graph->statements[at];
            if (one->subject < 0 || one->object < 0 || one->subject == one->object || graph->named[one->object]) {
                continue;
            }
            span colour = {(const char *)graph->colours[one->subject], DIGEST};
            graph->marks[count++] = (mark){written(&end, "<", one->terms[1], colour), one->object};
        }
        if (count == 0) {
            return 0;
        }
        qsort(graph->marks, count, sizeof(mark), by_number);
        memcpy(graph->after, graph->colours, (size_t)graph->nodes * DIGEST);
        int changed = 0;
        for (size_t at = 0; at < count;) {
            int32_t node = graph->marks[at].number;
            size_t begin = at, length = DIGEST;
            memcpy(graph->joined, graph->first[node], DIGEST);
            for (; at < count && graph->marks[at].number == node; at++) {
                span text = graph->marks[at].text;
                if (at == begin || compare_spans(graph->marks[at - 1].text, text) != 0) {
                    memcpy(graph->joined + length, text.at, text.length);
                    length += text.length;
                }
            }
            if (hashed(graph, graph->joined, length, graph->after[node]) < 0) {
                return -1;
            }
            changed |= memcmp(graph->after[node], graph->colours[node], DIGEST) != 0;
        }
        if (!changed) {
            return 0;
        }
        memcpy(graph->colours, graph->after, (size_t)graph->nodes * DIGEST);
    }
    return 0;
}

/* 0 = the predicate identifies nothing, 1 = it is rdf:type, 2 = its value tells which thing is meant. */
static long role_of(const graph *graph, PyObject *predicate) {
    PyObject *known = PyDict_GetItemWithError(graph->roles, predicate);
    if (known != NULL) {
        return PyLong_AsLong(known);
    }
    PyObject *found = PyErr_Occurred() ? NULL : PyObject_CallFunctionObjArgs(graph->role, predicate, NULL);
    long role = found != NULL ? PyLong_AsLong(found) : -1;
    Py_XDECREF(found);
    return role;
}

/* The marks of statements with blank nodes: those that identify a node, or with `all` every one of nodes in `alike`. */
static Py_ssize_t write_marks(graph *graph, int all) {
    static const span nothing = {"", 0};
    size_t count = 0;
    char *end = graph->text;
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        const statement *one = &graph->statements[at];
        const span *terms = one->terms;
        if (one->subject < 0 && one->object < 0) {
            continue;
        }
        if (one->object < 0) {
            int wanted = all ? graph->alike[one->subject] : 0;
            if (!all) {
                long role = role_of(graph, PyTuple_GetItem(one->tuple, 1));
                if (role < 0) {
                    return -1;
                }
                wanted = role > 0;
                graph->named[one->subject] |= role > 1;
            }
            if (wanted) {
                graph->marks[count++] = (mark){written(&end, "+", terms[1], terms[2]), one->subject};
            }
        } else if (one->subject < 0) {
            if (!all || graph->alike[one->object]) {
                graph->marks[count++] = (mark){written(&end, "-", terms[0], terms[1]), one->object};
            }
        } else if (one->subject == one->object) {
            if (!all || graph->alike[one->object]) {
                graph->marks[count++] = (mark){written(&end, "=", terms[1], nothing), one->object};
            }
        } else {
            if (!all || graph->alike[one->object]) {
                graph->marks[count++] = (mark){written(&end, "<", terms[1], nothing), one->object};
            }
            if (all && graph->alike[one->subject]) {
                graph->marks[count++] = (mark){written(&end, ">", terms[1], nothing), one->subject};
            }
        }
    }
    return (Py_ssize_t)count;
}

/* Reads the terms. 1 = all is understood, 0 = the twin in Python must do it, -1 = an exception is set. */
static int read_statements(graph *graph, PyObject *triples) {
    size_t blanks = 0;
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        statement *one = &graph->statements[at];
        one->tuple = PyTuple_GetItem(triples, at);
        for (int place = 0; place < 3; place++) {
            PyObject *term = PyTuple_GetItem(one->tuple, place);
            Py_ssize_t length = 0;
            const char *text = term != NULL ? PyUnicode_AsUTF8AndSize(term, &length) : NULL;
            if (text == NULL) {
                return -1;
            }
            one->terms[place] = (span){text, (size_t)length};
        }
        const span subject = one->terms[0], object = one->terms[2];
        if (object.length > 1 && object.at[0] == '<' && object.at[1] == '<') {
            return 0; /* a triple term */
        }
        one->subject = is_blank(subject) ? 0 : -1;
        one->object = is_blank(object) ? 0 : -1;
        if (!one->subject && !one->object && equals(one->terms[1], FIRST)) {
            return 0; /* a list of blank nodes */
        }
        blanks += (size_t)(!one->subject + !one->object);
    }
    if (blanks == 0) {
        return 1;
    }
    for (graph->slots = 64; graph->slots < 2 * blanks; graph->slots *= 2) {
    }
    graph->table = malloc(graph->slots * sizeof(int32_t));
    graph->labels = malloc(blanks * sizeof(span));
    if (graph->table == NULL || graph->labels == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memset(graph->table, 0xFF, graph->slots * sizeof(int32_t));
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        statement *one = &graph->statements[at];
        one->subject = one->subject < 0 ? -1 : node_of(graph, one->terms[0]);
        one->object = one->object < 0 ? -1 : node_of(graph, one->terms[2]);
    }
    return 1;
}

/* Gives every node a colour of its own. As `read_statements`: 0 = some are still alike. */
static int colour(graph *graph) {
    size_t nodes = (size_t)graph->nodes, size = 64;
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        const span *terms = graph->statements[at].terms;
        size += terms[0].length + 2 * terms[1].length + terms[2].length + 2 * DIGEST;
    }
    graph->colours = malloc(nodes * DIGEST);
    graph->first = malloc(nodes * DIGEST);
    graph->after = malloc(nodes * DIGEST);
    graph->named = calloc(nodes, 1);
    graph->alike = calloc(nodes, 1);
    graph->marks = malloc((2 * (size_t)graph->count + 1) * sizeof(mark));
    graph->text = malloc(size);
    graph->joined = malloc(size + 2 * (size_t)graph->count);
    if (graph->colours == NULL || graph->first == NULL || graph->after == NULL || graph->named == NULL ||
        graph->alike == NULL || graph->marks == NULL || graph->text == NULL || graph->joined == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t count = write_marks(graph, 0);
    memcpy(graph->joined, WHO, sizeof(WHO) - 1);
    if (count < 0 || colour_nodes(graph, (size_t)count, sizeof(WHO) - 1, NULL) < 0 ||
        add_ancestors(graph, ANCESTORS) < 0) {
        return -1;
    }
    if (flag_alike(graph) == 0) {
        return 1;
    }
    count = write_marks(graph, 1);
    if (count < 0 || colour_nodes(graph, (size_t)count, 0, graph->alike) < 0) {
        return -1;
    }
    return flag_alike(graph) == 0;
}

/* The names of all nodes behind each other, each of the same length. */
static int name_nodes(graph *graph, span page, span prefix, size_t length) {
    static const char digits[] = "0123456789abcdef";
    free(graph->joined);
    graph->joined = malloc(DIGEST + page.length);
    free(graph->text);
    graph->text = malloc((size_t)graph->nodes * length + 1);
    if (graph->joined == NULL || graph->text == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(graph->joined + DIGEST, page.at, page.length);
    char *end = graph->text;
    for (int32_t node = 0; node < graph->nodes; node++) {
        unsigned char name[DIGEST];
        memcpy(graph->joined, graph->colours[node], DIGEST);
        if (hashed(graph, graph->joined, DIGEST + page.length, name) < 0) {
            return -1;
        }
        *end++ = '<';
        memcpy(end, prefix.at, prefix.length);
        end += prefix.length;
        for (int at = 0; at < DIGEST; at++) {
            *end++ = digits[name[at] >> 4];
            *end++ = digits[name[at] & 15];
        }
        *end++ = '>';
    }
    return 0;
}

/* Writes, sorts and joins the lines. */
static PyObject *lines_of(graph *graph, span page, size_t name_length) {
    size_t size = 1;
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        statement *one = &graph->statements[at];
        if (one->subject >= 0) {
            one->terms[0] = (span){graph->text + (size_t)one->subject * name_length, name_length};
        }
        if (one->object >= 0) {
            one->terms[2] = (span){graph->text + (size_t)one->object * name_length, name_length};
        }
        size += one->terms[0].length + one->terms[1].length + one->terms[2].length + page.length + 8;
    }
    char *lines = malloc(size);
    mark *marks = malloc(((size_t)graph->count + 1) * sizeof(mark));
    PyObject *objects = PyList_New(0), *nquads = NULL, *found = NULL;
    if (lines == NULL || marks == NULL || objects == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    char *end = lines;
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        char *start = end;
        for (int place = 0; place < 3; place++) {
            span term = graph->statements[at].terms[place];
            memcpy(end, term.at, term.length);
            end += term.length;
            *end++ = ' ';
        }
        *end++ = '<';
        memcpy(end, page.at, page.length);
        end += page.length;
        memcpy(end, "> .\n", 4);
        end += 4;
        marks[at] = (mark){{start, (size_t)(end - start) - 1}, (int32_t)at};
    }
    qsort(marks, (size_t)graph->count, sizeof(mark), by_text);
    Py_ssize_t kept = 0;
    size = 0;
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        if (kept > 0 && compare_spans(marks[kept - 1].text, marks[at].text) == 0) {
            continue;
        }
        const statement *one = &graph->statements[marks[at].number];
        PyObject *object = one->object < 0
                               ? PyTuple_GetItem(one->tuple, 2)
                               : PyUnicode_FromStringAndSize(one->terms[2].at, (Py_ssize_t)one->terms[2].length);
        int failed = object == NULL || PyList_Append(objects, object) < 0;
        if (one->object >= 0) {
            Py_XDECREF(object);
        }
        if (failed) {
            goto done;
        }
        size += marks[at].text.length + 1;
        marks[kept++] = marks[at];
    }
    nquads = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (nquads == NULL) {
        goto done;
    }
    end = PyBytes_AsString(nquads);
    for (Py_ssize_t at = 0; at < kept; at++) {
        memcpy(end, marks[at].text.at, marks[at].text.length + 1); /* with its line break */
        end += marks[at].text.length + 1;
    }
    found = PyTuple_Pack(2, nquads, objects);
done:
    free(lines);
    free(marks);
    Py_XDECREF(objects);
    Py_XDECREF(nquads);
    return found;
}

static PyObject *canonical(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *triples;
    span page, prefix;
    Py_ssize_t page_length, prefix_length;
    graph graph = {0};
    if (!PyArg_ParseTuple(arguments, "O!s#s#OO!O", &PyTuple_Type, &triples, &page.at, &page_length, &prefix.at,
                          &prefix_length, &graph.digest, &PyDict_Type, &graph.roles, &graph.role)) {
        return NULL;
    }
    page.length = (size_t)page_length;
    prefix.length = (size_t)prefix_length;
    const size_t name_length = prefix.length + 2 * DIGEST + 2;
    graph.count = PyTuple_Size(triples);
    if (graph.count > INT32_MAX / 4) {
        Py_RETURN_NONE;
    }
    PyObject *found = NULL;
    graph.statements = malloc(((size_t)graph.count + 1) * sizeof(statement));
    int done = graph.statements != NULL ? read_statements(&graph, triples) : (PyErr_NoMemory(), -1);
    if (done > 0 && graph.nodes > 0) {
        done = colour(&graph);
        if (done > 0 && name_nodes(&graph, page, prefix, name_length) < 0) {
            done = -1;
        }
    }
    if (done > 0) {
        found = lines_of(&graph, page, name_length);
    } else if (done == 0) {
        found = Py_None;
        Py_INCREF(found);
    }
    release(&graph);
    return found;
}

static PyMethodDef methods[] = {
    {"canonical", canonical, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "quadloom.native.graphs", NULL, 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_graphs(void) { return PyModuleDef_Init(&module); }
