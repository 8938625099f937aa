/* Joining the references of a page to its base by concatenation; see records.pyi. The implementation in Python and the reasons are in
 * quadloom.documents.syntaxes.iri. */
#include <string.h>

#include "records.h"

typedef struct {
    const char *at;
    size_t length;
} span;

/* What references are joined to. Without an origin only absolute ones can be. */
typedef struct {
    span origin, folder, page;
    PyObject *origins;
    size_t longest;
} base;

#define HIGHEST 16   /* folders up */
#define ORIGIN 200   /* bytes of one that is looked up */

static int is_plain(unsigned char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           (byte != 0 && strchr("/_~!$&()*+,;=:@.?%-", byte) != NULL);
}

static int has(span text, char sign) { return memchr(text.at, sign, text.length) != NULL; }

static int begins(span text, const char *with) {
    size_t length = strlen(with);
    return text.length >= length && memcmp(text.at, with, length) == 0;
}

static int has_dotted_segment(span text) {
    for (size_t at = 0; at + 1 < text.length; at++) {
        if (text.at[at] == '/' && text.at[at + 1] == '.') {
            return 1;
        }
    }
    return 0;
}

static int is_hex(char sign) {
    return (sign >= '0' && sign <= '9') || ((sign | 0x20) >= 'a' && (sign | 0x20) <= 'f');
}

/* Escapes are kept as they are, but %2e is a dot in disguise, and a percent sign that begins none is escaped itself. */
static int has_odd_escape(span text) {
    for (size_t at = 0; at < text.length; at++) {
        if (text.at[at] == '%' && (at + 2 >= text.length || !is_hex(text.at[at + 1]) || !is_hex(text.at[at + 2]) ||
                                   (text.at[at + 1] == '2' && (text.at[at + 2] | 0x20) == 'e'))) {
            return 1;
        }
    }
    return 0;
}

static span without(span text, size_t length) { return (span){text.at + length, text.length - length}; }

/* The folder so many levels above. Two dots at the root lead to the root again. */
static span above(const base *base, int levels) {
    span folder = base->folder;
    while (levels-- > 0) {
        size_t end = folder.length - 1;
        while (end > base->origin.length && folder.at[end - 1] != '/') {
            end--;
        }
        folder.length = end > base->origin.length ? end : base->origin.length + 1;
    }
    return folder;
}

