/* Sources of HTML and XML before a parser sees them; see texts.pyi. */
#ifndef QUADLOOM_MARKUP_H
#define QUADLOOM_MARKUP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *tag_bounds(PyObject *module, PyObject *body);
PyObject *is_tame(PyObject *module, PyObject *arguments);

#endif
