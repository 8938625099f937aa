/* quadloom.documents.native.records: loops over the statements and links of a page, for which Python needs a microsecond a turn. See
 * records.pyi for what they promise. The implementations in Python are in quadloom.documents.syntaxes.rdf.links, quadloom.documents.index and
 * quadloom.documents.extract; that of references.c in quadloom.documents.syntaxes.iri. */
#include "records.h"

static PyObject *HTTP, *KIND, *TARGET, *LINE_BREAK;

/* 1 = the term begins with the text, -1 = an exception is set. */
static int begins(PyObject *term, PyObject *with) {
    return (int)PyUnicode_Tailmatch(term, with, 0, PY_SSIZE_T_MAX, -1);
}

static int same(PyObject *one, PyObject *other) { return one == other || PyUnicode_Compare(one, other) == 0; }

static int add_new(PyObject *dictionary, PyObject *key, PyObject *value) {
    int known = PyDict_Contains(dictionary, key);
    return known != 0 ? (known < 0 ? -1 : 0) : PyDict_SetItem(dictionary, key, value);
}

/* The terms of the statement at this place, borrowed; -1 = an exception is set. */
static int read_triple(PyObject *triples, Py_ssize_t at, PyObject *terms[3]) {
    PyObject *triple = PyTuple_GetItem(triples, at);
    for (int place = 0; place < 3; place++) {
        terms[place] = triple != NULL ? PyTuple_GetItem(triple, place) : NULL;
        if (terms[place] == NULL || !PyUnicode_Check(terms[place])) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "a term is a text");
            }
            return -1;
        }
    }
    return 0;
}

/* What the statements link to: `found` as it is returned, and `names` of properties and classes. */
typedef struct {
    PyObject *type, *see_also, *other_kind, *see_also_kind, *found, *names;
    PyObject *before; /* the subject of the statement before; most things have several in a row */
} link_search;

static int search_statement(link_search *search, PyObject *terms[3]) {
    PyObject *subject = terms[0], *predicate = terms[1], *value = terms[2];
    if (PyDict_SetItem(search->names, predicate, Py_None) < 0) {
        return -1;
    }
    if (same(predicate, search->type)) {
        if (PyDict_SetItem(search->names, value, Py_None) < 0) {
            return -1;
        }
    } else {
        int is_link = begins(value, HTTP);
        int is_see_also = is_link > 0 ? PySet_Contains(search->see_also, predicate) : 0;
        if (is_link < 0 || is_see_also < 0 ||
            (is_see_also && PyDict_SetItem(search->found, value, search->see_also_kind) < 0) ||
            (is_link && !is_see_also && add_new(search->found, value, search->other_kind) < 0)) {
            return -1;
        }
    }
    if (search->before != NULL && same(subject, search->before)) {
        return 0;
    }
    search->before = subject;
    int is_link = begins(subject, HTTP);
    return is_link > 0 ? add_new(search->found, subject, search->other_kind) : is_link;
}

static PyObject *link_terms(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *triples, *vocabulary_kind, *terms[3];
    link_search search = {0};
    if (!PyArg_ParseTuple(arguments, "O!UOUUU", &PyTuple_Type, &triples, &search.type, &search.see_also,
                          &search.other_kind, &search.see_also_kind, &vocabulary_kind)) {
        return NULL;
    }
    search.found = PyDict_New();
    search.names = PyDict_New();
    int failed = search.found == NULL || search.names == NULL;
    Py_ssize_t count = PyTuple_Size(triples);
    for (Py_ssize_t at = 0; !failed && at < count; at++) {
        failed = read_triple(triples, at, terms) < 0 || search_statement(&search, terms) < 0;
    }
    PyObject *name, *unused;
    for (Py_ssize_t at = 0; !failed && PyDict_Next(search.names, &at, &name, &unused);) {
        int is_link = begins(name, HTTP);
        failed = is_link < 0 || (is_link && PyDict_SetItem(search.found, name, vocabulary_kind) < 0);
    }
    Py_XDECREF(search.names);
    if (failed) {
        Py_CLEAR(search.found);
    }
    return search.found;
}

