/*
 * result.c: the type _opwatch.Result: one ow_result, its cells as Python values, and writing it through sinks. It is
 * immutable, so any number of threads may read it. The Python class opwatch.Result wraps it.
 */
#include "result.h"

#include <stdlib.h>
#include <string.h>

static PyObject *result_type;

void core_drop(void *arg)
{
	struct core *core = arg;

	if (!core || atomic_fetch_sub(&core->refs, 1) != 1)
		return;
	ow_result_free(core->result);
	handle_drop(core->handle);
	free(core);
}

static void result_dealloc(PyObject *object)
{
	struct result *self = (struct result *)object;
	PyTypeObject *type = Py_TYPE(object);

	free(self->columns);
	WITHOUT_GIL(core_drop(self->core));
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

static struct core *core_new(struct handle *handle, ow_result *result)
{
	struct core *core = calloc(1, sizeof(*core));

	if (!core) {
		ow_result_free(result);
		PyErr_NoMemory();
		return NULL;
	}
	if (handle)
		handle_take(handle);
	core->handle = handle;
	core->result = result;
	core->refs = 1;
	return core;
}

static bool learn_columns(struct result *self)
{
	const ow_result *result = self->core->result;
	struct ow_column info = { .size = sizeof(info) };

	self->rows = ow_result_rows(result);
	self->column_count = ow_result_columns(result);
	self->columns = calloc(self->column_count + 1, sizeof(*self->columns));
	if (!self->columns) {
		PyErr_NoMemory();
		return false;
	}
	for (uint32_t i = 0; i < self->column_count && ow_result_column(result, i, &info); i++)
		self->columns[i] =
			(struct column){ info.type, ow_result_ints(result, i),
					 ow_result_reals(result, i), ow_result_texts(result, i),
					 ow_result_marks(result, i) };
	return true;
}

PyObject *result_wrap(struct handle *handle, ow_result *result)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct core *core = core_new(handle, result);
	struct result *self;
	ow_status status;

	if (!core)
		return NULL;
	self = (struct result *)PyType_GenericAlloc((PyTypeObject *)result_type, 0);
	if (!self) {
		core_drop(core);
		return NULL;
	}
	self->core = core;
	WITHOUT_GIL(status = ow_result_fill(result,
					    /* filled now, before several threads read the result */
					    &err));
	if (status != OW_OK) {
		Py_DECREF(self);
		return raise_status(&err);
	}
	if (!learn_columns(self))
		Py_CLEAR(self);
	return (PyObject *)self;
}

static bool in_range(Py_ssize_t index, uint32_t count, const char *what)
{
	if (index >= 0 && index < (Py_ssize_t)count)
		return true;
	PyErr_Format(PyExc_IndexError, "there is no %s %zd", what, index);
	return false;
}

const struct column *result_find(const struct result *self, PyObject *number)
{
	Py_ssize_t index = PyNumber_AsSsize_t(number, PyExc_IndexError);

	if ((index == -1 && PyErr_Occurred()) || !in_range(index, self->column_count, "column"))
		return NULL;
	return &self->columns[index];
}

/* Converts digits: a whole number becomes an int of any size, a number with decimals a float. */
static PyObject *number_cell(const struct ow_text *text)
{
	PyObject *digits =
		PyUnicode_DecodeUTF8(text->ptr ? text->ptr : "", (Py_ssize_t)text->len, "replace");
	PyObject *number =
		digits ? PyObject_CallFunction((PyObject *)&PyLong_Type, "O", digits) : NULL;

	if (digits && !number) {
		PyErr_Clear();
		number = PyFloat_FromString(digits);
	}
	Py_XDECREF(digits);
	return number;
}

PyObject *column_cell(const struct column *column, uint32_t row)
{
	if (column->marks && !column->marks[row])
		Py_RETURN_NONE;
	switch (column->type) {
	case OW_TYPE_INT:
		return PyLong_FromLongLong(column->ints[row]);
	case OW_TYPE_REAL:
		return PyFloat_FromDouble(column->reals[row]);
	case OW_TYPE_BOOL:
		return PyBool_FromLong(column->ints[row] != 0);
	case OW_TYPE_NUMBER:
		return number_cell(&column->texts[row]);
	default:
		return PyUnicode_DecodeUTF8(column->texts[row].ptr ? column->texts[row].ptr : "",
					    (Py_ssize_t)column->texts[row].len, "replace");
	}
}

/* row(index) -> tuple */
static PyObject *result_row(PyObject *object, PyObject *number)
{
	const struct result *self = (const struct result *)object;
	Py_ssize_t index = PyNumber_AsSsize_t(number, PyExc_IndexError);
	PyObject *row;

	if ((index == -1 && PyErr_Occurred()) || !in_range(index, self->rows, "row"))
		return NULL;
	row = PyTuple_New(self->column_count);
	for (uint32_t i = 0; row && i < self->column_count; i++) {
		PyObject *value = column_cell(&self->columns[i], (uint32_t)index);

		if (!value || PyTuple_SetItem(row, i, value) != 0)
			Py_CLEAR(row);
	}
	return row;
}

