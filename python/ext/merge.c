/* merge.c: the function _opwatch.merge: merges many traces into one, without a profile. */
#include "ext.h"

#include <string.h>

struct lines {
	PyObject *list;
};

/* Receives a problem of a file; called without the GIL. */
static void keep_line(void *arg, const char *line, size_t len)
{
	PyGILState_STATE gil = PyGILState_Ensure();
	PyObject *text = PyUnicode_DecodeUTF8(line, (Py_ssize_t)len, "replace");

	if (!text || PyList_Append(((struct lines *)arg)->list, text) != 0)
		PyErr_Clear(); /* if this fails, only a remark is lost */
	Py_XDECREF(text);
	PyGILState_Release(gil);
}

static PyObject *summary_dict(const struct ow_merge_summary *s)
{
#define COUNT(name) #name, (unsigned long long)s->name
	return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsKsKsKsKsKsN}", COUNT(files),
			     COUNT(skipped_files), COUNT(events_in), COUNT(events_out),
			     COUNT(filtered), COUNT(added), COUNT(repaired), COUNT(others),
			     COUNT(damaged), COUNT(damaged_bytes), COUNT(truncated_files),
			     COUNT(untimed), COUNT(hidden), COUNT(bytes_in), COUNT(bytes_out),
			     "unrelated_clocks", PyBool_FromLong(s->unrelated_clocks));
#undef COUNT
}

static ow_status merge(const struct ow_list *paths, const struct ow_merge_options *options,
		       const char *out, struct ow_merge_summary *summary, struct ow_error *err)
{
	ow_status status;

	WITHOUT_GIL(status = ow_merge(paths->items, paths->count, options, out, summary, err));
	return status;
}

PyObject *merge_files(PyObject *self, PyObject *args)
{
	PyObject *names, *out = NULL, *keywords = NULL, *progress = NULL, *made = NULL;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_merge_summary summary = { .size = sizeof(summary) };
	struct lines lines = { PyList_New(0) };
	struct ow_merge_options options;
	PyObject *keep = PyList_New(0);
	struct ow_list paths;
	struct watch watch;
	ow_status status;

	(void)self;
	ow_merge_options_init(&options);
	if (!keep || !lines.list ||
	    !PyArg_ParseTuple(args, "OO&|OO", &names, PyUnicode_FSConverter, &out, &keywords,
			      &progress) ||
	    !paths_fill(&paths, names, keep) ||
	    !fields_fill(merge_fields, &options, keywords, keep))
		goto out;
	watch_init(&watch, progress);
	options.progress = watch_progress;
	options.progress_arg = &watch;
	options.message = keep_line;
	options.message_arg = &lines;
	status = merge(&paths, &options, PyBytes_AsString(out), &summary, &err);
	if (!watch_failed(&watch)) {
		if (status != OW_OK)
			raise_status(&err);
		else
			made = Py_BuildValue("(NO)", summary_dict(&summary), lines.list);
	}
out:
	Py_XDECREF(out);
	Py_XDECREF(lines.list);
	Py_XDECREF(keep);
	return made;
}
