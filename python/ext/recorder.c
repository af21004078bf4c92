/*
 * recorder.c: the type _opwatch.Recorder: one ow_recorder. Its calls take less time than releasing the GIL, so they
 * hold it; only opening and closing release it. The Python class opwatch.StepRecorder wraps it.
 */
#include "ext.h"

struct recorder {
	PyObject_HEAD ow_recorder *recorder; /* NULL: closed */
	PyObject *names;		     /* dict from name to number */
};

static PyObject *recorder_type;

/* open(path, first_step) */
static PyObject *recorder_open(PyObject *none, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_recorder_options options;
	struct recorder *self = NULL;
	long long first_step = 0;
	PyObject *path = NULL;
	ow_recorder *made;
	ow_status status;

	(void)none;
	if (!PyArg_ParseTuple(args, "O&|L", PyUnicode_FSConverter, &path, &first_step))
		return NULL;
	ow_recorder_options_init(&options);
	options.first_step = first_step;
	WITHOUT_GIL(status = ow_recorder_open(PyBytes_AsString(path), &options, &made, &err));
	Py_DECREF(path);
	if (status != OW_OK)
		return raise_status(&err);
	self = (struct recorder *)PyType_GenericAlloc((PyTypeObject *)recorder_type, 0);
	if (self)
		self->names = PyDict_New();
	if (!self || !self->names) {
		(void)!ow_recorder_close(made, &err);
		Py_XDECREF(self);
		return NULL;
	}
	self->recorder = made;
	return (PyObject *)self;
}

/* Closes the recorder. All callers hold the GIL, so no other thread is inside. */
static PyObject *recorder_close(PyObject *object, PyObject *none)
{
	struct recorder *self = (struct recorder *)object;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	ow_recorder *recorder = self->recorder;
	ow_status status;

	(void)none;
	self->recorder = NULL;
	WITHOUT_GIL(status = ow_recorder_close(recorder, &err));
	if (status != OW_OK)
		return raise_status(&err);
	Py_RETURN_NONE;
}

