/* result.h: declarations that result.c (the type, cells) and result_arrays.c (whole columns) share. */
#ifndef EXT_RESULT_H
#define EXT_RESULT_H

#include "ext.h"

/* The library's result, with the profile that it needs; freed with the last reference, in any thread. */
struct core {
	struct handle *handle;
	ow_result *result;
	atomic_size_t refs;
};
void core_drop(void *core); /* arg: a struct core */

/* A column and the address of its values. */
struct column {
	ow_type type;
	const int64_t *ints;
	const double *reals;
	const struct ow_text *texts;
	const uint8_t *marks; /* marks of known values; NULL: all are known */
};

struct result {
	PyObject_HEAD struct core *core;
	uint32_t rows, column_count;
	struct column *columns;
};

/* Finds a column; NULL and an exception when it does not exist. */
const struct column *result_find(const struct result *self, PyObject *number);
/* The value of a cell, a new reference. */
PyObject *column_cell(const struct column *column, uint32_t row);

/* Methods in result_arrays.c. */
PyObject *result_column(PyObject *object, PyObject *number);
PyObject *result_values(PyObject *object, PyObject *number);
PyObject *result_fill(PyObject *object, PyObject *args);
PyObject *result_known(PyObject *object, PyObject *number);
PyObject *result_arrow_stream(PyObject *object, PyObject *none);
PyObject *result_arrow_schema(PyObject *object, PyObject *none);

#endif