/* Whether predicate, object or datatype begins with the text; -1 = an exception is set. */
static int uses(PyObject *terms[3], PyObject *beginning, PyObject *datatype) {
    int found = begins(terms[1], beginning);
    if (found == 0) {
        found = begins(terms[2], beginning);
    }
    Py_ssize_t length = PyUnicode_GetLength(terms[2]);
    if (found == 0 && length > 1 && PyUnicode_ReadChar(terms[2], length - 1) == '>' &&
        (PyUnicode_ReadChar(terms[2], 0) == '"' || PyUnicode_ReadChar(terms[2], 1) == '<')) {
        found = PyUnicode_Contains(terms[2], datatype);
    }
    return found;
}

static PyObject *places_using(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *triples, *beginning, *datatype, *terms[3];
    if (!PyArg_ParseTuple(arguments, "O!UU", &PyTuple_Type, &triples, &beginning, &datatype)) {
        return NULL;
    }
    PyObject *places = PyList_New(0);
    Py_ssize_t count = PyTuple_Size(triples);
    for (Py_ssize_t at = 0; places != NULL && at < count; at++) {
        int found = read_triple(triples, at, terms) < 0 ? -1 : uses(terms, beginning, datatype);
        if (found > 0) {
            PyObject *place = PyLong_FromSsize_t(at);
            found = place == NULL || PyList_Append(places, place) < 0 ? -1 : 0;
            Py_XDECREF(place);
        }
        if (found < 0) {
            Py_CLEAR(places);
        }
    }
    return places;
}

static PyObject *predicates(PyObject *module, PyObject *triples) {
    (void)module;
    if (!PyTuple_Check(triples)) {
        return PyErr_Format(PyExc_TypeError, "statements are a tuple");
    }
    PyObject *found = PySet_New(NULL), *before = NULL, *terms[3];
    Py_ssize_t count = PyTuple_Size(triples);
    for (Py_ssize_t at = 0; found != NULL && at < count; at++) {
        if (read_triple(triples, at, terms) < 0 || (terms[1] != before && PySet_Add(found, terms[1]) < 0)) {
            Py_CLEAR(found);
        }
        before = terms[1];
    }
    return found;
}

/* The text of a literal if it is one of words; NULL without an exception if not. */
static PyObject *words_of(PyObject *literal, PyObject *wordy) {
    Py_ssize_t length = PyUnicode_GetLength(literal);
    Py_ssize_t end = PyUnicode_FindChar(literal, '"', 1, length, -1);
    if (end < 1) {
        return NULL;
    }
    if (end + 1 < length && PyUnicode_ReadChar(literal, end + 1) == '^') {
        PyObject *datatype = PyUnicode_Substring(literal, end + 1, length);
        int counts = datatype != NULL ? PySet_Contains(wordy, datatype) : -1;
        Py_XDECREF(datatype);
        if (counts <= 0) {
            return NULL;
        }
    }
    return end > 1 ? PyUnicode_Substring(literal, 1, end) : NULL;
}

