/* Whether a source could make a parser slow: XML by bounds, HTML by following the tags as `_Reader` in
 * quadloom.documents.syntaxes.html.tree does, which has the reasons. One pass each, no recursion, nothing of the source is copied. */
#include "markup.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* See `tag_bounds_in_python` in quadloom.documents.syntaxes.guards. */
PyObject *tag_bounds(PyObject *module, PyObject *body) {
    (void)module;
    char *text;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(body, &text, &size) < 0) {
        return NULL;
    }
    const char *end = text + size, *at = memchr(text, '<', (size_t)size);
    Py_ssize_t depth = 0, deepest = 0, longest = 0;
    while (at != NULL) {
        const char *piece = at + 1;
        at = memchr(piece, '<', (size_t)(end - piece));
        size_t length = (size_t)((at != NULL ? at : end) - piece);
        longest = (Py_ssize_t)length > longest ? (Py_ssize_t)length : longest;
        char first = length > 0 ? *piece : ' ';
        if (first == '/') {
            depth--;
        } else if (first != '!' && first != '?') {
            const char *close = memchr(piece, '>', length);
            size_t left = close != NULL ? length - (size_t)(close - piece) - 1 : 0;
            if (close == NULL || close == piece || close[-1] != '/' || memchr(close + 1, '>', left) != NULL) {
                depth++;
                deepest = depth > deepest ? depth : deepest;
            }
        }
    }
    return Py_BuildValue("nn", deepest, longest);
}

/* What `rules` says about a name; see `_RULES` in quadloom.documents.syntaxes.html.tree. */
enum { UNCOUNTED = 1, ROOT = 2, RAW = 4, FORMATTING = 8, BARRIER = 16, SPECIAL = 32, FOREIGN = 64, PLAIN = 128 };

#define MOST_DEPTH 512
#define MOST_FORMATTING 64
#define MOST_NAMES 1024 /* different ones on a page; a power of two */

typedef struct {
    const unsigned char *at; /* NULL: the slot is free */
    size_t length;
    long flags;
} tag_name;

typedef struct {
    PyObject *rules;
    Py_ssize_t most_depth, most_attributes, most_formatting, most_roots;
    tag_name names[MOST_NAMES];
    int name_count;
    uint64_t short_names[256]; /* by hash: a short name as it is written, and its slot */
    uint16_t short_slots[256];
    uint16_t open[MOST_DEPTH], formatting[MOST_FORMATTING]; /* slots in `names` */
    Py_ssize_t open_count, formatting_count, roots;
} reader;

static unsigned char lower(unsigned char byte) { return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte; }

/* What a byte ends: 1 = it is white space, 2 = a name of an attribute, 4 = a value without quotes. */
static const unsigned char ends[256] = {
    ['\t'] = 7, ['\n'] = 7, ['\v'] = 7, ['\f'] = 7, ['\r'] = 7, [' '] = 7, ['/'] = 2, ['>'] = 6, ['='] = 2,
};
static int is_space(unsigned char byte) { return ends[byte] & 1; }

static int same_name(const tag_name *known, const unsigned char *name, size_t length) {
    if (known->length != length) {
        return 0;
    }
    for (size_t at = 0; at < length; at++) {
        if (lower(known->at[at]) != lower(name[at])) {
            return 0;
        }
    }
    return 1;
}

static long rule_of(PyObject *rules, const unsigned char *name, size_t length) {
    char small[32];
    if (length >= sizeof(small)) {
        return 0; /* longer than any name that has a rule */
    }
    for (size_t at = 0; at < length; at++) {
        small[at] = (char)lower(name[at]);
    }
    PyObject *key = PyBytes_FromStringAndSize(small, (Py_ssize_t)length);
    PyObject *found = key != NULL ? PyDict_GetItemWithError(rules, key) : NULL;
    long flags = found != NULL ? PyLong_AsLong(found) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(key);
    return flags;
}

