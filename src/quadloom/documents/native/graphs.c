/* quadloom.documents.native.graphs: the canonical lines of a page's graph. See graphs.pyi for what it promises and
 * quadloom.documents.syntaxes.rdf.blank_nodes, which has the implementation in Python, for why blank nodes get the names they get. */
#include "graphs.h"

static const char FIRST[] = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>";

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

/* Reads the terms. 1 = all is understood, 0 = Python must do it, -1 = an exception is set. */
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
    PyModuleDef_HEAD_INIT, "quadloom.documents.native.graphs", NULL, 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_graphs(void) { return PyModuleDef_Init(&module); }
