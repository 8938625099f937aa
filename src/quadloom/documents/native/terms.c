/* quadloom.documents.native.terms: a page makes some hundred terms and statements one by one, each of which takes Python several
 * calls. See terms.pyi for what is promised. The implementations in Python are in quadloom.documents.syntaxes.terms, quadloom.documents.syntaxes.html.text and
 * quadloom.documents.syntaxes.sink. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

/* Text that is being written: most terms fit into what is on the stack. */
#define SHORT 1024
typedef struct {
    char *bytes;
    size_t length;
    char fixed[SHORT];
} output;

static int begin(output *to, size_t room) {
    to->length = 0;
    to->bytes = room <= SHORT ? to->fixed : PyMem_Malloc(room);
    if (to->bytes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void put(output *to, const void *bytes, size_t length) {
    memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
}

static PyObject *finish(output *to) {
    PyObject *text = PyUnicode_FromStringAndSize(to->bytes, (Py_ssize_t)to->length);
    if (to->bytes != to->fixed) {
        PyMem_Free(to->bytes);
    }
    return text;
}

/* The UTF-8 of a text. NULL without an exception: it is none, or it holds a lone surrogate. */
static const char *utf8_of(PyObject *text, size_t *length) {
    Py_ssize_t size;
    const char *bytes = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    if (bytes == NULL) {
        PyErr_Clear();
        return NULL;
    }
    *length = (size_t)size;
    return bytes;
}

static int is_letter(unsigned char byte) { return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z'; }
static int is_digit(unsigned char byte) { return byte >= '0' && byte <= '9'; }

static size_t letters_at(const char *text, size_t at, size_t length) {
    size_t start = at;
    while (at < length && is_letter((unsigned char)text[at])) {
        at++;
    }
    return at - start;
}

/* Whether a tag is a language, perhaps a script, perhaps a region: en, zh-Hant-TW, es-419. */
static int is_usual_language(const char *tag, size_t length) {
    size_t at = letters_at(tag, 0, length);
    if (at < 2 || at > 3) {
        return 0;
    }
    if (at < length && tag[at] == '-' && letters_at(tag, at + 1, length) == 4) {
        at += 5;
    }
    if (at == length) {
        return 1;
    }
    if (tag[at] != '-') {
        return 0;
    }
    at++;
    return (length - at == 2 && letters_at(tag, at, length) == 2) ||
           (length - at == 3 && is_digit((unsigned char)tag[at]) && is_digit((unsigned char)tag[at + 1]) &&
            is_digit((unsigned char)tag[at + 2]));
}

static const char *escape_of(char byte) {
    switch (byte) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\0':
        return "\xEF\xBF\xBD";
    default:
        return NULL;
    }
}

static void put_escaped(output *to, const char *text, size_t length) {
    size_t start = 0;
    for (size_t at = 0; at < length; at++) {
        unsigned char byte = (unsigned char)text[at];
        if (byte > '\\' || (byte > '"' && byte < '\\')) {
            continue;
        }
        const char *escape = escape_of(text[at]);
        if (escape != NULL) {
            put(to, text + start, at - start);
            put(to, escape, strlen(escape));
            start = at + 1;
        }
    }
    put(to, text + start, length - start);
}

/* Whether a text has anything to escape. The library looks at many bytes at once, which pays from some length on. */
static int has_escapes(const char *text, size_t length) {
    if (length > 64) {
        return memchr(text, '"', length) != NULL || memchr(text, '\\', length) != NULL ||
               memchr(text, '\n', length) != NULL || memchr(text, '\r', length) != NULL || memchr(text, '\0', length) != NULL;
    }
    int found = 0;
    for (size_t at = 0; at < length; at++) {
        char byte = text[at];
        found |= (byte == '"') | (byte == '\\') | (byte == '\n') | (byte == '\r') | (byte == '\0');
    }
    return found;
}

/* Text, language and datatype as they were given; 0 = not as expected. */
static int literal_arguments(PyObject *const *given, Py_ssize_t count, PyObject *names, PyObject *wanted[3]) {
    Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0;
    if (count < 1 || count + named > 3) {
        return 0;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        wanted[at] = given[at];
    }
    for (Py_ssize_t at = 0; at < named; at++) {
        PyObject *name = PyTuple_GetItem(names, at);
        int place = PyUnicode_CompareWithASCIIString(name, "datatype") == 0   ? 2
                    : PyUnicode_CompareWithASCIIString(name, "language") == 0 ? 1
                                                                              : 0;
        if (place == 0 || wanted[place] != NULL) {
            return 0;
        }
        wanted[place] = given[count + at];
    }
    return 1;
}

/* What the implementation in Python says. */
static PyObject *ask_python(PyObject *python, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0;
    PyObject *values = PyTuple_New(count), *keywords = PyDict_New(), *result = NULL;
    int failed = values == NULL || keywords == NULL;
    for (Py_ssize_t at = 0; !failed && at < count; at++) {
        failed = PyTuple_SetItem(values, at, Py_NewRef(given[at])) < 0;
    }
    for (Py_ssize_t at = 0; !failed && at < named; at++) {
        failed = PyDict_SetItem(keywords, PyTuple_GetItem(names, at), given[count + at]) < 0;
    }
    if (!failed) {
        result = PyObject_Call(python, values, keywords);
    }
    Py_XDECREF(values);
    Py_XDECREF(keywords);
    return result;
}

static PyObject *literal(PyObject *python, PyObject *const *given, Py_ssize_t count, PyObject *names) {
    PyObject *wanted[3] = {NULL, NULL, NULL};
    const char *parts[3] = {"", "", ""};
    size_t lengths[3] = {0, 0, 0};
    int is_usual = literal_arguments(given, count, names, wanted);
    for (int place = 0; is_usual && place < 3; place++) {
        if (wanted[place] != NULL && (parts[place] = utf8_of(wanted[place], &lengths[place])) == NULL) {
            is_usual = 0;
        }
    }
    if (!is_usual || (lengths[1] > 0 && !is_usual_language(parts[1], lengths[1]))) {
        return ask_python(python, given, count, names);
    }
    output to;
    int escapes = has_escapes(parts[0], lengths[0]);
    if (begin(&to, (escapes ? 3 : 1) * lengths[0] + lengths[1] + lengths[2] + 8) < 0) {
        return NULL;
    }
    put(&to, "\"", 1);
    if (escapes) {
        put_escaped(&to, parts[0], lengths[0]);
    } else {
        put(&to, parts[0], lengths[0]);
    }
    put(&to, "\"", 1);
    if (lengths[1] > 0) {
        put(&to, "@", 1);
        for (size_t at = 0; at < lengths[1]; at++) {
            char byte = parts[1][at];
            to.bytes[to.length++] = byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
        }
    } else if (lengths[2] > 0) {
        put(&to, "^^<", 3);
        put(&to, parts[2], lengths[2]);
        put(&to, ">", 1);
    }
    return finish(&to);
}

/* Characters of a path that every parser of IRIs accepts. */
static int is_plain(unsigned char byte) {
    return is_letter(byte) || is_digit(byte) || (byte != '\0' && strchr("_.~!$&'()*+,;=:@/-", byte) != NULL);
}

static size_t past_plain(const char *text, size_t at, size_t length, int with_marks) {
    while (at < length && (is_plain((unsigned char)text[at]) || (with_marks && text[at] == '?'))) {
        at++;
    }
    return at;
}

/* Whether an IRI has a name, perhaps a port, and only plain characters. `_PLAIN` in Python. */
static int is_plain_iri(const char *text, size_t length) {
    size_t at = length >= 7 && memcmp(text, "http://", 7) == 0 ? 7 : length >= 8 && memcmp(text, "https://", 8) == 0 ? 8 : 0;
    size_t host = at;
    while (at < length && (is_letter((unsigned char)text[at]) || is_digit((unsigned char)text[at]) || text[at] == '.' ||
                           text[at] == '-')) {
        at++;
    }
    if (host == 0 || at == host) {
        return 0;
    }
    if (at + 1 < length && text[at] == ':' && is_digit((unsigned char)text[at + 1])) {
        size_t port = ++at;
        while (at < length && at - port < 5 && is_digit((unsigned char)text[at])) {
            at++;
        }
    }
    if (at < length && text[at] == '/') {
        at = past_plain(text, at, length, 0);
    }
    if (at < length && text[at] == '?') {
        at = past_plain(text, at, length, 1);
    }
    if (at < length && text[at] == '#') {
        at = past_plain(text, at + 1, length, 1);
    }
    return at == length;
}

static PyObject *iri(PyObject *python, PyObject *value) {
    size_t length;
    const char *text = utf8_of(value, &length);
    output to;
    if (text == NULL || !is_plain_iri(text, length)) {
        return PyObject_CallFunctionObjArgs(python, value, NULL);
    }
    if (begin(&to, length + 2) < 0) {
        return NULL;
    }
    put(&to, "<", 1);
    put(&to, text, length);
    put(&to, ">", 1);
    return finish(&to);
}

/* How many bytes of white space begin here: what `str.split` takes for it, and the zero-width space. */
static size_t space_at(const unsigned char *text, size_t left) {
    unsigned char byte = text[0];
    if (byte < 0x80) {
        return byte == ' ' || (byte >= 0x09 && byte <= 0x0D) || (byte >= 0x1C && byte <= 0x1F);
    }
    if (byte == 0xC2 && left >= 2) {
        return text[1] == 0x85 || text[1] == 0xA0 ? 2 : 0;
    }
    if (left < 3 || (byte != 0xE1 && byte != 0xE2 && byte != 0xE3)) {
        return 0;
    }
    uint32_t code = (uint32_t)((byte & 0x0F) << 12 | (text[1] & 0x3F) << 6 | (text[2] & 0x3F));
    return code == 0x1680 || (code >= 0x2000 && code <= 0x200B) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
                   code == 0x205F || code == 0x3000
               ? 3
               : 0;
}

/* How many bytes from the start are folded: words, and single blanks between them. */
static size_t folded_bytes(const unsigned char *text, size_t length) {
    int was_space = 1;
    size_t at = 0;
    for (; at < length; at++) {
        unsigned char byte = text[at];
        if (byte > ' ' && byte < 0x80) {
            was_space = 0;
        } else if (byte == ' ') {
            if (was_space) {
                return at;
            }
            was_space = 1;
        } else if (space_at(text + at, length - at) > 0) {
            return at;
        } else {
            was_space = 0;
        }
    }
    return was_space && length > 0 ? length - 1 : length;
}

static PyObject *fold(PyObject *python, PyObject *value) {
    size_t length;
    const unsigned char *text = (const unsigned char *)(PyUnicode_CheckExact(value) ? utf8_of(value, &length) : NULL);
    if (text == NULL) {
        return PyObject_CallFunctionObjArgs(python, value, NULL);
    }
    size_t at = folded_bytes(text, length);
    if (at == length) {
        return Py_NewRef(value);
    }
    output to;
    if (begin(&to, length) < 0) {
        return NULL;
    }
    put(&to, text, at);
    int was_space = to.length == 0 || to.bytes[to.length - 1] == ' ';
    while (at < length) {
        size_t space = space_at(text + at, length - at);
        if (space == 0) {
            to.bytes[to.length++] = (char)text[at++];
            was_space = 0;
            continue;
        }
        if (!was_space) {
            to.bytes[to.length++] = ' ';
            was_space = 1;
        }
        at += space;
    }
    to.length -= was_space && to.length > 0;
    return finish(&to);
}

static PyMethodDef LITERAL = {"literal", (PyCFunction)(void (*)(void))literal, METH_FASTCALL | METH_KEYWORDS, NULL};
static PyMethodDef IRI = {"iri", iri, METH_O, NULL};
static PyMethodDef FOLD = {"fold", fold, METH_O, NULL};

/* Each of these functions is bound to its implementation in Python, which it asks in rare cases. */
static PyObject *literal_with(PyObject *module, PyObject *python) {
    (void)module;
    return PyCFunction_New(&LITERAL, python);
}

static PyObject *iri_with(PyObject *module, PyObject *python) {
    (void)module;
    return PyCFunction_New(&IRI, python);
}

static PyObject *fold_with(PyObject *module, PyObject *python) {
    (void)module;
    return PyCFunction_New(&FOLD, python);
}

/* What a page states so far. */
typedef struct {
    PyObject_HEAD
    PyObject *triples;
    Py_ssize_t limit, room, each, long_size, overflow;
} statements;

static PyMemberDef statement_members[] = {
    {"_triples", T_OBJECT_EX, offsetof(statements, triples), READONLY, NULL},
    {"_limit", T_PYSSIZET, offsetof(statements, limit), READONLY, NULL},
    {"_room", T_PYSSIZET, offsetof(statements, room), 0, NULL},
    {"_each", T_PYSSIZET, offsetof(statements, each), READONLY, NULL},
    {"overflow", T_PYSSIZET, offsetof(statements, overflow), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *statements_add(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    statements *all = (statements *)self;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "a statement has a subject, a predicate and an object");
        return NULL;
    }
    Py_ssize_t size = all->each;
    for (int place = 0; place < 3; place++) {
        Py_ssize_t length = PyUnicode_GetLength(given[place]);
        if (length < 0) {
            return NULL;
        }
        size += length;
    }
    if (PyDict_Size(all->triples) >= all->limit || size > all->room) {
        all->overflow++;
        Py_RETURN_NONE;
    }
    PyObject *triple = PyTuple_Pack(3, given[0], given[1], given[2]);
    if (triple == NULL) {
        return NULL;
    }
    int takes = 1;
    if (size > all->long_size) {
        PyObject *answer = PyObject_CallMethod(self, "_takes", "(O)", triple);
        takes = answer != NULL ? PyObject_IsTrue(answer) : -1;
        Py_XDECREF(answer);
    }
    if (takes > 0) {
        all->room -= size;
        takes = PyDict_SetItem(all->triples, triple, Py_None);
    }
    Py_DECREF(triple);
    if (takes < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Terms that lines of a document have in common are one text: it is hashed once, and compared by its address. */
typedef struct {
    PyObject *term;
    const char *bytes;
    size_t length;
} shared_term;
#define SHARED_TERMS 64

static PyObject *shared(shared_term *slot, const char *bytes, size_t length) {
    if (slot->term == NULL || slot->length != length || memcmp(slot->bytes, bytes, length) != 0) {
        Py_XDECREF(slot->term);
        *slot = (shared_term){PyUnicode_FromStringAndSize(bytes, (Py_ssize_t)length), bytes, length};
    }
    return slot->term;
}

/* The slot of a predicate: names of one vocabulary mostly differ in length or in their last letters. */
static shared_term *predicate_slot(shared_term *known, const char *bytes, size_t length) {
    size_t key = length;
    for (size_t at = length > 6 ? length - 6 : 0; at < length; at++) {
        key = key * 31 + (unsigned char)bytes[at];
    }
    return &known[key % SHARED_TERMS];
}

/* Adds the statement of a line. -1 = an exception is set. */
static int add_line(PyObject *triples, shared_term *subject, shared_term *predicates, const char *line, size_t length) {
    const char *space = memchr(line, ' ', length);
    const char *name = space != NULL ? space + 1 : line + length;
    const char *after = memchr(name, ' ', length - (size_t)(name - line));
    if (after == NULL || line + length - after < 3) {
        PyErr_SetString(PyExc_ValueError, "not a line of N-Triples");
        return -1;
    }
    size_t width = (size_t)(after - name);
    PyObject *object = PyUnicode_FromStringAndSize(after + 1, (Py_ssize_t)(line + length - after - 3));
    PyObject *first = shared(subject, line, (size_t)(space - line));
    PyObject *second = shared(predicate_slot(predicates, name, width), name, width);
    PyObject *triple = object != NULL && first != NULL && second != NULL ? PyTuple_Pack(3, first, second, object) : NULL;
    int failed = triple != NULL ? PyDict_SetItem(triples, triple, Py_None) : -1;
    Py_XDECREF(triple);
    Py_XDECREF(object);
    return failed;
}

/* How many characters and lines a text has, as `split` counts lines, and how many characters the longest line has. */
static void measure(const char *text, size_t length, Py_ssize_t *characters, Py_ssize_t *lines, Py_ssize_t *longest) {
    Py_ssize_t start = 0;
    *characters = *longest = 0;
    *lines = 1;
    for (size_t at = 0; at < length; at++) {
        if (text[at] == '\n') {
            *longest = *characters - start > *longest ? *characters - start : *longest;
            start = *characters + 1;
            ++*lines;
        }
        *characters += (text[at] & 0xC0) != 0x80;
    }
    *longest = *characters - start > *longest ? *characters - start : *longest;
}

static PyObject *statements_add_lines(PyObject *self, PyObject *arguments) {
    statements *all = (statements *)self;
    PyObject *body;
    Py_ssize_t present, longest, size, characters, lines, widest;
    char *text;
    if (!PyArg_ParseTuple(arguments, "Snn", &body, &present, &longest) || PyBytes_AsStringAndSize(body, &text, &size) < 0) {
        return NULL;
    }
    measure(text, (size_t)size, &characters, &lines, &widest);
    characters += all->each * lines;
    if (present + lines > all->limit || characters > all->room || widest > longest) {
        Py_RETURN_FALSE;
    }
    all->room -= characters;
    shared_term subject = {0}, predicates[SHARED_TERMS] = {{0}};
    int failed = 0;
    for (const char *at = text, *end = text + size; !failed && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        if (stop > at) {
            failed = add_line(all->triples, &subject, predicates, at, (size_t)(stop - at)) < 0;
        }
        at = stop + 1;
    }
    Py_XDECREF(subject.term);
    for (int slot = 0; slot < SHARED_TERMS; slot++) {
        Py_XDECREF(predicates[slot].term);
    }
    return failed ? NULL : PyBool_FromLong(1);
}

static PyObject *statements_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)arguments;
    (void)keywords;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    statements *all = (statements *)allocate(type, 0);
    if (all != NULL && (all->triples = PyDict_New()) == NULL) {
        Py_DECREF(all);
        return NULL;
    }
    return (PyObject *)all;
}

static int statements_init(PyObject *self, PyObject *arguments, PyObject *keywords) {
    statements *all = (statements *)self;
    (void)keywords;
    return PyArg_ParseTuple(arguments, "nnnn", &all->limit, &all->room, &all->each, &all->long_size) ? 0 : -1;
}

static void statements_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(((statements *)self)->triples);
    release(self);
    Py_DECREF(type);
}

static PyMethodDef statement_methods[] = {
    {"add", (PyCFunction)(void (*)(void))statements_add, METH_FASTCALL, NULL},
    {"_add_lines", statements_add_lines, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot statement_slots[] = {
    {Py_tp_new, statements_new},         {Py_tp_init, statements_init},
    {Py_tp_dealloc, statements_dealloc}, {Py_tp_methods, statement_methods},
    {Py_tp_members, statement_members},  {0, NULL},
};
static PyType_Spec statement_spec = {
    "quadloom.documents.native.terms.Statements", sizeof(statements), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, statement_slots,
};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromSpec(&statement_spec);
    if (type == NULL) {
        return -1;
    }
    int failed = PyModule_AddObjectRef(module, "Statements", type);
    Py_DECREF(type);
    return failed;
}

static PyMethodDef methods[] = {
    {"literal_with", literal_with, METH_O, NULL},
    {"iri_with", iri_with, METH_O, NULL},
    {"fold_with", fold_with, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "quadloom.documents.native.terms", NULL, 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_terms(void) { return PyModuleDef_Init(&module); }
