/* Loops over what a page states and links to; see records.pyi. */
#ifndef QUADLOOM_RECORDS_H
#define QUADLOOM_RECORDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *join_all(PyObject *module, PyObject *arguments);

#endif
