/*
 * result.c: the type _opwatch.Result: one ow_result, its cells as Python values, and what sinks write of it.
 * Immutable, so any number of threads may read it. The Python class opwatch.Result wraps it.
 */
#include "ext.h"

#include <string.h>

struct result {
	PyObject_HEAD struct handle *handle;
	ow_result *result;
	uint32_t rows, columns;
};

static PyObject *result_type;

static void result_dealloc(PyObject *object)
{
	struct result *self = (struct result *)object;
	PyTypeObject *type = Py_TYPE(object);

	WITHOUT_GIL(ow_result_free(self->result));
	handle_drop(self->handle);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

PyObject *result_wrap(struct handle *handle, ow_result *result)
{
	struct result *self = (struct result *)PyType_GenericAlloc((PyTypeObject *)result_type, 0);

	if (!self) {
		ow_result_free(result);
		return NULL;
	}
	self->result = result;
	self->handle = handle;
	handle_take(handle);
	WITHOUT_GIL(self->rows = ow_result_rows(result); self->columns = ow_result_columns(result));
	return (PyObject *)self;
}

/* ---- cells ---- */

static PyObject *cell(const ow_result *result, uint32_t row, uint32_t column, ow_type type)
{
	const char *text;
	size_t len;

	if (!ow_result_known(result, row, column))
		Py_RETURN_NONE;
	switch (type) {
	case OW_TYPE_INT:
		return PyLong_FromLongLong(ow_result_int(result, row, column));
	case OW_TYPE_REAL:
		return PyFloat_FromDouble(ow_result_real(result, row, column));
	case OW_TYPE_BOOL:
		return PyBool_FromLong(ow_result_int(result, row, column) != 0);
	default:
		text = ow_result_text(result, row, column, &len);
		return PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "replace");
	}
}

static bool in_range(Py_ssize_t index, uint32_t count, const char *what)
{
	if (index >= 0 && index < (Py_ssize_t)count)
		return true;
	PyErr_Format(PyExc_IndexError, "there is no %s %zd", what, index);
	return false;
}

/* row(index) -> tuple */
static PyObject *result_row(PyObject *object, PyObject *number)
{
	const struct result *self = (const struct result *)object;
	Py_ssize_t index = PyNumber_AsSsize_t(number, PyExc_IndexError);
	struct ow_column info;
	PyObject *row;

	if ((index == -1 && PyErr_Occurred()) || !in_range(index, self->rows, "row"))
		return NULL;
	row = PyTuple_New(self->columns);
	for (uint32_t i = 0; row && i < self->columns; i++) {
		PyObject *value = ow_result_column(self->result, i, &info)
					  ? cell(self->result, (uint32_t)index, i, info.type)
					  : NULL;

		if (!value || PyTuple_SetItem(row, i, value) != 0)
			Py_CLEAR(row);
	}
	return row;
}

/* column(index) -> list */
static PyObject *result_column(PyObject *object, PyObject *number)
{
	const struct result *self = (const struct result *)object;
	Py_ssize_t index = PyNumber_AsSsize_t(number, PyExc_IndexError);
	struct ow_column info;
	PyObject *values;

	if ((index == -1 && PyErr_Occurred()) || !in_range(index, self->columns, "column"))
		return NULL;
	if (!ow_result_column(self->result, (uint32_t)index, &info))
		return PyErr_NoMemory();
	values = PyList_New(self->rows);
	for (uint32_t i = 0; values && i < self->rows; i++) {
		PyObject *value = cell(self->result, i, (uint32_t)index, info.type);

		if (!value || PyList_SetItem(values, i, value) != 0)
			Py_CLEAR(values);
	}
	return values;
}

static PyObject *result_depths(PyObject *object, PyObject *none)
{
	const struct result *self = (const struct result *)object;
	PyObject *values = PyList_New(self->rows);

	(void)none;
	for (uint32_t i = 0; values && i < self->rows; i++) {
		PyObject *value = PyLong_FromUnsignedLong(ow_result_depth(self->result, i));

		if (!value || PyList_SetItem(values, i, value) != 0)
			Py_CLEAR(values);
	}
	return values;
}

/* ---- what it is ---- */