/* show(row, column) -> str: the cell as the program prints it */
static PyObject *result_show(PyObject *object, PyObject *args)
{
	const struct result *self = (const struct result *)object;
	Py_ssize_t row, column;
	const struct ow_text *text;
	char buffer[64];

	if (!PyArg_ParseTuple(args, "nn", &row, &column) || !in_range(row, self->rows, "row") ||
	    !in_range(column, self->column_count, "column"))
		return NULL;
	text = self->columns[column].type == OW_TYPE_TEXT ? self->columns[column].texts : NULL;
	if (text)
		return column_cell(&self->columns[column], (uint32_t)row);
	ow_result_show(self->core->result, (uint32_t)row, (uint32_t)column, buffer, sizeof(buffer));
	return PyUnicode_FromString(buffer);
}

static PyObject *result_depths(PyObject *object, PyObject *none)
{
	const struct result *self = (const struct result *)object;
	PyObject *values = PyList_New(self->rows);

	(void)none;
	for (uint32_t i = 0; values && i < self->rows; i++) {
		PyObject *value = PyLong_FromUnsignedLong(ow_result_depth(self->core->result, i));

		if (!value || PyList_SetItem(values, i, value) != 0)
			Py_CLEAR(values);
	}
	return values;
}

/* schema() -> ((name, title, type, unit), …) */
static PyObject *result_schema(PyObject *object, PyObject *none)
{
	static const char *const types[] = { "int", "real", "text", "bool", "number" };
	static const char *const units[] = { "", "ns", "us", "bytes", "count", "percent" };
	const struct result *self = (const struct result *)object;
	PyObject *schema = PyTuple_New(self->column_count);
	struct ow_column info = { .size = sizeof(info) };

	(void)none;
	for (uint32_t i = 0; schema && i < self->column_count; i++) {
		PyObject *column = NULL;

		if (ow_result_column(self->core->result, i, &info))
			column = Py_BuildValue("(ssss)", info.name, info.title,
					       *info.logical ? info.logical : types[info.type],
					       units[info.unit]);
		if (!column || PyTuple_SetItem(schema, i, column) != 0)
			Py_CLEAR(schema);
	}
	return schema;
}

static PyObject *result_footer(PyObject *object, PyObject *none)
{
	const char *text = ow_result_footer(((const struct result *)object)->core->result);

	(void)none;
	if (!text)
		Py_RETURN_NONE;
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *result_messages(PyObject *object, PyObject *none)
{
	const struct result *self = (const struct result *)object;
	PyObject *list = PyList_New(0);
	const char *text;

	(void)none;
	for (uint32_t i = 0; list && (text = ow_result_message(self->core->result, i)); i++) {
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

static void add_line(void *arg, const char *line, size_t len)
{
	sink_bytes_write(arg, line, len);
	sink_bytes_write(arg, "\n", 1);
}

/* extras() -> dict of str to str */
static PyObject *result_extras(PyObject *object, PyObject *unused)
{
	const struct result *self = (const struct result *)object;
	PyObject *made = PyDict_New();
	const char *name;

	(void)unused;
	for (size_t i = 0; made && (name = ow_result_extra_name(self->core->result, i)); i++) {
		PyObject *text = PyUnicode_FromString(ow_result_extra(self->core->result, name));

		if (!text || PyDict_SetItemString(made, name, text) < 0)
			Py_CLEAR(made);
		Py_XDECREF(text);
	}
	return made;
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
	WITHOUT_GIL(
		status = name ? ow_result_write_file(self->core->result, sink, &options, name, &err)
			      : ow_result_write(self->core->result, sink, &options,
						sink_bytes_write, &out, &err));
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

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "results are made by the views of a profile");
	return NULL;
}

static PyMethodDef methods[] = {
	{ "row", result_row, METH_O, "row(index) -> tuple" },
	{ "column", result_column, METH_O, "column(index) -> list" },
	{ "show", result_show, METH_VARARGS, "show(row, column) -> str, for people" },
	{ "depths", result_depths, METH_NOARGS, "Depth of every row." },
	{ "schema", result_schema, METH_NOARGS, "A tuple of (name, title, type, unit)." },
	{ "messages", result_messages, METH_NOARGS, "Remarks on how the result was computed." },
	{ "footer", result_footer, METH_NOARGS, "The text below the rows, or None." },
	{ "extras", result_extras, METH_NOARGS, "A dict: values beside the rows, as JSON text." },
	{ "values", result_values, METH_O, "values(index) -> (address, type) or bytes" },
	{ "known", result_known, METH_O, "known(index) -> bytes or None" },
	{ "fill", result_fill, METH_VARARGS, "fill(index, address of an array of objects)" },
	{ "arrow_stream", result_arrow_stream, METH_NOARGS, "A PyCapsule of the Arrow stream." },
	{ "arrow_schema", result_arrow_schema, METH_NOARGS, "A PyCapsule of the Arrow schema." },
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
