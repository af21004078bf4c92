/*
 * sql.c: the type _opwatch.Sql: one session of the library (ow_sql) over some profiles. One thread uses it at a time;
 * Ctrl-C ends a query. Named queries and exports, which need no session, are in tables.c. The Python side is in
 * _profile.py.
 */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

struct session {
	PyObject_HEAD ow_sql *sql; /* NULL: closed */
	struct run_handles runs;
	PyObject *keep;	    /* owns texts that the library uses */
	struct watch watch; /* state of the running query; the library keeps its address */
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

/* Points a value to the bytes of an object, which `keep` keeps alive. */
static bool value_bytes(struct ow_sql_value *to, PyObject *bytes, PyObject *keep)
{
	char *text;
	Py_ssize_t len;

	if (!bytes || PyList_Append(keep, bytes) != 0 ||
	    PyBytes_AsStringAndSize(bytes, &text, &len) != 0)
		return false;
	to->text = (struct ow_text){ text, (size_t)len };
	return true;
}

static bool value_text(struct ow_sql_value *to, PyObject *text, PyObject *keep)
{
	PyObject *bytes = PyUnicode_AsUTF8String(text);
	bool good = value_bytes(to, bytes, keep);

	Py_XDECREF(bytes); /* the list holds its own reference */
	return good;
}

static void free_values(PyObject *capsule)
{
	free(PyCapsule_GetPointer(capsule, "values"));
}

/* An array of values, owned by `keep`. */
static struct ow_sql_value *new_values(Py_ssize_t count, PyObject *keep)
{
	struct ow_sql_value *values = calloc((size_t)count + 1, sizeof(*values));
	PyObject *capsule = values ? PyCapsule_New(values, "values", free_values) : NULL;

	if (!capsule || PyList_Append(keep, capsule) != 0) {
		if (!values)
			PyErr_NoMemory();
		else if (!capsule)
			free(values);
		values = NULL;
	}
	Py_XDECREF(capsule);
	return values;
}

static bool take_value(struct ow_sql_value *to, PyObject *value, PyObject *keep);

static bool take_items(struct ow_sql_value *to, PyObject *list, PyObject *keep)
{
	Py_ssize_t count = PyList_Size(list);
	struct ow_sql_value *items = count < 0 ? NULL : new_values(count, keep);

	for (Py_ssize_t i = 0; items && i < count; i++)
		if (!take_value(&items[i], PyList_GetItem(list, i), keep))
			return false;
	to->items = items;
	to->item_count = (size_t)count;
	return items != NULL;
}

/* Reads (kind, payload), which _profile.py makes from dates, decimals, bytes and lists. */
static bool take_pair(struct ow_sql_value *to, PyObject *pair, PyObject *keep)
{
	static const struct {
		const char *name;
		ow_sql_kind kind;
	} kinds[] = {
		{ "number", OW_SQL_NUMBER },
		{ "bytes", OW_SQL_BYTES },
		{ "date", OW_SQL_DATE },
		{ "time", OW_SQL_TIME },
		{ "timestamp", OW_SQL_TIMESTAMP },
		{ "timestamptz", OW_SQL_TIMESTAMPTZ },
		{ "timestamp_ns", OW_SQL_TIMESTAMP_NS },
		{ "interval", OW_SQL_INTERVAL },
		{ "list", OW_SQL_LIST },
	};
	const char *name;
	PyObject *payload;
	size_t i = 0;

	if (!PyArg_ParseTuple(pair, "sO", &name, &payload))
		return false;
	while (i < sizeof(kinds) / sizeof(*kinds) && strcmp(kinds[i].name, name) != 0)
		i++;
	if (i == sizeof(kinds) / sizeof(*kinds)) {
		PyErr_Format(PyExc_TypeError, "unknown kind of value '%s'", name);
		return false;
	}
	to->kind = kinds[i].kind;
	if (to->kind == OW_SQL_LIST)
		return take_items(to, payload, keep);
	if (to->kind == OW_SQL_NUMBER)
		return value_text(to, payload, keep);
	if (to->kind == OW_SQL_BYTES)
		return value_bytes(to, payload, keep);
	to->number = PyLong_AsLongLong(payload);
	return !PyErr_Occurred();
}

static bool take_value(struct ow_sql_value *to, PyObject *value, PyObject *keep)
{
	if (value == Py_None) {
		to->kind = OW_SQL_NULL;
	} else if (PyBool_Check(value)) {
		to->kind = OW_SQL_BOOL;
		to->number = value == Py_True;
	} else if (PyLong_Check(value)) {
		to->kind = OW_SQL_INT;
		to->number = PyLong_AsLongLong(value);
	} else if (PyFloat_Check(value)) {
		to->kind = OW_SQL_REAL;
		to->real = PyFloat_AsDouble(value);
	} else if (PyUnicode_Check(value)) {
		to->kind = OW_SQL_TEXT;
		return value_text(to, value, keep);
	} else {
		return take_pair(to, value, keep);
	}
	return !PyErr_Occurred();
}

/* Reads a list of (name, value); `keep` owns the memory. */
static struct ow_sql_value *take_values(PyObject *list, PyObject *keep)
{
	Py_ssize_t count = PyList_Size(list);
	struct ow_sql_value *values = new_values(count, keep);

	for (Py_ssize_t i = 0; values && i < count; i++) {
		PyObject *value;

		if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sO", &values[i].name, &value) ||
		    !take_value(&values[i], value, keep))
			return NULL;
	}
	return values;
}

static ow_status run_query(struct session *self, const char *text,
			   const struct ow_sql_value *values, size_t count, ow_result **result,
			   struct ow_error *err)
{
	ow_status status;

	self->busy = true;
	watch_init(&self->watch, NULL);
	WITHOUT_GIL(status = ow_sql_query_values(self->sql, text, values, count, result, err));
	self->busy = false;
	return status;
}

/* query(text, [(name, value)]) -> Result */
static PyObject *sql_query(PyObject *object, PyObject *args)
{
	struct session *self = (struct session *)object;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *list, *keep = NULL;
	struct ow_sql_value *values;
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
	values = keep ? take_values(list, keep) : NULL;
	if (!values) {
		Py_XDECREF(keep);
		return NULL;
	}
	status = run_query(self, text, values, (size_t)PyList_Size(list), &result, &err);
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
