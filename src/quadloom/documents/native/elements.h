/* What the two Python types of this module share. */
#ifndef QUADLOOM_ELEMENTS_H
#define QUADLOOM_ELEMENTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "page.h"

typedef struct {
    PyObject_HEAD
    page page;
    PyObject *tree;
    PyObject **names; /* of attributes as Python strings, made when asked for */
} elements_object;

extern PyTypeObject *elements_type;
extern PyObject *tag_numbers; /* dict: name -> lexbor's number, given by `bind` */

PyObject *decoded(const unsigned char *text, size_t length);

/* The text of an element and all that it holds. */
PyObject *text_of(const page *page, int32_t number);

/* The number of an element, checked; -1 with an exception. */
int32_t number_of(const page *page, PyObject *object);

/* Calls `visit` with each number in a list or tuple, until it returns -1 with an exception. */
int each_number(const page *page, PyObject *numbers, int (*visit)(void *, int32_t), void *context);

/* Methods of Elements. */
PyObject *elements_named(PyObject *elements, PyObject *name);
PyObject *elements_having(PyObject *elements, PyObject *names);
PyObject *elements_carried(PyObject *elements, PyObject *names);
PyObject *elements_values(PyObject *elements, PyObject *const *args, Py_ssize_t count);
PyObject *elements_nesting(PyObject *elements, PyObject *numbers);
PyObject *elements_enclosing(PyObject *elements, PyObject *const *args, Py_ssize_t count);
PyObject *elements_words(PyObject *elements, PyObject *const *args, Py_ssize_t count);

/* main_text.c: functions of the module. */
PyObject *main_text_rules(PyObject *module, PyObject *arguments);
PyObject *main_text_marks(PyObject *module, PyObject *arguments);

/* Elements.view(root): the method, and its type, made once. */
PyObject *elements_view(PyObject *elements, PyObject *root);
PyTypeObject *make_view_type(void);

#endif