/* The slot of a name. -1 = there are too many, -2 = an exception is set. */
static int slot_of(reader *self, const unsigned char *name, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t at = 0; at < length; at++) {
        hash = (hash ^ lower(name[at])) * 16777619u;
    }
    uint32_t slot = (hash ^ (hash >> 15)) & (MOST_NAMES - 1);
    while (self->names[slot].at != NULL) {
        if (same_name(&self->names[slot], name, length)) {
            return (int)slot;
        }
        slot = (slot + 1) & (MOST_NAMES - 1);
    }
    if (++self->name_count > MOST_NAMES / 2) {
        return -1;
    }
    long flags = rule_of(self->rules, name, length);
    if (flags < 0) {
        return -2;
    }
    self->names[slot] = (tag_name){name, length, flags};
    return (int)slot;
}

/* The same for a name of up to eight bytes, which is nearly every one, without a look at its letters. */
static int quick_slot_of(reader *self, const unsigned char *name, size_t length) {
    uint64_t written = 0;
    if (length > sizeof(written)) {
        return slot_of(self, name, length);
    }
    memcpy(&written, name, length);
    size_t place = (size_t)((written * 0x9E3779B97F4A7C15u) >> 56);
    if (self->short_names[place] != written) { /* no name is zero */
        int slot = slot_of(self, name, length);
        if (slot < 0) {
            return slot;
        }
        self->short_names[place] = written;
        self->short_slots[place] = (uint16_t)slot;
    }
    return self->short_slots[place];
}

/* The end of a comment that begins here with `<!--`. */
static const unsigned char *behind_comment(const unsigned char *at, const unsigned char *end) {
    at += 4;
    if (at < end && *at == '>') {
        return at + 1;
    }
    if (at + 1 < end && at[0] == '-' && at[1] == '>') {
        return at + 2;
    }
    while ((at = memchr(at, '-', (size_t)(end - at))) != NULL) {
        if (at + 2 < end && at[1] == '-' && at[2] == '>') {
            return at + 3;
        }
        if (at + 3 < end && at[1] == '-' && at[2] == '!' && at[3] == '>') {
            return at + 4;
        }
        at++;
    }
    return end;
}

/* The end of the attributes that begin here; counts them. A quote counts only behind an equals sign, and only if it is
 * closed, as in the standard and in `_ATTRIBUTES`. */
static const unsigned char *behind_attributes(const unsigned char *at, const unsigned char *end, Py_ssize_t *count) {
    for (;;) {
        while (at < end && (is_space(*at) || *at == '/')) {
            at++;
        }
        if (at == end || *at == '>') {
            return at;
        }
        ++*count;
        at += *at == '=';
        while (at < end && !(ends[*at] & 2)) {
            at++;
        }
        const unsigned char *sign = at;
        while (sign < end && is_space(*sign)) {
            sign++;
        }
        if (sign == end || *sign != '=') {
            continue;
        }
        at = sign + 1;
        while (at < end && is_space(*at)) {
            at++;
        }
        const unsigned char *quote = NULL;
        if (at < end && (*at == '"' || *at == '\'')) {
            quote = memchr(at + 1, *at, (size_t)(end - at - 1));
        }
        if (quote != NULL) {
            at = quote + 1;
            continue;
        }
        while (at < end && !(ends[*at] & 4)) {
            at++;
        }
    }
}