static PyObject *literal_words(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *objects, *wordy, *result = NULL;
    Py_ssize_t most, size = 0, left_out = 0;
    if (!PyArg_ParseTuple(arguments, "O!nO", &PyList_Type, &objects, &most, &wordy)) {
        return NULL;
    }
    PyObject *seen = PyDict_New();
    Py_ssize_t count = PyList_Size(objects);
    for (Py_ssize_t at = 0; seen != NULL && at < count; at++) {
        PyObject *one = PyList_GetItem(objects, at);
        Py_ssize_t length = PyUnicode_GetLength(one);
        if (length < 2) {
            if (length < 0) {
                goto done;
            }
            continue;
        }
        Py_UCS4 first = PyUnicode_ReadChar(one, 0);
        if (first == '<' && PyUnicode_ReadChar(one, 1) == '<') { /* a triple term */
            result = Py_NewRef(Py_None);
            goto done;
        }
        PyObject *text = first == '"' ? words_of(one, wordy) : NULL;
        if (text == NULL) {
            if (PyErr_Occurred()) {
                goto done;
            }
            continue;
        }
        int failed = PyDict_Contains(seen, text);
        if (failed == 0) {
            length = PyUnicode_GetLength(text);
            size += length;
            left_out += size > most ? length : 0;
            failed = size > most ? 0 : PyDict_SetItem(seen, text, Py_None);
        }
        Py_DECREF(text);
        if (failed < 0) {
            goto done;
        }
    }
    PyObject *texts = seen != NULL ? PyDict_Keys(seen) : NULL;
    PyObject *joined = texts != NULL ? PyUnicode_Join(LINE_BREAK, texts) : NULL;
    result = joined != NULL ? Py_BuildValue("On", joined, left_out) : NULL;
    Py_XDECREF(joined);
    Py_XDECREF(texts);
done:
    Py_XDECREF(seen);
    return result;
}

static PyObject *targets_of(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *links, *known, *find;
    if (!PyArg_ParseTuple(arguments, "O!O!O", &PyTuple_Type, &links, &PyDict_Type, &known, &find)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(links);
    PyObject *targets = PyList_New(count);
    for (Py_ssize_t at = 0; targets != NULL && at < count; at++) {
        PyObject *href = PyObject_GetAttr(PyTuple_GetItem(links, at), TARGET);
        PyObject *target = href != NULL ? PyDict_GetItemWithError(known, href) : NULL;
        Py_XINCREF(target);
        if (target == NULL && !PyErr_Occurred()) {
            target = PyObject_CallFunctionObjArgs(find, href, NULL);
        }
        Py_XDECREF(href);
        if (target == NULL) {
            Py_CLEAR(targets);
        } else {
            PyList_SetItem(targets, at, target);
        }
    }
    return targets;
}

static PyObject *fingerprints(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *links, *targets, *left_out;
    if (!PyArg_ParseTuple(arguments, "O!O!O", &PyTuple_Type, &links, &PyList_Type, &targets, &left_out)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(links);
    if (count != PyList_Size(targets)) {
        return PyErr_Format(PyExc_ValueError, "each link has one target");
    }
    PyObject *found = PySet_New(NULL);
    for (Py_ssize_t at = 0; found != NULL && at < count; at++) {
        PyObject *kind = PyObject_GetAttr(PyTuple_GetItem(links, at), KIND);
        int skipped = kind != NULL ? PySet_Contains(left_out, kind) : -1;
        Py_XDECREF(kind);
        if (skipped == 0) {
            PyObject *number = PyTuple_GetItem(PyList_GetItem(targets, at), 2);
            skipped = number != NULL ? PySet_Add(found, number) : -1;
        }
        if (skipped < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

static PyMethodDef methods[] = {
    {"fingerprints", fingerprints, METH_VARARGS, NULL}, {"join_all", join_all, METH_VARARGS, NULL},
    {"link_terms", link_terms, METH_VARARGS, NULL},     {"literal_words", literal_words, METH_VARARGS, NULL},
    {"places_using", places_using, METH_VARARGS, NULL}, {"predicates", predicates, METH_O, NULL},
    {"targets_of", targets_of, METH_VARARGS, NULL},     {NULL, NULL, 0, NULL},
};

static int prepare(PyObject *module) {
    (void)module;
    HTTP = PyUnicode_InternFromString("<http");
    KIND = PyUnicode_InternFromString("kind");
    TARGET = PyUnicode_InternFromString("target");
    LINE_BREAK = PyUnicode_InternFromString("\n");
    return HTTP == NULL || KIND == NULL || TARGET == NULL || LINE_BREAK == NULL ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, prepare}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "quadloom.documents.native.records", NULL, 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_records(void) { return PyModuleDef_Init(&module); }
