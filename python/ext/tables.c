/*
 * tables.c: named queries (_opwatch.ask, .queries) and tables as files (_opwatch.export): calls over one or more
 * profiles that need no session. Each profile is a run with a name. The Python side is in _profile.py.
 */
#include "ext.h"

#include <stdlib.h>

static bool take_run(PyObject *pair, struct ow_run *run, struct run_handles *to, PyObject *keep)
{
	struct handle *handle;
	PyObject *profile, *bytes;
	const char *name;
	bool kept;

	if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "sO", &name, &profile))
		return false;
	bytes = PyBytes_FromString(name);
	kept = bytes && PyList_Append(keep, bytes) == 0;
	run->name = kept ? PyBytes_AsString(bytes) : NULL;
	Py_XDECREF(bytes);
	handle = kept ? profile_handle(profile) : NULL;
	if (!handle)
		return false;
	run->profile = handle->profile;
	handle_take(handle);
	to->handles[to->count++] = handle;
	return true;
}

struct ow_run *runs_take(PyObject *list, struct run_handles *to, PyObject *keep)
{
	Py_ssize_t count = PyList_Size(list);
	struct ow_run *runs = calloc((size_t)count + 1, sizeof(*runs));

	*to = (struct run_handles){ calloc((size_t)count + 1, sizeof(*to->handles)), 0 };
	if (!runs || !to->handles) {
		free(runs);
		PyErr_NoMemory();
		return NULL;
	}
	for (Py_ssize_t i = 0; i < count; i++)
		if (!take_run(PyList_GetItem(list, i), &runs[i], to, keep)) {
			free(runs);
			return NULL;
		}
	return runs;
}

void runs_drop(struct run_handles *runs)
{
	for (size_t i = 0; i < runs->count; i++)
		WITHOUT_GIL(handle_drop(runs->handles[i]));
	free(runs->handles);
	*runs = (struct run_handles){ NULL, 0 };
}

static ow_queries *open_queries(PyObject *folders, PyObject *keep)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	ow_queries *queries = NULL;
	struct ow_list dirs;
	ow_status status;

	if (!paths_fill(&dirs, folders, keep))
		return NULL;
	WITHOUT_GIL(status = ow_queries_open(&dirs, &queries, &err));
	if (status != OW_OK)
		raise_status(&err);
	return queries;
}

static PyObject *params_of(const ow_queries *queries, const char *name)
{
	struct ow_query_param param = { .size = sizeof(param) };
	PyObject *list = PyList_New(0);

	for (size_t i = 0; list && ow_queries_param(queries, name, i, &param); i++) {
		PyObject *item =
			Py_BuildValue("(ssss)", param.name, param.type, param.usual, param.doc);

		if (!item || PyList_Append(list, item) != 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

PyObject *list_queries(PyObject *self, PyObject *args)
{
	struct ow_query_info info = { .size = sizeof(info) };
	PyObject *folders, *keep = PyList_New(0), *list = NULL;
	ow_queries *queries;

	(void)self;
	if (!keep || !PyArg_ParseTuple(args, "O", &folders)) {
		Py_XDECREF(keep);
		return NULL;
	}
	queries = open_queries(folders, keep);
	Py_DECREF(keep);
	list = queries ? PyList_New(0) : NULL;
	for (size_t i = 0; list && ow_queries_at(queries, i, &info); i++) {
		PyObject *item = Py_BuildValue("(sssN)", info.name, info.title, info.doc,
					       params_of(queries, info.name));

		if (!item || PyList_Append(list, item) != 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	ow_queries_free(queries);
	return list;
}

static bool keep_going(void *arg)
{
	return watch_progress(arg, "", 0, 1);
}

static PyObject *ask(const ow_queries *queries, const char *name, const struct ow_run *runs,
		     const struct run_handles *handles, const struct ow_ask_options *given)
{
	struct ow_ask_options options = *given;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	ow_result *result = NULL;
	struct watch watch;
	ow_status status;
	bool raised;

	watch_init(&watch, NULL);
	options.keep_going = keep_going;
	options.keep_going_arg = &watch;
	WITHOUT_GIL(status = ow_ask(queries, name, runs, handles->count, &options, &result, &err));
	raised = watch_failed(&watch);
	if (raised && result)
		ow_result_free(result);
	if (raised)
		return NULL;
	return status == OW_OK ? result_wrap(handles->handles[0], result) : raise_status(&err);
}

PyObject *ask_query(PyObject *self, PyObject *args)
{
	PyObject *list, *params, *folders, *keywords = NULL, *made = NULL, *keep = PyList_New(0);
	struct run_handles handles = { NULL, 0 };
	struct ow_ask_options options;
	ow_queries *queries = NULL;
	struct ow_run *runs = NULL;
	const char *name;

	(void)self;
	ow_ask_options_init(&options);
	if (keep &&
	    PyArg_ParseTuple(args, "O!sOO|O", &PyList_Type, &list, &name, &params, &folders,
			     &keywords) &&
	    (runs = runs_take(list, &handles, keep)) &&
	    list_fill(&options.params, params, "params", keep) &&
	    fields_fill(ask_fields, &options, keywords, keep) &&
	    (queries = open_queries(folders, keep)))
		made = ask(queries, name, runs, &handles, &options);
	ow_queries_free(queries);
	runs_drop(&handles);
	free(runs);
	Py_XDECREF(keep);
	return made;
}

static PyObject *summary_dict(const struct ow_export_summary *s)
{
	return Py_BuildValue("{sKsKsKsK}", "tables", (unsigned long long)s->tables, "files",
			     (unsigned long long)s->files, "rows", (unsigned long long)s->rows,
			     "bytes", (unsigned long long)s->bytes);
}

PyObject *export_tables(PyObject *self, PyObject *args)
{
	PyObject *list, *dir = NULL, *keywords = NULL, *progress = NULL, *made = NULL;
	struct ow_export_summary summary = { .size = sizeof(summary) };
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct run_handles handles = { NULL, 0 };
	struct ow_export_options options;
	PyObject *keep = PyList_New(0);
	struct ow_run *runs = NULL;
	struct watch watch;
	ow_status status;

	(void)self;
	ow_export_options_init(&options);
	if (!keep ||
	    !PyArg_ParseTuple(args, "O!O&|OO", &PyList_Type, &list, PyUnicode_FSConverter, &dir,
			      &keywords, &progress) ||
	    !(runs = runs_take(list, &handles, keep)) ||
	    !fields_fill(export_fields, &options, keywords, keep))
		goto out;
	watch_init(&watch, progress);
	options.progress = watch_progress;
	options.progress_arg = &watch;
	WITHOUT_GIL(status = ow_export(runs, handles.count, &options, PyBytes_AsString(dir),
				       &summary, &err));
	if (!watch_failed(&watch))
		made = status == OW_OK ? summary_dict(&summary) : raise_status(&err);
out:
	runs_drop(&handles);
	free(runs);
	Py_XDECREF(dir);
	Py_XDECREF(keep);
	return made;
}
