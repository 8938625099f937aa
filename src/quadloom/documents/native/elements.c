/* quadloom.documents.native.elements: the elements of a parsed page by number, and views of its text. See elements.pyi for what
 * the methods promise; quadloom.documents.syntaxes.html.elements has the implementation in Python and chooses between the two. */
#include "elements.h"

#include <stdlib.h>
#include <string.h>

#include "library.h"

PyObject *tag_numbers;
static PyObject *attribute_names; /* dict: name -> the same name, one object for all pages */
PyTypeObject *elements_type;

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

static PyObject *elements_read(PyObject *module, PyObject *tree) {
    (void)module;
    if (library.node_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "call bind first");
        return NULL;
    }
    PyObject *node = PyObject_GetAttrString(tree, "root");
    PyObject *address = node == NULL ? NULL : PyObject_GetAttrString(node, "mem_id");
    void *root = address == NULL ? NULL : PyLong_AsVoidPtr(address);
    Py_XDECREF(node);
    Py_XDECREF(address);
    if (PyErr_Occurred()) {
        return NULL;
    }
    elements_object *self = PyObject_New(elements_object, elements_type);
    if (self == NULL) {
        return NULL;
    }
    memset(&self->page, 0, sizeof self->page);
    self->names = NULL;
    Py_INCREF(tree);
    self->tree = tree;
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

static PyObject *start_tags(PyObject *module, PyObject *source) {
    (void)module;
    char *text;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(source, &text, &length) < 0) {
        return NULL;
    }
    size_t count = 0;
    const char *end = text + length; /* Python keeps a zero byte there */
    for (const char *at = text; (at = memchr(at, '<', (size_t)(end - at))) != NULL; at++) {
        count += at[1] != '/';
    }
    return PyLong_FromSize_t(count);
}

/* Writes a text to `end` in lines, white space folded; parts between zero bytes are lines of their own. */
static unsigned char *fold(unsigned char *end, const unsigned char *start, const unsigned char *text, size_t length) {
    int begun = 0, space = 0; /* of the line; whether white space was passed since its last word */
    for (size_t at = 0; at < length;) {
        size_t blank = length - at >= 3 && memcmp(text + at, "\xE2\x80\x8B", 3) == 0 ? 3 : space_at(text + at, length - at);
        if (blank > 0) {
            space = 1;
            at += blank;
        } else if (text[at] == 0) {
            begun = space = 0;
            at++;
        } else {
            if (!begun && end > start) {
                *end++ = '\n';
            } else if (begun && space) {
                *end++ = ' ';
            }
            begun = 1;
            space = 0;
            *end++ = text[at++];
        }
    }
    return end;
}

static PyObject *folded_lines(PyObject *module, PyObject *texts) {
    (void)module;
    Py_ssize_t count = PyList_Check(texts) ? PyList_Size(texts) : (PyErr_SetString(PyExc_TypeError, "not a list"), -1);
    size_t room = 1;
    for (Py_ssize_t at = 0; at < count; at++) {
        Py_ssize_t length;
        if (PyUnicode_AsUTF8AndSize(PyList_GetItem(texts, at), &length) == NULL) {
            return NULL;
        }
        room += (size_t)length + 1;
    }
    unsigned char *lines = count < 0 ? NULL : malloc(room), *end = lines;
    if (lines == NULL) {
        return count < 0 ? NULL : PyErr_NoMemory();
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        Py_ssize_t length;
        const char *text = PyUnicode_AsUTF8AndSize(PyList_GetItem(texts, at), &length);
        end = fold(end, lines, (const unsigned char *)text, (size_t)length);
    }
    PyObject *joined = PyUnicode_FromStringAndSize((const char *)lines, end - lines);
    free(lines);
    return joined;
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef elements_methods[] = {
    {"named", elements_named, METH_O, NULL},
    {"having", elements_having, METH_O, NULL},
    {"carried", elements_carried, METH_O, NULL},
    {"tag", elements_tag, METH_O, NULL},
    {"parent", elements_parent, METH_O, NULL},
    {"attributes", elements_attributes, METH_O, NULL},
    {"values", FAST(elements_values), METH_FASTCALL, NULL},
    {"words", FAST(elements_words), METH_FASTCALL, NULL},
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
    .name = "quadloom.documents.native.elements.Elements",
    .basicsize = sizeof(elements_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = elements_slots,
};

static PyMethodDef functions[] = {
    {"bind", FAST(bind), METH_FASTCALL, NULL},
    {"read", elements_read, METH_O, NULL},
    {"start_tags", start_tags, METH_O, NULL},
    {"folded_lines", folded_lines, METH_O, NULL},
    {"main_text_rules", main_text_rules, METH_VARARGS, NULL},
    {"main_text_marks", main_text_marks, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "quadloom.documents.native.elements", NULL, -1, functions,
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
