/* Questions about many elements at once. */
#include <string.h>

#include "elements.h"
#include "library.h"

static int append_number(PyObject *list, int32_t number) {
    PyObject *object = PyLong_FromLong(number);
    int failed = object == NULL || PyList_Append(list, object) < 0;
    Py_XDECREF(object);
    return failed ? -1 : 0;
}

/* Lower case as in HTML: ASCII only. */
static int is_named(const page_element *element, const char *name, size_t length) {
    size_t own = 0;
    const unsigned char *text = library.element_name(element->node, &own);
    if (text == NULL || own != length) {
        return 0;
    }
    for (size_t at = 0; at < length; at++) {
        unsigned char one = text[at];
        if ((one >= 'A' && one <= 'Z' ? one + 32 : one) != (unsigned char)name[at]) {
            return 0;
        }
    }
    return 1;
}

PyObject *elements_named(PyObject *object, PyObject *name) {
    const page *page = &((elements_object *)object)->page;
    PyObject *known = PyDict_GetItemWithError(tag_numbers, name);
    if (known == NULL && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *found = PyList_New(0);
    if (found == NULL) {
        return NULL;
    }
    if (known != NULL) {
        size_t tag = PyLong_AsSize_t(known);
        int is_there = tag >= TAG_FLAGS || page->has_tag[tag]; /* of most names that are asked for there is none */
        for (int32_t at = 0; is_there && at < page->element_count; at++) {
            if (page->elements[at].tag == tag && append_number(found, at) < 0) {
                Py_DECREF(found);
                return NULL;
            }
        }
        return found;
    }
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    for (int32_t at = 0; text != NULL && at < page->element_count; at++) {
        if (is_named(&page->elements[at], text, (size_t)length) && append_number(found, at) < 0) {
            text = NULL;
        }
    }
    if (text == NULL) {
        Py_DECREF(found);
        return NULL;
    }
    return found;
}

static int is_attribute(const page_name *name, const char *text, size_t length) {
    int is_prefix = length > 0 && text[length - 1] == ':';
    return (name->length == length || (name->length > length && is_prefix)) && memcmp(name->text, text, length) == 0;
}

/* Marks in `wanted` (one byte a name of the page) which names are in the tuple; how many, -1 with an exception. A name
 * that ends with a colon stands for all that begin so. */
static int mark_names(const page *page, PyObject *names, unsigned char *wanted, int mark) {
    int marked = 0;
    Py_ssize_t count = PySequence_Size(names);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *item = PySequence_GetItem(names, at);
        Py_ssize_t length;
        const char *text = item == NULL ? NULL : PyUnicode_AsUTF8AndSize(item, &length);
        if (text == NULL) {
            Py_XDECREF(item);
            return -1;
        }
        for (int32_t number = 0; number < page->name_count; number++) {
            if (is_attribute(&page->names[number], text, (size_t)length)) {
                wanted[number] = (unsigned char)(mark ? mark : at + 1);
                marked++;
            }
        }
        Py_DECREF(item);
    }
    return count < 0 ? -1 : marked;
}

PyObject *elements_carried(PyObject *object, PyObject *names) {
    const page *page = &((elements_object *)object)->page;
    Py_ssize_t count = PyTuple_Size(names);
    PyObject *found = count < 0 ? NULL : PyList_New(0);
    for (Py_ssize_t at = 0; found != NULL && at < count; at++) {
        PyObject *item = PyTuple_GetItem(names, at); /* borrowed */
        Py_ssize_t length;
        const char *text = PyUnicode_AsUTF8AndSize(item, &length);
        int32_t number = 0;
        while (text != NULL && number < page->name_count && !is_attribute(&page->names[number], text, (size_t)length)) {
            number++;
        }
        if (text == NULL || (number < page->name_count && PyList_Append(found, item) < 0)) {
            Py_CLEAR(found);
        }
    }
    return found;
}

PyObject *elements_having(PyObject *object, PyObject *names) {
    const page *page = &((elements_object *)object)->page;
    PyObject *found = PyList_New(0);
    unsigned char *wanted = found == NULL ? NULL : PyMem_Calloc((size_t)page->name_count + 1, 1);
    if (wanted == NULL) {
        Py_XDECREF(found);
        return PyErr_NoMemory();
    }
    int marked = mark_names(page, names, wanted, 1);
    for (int32_t at = 0; marked > 0 && at < page->element_count; at++) {
        int32_t end = page->elements[at + 1].first_attribute;
        for (int32_t one = page->elements[at].first_attribute; one < end; one++) {
            if (wanted[page->attributes[one].name]) {
                if (append_number(found, at) < 0) {
                    marked = -1;
                }
                break;
            }
        }
    }
    PyMem_Free(wanted);
    if (marked < 0) {
        Py_DECREF(found);
        return NULL;
    }
    return found;
}

