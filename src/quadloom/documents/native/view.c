/* TextView: the text below one element, parts of which may be left out. */
#include <stddef.h>
#include <string.h>

#include "elements.h"

#define INLINE_TAGS 1024 /* lexbor's own names have small numbers; those of other names are addresses */

typedef struct {
    PyObject_HEAD
    elements_object *elements;
    int32_t root;
    int changed; /* since `places` were computed */
    int counted; /* `visible` is up to date */
    int anything_left_out;
    unsigned char *emptied; /* by element: 1 = its contents are left out */
    unsigned char *places;  /* by element: BELOW, BESIDE or LEFT_OUT */
    int32_t *visible;       /* by piece: characters before it that are not left out */
} view_object;

enum { BELOW = 1, BESIDE = 2, LEFT_OUT = 3 };

static PyTypeObject *view_type;

PyObject *elements_view(PyObject *object, PyObject *argument) {
    elements_object *elements = (elements_object *)object;
    int32_t root = number_of(&elements->page, argument);
    view_object *self = root < 0 ? NULL : PyObject_New(view_object, view_type);
    if (self == NULL) {
        return NULL;
    }
    Py_INCREF(object);
    self->elements = elements;
    self->root = root;
    self->changed = 1;
    self->counted = 0;
    self->anything_left_out = 0;
    self->emptied = PyMem_Calloc((size_t)elements->page.element_count + 1, 1);
    self->places = PyMem_Calloc((size_t)elements->page.element_count + 1, 1);
    self->visible = PyMem_Calloc((size_t)elements->page.piece_count + 1, sizeof *self->visible);
    if (self->emptied == NULL || self->places == NULL || self->visible == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void view_dealloc(PyObject *object) {
    view_object *self = (view_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyMem_Free(self->emptied);
    PyMem_Free(self->places);
    PyMem_Free(self->visible);
    Py_XDECREF((PyObject *)self->elements);
    PyObject_Free(object);
    Py_DECREF(type);
}

static int empty_one(void *context, int32_t number) {
    view_object *self = context;
    self->emptied[number] = 1;
    self->changed = self->anything_left_out = 1;
    self->counted = 0;
    return 0;
}

static PyObject *view_leave_out(PyObject *object, PyObject *numbers) {
    view_object *self = (view_object *)object;
    if (each_number(&self->elements->page, numbers, empty_one, self) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Parents come before their children, so one pass in document order is enough. */
static void refresh(view_object *self) {
    const page *page = &self->elements->page;
    if (!self->changed) {
        return;
    }
    self->changed = 0;
    self->places[0] = LEFT_OUT;
    for (int32_t at = 1; at < page->element_count; at++) {
        int32_t parent = page->elements[at].parent;
        self->places[at] = self->emptied[parent] ? LEFT_OUT
                           : parent == self->root ? BELOW
                           : parent == 0          ? BESIDE
                                                  : self->places[parent];
    }
}

static size_t piece_size(const page *page, int32_t piece) {
    return characters_in(page->text + page->pieces[piece].start, page->pieces[piece + 1].start - page->pieces[piece].start);
}

static void count_characters(view_object *self) {
    const page *page = &self->elements->page;
    refresh(self);
    if (self->counted) {
        return;
    }
    self->counted = 1;
    size_t sum = 0;
    for (int32_t at = 0; at < page->piece_count; at++) {
        int32_t parent = page->pieces[at].parent;
        self->visible[at] = (int32_t)sum;
        if (!self->emptied[parent] && (parent == self->root || self->places[parent] == BELOW)) {
            sum += piece_size(page, at);
        }
    }
    self->visible[page->piece_count] = (int32_t)sum;
}

static PyObject *view_place(PyObject *object, PyObject *argument) {
    view_object *self = (view_object *)object;
    int32_t number = number_of(&self->elements->page, argument);
    if (number < 0) {
        return NULL;
    }
    refresh(self);
    return PyLong_FromLong(self->places[number]);
}

static PyObject *view_parent(PyObject *object, PyObject *argument) {
    view_object *self = (view_object *)object;
    const page *page = &self->elements->page;
    int32_t number = number_of(page, argument);
    if (number < 0) {
        return NULL;
    }
    int32_t parent = page->elements[number].parent;
    return PyLong_FromLong(parent >= 0 && self->emptied[parent] ? -1 : parent);
}

/* The pieces of text below an element that are not left out, one `next_piece` after the other. */
typedef struct {
    const view_object *view;
    int32_t event, end;
} piece_walk;

static int32_t next_piece(piece_walk *self) {
    const page *page = &self->view->elements->page;
    while (self->event < self->end) {
        int32_t event = page->events[self->event++];
        if ((event & 3) == EVENT_TEXT) {
            return event >> 2;
        }
        if ((event & 3) == EVENT_START && self->view->emptied[event >> 2]) {
            self->event = page->elements[event >> 2].end_event;
        }
    }
    return -1;
}

static PyObject *view_size(PyObject *object, PyObject *argument) {
    view_object *self = (view_object *)object;
    const page *page = &self->elements->page;
    int32_t number = number_of(page, argument);
    if (number < 0) {
        return NULL;
    }
    const page_element *element = &page->elements[number];
    count_characters(self);
    if (number == self->root || self->places[number] == BELOW) {
        return PyLong_FromLong(self->visible[element->end_piece] - self->visible[element->first_piece]);
    }
    size_t sum = 0;
    piece_walk pieces = {self, element->first_event, element->end_event};
    for (int32_t piece; (piece = next_piece(&pieces)) >= 0;) {
        sum += piece_size(page, piece);
    }
    return PyLong_FromSize_t(sum);
}

static PyObject *view_text(PyObject *object, PyObject *argument) {
    view_object *self = (view_object *)object;
    const page *page = &self->elements->page;
    int32_t number = number_of(page, argument);
    if (number < 0) {
        return NULL;
    }
    if (!self->anything_left_out) {
        return text_of(page, number);
    }
    const page_element *element = &page->elements[number];
    size_t room = page->pieces[element->end_piece].start - page->pieces[element->first_piece].start;
    unsigned char *text = PyMem_Malloc(room + 1);
    if (text == NULL) {
        return PyErr_NoMemory();
    }
    size_t length = 0;
    piece_walk pieces = {self, element->first_event, element->end_event};
    for (int32_t piece; (piece = next_piece(&pieces)) >= 0;) {
        size_t size = page->pieces[piece + 1].start - page->pieces[piece].start;
        memcpy(text + length, page->text + page->pieces[piece].start, size);
        length += size;
    }
    PyObject *result = decoded(text, length);
    PyMem_Free(text);
    return result;
}

/* Which tags of lexbor's own the names stand for; remembered, because callers pass the same tuple for every page. */
static const unsigned char *inline_tags(PyObject *names) {
    static PyObject *last;
    static unsigned char marked[INLINE_TAGS];
    if (names == last) {
        return marked;
    }
    unsigned char wanted[INLINE_TAGS] = {0};
    Py_ssize_t count = PySequence_Size(names);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *name = PySequence_GetItem(names, at);
        PyObject *number = name == NULL ? NULL : PyDict_GetItemWithError(tag_numbers, name);
        Py_XDECREF(name);
        if (number == NULL) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "a name that bind was not given");
            }
            return NULL;
        }
        size_t tag = PyLong_AsSize_t(number);
        if (tag < INLINE_TAGS) {
            wanted[tag] = 1;
        }
    }
    if (count < 0) {
        return NULL;
    }
    memcpy(marked, wanted, sizeof marked);
    Py_INCREF(names);
    Py_XDECREF(last);
    last = names;
    return marked;
}

/* White space, and the zero-width space, which parts words in scripts that write no other. */
static size_t blank_at(const unsigned char *text, size_t left) {
    size_t space = space_at(text, left);
    return space == 0 && left >= 3 && text[0] == 0xE2 && text[1] == 0x80 && text[2] == 0x8B ? 3 : space;
}

/* Bytes with which a blank can begin. */
static const unsigned char may_be_blank[256] = {
    [9] = 1,  [10] = 1, [11] = 1, [12] = 1, [13] = 1,    [28] = 1,   [29] = 1,
    [30] = 1, [31] = 1, [32] = 1, [0xC2] = 1, [0xE1] = 1, [0xE2] = 1, [0xE3] = 1,
};

/* Copies as long as it is certain that nothing is to be folded: ASCII with single blanks between words, eight bytes at a
 * time. Returns how many bytes; up to seven more are written behind them. */
static size_t copy_words(unsigned char *into, const unsigned char *text, const unsigned char *end) {
    const uint64_t ones = 0x0101010101010101u, highest = ones * 0x80;
    size_t done = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while ((size_t)(end - text) >= done + 9) {
        uint64_t here, next;
        memcpy(&here, text + done, 8);
        memcpy(&next, text + done + 1, 8);
        /* Highest bits of bytes that may need a look; the lowest such byte is right, those above it may be too many. */
        uint64_t blank = ((here ^ ones * 0x20) - ones) & ~(here ^ ones * 0x20);
        uint64_t special = here | ((here - ones * 0x20) & ~here) | (blank & (next | ((next - ones * 0x21) & ~next)));
        special &= highest;
        memcpy(into + done, &here, 8);
        if (special != 0) {
            return done + (size_t)__builtin_ctzll(special) / 8;
        }
        done += 8;
    }
#endif
    return done;
}

/* The innermost element around a piece of text, below the root or the root itself, that is not inline. */
static int32_t holder_of(const page *page, int32_t element, int32_t root, const unsigned char *is_inline) {
    while (element != root && page->elements[element].tag < INLINE_TAGS && is_inline[page->elements[element].tag]) {
        element = page->elements[element].parent;
    }
    return element;
}

/* One line of the text: characters, those of its links, and the element around its first word that is not inline. */
typedef struct {
    int32_t size, linked, holder;
} text_line;

static PyObject *as_list(const text_line *lines, size_t count, size_t offset) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t at = 0; list != NULL && at < count; at++) {
        int32_t value;
        memcpy(&value, (const char *)&lines[at] + offset, sizeof value);
        PyObject *number = PyLong_FromLong(value);
        if (number == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SetItem(list, (Py_ssize_t)at, number);
        }
    }
    return list;
}