static PyObject *joined(span head, span rest) {
    char stack[512];
    size_t length = head.length + rest.length;
    char *text = length <= sizeof(stack) ? stack : PyMem_Malloc(length);
    if (text == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(text, head.at, head.length);
    memcpy(text + head.length, rest.at, rest.length);
    PyObject *target = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
    if (text != stack) {
        PyMem_Free(text);
    }
    return target;
}

/* Whether the URL standard leaves this origin as it is; -1 = an exception is set. */
static int is_known_origin(const base *base, span text) {
    PyObject *origin = PyUnicode_FromStringAndSize(text.at, (Py_ssize_t)text.length);
    PyObject *plain = origin != NULL ? PyObject_GetItem(base->origins, origin) : NULL;
    const int known = plain == NULL ? -1 : plain == Py_True;
    Py_XDECREF(origin);
    Py_XDECREF(plain);
    return known;
}

/* The reference itself, with a slash behind a bare host, if the URL standard leaves its scheme and host as they are. */
static PyObject *whole(const base *base, span rest) {
    const char *slash = rest.length > 8 ? memchr(rest.at + 8, '/', rest.length - 8) : NULL;
    const size_t length = slash != NULL ? (size_t)(slash - rest.at) : rest.length;
    if (!begins(rest, "http") || rest.length < 8 || length > ORIGIN) {
        Py_RETURN_NONE;
    }
    const int known = is_known_origin(base, (span){rest.at, length});
    if (known < 0) {
        return NULL;
    }
    return known ? joined(rest, (span){"/", slash == NULL}) : Py_NewRef(Py_None);
}

/* As `whole`, for a reference without a scheme: it has that of the base. */
static PyObject *beside(const base *base, span rest) {
    char text[ORIGIN + 8];
    const char *colon = memchr(base->origin.at, ':', base->origin.length);
    const char *slash = rest.length > 2 ? memchr(rest.at + 2, '/', rest.length - 2) : NULL;
    const span scheme = {base->origin.at, colon != NULL ? (size_t)(colon - base->origin.at) + 1 : 0};
    const size_t length = scheme.length + (slash != NULL ? (size_t)(slash - rest.at) : rest.length);
    if (slash == NULL || scheme.length == 0 || length > ORIGIN) {
        Py_RETURN_NONE;
    }
    memcpy(text, scheme.at, scheme.length);
    memcpy(text + scheme.length, rest.at, length - scheme.length);
    const int known = is_known_origin(base, (span){text, length});
    if (known < 0) {
        return NULL;
    }
    return known ? joined(scheme, rest) : Py_NewRef(Py_None);
}

/* The target, None if concatenation is not proved to be right; NULL = an exception is set. */
static PyObject *target_of(const base *base, span rest) {
    const char *fragment = memchr(rest.at, '#', rest.length);
    rest.length = fragment != NULL ? (size_t)(fragment - rest.at) : rest.length;
    if (rest.length == 0 || rest.length > base->longest) {
        Py_RETURN_NONE;
    }
    for (size_t at = 0; at < rest.length; at++) {
        if (!is_plain((unsigned char)rest.at[at])) {
            Py_RETURN_NONE;
        }
    }
    if (has_odd_escape(rest)) {
        Py_RETURN_NONE;
    }
    const int is_dotted = rest.at[0] == '.';
    int up = 0;
    if (is_dotted) {
        rest = begins(rest, "./") ? without(rest, 2) : rest;
        for (; begins(rest, "../") && up < HIGHEST; up++) {
            rest = without(rest, 3);
        }
    }
    const char first = rest.length > 0 ? rest.at[0] : '\0';
    if (has_dotted_segment(rest) || (is_dotted && (first == '.' || first == '?' || has(rest, ':')))) {
        Py_RETURN_NONE;
    }
    if (!is_dotted && first != '/' && has(rest, ':')) {
        return whole(base, rest);
    }
    if (base->origin.length == 0) {
        Py_RETURN_NONE;
    }
    if (is_dotted) {
        return joined(above(base, up), rest);
    }
    if (first == '/') {
        return begins(rest, "//") ? beside(base, rest) : joined(base->origin, rest);
    }
    if (first == '?') {
        return base->page.length == 0 ? Py_NewRef(Py_None) : joined(base->page, rest);
    }
    return joined(base->folder, rest);
}

static int read_span(PyObject *text, span *into) {
    Py_ssize_t length;
    into->at = PyUnicode_AsUTF8AndSize(text, &length);
    into->length = into->at != NULL ? (size_t)length : 0;
    return into->at != NULL ? 0 : -1;
}

PyObject *join_all(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *references, *origin, *folder, *page;
    Py_ssize_t longest;
    base base;
    if (!PyArg_ParseTuple(arguments, "O!UUUO!n", &PyList_Type, &references, &origin, &folder, &page, &PyDict_Type,
                          &base.origins, &longest)) {
        return NULL;
    }
    if (read_span(origin, &base.origin) < 0 || read_span(folder, &base.folder) < 0 || read_span(page, &base.page) < 0) {
        return NULL;
    }
    if (longest < 0 || (base.origin.length > 0 && base.folder.length <= base.origin.length)) {
        PyErr_SetString(PyExc_ValueError, "the folder must begin with the origin and a slash");
        return NULL;
    }
    base.longest = (size_t)longest;
    Py_ssize_t count = PyList_Size(references);
    PyObject *targets = PyList_New(count);
    for (Py_ssize_t at = 0; targets != NULL && at < count; at++) {
        PyObject *reference = PyList_GetItem(references, at), *target;
        span text;
        if (reference == Py_None) {
            target = Py_NewRef(Py_None);
        } else if (read_span(reference, &text) < 0) {
            target = PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) ? (PyErr_Clear(), Py_NewRef(Py_None)) : NULL;
        } else {
            target = target_of(&base, text);
        }
        if (target == NULL) {
            Py_CLEAR(targets);
        } else {
            PyList_SetItem(targets, at, target);
        }
    }
    return targets;
}