/* ((name, title, type, unit), …) */
static PyObject *result_schema(PyObject *object, PyObject *none)
{
	static const char *const types[] = { "int", "real", "text", "bool" };
	static const char *const units[] = { "", "ns", "us", "bytes", "count", "percent" };
	const struct result *self = (const struct result *)object;
	PyObject *schema = PyTuple_New(self->columns);
	struct ow_column info;

	(void)none;
	for (uint32_t i = 0; schema && i < self->columns; i++) {
		PyObject *column = NULL;

		if (ow_result_column(self->result, i, &info))
			column = Py_BuildValue("(ssss)", info.name, info.title, types[info.type],
					       units[info.unit]);
		if (!column || PyTuple_SetItem(schema, i, column) != 0)
			Py_CLEAR(schema);
	}
	return schema;
}

static PyObject *result_messages(PyObject *object, PyObject *none)
{
	const struct result *self = (const struct result *)object;
	PyObject *list = PyList_New(0);
	const char *text;

	(void)none;
	for (uint32_t i = 0; list && (text = ow_result_message(self->result, i)); i++) {
		PyObject *line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

		if (!line || PyList_Append(list, line) != 0)
			Py_CLEAR(list);
		Py_XDECREF(line);
	}
	return list;
}

static Py_ssize_t result_length(PyObject *object)
{
	return ((const struct result *)object)->rows;
}

/* ---- writing ---- */

static void set_lines(struct ow_write_options *options, struct sink_bytes *out);

static void add_line(void *arg, const char *line, size_t len)
{
	sink_bytes_write(arg, line, len);
	sink_bytes_write(arg, "\n", 1);
}

static void set_lines(struct ow_write_options *options, struct sink_bytes *out)
{
	options->message = add_line;
	options->line_arg = out;
}

/* write(sink, options, path or None) -> (bytes or None, bytes of messages) */
static PyObject *result_write(PyObject *object, PyObject *args)
{
	const struct result *self = (const struct result *)object;
	PyObject *keywords = NULL, *path = Py_None, *file = NULL, *keep = PyList_New(0);
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct sink_bytes out = { 0 }, lines = { 0 };
	struct ow_write_options options;
	const char *sink, *name = NULL;
	PyObject *made = NULL;
	ow_status status;

	ow_write_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "s|OO", &sink, &keywords, &path) ||
	    (path != Py_None && !PyUnicode_FSConverter(path, &file)) ||
	    !fields_fill(write_fields, &options, keywords, keep))
		goto out;
	set_lines(&options, &lines);
	if (file)
		name = PyBytes_AsString(file);
	WITHOUT_GIL(status = name ? ow_result_write_file(self->result, sink, &options, name, &err)
				  : ow_result_write(self->result, sink, &options, sink_bytes_write,
						    &out, &err));
	if (out.no_memory || lines.no_memory)
		PyErr_NoMemory();
	else if (status != OW_OK)
		raise_status(&err);
	else
		made = name ? Py_BuildValue("(Oy#)", Py_None, lines.bytes ? lines.bytes : "",
					    (Py_ssize_t)lines.len)
			    : Py_BuildValue("(y#y#)", out.bytes ? out.bytes : "",
					    (Py_ssize_t)out.len, lines.bytes ? lines.bytes : "",
					    (Py_ssize_t)lines.len);
	sink_bytes_free(&out);
	sink_bytes_free(&lines);
out:
	Py_XDECREF(file);
	Py_XDECREF(keep);
	return made;
}

/* ---- the type ---- */

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "results are made by the views of a profile");
	return NULL;
}

static PyMethodDef methods[] = {
	{ "row", result_row, METH_O, "row(index) -> tuple" },
	{ "column", result_column, METH_O, "column(index) -> list" },
	{ "depths", result_depths, METH_NOARGS, "Depth of every row." },
	{ "schema", result_schema, METH_NOARGS, "A tuple of (name, title, type, unit)." },
	{ "messages", result_messages, METH_NOARGS, "Remarks on how it came about." },
	{ "write", result_write, METH_VARARGS, "write(sink, options, path) -> (bytes, messages)" },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, (void *)result_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_new, (void *)refuse_new },
	{ Py_sq_length, (void *)result_length },
	{ 0, NULL },
};

static PyType_Spec spec = { "_opwatch.Result", sizeof(struct result), 0, Py_TPFLAGS_DEFAULT,
			    slots };

PyObject *result_type_add(PyObject *module)
{
	result_type = PyType_FromSpec(&spec);
	if (result_type)
		PyModule_AddObject(module, "Result", (Py_INCREF(result_type), result_type));
	return result_type;
}
