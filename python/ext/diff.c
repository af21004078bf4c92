/*
 * diff.c: the function _opwatch.diff: compares two groups of profiles (ow_diff). Each profile is a run. The Python side
 * is in _diff.py.
 */
#include "ext.h"

#include <stdlib.h>

static ow_status compare(const struct ow_run *runs, size_t base, size_t count,
			 const struct ow_diff_options *options, ow_result **result,
			 struct ow_error *err)
{
	ow_profile **profiles = calloc(count + 1, sizeof(*profiles));
	ow_status status = OW_E_NO_MEMORY;

	err->status = OW_E_NO_MEMORY;
	for (size_t i = 0; profiles && i < count; i++)
		profiles[i] = runs[i].profile;
	if (profiles)
		status = ow_diff(profiles, base, profiles + base, count - base, options, result,
				 err);
	free(profiles);
	return status;
}

/* diff([("", Profile)], number of profiles that are the base, [limit]) -> Result */
PyObject *diff_profiles(PyObject *self, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *list, *limits, *keep = PyList_New(0), *made = NULL;
	struct run_handles handles = { NULL, 0 };
	struct ow_diff_options options;
	struct ow_run *runs = NULL;
	ow_result *result = NULL;
	Py_ssize_t base;
	ow_status status;

	(void)self;
	ow_diff_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "O!nO", &PyList_Type, &list, &base, &limits) ||
	    !list_fill(&options.fail_if, limits, "fail_if", keep))
		goto out;
	if (base < 0 || base > PyList_Size(list)) {
		PyErr_SetString(PyExc_ValueError, "the base has more runs than were given");
		goto out;
	}
	runs = runs_take(list, &handles, keep);
	if (!runs)
		goto out;
	WITHOUT_GIL(status = compare(runs, (size_t)base, handles.count, &options, &result, &err));
	if (status == OW_OK)
		made = result_wrap(handles.handles[0], result);
	else
		raise_status(&err);
out:
	free(runs);
	runs_drop(&handles);
	Py_XDECREF(keep);
	return made;
}