static PyObject *view_blocks(PyObject *object, PyObject *names) {
    view_object *self = (view_object *)object;
    const page *page = &self->elements->page;
    const unsigned char *is_inline = inline_tags(names);
    PyObject *link_number = is_inline == NULL ? NULL : PyDict_GetItemString(tag_numbers, "a");
    if (link_number == NULL) {
        return NULL;
    }
    uintptr_t link_tag = PyLong_AsSize_t(link_number);
    const page_element *root = &page->elements[self->root];
    size_t room = page->pieces[root->end_piece].start - page->pieces[root->first_piece].start;
    /* A piece may begin with a line break that is no part of it; all other blanks replace one. Plus what `copy_words`
     * writes too much. */
    size_t most_lines = (size_t)(root->end_piece - root->first_piece) + 1; /* each begins in a piece of its own */
    unsigned char *folded = PyMem_Malloc(room + most_lines + 8);
    text_line *lines = PyMem_Malloc(most_lines * sizeof *lines);
    if (folded == NULL || lines == NULL) {
        PyMem_Free(folded);
        PyMem_Free(lines);
        return PyErr_NoMemory();
    }
    size_t length = 0, count = 0;
    int32_t links = 0; /* how many are open */
    unsigned char due = 0; /* what comes before the next word of the page: a line break, a blank or nothing */
    int32_t at = self->emptied[self->root] ? root->end_event : root->first_event + 1;
    while (at < root->end_event) {
        int32_t event = page->events[at++];
        int32_t number = event >> 2;
        if ((event & 3) != EVENT_TEXT) {
            uintptr_t tag = (event & 3) == EVENT_OTHER ? INLINE_TAGS : page->elements[number].tag;
            if (tag >= INLINE_TAGS || !is_inline[tag]) {
                due = '\n';
            }
            if ((event & 3) == EVENT_START && self->emptied[number]) {
                at = page->elements[number].end_event + 1;
            } else if (tag == link_tag) {
                links += (event & 3) == EVENT_START ? 1 : -1;
            }
            continue;
        }
        const unsigned char *text = page->text + page->pieces[number].start;
        const unsigned char *end = page->text + page->pieces[number + 1].start;
        while (text < end) {
            size_t blank = may_be_blank[*text] ? blank_at(text, (size_t)(end - text)) : 0;
            if (blank > 0) {
                due = due ? due : ' ';
                text += blank;
                continue;
            }
            size_t before = length;
            if (due && length > 0) {
                folded[length++] = due;
            }
            if (count == 0 || due == '\n') {
                lines[count++] = (text_line){.holder = holder_of(page, page->pieces[number].parent, self->root, is_inline)};
                before = length;
            }
            due = 0;
            folded[length++] = *text++;
            size_t words = copy_words(folded + length, text, end);
            text += words;
            length += words;
            int32_t characters = (int32_t)characters_in(folded + before, length - before);
            lines[count - 1].size += characters;
            lines[count - 1].linked += links > 0 ? characters : 0;
        }
    }
    PyObject *result = Py_BuildValue("(NNNN)", decoded(folded, length), as_list(lines, count, offsetof(text_line, size)),
                                     as_list(lines, count, offsetof(text_line, linked)),
                                     as_list(lines, count, offsetof(text_line, holder)));
    PyMem_Free(folded);
    PyMem_Free(lines);
    return result;
}

static PyMethodDef view_methods[] = {
    {"leave_out", view_leave_out, METH_O, NULL},
    {"place", view_place, METH_O, NULL},
    {"parent", view_parent, METH_O, NULL},
    {"size", view_size, METH_O, NULL},
    {"text", view_text, METH_O, NULL},
    {"blocks", view_blocks, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot view_slots[] = {
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_methods, view_methods},
    {0, NULL},
};

static PyType_Spec view_spec = {
    .name = "quadloom.documents.native.elements.TextView",
    .basicsize = sizeof(view_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = view_slots,
};

PyTypeObject *make_view_type(void) {
    view_type = (PyTypeObject *)PyType_FromSpec(&view_spec);
    return view_type;
}
