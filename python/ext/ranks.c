/* ranks.c: the function _opwatch.ranks: compares the ranks of a job, from files, without a profile. */
#include "ext.h"

#include <opwatch/ranks.h>

PyObject *ranks_files(PyObject *self, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *names, *keywords = NULL, *keep = PyList_New(0), *made = NULL;
	struct ow_ranks_options options;
	ow_result *result = NULL;
	struct ow_list paths;
	ow_status status;

	(void)self;
	ow_ranks_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "O|O", &names, &keywords) ||
	    !paths_fill(&paths, names, keep) ||
	    !fields_fill(ranks_fields, &options, keywords, keep))
		goto out;
	WITHOUT_GIL(status = ow_ranks(paths.items, paths.count, &options, &result, &err));
	made = status == OW_OK ? result_wrap(NULL, result) : raise_status(&err);
out:
	Py_XDECREF(keep);
	return made;
}
