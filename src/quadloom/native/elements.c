/* quadloom.native.elements: the elements of a parsed page by number, and views of its text. See elements.pyi for what
 * the methods promise; quadloom.syntaxes.html.elements has their twins in Python and chooses between the two. */
#include "elements.h"

#include <string.h>

#include "library.h"

PyObject *tag_numbers;
static PyObject *attribute_names; /* dict: name -> the same name, one object for all pages */
static PyTypeObject *elements_type;

PyObject *decoded(const unsigned char *text, size_t length) {
    return PyUnicode_DecodeUTF8((const char *)text, (Py_ssize_t)length, "replace");
}

int32_t number_of(const page *page, PyObject *object) {
    long number = PyLong_AsLong(object);
    if (number == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (number < 0 || number >= page->element_count) {
        PyErr_SetString(PyExc_IndexError, "there is no element with this number");
        return -1;
    }
    return (int32_t)number;
}

static int append_number(PyObject *list, int32_t number) {
    PyObject *object = PyLong_FromLong(number);
    int failed = object == NULL || PyList_Append(list, object) < 0;
    Py_XDECREF(object);
    return failed ? -1 : 0;
}

int each_number(const page *page, PyObject *numbers, int (*visit)(void *, int32_t), void *context) {
    Py_ssize_t count = PySequence_Size(numbers);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *item = PySequence_GetItem(numbers, at);
        if (item == NULL) {
            return -1;
        }
        int32_t number = number_of(page, item);
        Py_DECREF(item);
        if (number < 0 || visit(context, number) < 0) {
            return -1;
        }
    }
    return count < 0 ? -1 : 0;
}

/* Elements */