/* The next `</name`, whatever its case; the end if there is none. */
static const unsigned char *raw_end(const unsigned char *at, const unsigned char *end, const tag_name *name) {
    while ((at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        if ((size_t)(end - at) >= name->length + 2 && at[1] == '/' && same_name(name, at + 2, name->length)) {
            return at;
        }
        at++;
    }
    return end;
}

static void take_out(uint16_t *list, Py_ssize_t *count, int slot) {
    for (Py_ssize_t at = *count - 1; at >= 0; at--) {
        if (list[at] == slot) {
            memmove(&list[at], &list[at + 1], (size_t)(*count - at - 1) * sizeof(*list));
            --*count;
            return;
        }
    }
}

static void close_tag(reader *self, int slot) {
    long flags = self->names[slot].flags;
    if (flags & FORMATTING) {
        take_out(self->formatting, &self->formatting_count, slot);
        take_out(self->open, &self->open_count, slot);
        return;
    }
    long stops = flags & SPECIAL ? BARRIER : SPECIAL;
    for (Py_ssize_t at = self->open_count - 1; at >= 0; at--) {
        if (self->open[at] == slot) {
            self->open_count = at;
            return;
        }
        if (self->names[self->open[at]].flags & stops) {
            return;
        }
    }
}

static int holds_foreign(const reader *self, Py_ssize_t innermost) {
    Py_ssize_t last = self->open_count > innermost ? self->open_count - innermost : 0;
    for (Py_ssize_t at = self->open_count - 1; at >= last; at--) {
        if (self->names[self->open[at]].flags & FOREIGN) {
            return 1;
        }
    }
    return 0;
}

/* Follows a start tag. 0 = it goes too far. */
static int open_tag(reader *self, int slot, int closes_itself) {
    long flags = self->names[slot].flags;
    if (flags & UNCOUNTED) {
        return 1;
    }
    if (flags & ROOT) {
        return ++self->roots <= self->most_roots;
    }
    if (closes_itself && holds_foreign(self, 8)) {
        return 1;
    }
    if (self->open_count >= self->most_depth) {
        return 0;
    }
    if (flags & FORMATTING) {
        if (self->formatting_count >= self->most_formatting) {
            return 0;
        }
        self->formatting[self->formatting_count++] = (uint16_t)slot;
    }
    self->open[self->open_count++] = (uint16_t)slot;
    return 1;
}

/* 1 = no tag goes too far, 0 = one may, -1 = an exception is set. */
static int read_tags(reader *self, const unsigned char *at, const unsigned char *end) {
    while ((at = memchr(at, '<', (size_t)(end - at))) != NULL) {
        if (end - at >= 4 && memcmp(at, "<!--", 4) == 0) {
            at = behind_comment(at, end);
            continue;
        }
        const unsigned char *start = at, *name = at + 1;
        int closing = name < end && *name == '/';
        name += closing;
        if (name >= end || lower(*name) < 'a' || lower(*name) > 'z') {
            at++;
            continue;
        }
        const unsigned char *behind = name + 1;
        while (behind < end && !is_space(*behind) && *behind != '/' && *behind != '>' && *behind != 0) {
            behind++;
        }
        Py_ssize_t attributes = 0;
        at = behind_attributes(behind, end, &attributes);
        int closes_itself = at > behind && at[-1] == '/';
        at += at < end; /* the bracket */
        int slot = quick_slot_of(self, name, (size_t)(behind - name));
        if (slot < 0 || attributes > self->most_attributes) {
            return slot == -2 ? -1 : 0;
        }
        const tag_name *tag = &self->names[slot];
        if (closing) {
            close_tag(self, slot);
        } else if (tag->flags & PLAIN && at - start <= 4 * self->most_attributes && self->open_count < self->most_depth) {
            self->open[self->open_count++] = (uint16_t)slot;
        } else if (tag->flags & RAW && !holds_foreign(self, MOST_DEPTH)) {
            at = raw_end(at, end, tag);
        } else if (!open_tag(self, slot, closes_itself)) {
            return 0;
        }
    }
    return 1;
}

PyObject *is_tame(PyObject *module, PyObject *arguments) {
    (void)module;
    const char *text;
    Py_ssize_t size;
    reader *self = calloc(1, sizeof(reader));
    if (self == NULL) {
        return PyErr_NoMemory();
    }
    if (!PyArg_ParseTuple(arguments, "y#O!nnnn", &text, &size, &PyDict_Type, &self->rules, &self->most_depth,
                          &self->most_attributes, &self->most_formatting, &self->most_roots)) {
        free(self);
        return NULL;
    }
    int result = 0;
    if (self->most_depth <= MOST_DEPTH && self->most_formatting <= MOST_FORMATTING) {
        result = read_tags(self, (const unsigned char *)text, (const unsigned char *)text + size);
    }
    free(self);
    return result < 0 ? NULL : PyBool_FromLong(result);
}