static void recorder_dealloc(PyObject *object)
{
	struct recorder *self = (struct recorder *)object;
	PyTypeObject *type = Py_TYPE(object);
	struct ow_error err;

	if (ow_recorder_close(self->recorder, &err) != OW_OK)
		err.status = OW_OK; /* a destructor has no caller to report to */
	Py_XDECREF(self->names);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

static ow_recorder *opened(PyObject *object)
{
	ow_recorder *recorder = ((struct recorder *)object)->recorder;

	if (!recorder)
		PyErr_SetString(PyExc_ValueError, "the recording is closed");
	return recorder;
}

static uint32_t new_name(struct recorder *self, PyObject *text)
{
	PyObject *bytes = PyUnicode_AsUTF8String(text), *number;
	uint32_t name;
	Py_ssize_t len;
	char *utf8;

	if (!bytes)
		return 0;
	if (PyBytes_AsStringAndSize(bytes, &utf8, &len) != 0) {
		Py_DECREF(bytes);
		return 0;
	}
	name = ow_recorder_name(self->recorder, utf8, (size_t)len);
	Py_DECREF(bytes);
	number = name ? PyLong_FromUnsignedLong(name) : NULL;
	if (number && PyDict_SetItem(self->names, text, number) != 0)
		name = 0;
	if (!name && !PyErr_Occurred() && ow_recorder_is_ours(self->recorder))
		PyErr_NoMemory();
	Py_XDECREF(number);
	return name;
}

/* Finds or adds the number of a name; false and an exception on failure. */
static bool name_of(struct recorder *self, PyObject *text, uint32_t *name)
{
	PyObject *number;

	if (!PyUnicode_Check(text)) {
		PyErr_Format(PyExc_TypeError, "a name is a str, not %R", Py_TYPE(text));
		return false;
	}
	number = PyDict_GetItemWithError(self->names, text);
	if (number)
		*name = (uint32_t)PyLong_AsUnsignedLong(number);
	else
		*name = PyErr_Occurred() ? 0 : new_name(self, text);
	return !PyErr_Occurred();
}

static PyObject *recorder_mark(PyObject *object, PyObject *text)
{
	struct recorder *self = (struct recorder *)object;
	uint32_t name;

	if (!opened(object) || !name_of(self, text, &name))
		return NULL;
	ow_recorder_mark(self->recorder, name);
	Py_RETURN_NONE;
}

/* slice(name, start, end) */
static PyObject *recorder_slice(PyObject *object, PyObject *args)
{
	struct recorder *self = (struct recorder *)object;
	long long start, end;
	PyObject *text;
	uint32_t name;

	if (!opened(object) || !PyArg_ParseTuple(args, "OLL", &text, &start, &end) ||
	    !name_of(self, text, &name))
		return NULL;
	ow_recorder_slice(self->recorder, name, start, end);
	Py_RETURN_NONE;
}

/* step(number or None, start or None) -> number */
static PyObject *recorder_step(PyObject *object, PyObject *args)
{
	struct recorder *self = (struct recorder *)object;
	PyObject *number = Py_None, *start = Py_None;
	long long n = INT64_MIN, ts = INT64_MIN;

	if (!opened(object) || !PyArg_ParseTuple(args, "|OO", &number, &start))
		return NULL;
	if (number != Py_None)
		n = PyLong_AsLongLong(number);
	if (start != Py_None && !PyErr_Occurred())
		ts = PyLong_AsLongLong(start);
	if (PyErr_Occurred())
		return NULL;
	return PyLong_FromLongLong(ow_recorder_step(self->recorder, n, ts));
}

static PyObject *recorder_end_step(PyObject *object, PyObject *drop)
{
	int truth = PyObject_IsTrue(drop);

	if (truth < 0 || !opened(object))
		return NULL;
	ow_recorder_end_step(((struct recorder *)object)->recorder, truth);
	Py_RETURN_NONE;
}

/* value(name, number) */
static PyObject *recorder_value(PyObject *object, PyObject *args)
{
	struct recorder *self = (struct recorder *)object;
	PyObject *text;
	uint32_t name;
	double value;

	if (!opened(object) || !PyArg_ParseTuple(args, "Od", &text, &value) ||
	    !name_of(self, text, &name))
		return NULL;
	ow_recorder_value(self->recorder, name, value);
	Py_RETURN_NONE;
}

static PyObject *recorder_name_thread(PyObject *object, PyObject *text)
{
	struct recorder *self = (struct recorder *)object;
	uint32_t name;

	if (!opened(object) || !name_of(self, text, &name))
		return NULL;
	ow_recorder_name_thread(self->recorder, name);
	Py_RETURN_NONE;
}

static PyObject *recorder_now(PyObject *object, PyObject *none)
{
	(void)none;
	return opened(object)
		       ? PyLong_FromLongLong(ow_recorder_now(((struct recorder *)object)->recorder))
		       : NULL;
}

static PyObject *get_closed(PyObject *object, void *none)
{
	(void)none;
	return PyBool_FromLong(((struct recorder *)object)->recorder == NULL);
}

static PyObject *get_active(PyObject *object, void *none)
{
	const ow_recorder *recorder = ((struct recorder *)object)->recorder;

	(void)none;
	return PyBool_FromLong(recorder && ow_recorder_is_ours(recorder));
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "recorders are made by opwatch.steps");
	return NULL;
}

static PyMethodDef methods[] = {
	{ "open", recorder_open, METH_VARARGS | METH_STATIC, "open(path, first_step)" },
	{ "close", recorder_close, METH_NOARGS, NULL },
	{ "mark", recorder_mark, METH_O, "mark(name)" },
	{ "slice", recorder_slice, METH_VARARGS, "slice(name, start, end)" },
	{ "step", recorder_step, METH_VARARGS, "step(number, start) -> number" },
	{ "end_step", recorder_end_step, METH_O, "end_step(drop)" },
	{ "value", recorder_value, METH_VARARGS, "value(name, number)" },
	{ "name_thread", recorder_name_thread, METH_O, "name_thread(name)" },
	{ "now", recorder_now, METH_NOARGS, "now() -> nanoseconds" },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef getters[] = {
	{ "closed", get_closed, NULL, NULL, NULL },
	{ "active", get_active, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, (void *)recorder_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, getters },
	{ Py_tp_new, (void *)refuse_new },
	{ 0, NULL },
};

static PyType_Spec spec = { "_opwatch.Recorder", sizeof(struct recorder), 0, Py_TPFLAGS_DEFAULT,
			    slots };

PyObject *recorder_type_add(PyObject *module)
{
	recorder_type = PyType_FromSpec(&spec);
	if (recorder_type)
		PyModule_AddObject(module, "Recorder", (Py_INCREF(recorder_type), recorder_type));
	return recorder_type;
}
