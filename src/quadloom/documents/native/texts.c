/* quadloom.documents.native.texts: questions about whole texts that Python answers in several passes, here in one. See texts.pyi
 * for what it promises. The implementations in Python are in quadloom.documents.syntaxes.charset and quadloom.documents.words.scripts; those of
 * what markup.c answers in quadloom.documents.syntaxes.guards and quadloom.documents.syntaxes.html.tree. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "markup.h"

/* How many of the bytes are ASCII before the first that is not. */
static size_t ascii_run(const unsigned char *text, size_t length) {
    size_t at = 0;
    for (uint64_t eight; at + sizeof(eight) <= length; at += sizeof(eight)) {
        memcpy(&eight, text + at, sizeof(eight));
        if (eight & 0x8080808080808080u) {
            break;
        }
    }
    while (at < length && text[at] < 0x80) {
        at++;
    }
    return at;
}

/* The length of the character that begins here, by table 3-7 of the Unicode standard; 0 = it is none. */
static size_t character(const unsigned char *text, size_t left) {
    unsigned char lead = text[0];
    size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (length == 0 || length > left) {
        return 0;
    }
    unsigned char lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (text[1] < lowest || text[1] > highest) {
        return 0;
    }
    for (size_t at = 2; at < length; at++) {
        if ((text[at] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

static PyObject *is_utf8(PyObject *module, PyObject *body) {
    (void)module;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(body, &bytes, &size) < 0) {
        return NULL;
    }
    const unsigned char *text = (const unsigned char *)bytes;
    size_t length = (size_t)size, at = 0;
    while ((at += ascii_run(text + at, length - at)) < length) {
        size_t step = character(text + at, length - at);
        if (step == 0) {
            Py_RETURN_FALSE;
        }
        at += step;
    }
    Py_RETURN_TRUE;
}

/* Whether a byte begins a character that may need to be rewritten: neither Latin up to U+02FF nor punctuation. */
static int is_special(unsigned char byte) { return byte >= 0xCC && byte != 0xE2; }

/* How many special characters a text has; -1 if it holds anything for which a rule looks beyond a run of foreign letters:
 * soft hyphens, joiners, combining marks, compatibility characters. */
static Py_ssize_t special_characters(const unsigned char *text, size_t length) {
    Py_ssize_t found = 0;
    for (size_t at = 0; (at += ascii_run(text + at, length - at)) < length; at++) {
        switch (text[at]) {
        case 0xC2:
            if (text[at + 1] == 0xAD) {
                return -1;
            }
            break;
        case 0xE2:
            if ((text[at + 1] == 0x80 && (text[at + 2] == 0x8C || text[at + 2] == 0x8D)) ||
                (text[at + 1] == 0x81 && text[at + 2] == 0xA0)) {
                return -1;
            }
            break;
        case 0xCC:
        case 0xCD:
        case 0xE1:
        case 0xEF:
        case 0xF0:
            return -1;
        default:
            found += is_special(text[at]);
        }
    }
    return found;
}

/* Text that is being written. */
typedef struct {
    char *bytes;
    size_t length, room;
} output;

static int make_room(output *to, size_t length) {
    if (length > to->room - to->length) {
        size_t room = 2 * to->room + length;
        char *larger = realloc(to->bytes, room);
        if (larger == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        to->bytes = larger;
        to->room = room;
    }
    return 0;
}

static int append(output *to, const void *bytes, size_t length) {
    if (make_room(to, length) < 0) {
        return -1;
    }
    memcpy(to->bytes + to->length, bytes, length);
    to->length += length;
    return 0;
}

/* A run that was rewritten before, and where it stands in the output: the names of a text occur again and again. */
typedef struct {
    const unsigned char *run;
    size_t length, start, end;
    int changed;
} known_run;
#define KNOWN_RUNS 256

static known_run *slot_of(known_run *known, const unsigned char *run, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t at = 0; at < length; at++) {
        hash = (hash ^ run[at]) * 16777619u;
    }
    return &known[(hash ^ (hash >> 16)) % KNOWN_RUNS];
}

/* Appends a run of letters as `rewrite` spells it. 1 = it is spelled differently, -1 = an exception is set. */
static int append_rewritten(output *to, known_run *known, const unsigned char *run, size_t length, PyObject *rewrite) {
    known_run *slot = slot_of(known, run, length);
    if (slot->run != NULL && slot->length == length && memcmp(slot->run, run, length) == 0) {
        size_t size = slot->end - slot->start;
        if (make_room(to, size) < 0) {
            return -1;
        }
        memcpy(to->bytes + to->length, to->bytes + slot->start, size);
        to->length += size;
        return slot->changed;
    }
    PyObject *old = PyUnicode_FromStringAndSize((const char *)run, (Py_ssize_t)length);
    PyObject *new = old != NULL ? PyObject_CallFunctionObjArgs(rewrite, old, NULL) : NULL;
    Py_ssize_t size = 0;
    const char *bytes = new != NULL ? PyUnicode_AsUTF8AndSize(new, &size) : NULL;
    int result = bytes == NULL || append(to, bytes, (size_t)size) < 0 ? -1 : 0;
    if (result == 0) {
        result = (size_t)size != length || memcmp(bytes, run, length) != 0;
        *slot = (known_run){run, length, to->length - (size_t)size, to->length, result};
    }
    Py_XDECREF(new);
    Py_XDECREF(old);
    return result;
}

static PyObject *with_runs_rewritten(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *original, *rewrite;
    Py_ssize_t sparse, size;
    if (!PyArg_ParseTuple(arguments, "UnO", &original, &sparse, &rewrite)) {
        return NULL;
    }
    const unsigned char *text = (const unsigned char *)PyUnicode_AsUTF8AndSize(original, &size);
    if (text == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            return NULL;
        }
        PyErr_Clear(); /* a lone surrogate */
        Py_RETURN_NONE;
    }
    size_t length = (size_t)size;
    Py_ssize_t special = special_characters(text, length);
    if (special < 0 || special > PyUnicode_GetLength(original) / sparse) {
        Py_RETURN_NONE;
    }
    if (special == 0) {
        return Py_NewRef(original);
    }
    output to = {malloc(length + 64), 0, length + 64};
    known_run known[KNOWN_RUNS] = {{0}};
    PyObject *result = NULL;
    int changed = 0;
    if (to.bytes == NULL) {
        return PyErr_NoMemory();
    }
    for (size_t at = 0; at < length;) {
        size_t plain = ascii_run(text + at, length - at);
        size_t end = at + plain;
        int foreign = 0;
        for (; end < length && text[end] >= 0x80; end++) {
            foreign |= is_special(text[end]);
        }
        if (append(&to, text + at, foreign ? plain : end - at) < 0) {
            goto done;
        }
        int step = foreign ? append_rewritten(&to, known, text + at + plain, end - at - plain, rewrite) : 0;
        if (step < 0) {
            goto done;
        }
        changed |= step;
        at = end;
    }
    result = changed ? PyBytes_FromStringAndSize(to.bytes, (Py_ssize_t)to.length) : Py_NewRef(original);
done:
    free(to.bytes);
    return result;
}

static PyMethodDef methods[] = {
    {"is_utf8", is_utf8, METH_O, NULL},
    {"is_tame", is_tame, METH_VARARGS, NULL},
    {"tag_bounds", tag_bounds, METH_O, NULL},
    {"with_runs_rewritten", with_runs_rewritten, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "quadloom.documents.native.texts", NULL, 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_texts(void) { return PyModuleDef_Init(&module); }