typedef struct {
    const page *page;
    PyObject *into;
    const unsigned char *wanted; /* by name: its place in the row, from 1 */
    Py_ssize_t width;
} value_rows;

static int add_row(void *context, int32_t number) {
    value_rows *self = context;
    PyObject *row = PyTuple_New(self->width);
    if (row == NULL) {
        return -1;
    }
    uint64_t set = 0;
    int32_t end = self->page->elements[number + 1].first_attribute;
    for (int32_t one = self->page->elements[number].first_attribute; one < end; one++) {
        const page_attribute *attribute = &self->page->attributes[one];
        int place = self->wanted[attribute->name];
        if (place == 0 || (set >> (place - 1) & 1)) {
            continue;
        }
        PyObject *value = decoded(attribute->value == NULL ? (const unsigned char *)"" : attribute->value, attribute->length);
        if (value == NULL || PyTuple_SetItem(row, place - 1, value) < 0) {
            Py_DECREF(row);
            return -1;
        }
        set |= (uint64_t)1 << (place - 1);
    }
    for (Py_ssize_t place = 0; place < self->width; place++) {
        if (!(set >> place & 1)) {
            Py_INCREF(Py_None);
            if (PyTuple_SetItem(row, place, Py_None) < 0) {
                Py_DECREF(row);
                return -1;
            }
        }
    }
    int failed = PyList_Append(self->into, row);
    Py_DECREF(row);
    return failed;
}

PyObject *elements_values(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    const page *page = &((elements_object *)object)->page;
    Py_ssize_t width = count == 2 ? PySequence_Size(args[1]) : -1;
    if (width < 0 || width > 60) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "values(numbers, names): at most 60 names");
        }
        return NULL;
    }
    PyObject *found = PyList_New(0);
    unsigned char *wanted = found == NULL ? NULL : PyMem_Calloc((size_t)page->name_count + 1, 1);
    if (wanted == NULL) {
        Py_XDECREF(found);
        return PyErr_NoMemory();
    }
    value_rows rows = {page, found, wanted, width};
    if (mark_names(page, args[1], wanted, 0) < 0 || each_number(page, args[0], add_row, &rows) < 0) {
        Py_CLEAR(found);
    }
    PyMem_Free(wanted);
    return found;
}

typedef struct {
    const page *page;
    PyObject *into;
    int32_t *open; /* places in the list and numbers of the elements that hold the current one, in pairs */
    int32_t depth, room, place;
} nesting;

static int add_holder(void *context, int32_t number) {
    nesting *self = context;
    while (self->depth > 0 && self->page->elements[self->open[2 * self->depth - 1]].end <= number) {
        self->depth--;
    }
    if (self->depth == self->room) {
        int32_t room = self->room ? self->room * 2 : 64;
        int32_t *open = PyMem_Realloc(self->open, (size_t)room * 2 * sizeof *open);
        if (open == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->open = open;
        self->room = room;
    }
    int32_t holder = self->depth > 0 ? self->open[2 * self->depth - 2] : -1;
    self->open[2 * self->depth] = self->place++;
    self->open[2 * self->depth + 1] = number;
    self->depth++;
    return append_number(self->into, holder);
}

PyObject *elements_nesting(PyObject *object, PyObject *numbers) {
    const page *page = &((elements_object *)object)->page;
    nesting found = {.page = page, .into = PyList_New(0)};
    if (found.into != NULL && each_number(page, numbers, add_holder, &found) < 0) {
        Py_CLEAR(found.into);
    }
    PyMem_Free(found.open);
    return found.into;
}

typedef struct {
    const page *page;
    unsigned char *marks; /* by element: 1 = passed on the way up, 2 = wanted */
    const unsigned char *wanted;
} ancestry;

static int has_wanted(const ancestry *self, int32_t number) {
    int32_t end = self->page->elements[number + 1].first_attribute;
    for (int32_t one = self->page->elements[number].first_attribute; one < end; one++) {
        if (self->wanted[self->page->attributes[one].name]) {
            return 1;
        }
    }
    return 0;
}

static int mark_ancestors(void *context, int32_t number) {
    ancestry *self = context;
    self->marks[number] |= 2;
    for (int32_t at = number; at >= 0 && !(self->marks[at] & 1); at = self->page->elements[at].parent) {
        self->marks[at] |= (unsigned char)(1 | (at == 0 || has_wanted(self, at) ? 2 : 0));
    }
    return 0;
}

PyObject *elements_enclosing(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    const page *page = &((elements_object *)object)->page;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "enclosing(numbers, names)");
        return NULL;
    }
    PyObject *found = PyList_New(0);
    unsigned char *wanted = PyMem_Calloc((size_t)page->name_count + 1, 1);
    unsigned char *marks = PyMem_Calloc((size_t)page->element_count + 1, 1);
    ancestry marking = {page, marks, wanted};
    if (found == NULL || wanted == NULL || marks == NULL) {
        Py_CLEAR(found);
        PyErr_NoMemory();
    } else if (mark_names(page, args[1], wanted, 1) < 0 || each_number(page, args[0], mark_ancestors, &marking) < 0) {
        Py_CLEAR(found);
    }
    for (int32_t at = 0; found != NULL && at < page->element_count; at++) {
        if (marks[at] & 2 && append_number(found, at) < 0) {
            Py_CLEAR(found);
        }
    }
    PyMem_Free(wanted);
    PyMem_Free(marks);
    return found;
}

