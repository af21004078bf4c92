/*
 * module.c: the module _opwatch: its functions, its types, and the conversion of a status to an exception. It is
 * private to the package opwatch, whose __init__.py defines the public interface.
 */
#include "ext.h"

#include <stdlib.h>

/* Raises an exception; opwatch._errors.make(status, name, offset or None, text) chooses the class. */
PyObject *raise_status(const struct ow_error *err)
{
	PyObject *module, *error, *offset;

	if (err->status == OW_E_NO_MEMORY && !err->text[0])
		return PyErr_NoMemory();
	offset = err->offset == OW_NO_OFFSET
			 ? (Py_INCREF(Py_None), Py_None)
			 : PyLong_FromUnsignedLongLong((unsigned long long)err->offset);
	module = PyImport_ImportModule("opwatch._errors");
	error = module && offset
			? PyObject_CallMethod(module, "make", "isOy#", (int)err->status,
					      ow_status_name(err->status), offset, err->text,
					      (Py_ssize_t)strnlen(err->text, OW_ERROR_TEXT))
			: NULL;
	if (error)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	Py_XDECREF(error);
	Py_XDECREF(module);
	Py_XDECREF(offset);
	return NULL;
}

void handle_take(struct handle *handle)
{
	atomic_fetch_add(&handle->refs, 1);
}

void handle_drop(struct handle *handle)
{
	if (!handle || atomic_fetch_sub(&handle->refs, 1) != 1)
		return;
	ow_profile_free(handle->profile);
	free(handle);
}

typedef bool (*part_fn)(size_t index, struct ow_part_info *info);

static PyObject *parts(part_fn get)
{
	PyObject *list = PyList_New(0);
	struct ow_part_info info = { .size = sizeof(info) };

	for (size_t i = 0; list && get(i, &info); i++) {
		PyObject *part = Py_BuildValue("(sss)", info.name, info.summary,
					       info.detail ? info.detail : "");

		if (!part || PyList_Append(list, part) != 0)
			Py_CLEAR(list);
		Py_XDECREF(part);
	}
	return list;
}

static PyObject *views(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return parts(ow_view_info);
}

static PyObject *importers(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return parts(ow_importer_info);
}

static PyObject *sinks(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return parts(ow_sink_info);
}

static PyObject *rules(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return parts(ow_rule_info);
}

static PyObject *build_parts(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return parts(ow_build_part);
}

/* A dict {table: names} of the keyword arguments that each call takes. */
static PyObject *option_names(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return Py_BuildValue("{sNsNsNsNsNsNsNsNsNsN}", "open", field_names(open_fields), "view",
			     field_names(view_fields), "write", field_names(write_fields),
			     "timeline", field_names(timeline_fields), "merge",
			     field_names(merge_fields), "sql", field_names(sql_fields), "ask",
			     field_names(ask_fields), "export", field_names(export_fields), "hang",
			     field_names(hang_fields), "ranks", field_names(ranks_fields));
}

static PyMethodDef methods[] = {
	{ "views", views, METH_NOARGS, "Views: a list of (name, summary, kind)." },
	{ "importers", importers, METH_NOARGS, "Formats: a list of (name, summary, file names)." },
	{ "sinks", sinks, METH_NOARGS, "Outputs: a list of (name, summary, extension)." },
	{ "rules", rules, METH_NOARGS, "Advice rules: a list of (name, summary, checker)." },
	{ "build_parts", build_parts, METH_NOARGS,
	  "Optional parts: a list of (name, summary, '')." },
	{ "option_names", option_names, METH_NOARGS, "Names of the options of each call." },
	{ "merge", merge_files, METH_VARARGS,
	  "merge(paths, out, options, progress) -> (summary, messages)" },
	{ "diff", diff_profiles, METH_VARARGS,
	  "diff([(name, Profile)], runs of the base, [limit]) -> Result" },
	{ "hang", hang_files, METH_VARARGS, "hang(paths, options) -> Result" },
	{ "ranks", ranks_files, METH_VARARGS, "ranks(paths, options) -> Result" },
	{ "queries", list_queries, METH_VARARGS,
	  "queries(folders) -> [(name, title, text, [(parameter, type, default, text)])]" },
	{ "ask", ask_query, METH_VARARGS,
	  "ask([(name, Profile)], query, [\"name=value\"], folders, options) -> Result" },
	{ "export", export_tables, METH_VARARGS,
	  "export([(name, Profile)], folder, options, progress) -> summary" },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_opwatch",
	.m_doc = "libopwatch for the package opwatch; use that one.",
	.m_size = -1,
	.m_methods = methods,
};

static bool add_type(PyObject *type)
{
	Py_XDECREF(type);
	return type != NULL;
}

PyMODINIT_FUNC PyInit__opwatch(void);
PyMODINIT_FUNC PyInit__opwatch(void)
{
	PyObject *module = PyModule_Create(&definition);

	if (!module)
		return NULL;
	if (PyModule_AddStringConstant(module, "version", ow_version()) != 0 ||
	    !add_type(profile_type_add(module)) || !add_type(result_type_add(module)) ||
	    !add_type(recorder_type_add(module)) || !add_type(sql_type_add(module)) ||
	    !add_type(ui_type_add(module)))
		Py_CLEAR(module);
	return module;
}
