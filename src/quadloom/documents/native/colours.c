/* Colours of blank nodes: digests of what is said about them, until each node has its own. The rules are those of
 * quadloom.documents.syntaxes.rdf.blank_nodes, where it says why; here are the first three, for graphs without lists of blank
 * nodes and triple terms. Nodes that are still alike then are left to Python. */
#include "graphs.h"

#define ANCESTORS 8
#define EFFORT 64            /* hashed neighbours per statement with a blank node, over all rounds */
#define MOST_EFFORT 1500000 /* of one page */
static const char WHO[] = "who\n";

static int by_number(const void *one, const void *other) {
    int32_t left = ((const mark *)one)->number, right = ((const mark *)other)->number;
    return left != right ? (left > right) - (left < right) : by_text(one, other);
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

int hashed(const graph *graph, const char *text, size_t length, unsigned char *colour) {
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

/* A blank neighbour of a node: over which predicate, and whether the node leads there (>) or the other way (<). */
typedef struct {
    span predicate;
    const char *sign;
    int32_t other;
} edge;

/* What a node of one class sees in one round. */
typedef struct {
    unsigned char colour[DIGEST];
    int32_t class, node;
} view;

/* The state of `refine`. Nodes of one colour are a class; `sizes` are of classes, all else is by node. */
typedef struct {
    edge *edges;         /* those of one node are behind each other */
    int32_t *first_edge; /* and one more behind the last */
    int32_t *classes, *sizes;
    int32_t *pending, *next; /* nodes to look at in this round and in the next one */
    unsigned char *queued;   /* whether a node is in `next` */
    view *views;
    int32_t class_count, next_count;
} refinement;

static int by_class_and_colour(const void *one, const void *other) {
    const view *left = one, *right = other;
    if (left->class != right->class) {
        return left->class < right->class ? -1 : 1;
    }
    return memcmp(left->colour, right->colour, DIGEST);
}

static void queue(refinement *state, int32_t node) {
    if (!state->queued[node]) {
        state->queued[node] = 1;
        state->next[state->next_count++] = node;
    }
}

static int allocate(refinement *state, const graph *graph) {
    size_t nodes = (size_t)graph->nodes;
    state->edges = malloc((2 * (size_t)graph->count + 1) * sizeof(edge));
    state->first_edge = calloc(nodes + 2, sizeof(int32_t));
    state->classes = malloc(nodes * sizeof(int32_t));
    state->sizes = calloc(nodes, sizeof(int32_t));
    state->pending = malloc(nodes * sizeof(int32_t));
    state->next = malloc(nodes * sizeof(int32_t));
    state->queued = calloc(nodes, 1);
    state->views = malloc(nodes * sizeof(view));
    return state->edges != NULL && state->first_edge != NULL && state->classes != NULL && state->sizes != NULL &&
           state->pending != NULL && state->next != NULL && state->queued != NULL && state->views != NULL;
}

static void discard(refinement *state) {
    free(state->edges);
    free(state->first_edge);
    free(state->classes);
    free(state->sizes);
    free(state->pending);
    free(state->next);
    free(state->queued);
    free(state->views);
}

/* Fills edges and classes, and queues the nodes that are alike: `flag_alike` has just sorted the colours. Returns the
 * number of statements with a blank node. */
static int64_t prepare(refinement *state, const graph *graph) {
    int64_t linked = 0;
    int32_t *first = state->first_edge;
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        const statement *one = &graph->statements[at];
        linked += one->subject >= 0 || one->object >= 0;
        if (one->subject >= 0 && one->object >= 0 && one->subject != one->object) {
            first[one->subject + 2]++;
            first[one->object + 2]++;
        }
    }
    for (int32_t node = 0; node < graph->nodes; node++) {
        first[node + 2] += first[node + 1];
    }
    for (Py_ssize_t at = 0; at < graph->count; at++) {
        const statement *one = &graph->statements[at];
        if (one->subject >= 0 && one->object >= 0 && one->subject != one->object) {
            state->edges[first[one->subject + 1]++] = (edge){one->terms[1], ">", one->object};
            state->edges[first[one->object + 1]++] = (edge){one->terms[1], "<", one->subject};
        }
    }
    for (int32_t at = 0; at < graph->nodes; at++) {
        int32_t node = graph->marks[at].number;
        if (at == 0 || compare_colours(&graph->marks[at - 1], &graph->marks[at]) != 0) {
            state->class_count++;
        }
        state->classes[node] = state->class_count - 1;
        state->sizes[state->class_count - 1]++;
        if (graph->alike[node]) {
            queue(state, node);
        }
    }
    return linked;
}

/* The colour of a node and those of its neighbours, hashed. */
static int look_around(graph *graph, const refinement *state, int32_t node, unsigned char *seen) {
    size_t count = 0, length = DIGEST;
    char *end = graph->text;
    for (int32_t at = state->first_edge[node]; at < state->first_edge[node + 1]; at++) {
        const edge *one = &state->edges[at];
        span colour = {(const char *)graph->colours[one->other], DIGEST};
        graph->marks[count++] = (mark){written(&end, one->sign, one->predicate, colour), node};
    }
    qsort(graph->marks, count, sizeof(mark), by_text);
    memcpy(graph->joined, graph->colours[node], DIGEST);
    for (size_t at = 0; at < count; at++) {
        memcpy(graph->joined + length, graph->marks[at].text.at, graph->marks[at].text.length);
        length += graph->marks[at].text.length;
    }
    return hashed(graph, graph->joined, length, seen);
}

/* Splits one class by what its members saw: `views` up to `end` are of one class, sorted. The largest part keeps the
 * colour if all members were looked at, so that most neighbours need no second look. */
static void split(graph *graph, refinement *state, const view *views, int32_t end) {
    int32_t class = views[0].class, largest = 0, kept = -1;
    if (end == state->sizes[class]) {
        for (int32_t at = 0, begin = 0; at < end; at++) {
            begin = at > 0 && memcmp(views[at - 1].colour, views[at].colour, DIGEST) == 0 ? begin : at;
            if (at - begin + 1 >= largest) { /* of two of the same size, that with the greater colour */
                largest = at - begin + 1;
                kept = begin;
            }
        }
    }
    for (int32_t at = 0; at < end;) {
        int32_t begin = at;
        for (; at < end && memcmp(views[begin].colour, views[at].colour, DIGEST) == 0; at++) {
        }
        if (begin == kept) {
            continue;
        }
        int32_t born = state->class_count++;
        state->sizes[class] -= at - begin;
        state->sizes[born] = at - begin;
        for (int32_t moved = begin; moved < at; moved++) {
            int32_t node = views[moved].node;
            state->classes[node] = born;
            memcpy(graph->colours[node], views[moved].colour, DIGEST);
            for (int32_t near = state->first_edge[node]; near < state->first_edge[node + 1]; near++) {
                queue(state, state->edges[near].other);
            }
        }
    }
}

/* Nodes that are alike take in the colours of their blank neighbours, round by round. As `colour`. */
static int refine(graph *graph) {
    refinement state = {0};
    int result = -1;
    if (!allocate(&state, graph)) {
        PyErr_NoMemory();
        goto done;
    }
    int64_t effort = EFFORT * (prepare(&state, graph) + 16);
    effort = effort < MOST_EFFORT ? effort : MOST_EFFORT;
    while (state.next_count > 0 && effort > 0) {
        int32_t *nodes = state.next, pending = state.next_count, count = 0;
        state.next = state.pending;
        state.pending = nodes;
        state.next_count = 0;
        for (int32_t at = 0; at < pending; at++) {
            int32_t node = nodes[at], degree = state.first_edge[node + 1] - state.first_edge[node];
            state.queued[node] = 0;
            if (degree == 0 || state.sizes[state.classes[node]] == 1) {
                continue;
            }
            effort -= degree;
            view *seen = &state.views[count++];
            seen->class = state.classes[node];
            seen->node = node;
            if (look_around(graph, &state, node, seen->colour) < 0) {
                goto done;
            }
        }
        qsort(state.views, (size_t)count, sizeof(view), by_class_and_colour);
        for (int32_t begin = 0, at = 0; begin < count; begin = at) {
            for (; at < count && state.views[at].class == state.views[begin].class; at++) {
            }
            split(graph, &state, &state.views[begin], at - begin);
        }
    }
    result = state.next_count == 0 && state.class_count == graph->nodes;
done:
    discard(&state);
    return result;
}

int colour(graph *graph) {
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
    return flag_alike(graph) == 0 ? 1 : refine(graph);
}
