/*
 * sql.c: the type _opwatch.Sql: one session of the library (ow_sql) over some profiles. One thread uses it at a
 * time; Ctrl-C ends a query. Named queries and exports, which need no session, are in tables.c. The Python side is in
 * _profile.py.
 */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

struct session {
	PyObject_HEAD ow_sql *sql; /* NULL: closed */
	struct run_handles runs;
	PyObject *keep;	    /* texts that the library uses */
	struct watch watch; /* of the query that runs; the library keeps its address */
	bool busy;
};

static PyObject *sql_type;

static bool keep_going(void *arg)
{
	return watch_progress(arg, "", 0, 1);
}

static void release(struct session *self)
{
	ow_sql *sql = self->sql;

	self->sql = NULL;
	WITHOUT_GIL(ow_sql_close(sql));
	runs_drop(&self->runs);
}

static void sql_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	release((struct session *)object);
	Py_XDECREF(((struct session *)object)->keep);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

static bool open_session(struct session *self, PyObject *list, PyObject *keywords, PyObject *keep)
{
	size_t count = (size_t)PyList_Size(list);
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_sql_options options;
	struct ow_run *runs;
	ow_status status;

	ow_sql_options_init(&options);
	runs = runs_take(list, &self->runs, keep);
	if (!runs || !fields_fill(sql_fields, &options, keywords, keep)) {
		free(runs);
		return false;
	}
	options.keep_going = keep_going;
	options.keep_going_arg = &self->watch;
	watch_init(&self->watch, NULL);
	WITHOUT_GIL(status = ow_sql_open(runs, count, &options, &self->sql, &err));
	free(runs);
	if (status != OW_OK && !watch_failed(&self->watch))
		raise_status(&err);
	return status == OW_OK;
}

/* open(list of (name, Profile), options) */
static PyObject *sql_open(PyObject *none, PyObject *args)
{
	PyObject *list, *keywords = NULL;
	struct session *self;

	(void)none;
	if (!PyArg_ParseTuple(args, "O!|O", &PyList_Type, &list, &keywords))
		return NULL;
	self = (struct session *)PyType_GenericAlloc((PyTypeObject *)sql_type, 0);
	if (!self)
		return NULL;
	self->keep = PyList_New(0);
	if (!self->keep || !open_session(self, list, keywords, self->keep))
		Py_CLEAR(self);
	return (PyObject *)self;
}

/* A str or number of Python as a parameter; texts live as long as `keep`. */
static bool param_value(struct ow_sql_param *param, PyObject *value, PyObject *keep)
{
	char *text;
	Py_ssize_t len;
	PyObject *bytes;
	bool good;

	if (value == Py_None) {
		param->is_null = true;
	} else if (PyBool_Check(value)) {
		param->type = OW_TYPE_BOOL;
		param->number = value == Py_True;
	} else if (PyLong_Check(value)) {
		param->type = OW_TYPE_INT;
		param->number = PyLong_AsLongLong(value);
	} else if (PyFloat_Check(value)) {
		param->type = OW_TYPE_REAL;
		param->real = PyFloat_AsDouble(value);
	} else if (PyUnicode_Check(value)) {
		bytes = PyUnicode_AsUTF8String(value);
		good = bytes && PyList_Append(keep, bytes) == 0 &&
		       PyBytes_AsStringAndSize(bytes, &text, &len) == 0;
		Py_XDECREF(bytes); /* the list has its own */
		if (!good)
			return false;
		param->type = OW_TYPE_TEXT;
		param->text = (struct ow_text){ text, (size_t)len };
	} else if (PyIndex_Check(value)) { /* such as numpy.int64 */
		PyObject *number = PyNumber_Index(value);

		param->type = OW_TYPE_INT;
		param->number = number ? PyLong_AsLongLong(number) : -1;
		Py_XDECREF(number);
	} else if (PyObject_HasAttrString(value, "__float__")) {
		PyObject *number = PyNumber_Float(value);

		param->type = OW_TYPE_REAL;
		param->real = number ? PyFloat_AsDouble(number) : -1;
		Py_XDECREF(number);
	} else {
		PyErr_Format(PyExc_TypeError,
			     "parameter %s: a str, int, float, bool or None is needed, not %R",
			     param->name, Py_TYPE(value));
	}
	return !PyErr_Occurred();
}

/* Values out of a list of (name, value). */
static struct ow_sql_param *take_params(PyObject *list, PyObject *keep)
{
	Py_ssize_t count = PyList_Size(list);
	struct ow_sql_param *params = calloc((size_t)count + 1, sizeof(*params));

	if (!params)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; params && i < count; i++) {
		PyObject *value;

		if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sO", &params[i].name, &value) ||
		    !param_value(&params[i], value, keep)) {
			free(params);
			return NULL;
		}
	}
	return params;
}

static ow_status run_query(struct session *self, const char *text,
			   const struct ow_sql_param *params, size_t count, ow_result **result,
			   struct ow_error *err)
{
	ow_status status;

	self->busy = true;
	watch_init(&self->watch, NULL);
	WITHOUT_GIL(status = ow_sql_query_with(self->sql, text, params, count, result, err));
	self->busy = false;
	return status;
}

/* query(text, [(name, value)]) -> Result */
static PyObject *sql_query(PyObject *object, PyObject *args)
{
	struct session *self = (struct session *)object;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *list, *keep = NULL;
	struct ow_sql_param *params;
	ow_result *result = NULL;
	const char *text;
	ow_status status;
	bool raised;

	if (!PyArg_ParseTuple(args, "sO!", &text, &PyList_Type, &list))
		return NULL;
	if (!self->sql || self->busy) {
		PyErr_SetString(self->sql ? PyExc_RuntimeError : PyExc_ValueError,
				self->sql ? "another thread uses this session"
					  : "the session is closed");
		return NULL;
	}
	keep = PyList_New(0);
	params = keep ? take_params(list, keep) : NULL;
	if (!params) {
		Py_XDECREF(keep);
		return NULL;
	}
	status = run_query(self, text, params, (size_t)PyList_Size(list), &result, &err);
	free(params);
	Py_DECREF(keep);
	raised = watch_failed(&self->watch);
	if (raised && result)
		ow_result_free(result);
	if (raised)
		return NULL;
	return status == OW_OK ? result_wrap(self->runs.handles[0], result) : raise_status(&err);
}

static PyObject *sql_close(PyObject *object, PyObject *none)
{
	(void)none;
	if (((struct session *)object)->busy) {
		PyErr_SetString(PyExc_RuntimeError, "another thread uses this session");
		return NULL;
	}
	release((struct session *)object);
	Py_RETURN_NONE;
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "sessions are made by Profile.sql");
	return NULL;
}

static PyMethodDef methods[] = {
	{ "open", sql_open, METH_VARARGS | METH_STATIC, "open([(name, Profile)], options)" },
	{ "query", sql_query, METH_VARARGS, "query(text, [(name, value)]) -> Result" },
	{ "close", sql_close, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, (void *)sql_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_new, (void *)refuse_new },
	{ 0, NULL },
};

static PyType_Spec spec = { "_opwatch.Sql", sizeof(struct session), 0, Py_TPFLAGS_DEFAULT, slots };

PyObject *sql_type_add(PyObject *module)
{
	sql_type = PyType_FromSpec(&spec);
	if (sql_type)
		PyModule_AddObject(module, "Sql", (Py_INCREF(sql_type), sql_type));
	return sql_type;
}
