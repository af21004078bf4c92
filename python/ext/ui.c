/*
 * ui.c: the type _opwatch.Ui: the web page of a profile (ow_ui), which is served as long as the object lives, and the
 * report as a file. The profile stays open until the page is closed. The Python side is in _profile.py.
 */
#include "ext.h"
#include "profile.h"

#include <opwatch/ui.h>

struct page {
	PyObject_HEAD ow_ui *ui; /* NULL: closed */
	struct handle *handle;
};

static PyObject *ui_type;

static void release(struct page *self)
{
	ow_ui *ui = self->ui;
	struct handle *handle = self->handle;

	self->ui = NULL;
	self->handle = NULL;
	WITHOUT_GIL({
		ow_ui_close(ui);
		handle_drop(handle);
	});
}

static void ui_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	release((struct page *)object);
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

/* open(profile, listen, port, source) */
static PyObject *ui_open(PyObject *none, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_ui_options options;
	struct handle *handle;
	struct page *self;
	PyObject *profile;
	ow_status status;
	unsigned port;

	(void)none;
	ow_ui_options_init(&options);
	if (!PyArg_ParseTuple(args, "OzIz", &profile, &options.listen, &port, &options.source_dir))
		return NULL;
	options.port = port;
	handle = profile_handle(profile);
	if (!handle)
		return NULL;
	self = (struct page *)PyType_GenericAlloc((PyTypeObject *)ui_type, 0);
	if (!self)
		return NULL;
	handle_take(handle);
	self->handle = handle;
	WITHOUT_GIL(status = ow_ui_open_profile(handle->profile, &options, &self->ui, &err));
	if (status == OW_OK)
		return (PyObject *)self;
	Py_DECREF(self);
	return raise_status(&err);
}

static PyObject *ui_close(PyObject *object, PyObject *none)
{
	(void)none;
	release((struct page *)object);
	Py_RETURN_NONE;
}

static PyObject *get_address(PyObject *object, void *none)
{
	const ow_ui *ui = ((struct page *)object)->ui;

	(void)none;
	return PyUnicode_FromString(ui ? ow_ui_address(ui) : "");
}

/* report(profile, path, max_bytes, title) */
PyObject *profile_report(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_report_options options;
	unsigned long long bytes;
	struct handle *handle;
	PyObject *path = NULL;
	ow_status status;

	ow_report_options_init(&options);
	if (!PyArg_ParseTuple(args, "O&Kz", PyUnicode_FSConverter, &path, &bytes, &options.title))
		return NULL;
	options.max_bytes = bytes;
	handle = profile_enter(object);
	if (!handle) {
		Py_DECREF(path);
		return NULL;
	}
	WITHOUT_GIL(status = ow_report_write_file(handle->profile, &options, PyBytes_AsString(path),
						  &err));
	Py_DECREF(path);
	if (profile_leave(handle, NULL, status, &err))
		return NULL;
	Py_RETURN_NONE;
}

/* Refuses the constructor: only open makes an object. */
static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "use opwatch.open(path).ui()");
	return NULL;
}

static PyMethodDef methods[] = {
	{ "open", ui_open, METH_VARARGS | METH_STATIC, "open(profile, listen, port, source)" },
	{ "close", ui_close, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef getters[] = {
	{ "address", get_address, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, (void *)ui_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, getters },
	{ Py_tp_new, (void *)refuse_new },
	{ 0, NULL },
};

static PyType_Spec spec = { "_opwatch.Ui", sizeof(struct page), 0, Py_TPFLAGS_DEFAULT, slots };

PyObject *ui_type_add(PyObject *module)
{
	ui_type = PyType_FromSpec(&spec);
	if (ui_type)
		PyModule_AddObject(module, "Ui", (Py_INCREF(ui_type), ui_type));
	return ui_type;
}
