/*
 * sql.c: the type _opwatch.Sql: one session of the library (ow_sql) over some profiles. One thread uses it at a
 * time; Ctrl-C ends a query. The Python side is in _sql.py.
 */
#include "ext.h"

#include <stdlib.h>

struct session {
	PyObject_HEAD ow_sql *sql; /* NULL: closed */
	struct handle **handles;
	Py_ssize_t handle_count;
	PyObject *keep;	    /* texts that the library uses */
	struct watch watch; /* of the query that runs; the library keeps its address */
	bool busy;
};

static PyObject *sql_type;

static bool progress(void *arg)
{
	return watch_progress(arg, "", 0, 1);
}

static void release(struct session *self)
{
	ow_sql *sql = self->sql;

	self->sql = NULL;
	WITHOUT_GIL(ow_sql_close(sql));
	for (Py_ssize_t i = 0; i < self->handle_count; i++)
		WITHOUT_GIL(handle_drop(self->handles[i]));
	free(self->handles);
	self->handles = NULL;
	self->handle_count = 0;
}

static void sql_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	release((struct session *)object);
	Py_XDECREF(((struct session *)object)->keep);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

/* Profiles and names out of a list of (name, Profile). */
static bool take_runs(struct session *self, PyObject *list, struct ow_run *runs, PyObject *keep)
{
	for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
		PyObject *pair = PyList_GetItem(list, i), *profile, *bytes;
		const char *name;
		struct handle *handle;

		if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "sO", &name, &profile))
			return false;
		bytes = PyBytes_FromString(name);
		if (!bytes || PyList_Append(keep, bytes) != 0) {
			Py_XDECREF(bytes);
			return false;
		}
		handle = profile_handle(profile);
		runs[i].name = PyBytes_AsString(bytes);
		Py_DECREF(bytes);
		if (!handle)
			return false;
		runs[i].profile = handle->profile;
		handle_take(handle);
		self->handles[self->handle_count++] = handle;
	}
	return true;
}

static bool open_session(struct session *self, PyObject *list, PyObject *keywords, PyObject *keep)
{
	size_t count = (size_t)PyList_Size(list);
	struct ow_run *runs = calloc(count + 1, sizeof(*runs));
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_sql_options options;
	ow_status status;

	self->handles = calloc(count + 1, sizeof(*self->handles));
	ow_sql_options_init(&options);
	if (!runs || !self->handles) {
		free(runs);
		return PyErr_NoMemory() != NULL;
	}
	if (!take_runs(self, list, runs, keep) ||
	    !fields_fill(sql_fields, &options, keywords, keep)) {
		free(runs);
		return false;
	}
	options.progress = progress;
	options.progress_arg = &self->watch;
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

/* query(text) -> Result */
static PyObject *sql_query(PyObject *object, PyObject *args)
{
	struct session *self = (struct session *)object;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	ow_result *result = NULL;
	const char *text;
	ow_status status;
	bool raised;

	if (!PyArg_ParseTuple(args, "s", &text))
		return NULL;
	if (!self->sql || self->busy) {
		PyErr_SetString(self->sql ? PyExc_RuntimeError : PyExc_ValueError,
				self->sql ? "another thread asks in this session"
					  : "the session is closed");
		return NULL;
	}
	self->busy = true;
	watch_init(&self->watch, NULL);
	WITHOUT_GIL(status = ow_sql_query(self->sql, text, &result, &err));
	self->busy = false;
	raised = watch_failed(&self->watch);
	if (raised && result)
		ow_result_free(result);
	if (raised)
		return NULL;
	return status == OW_OK ? result_wrap(self->handles[0], result) : raise_status(&err);
}

static PyObject *sql_close(PyObject *object, PyObject *none)
{
	(void)none;
	if (((struct session *)object)->busy) {
		PyErr_SetString(PyExc_RuntimeError, "another thread asks in this session");
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
	{ "query", sql_query, METH_VARARGS, "query(text) -> Result" },
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