/* Whether one of the words is this one; `lengths` and `initials` say which can be. */
typedef struct {
    const char *text;
    size_t length;
    int found;
} wanted_word;

typedef struct {
    wanted_word *words;
    Py_ssize_t count;
    uint64_t lengths;            /* bit n: a word of n bytes is wanted; bit 63: longer ones */
    unsigned char initials[256]; /* by first byte */
} word_search;

static void look_up(word_search *self, const unsigned char *text, size_t length) {
    if (!self->initials[text[0]] || !(self->lengths >> (length < 63 ? length : 63) & 1)) {
        return;
    }
    for (Py_ssize_t at = 0; at < self->count; at++) {
        wanted_word *word = &self->words[at];
        if (word->length == length && memcmp(word->text, text, length) == 0) {
            word->found = 1;
        }
    }
}

static void look_up_all(word_search *self, const unsigned char *text, size_t length) {
    size_t at = 0;
    while (at < length) {
        size_t space = space_at(text + at, length - at);
        if (space > 0) {
            at += space;
            continue;
        }
        size_t begin = at;
        while (at < length && (text[at] > ' ' && text[at] < 0x7F ? 1 : space_at(text + at, length - at) == 0)) {
            at++;
        }
        look_up(self, text + begin, at - begin);
    }
}

static int add_wanted(word_search *self, PyObject *word) {
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(word, &length); /* lives as long as the word, which the caller holds */
    if (text == NULL) {
        return -1;
    }
    if (length > 0) {
        self->words[self->count++] = (wanted_word){text, (size_t)length, 0};
        self->lengths |= (uint64_t)1 << (length < 63 ? length : 63);
        self->initials[(unsigned char)text[0]] = 1;
    }
    return 0;
}

PyObject *elements_words(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    const page *page = &((elements_object *)object)->page;
    Py_ssize_t size = count == 2 ? PyTuple_Size(args[1]) : -1;
    if (size < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "words(name, wanted)");
        }
        return NULL;
    }
    word_search search = {.words = PyMem_Calloc((size_t)size + 1, sizeof(wanted_word))};
    unsigned char *wanted = PyMem_Calloc((size_t)page->name_count + 1, 1);
    PyObject *name = PyTuple_Pack(1, args[0]);
    PyObject *found = PyList_New(0);
    if (search.words == NULL || wanted == NULL || name == NULL || found == NULL) {
        Py_CLEAR(found);
        PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; found != NULL && at < size; at++) {
        if (add_wanted(&search, PyTuple_GetItem(args[1], at)) < 0) {
            Py_CLEAR(found);
        }
    }
    int marked = found == NULL ? -1 : mark_names(page, name, wanted, 1);
    for (int32_t at = 0; marked > 0 && at < page->attribute_count; at++) {
        if (wanted[page->attributes[at].name]) {
            look_up_all(&search, page->attributes[at].value, page->attributes[at].length);
        }
    }
    for (Py_ssize_t at = 0; marked > 0 && at < search.count; at++) {
        if (search.words[at].found) {
            PyObject *word = PyUnicode_FromStringAndSize(search.words[at].text, (Py_ssize_t)search.words[at].length);
            if (word == NULL || PyList_Append(found, word) < 0) {
                marked = -1;
            }
            Py_XDECREF(word);
        }
    }
    if (marked < 0) {
        Py_CLEAR(found);
    }
    PyMem_Free(search.words);
    PyMem_Free(wanted);
    Py_XDECREF(name);
    return found;
}