static PyObject *elements_read(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "read(tree, address)");
        return NULL;
    }
    if (library.node_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "call bind first");
        return NULL;
    }
    void *root = PyLong_AsVoidPtr(args[1]);
    if (root == NULL && PyErr_Occurred()) {
        return NULL;
    }
    elements_object *self = PyObject_New(elements_object, elements_type);
    if (self == NULL) {
        return NULL;
    }
    memset(&self->page, 0, sizeof self->page);
    self->names = NULL;
    Py_INCREF(args[0]);
    self->tree = args[0];
    const char *problem = page_read(&self->page, root);
    if (problem != NULL) {
        PyErr_SetString(PyExc_ValueError, problem);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void elements_dealloc(PyObject *object) {
    elements_object *self = (elements_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->names != NULL) {
        for (int32_t at = 0; at < self->page.name_count; at++) {
            Py_XDECREF(self->names[at]);
        }
        PyMem_Free(self->names);
    }
    page_free(&self->page);
    Py_XDECREF(self->tree);
    PyObject_Free(object);
    Py_DECREF(type);
}

static Py_ssize_t elements_length(PyObject *object) { return ((elements_object *)object)->page.element_count; }

static PyObject *elements_tree(PyObject *object, void *closure) {
    (void)closure;
    PyObject *tree = ((elements_object *)object)->tree;
    Py_INCREF(tree);
    return tree;
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

static PyObject *elements_named(PyObject *object, PyObject *name) {
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
        for (int32_t at = 0; at < page->element_count; at++) {
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
        int is_prefix = length > 0 && text[length - 1] == ':';
        for (int32_t number = 0; number < page->name_count; number++) {
            const page_name *name = &page->names[number];
            if ((name->length == (size_t)length || (name->length > (size_t)length && is_prefix)) &&
                memcmp(name->text, text, (size_t)length) == 0) {
                wanted[number] = (unsigned char)(mark ? mark : at + 1);
                marked++;
            }
        }
        Py_DECREF(item);
    }
    return count < 0 ? -1 : marked;
}

static PyObject *elements_having(PyObject *object, PyObject *names) {
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

static PyObject *elements_tag(PyObject *object, PyObject *argument) {
    const page *page = &((elements_object *)object)->page;
    int32_t number = number_of(page, argument);
    if (number < 0) {
        return NULL;
    }
    size_t length = 0;
    const unsigned char *text = library.element_name(page->elements[number].node, &length);
    return decoded(text == NULL ? (const unsigned char *)"" : text, text == NULL ? 0 : length);
}

static PyObject *elements_parent(PyObject *object, PyObject *argument) {
    const page *page = &((elements_object *)object)->page;
    int32_t number = number_of(page, argument);
    return number < 0 ? NULL : PyLong_FromLong(page->elements[number].parent);
}

/* A borrowed reference. */
static PyObject *attribute_name(elements_object *self, int32_t number) {
    if (self->names == NULL) {
        self->names = PyMem_Calloc((size_t)self->page.name_count + 1, sizeof *self->names);
        if (self->names == NULL) {
            return PyErr_NoMemory();
        }
    }
    if (self->names[number] == NULL) {
        PyObject *name = decoded(self->page.names[number].text, self->page.names[number].length);
        PyObject *known = name == NULL ? NULL : PyDict_GetItemWithError(attribute_names, name);
        if (known != NULL) {
            Py_INCREF(known);
            Py_DECREF(name);
            name = known;
        } else if (PyErr_Occurred()) {
            Py_XDECREF(name);
            return NULL;
        }
        self->names[number] = name;
    }
    return self->names[number];
}

static PyObject *elements_attributes(PyObject *object, PyObject *argument) {
    elements_object *self = (elements_object *)object;
    const page *page = &self->page;
    int32_t number = number_of(page, argument);
    PyObject *found = number < 0 ? NULL : PyDict_New();
    if (found == NULL) {
        return NULL;
    }
    int32_t end = page->elements[number + 1].first_attribute;
    for (int32_t one = page->elements[number].first_attribute; one < end; one++) {
        const page_attribute *attribute = &page->attributes[one];
        PyObject *name = attribute_name(self, attribute->name);
        PyObject *value = NULL;
        if (name != NULL && attribute->value != NULL) {
            value = decoded(attribute->value, attribute->length);
        } else if (name != NULL) {
            Py_INCREF(Py_None);
            value = Py_None;
        }
        if (value == NULL || PyDict_SetItem(found, name, value) < 0) {
            Py_XDECREF(value);
            Py_DECREF(found);
            return NULL;
        }
        Py_DECREF(value);
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

static PyObject *elements_values(PyObject *object, PyObject *const *args, Py_ssize_t count) {
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

PyObject *text_of(const page *page, int32_t number) {
    size_t start = page->pieces[page->elements[number].first_piece].start;
    size_t end = page->pieces[page->elements[number].end_piece].start;
    return decoded(page->text == NULL ? (const unsigned char *)"" : page->text + start, end - start);
}

static PyObject *elements_text(PyObject *object, PyObject *argument) {
    const page *page = &((elements_object *)object)->page;
    int32_t number = number_of(page, argument);
    return number < 0 ? NULL : text_of(page, number);
}

typedef struct {
    const page *page;
    PyObject *into;
    long most;
} text_list;

/* The first `most` characters behind the white space at the beginning. */
static int add_text(void *context, int32_t number) {
    text_list *self = context;
    size_t start = self->page->pieces[self->page->elements[number].first_piece].start;
    size_t end = self->page->pieces[self->page->elements[number].end_piece].start;
    size_t space;
    while (start < end && (space = space_at(self->page->text + start, end - start)) > 0) {
        start += space;
    }
    if (end - start > (size_t)self->most) { /* it may still have no more characters than that */
        long left = self->most;
        for (size_t at = start; at < end; at++) {
            if ((self->page->text[at] & 0xC0) != 0x80 && left-- == 0) {
                end = at;
            }
        }
    }
    PyObject *text = start < end ? decoded(self->page->text + start, end - start) : PyUnicode_FromString("");
    int failed = text == NULL || PyList_Append(self->into, text) < 0;
    Py_XDECREF(text);
    return failed ? -1 : 0;
}

static PyObject *elements_texts(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    const page *page = &((elements_object *)object)->page;
    long most = count == 2 ? PyLong_AsLong(args[1]) : -1;
    if (most < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TypeError, "texts(numbers, most)");
        }
        return NULL;
    }
    text_list texts = {page, PyList_New(0), most};
    if (texts.into != NULL && each_number(page, args[0], add_text, &texts) < 0) {
        Py_CLEAR(texts.into);
    }
    return texts.into;
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

static PyObject *elements_nesting(PyObject *object, PyObject *numbers) {
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

static PyObject *elements_enclosing(PyObject *object, PyObject *const *args, Py_ssize_t count) {
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

/* Module */

static PyObject *bind(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 3 || !PyDict_Check(args[1]) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "bind(path, tag numbers, attribute names)");
        return NULL;
    }
    const char *path = PyUnicode_AsUTF8AndSize(args[0], NULL);
    if (path == NULL) {
        return NULL;
    }
    const char *missing = library_open(path);
    if (missing != NULL) {
        return PyErr_Format(PyExc_ImportError, "not found: %s", missing);
    }
    Py_INCREF(args[1]);
    Py_XDECREF(tag_numbers);
    tag_numbers = args[1];
    Py_INCREF(args[2]);
    Py_XDECREF(attribute_names);
    attribute_names = args[2];
    Py_RETURN_NONE;
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef elements_methods[] = {
    {"named", elements_named, METH_O, NULL},
    {"having", elements_having, METH_O, NULL},
    {"tag", elements_tag, METH_O, NULL},
    {"parent", elements_parent, METH_O, NULL},
    {"attributes", elements_attributes, METH_O, NULL},
    {"values", FAST(elements_values), METH_FASTCALL, NULL},
    {"text", elements_text, METH_O, NULL},
    {"texts", FAST(elements_texts), METH_FASTCALL, NULL},
    {"nesting", elements_nesting, METH_O, NULL},
    {"enclosing", FAST(elements_enclosing), METH_FASTCALL, NULL},
    {"view", elements_view, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef elements_properties[] = {
    {"tree", elements_tree, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot elements_slots[] = {
    {Py_tp_dealloc, elements_dealloc},
    {Py_tp_methods, elements_methods},
    {Py_tp_getset, elements_properties},
    {Py_sq_length, elements_length},
    {0, NULL},
};

static PyType_Spec elements_spec = {
    .name = "quadloom.native.elements.Elements",
    .basicsize = sizeof(elements_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = elements_slots,
};

static PyMethodDef functions[] = {
    {"bind", FAST(bind), METH_FASTCALL, NULL},
    {"read", FAST(elements_read), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "quadloom.native.elements", NULL, -1, functions,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_elements(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL) {
        return NULL;
    }
    elements_type = (PyTypeObject *)PyType_FromSpec(&elements_spec);
    PyTypeObject *view_type = elements_type == NULL ? NULL : make_view_type();
    if (view_type == NULL || PyModule_AddType(module, elements_type) < 0 || PyModule_AddType(module, view_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
