/*
 * profile.c: the type _opwatch.Profile: one ow_profile. While it loads, one thread uses it; once it is frozen, any
 * number of threads may read it. The Python class opwatch.Profile wraps it. Methods that write it for other programs
 * are in profile_write.c.
 */
#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct profile {
	PyObject_HEAD struct handle *handle; /* NULL: closed */
	bool frozen;
};

static PyObject *profile_type; /* borrowed from the module, which is never unloaded */

static struct profile *profile_alloc(void)
{
	struct profile *self =
		(struct profile *)PyType_GenericAlloc((PyTypeObject *)profile_type, 0);

	if (!self)
		return NULL;
	self->handle = calloc(1, sizeof(*self->handle));
	if (!self->handle) {
		Py_DECREF(self);
		PyErr_NoMemory();
		return NULL;
	}
	self->handle->refs = 1;
	return self;
}

static void profile_dealloc(PyObject *object)
{
	struct profile *self = (struct profile *)object;
	PyTypeObject *type = Py_TYPE(object);

	WITHOUT_GIL(handle_drop(self->handle));
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

static PyObject *profile_close(PyObject *object, PyObject *none)
{
	struct profile *self = (struct profile *)object;
	struct handle *handle = self->handle;

	(void)none;
	self->handle = NULL;
	WITHOUT_GIL(handle_drop(handle));
	Py_RETURN_NONE;
}

static struct handle *refuse(PyObject *kind, const char *text)
{
	PyErr_SetString(kind, text);
	return NULL;
}

struct handle *profile_enter(PyObject *object)
{
	struct handle *handle = ((struct profile *)object)->handle;

	if (!handle)
		return refuse(PyExc_ValueError, "the profile is closed");
	if (handle->loading)
		return refuse(PyExc_RuntimeError, "another thread is loading this profile");
	handle->asking++;
	handle_take(handle);
	return handle;
}

static struct handle *enter_loading(PyObject *object, PyObject *callable)
{
	struct handle *handle = ((struct profile *)object)->handle;

	if (!handle)
		return refuse(PyExc_ValueError, "the profile is closed");
	if (handle->loading || handle->asking)
		return refuse(PyExc_RuntimeError, "another thread uses this profile");
	handle->loading = true;
	watch_init(&handle->watch, callable);
	handle_take(handle);
	return handle;
}

bool profile_leave(struct handle *handle, struct watch *watch, ow_status status,
		   const struct ow_error *err)
{
	bool raised = watch && watch_failed(watch);

	if (watch == &handle->watch) {
		handle->loading = false;
		watch->callable = NULL;
	} else {
		handle->asking--;
	}
	WITHOUT_GIL(handle_drop(handle));
	if (!raised && status != OW_OK)
		raise_status(err);
	return raised || status != OW_OK;
}

struct handle *profile_handle(PyObject *object)
{
	struct handle *handle;

	if (!PyObject_TypeCheck(object, (PyTypeObject *)profile_type)) {
		PyErr_SetString(PyExc_TypeError, "a profile is needed");
		return NULL;
	}
	handle = ((struct profile *)object)->handle;
	if (!handle)
		return refuse(PyExc_ValueError, "the profile is closed");
	if (handle->loading)
		return refuse(PyExc_RuntimeError, "another thread is loading this profile");
	return handle;
}

static void open_options(struct ow_open_options *options, struct handle *handle)
{
	options->progress = watch_progress;
	options->progress_arg = &handle->watch;
}

/* new(options, progress): creates an empty profile, to be filled and frozen. */
static PyObject *profile_new(PyObject *none, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *keep = PyList_New(0);
	struct ow_open_options options;
	struct profile *self = NULL;

	(void)none;
	ow_open_options_init(&options);
	if (keep && PyArg_ParseTuple(args, "|O", &keywords) &&
	    fields_fill(open_fields, &options, keywords, keep))
		self = profile_alloc();
	if (self) {
		open_options(&options, self->handle);
		if (ow_profile_new(&options, &self->handle->profile, &err) != OW_OK) {
			raise_status(&err);
			Py_CLEAR(self);
		}
	}
	Py_XDECREF(keep);
	return (PyObject *)self;
}

/* Reads ./opwatch.toml, if it exists, as the program does: it lists muted rules and thresholds. */
static ow_status use_settings(ow_profile *profile, struct ow_error *err)
{
	struct ow_advice_options options;

	if (access("opwatch.toml", R_OK) != 0)
		return OW_OK;
	ow_advice_options_init(&options);
	options.file = "opwatch.toml";
	return ow_profile_set_advice(profile, &options, err);
}

static ow_status open_paths(const struct ow_list *paths, const struct ow_open_options *options,
			    struct handle *handle, struct ow_error *err)
{
	ow_status status;

	WITHOUT_GIL(status = ow_profile_open(paths->items, paths->count, options, &handle->profile,
					     err));
	return status == OW_OK ? use_settings(handle->profile, err) : status;
}

/* open(paths: list of bytes, options, progress) */
static PyObject *profile_open(PyObject *none, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *progress = NULL, *names, *keep = PyList_New(0);
	struct ow_open_options options;
	struct profile *self = NULL;
	struct handle *handle;
	struct ow_list paths;
	ow_status status;

	(void)none;
	ow_open_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "O|OO", &names, &keywords, &progress) ||
	    !paths_fill(&paths, names, keep) || !fields_fill(open_fields, &options, keywords, keep))
		goto out;
	self = profile_alloc();
	if (!self)
		goto out;
	open_options(&options, self->handle);
	handle = enter_loading((PyObject *)self, progress);
	status = open_paths(&paths, &options, handle, &err);
	self->frozen = status == OW_OK;
	if (profile_leave(handle, &handle->watch, status, &err))
		Py_CLEAR(self);
out:
	Py_XDECREF(keep);
	return (PyObject *)self;
}

static PyObject *file_info(const struct ow_file_info *info)
{
	return Py_BuildValue("(sdN)", info->format ? info->format : "", info->coverage,
			     PyBool_FromLong(info->missing_step_stats));
}

/* add_file(path, format=None, step=None, progress=None) */
static PyObject *profile_add_file(PyObject *object, PyObject *args)
{
	struct ow_file_options options = { .size = sizeof(options), .step = INT64_MIN };
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_file_info info = { .size = sizeof(info) };
	PyObject *progress = NULL, *path = NULL;
	struct handle *handle;
	long long step = INT64_MIN;
	ow_status status;

	if (!PyArg_ParseTuple(args, "O&|zLO", PyUnicode_FSConverter, &path, &options.format, &step,
			      &progress))
		return NULL;
	options.step = step;
	handle = enter_loading(object, progress);
	if (handle) {
		const char *name = PyBytes_AsString(path);

		WITHOUT_GIL(
			status = ow_profile_add_file(handle->profile, name, &options, &info, &err));
		if (profile_leave(handle, &handle->watch, status, &err))
			handle = NULL;
	}
	Py_DECREF(path);
	return handle ? file_info(&info) : NULL;
}

/* add_memory(name, bytes, format=None, step=None, progress=None, forget=False); the library copies the bytes, unless
 * forget is true. */
static PyObject *profile_add_memory(PyObject *object, PyObject *args)
{
	struct ow_file_options options = { .size = sizeof(options), .step = INT64_MIN };
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_file_info info = { .size = sizeof(info) };
	PyObject *progress = NULL, *bytes;
	struct handle *handle;
	long long step = INT64_MIN;
	const char *name;
	Py_ssize_t len;
	int forget = 0;
	char *data;
	ow_status status;

	if (!PyArg_ParseTuple(args, "sS|zLOp", &name, &bytes, &options.format, &step, &progress,
			      &forget) ||
	    PyBytes_AsStringAndSize(bytes, &data, &len) != 0)
		return NULL;
	options.step = step;
	options.forget = forget != 0;
	handle = enter_loading(object, progress);
	if (!handle)
		return NULL;
	WITHOUT_GIL(status = ow_profile_add_memory(handle->profile, name, data, (size_t)len,
						   &options, &info, &err));
	return profile_leave(handle, &handle->watch, status, &err) ? NULL : file_info(&info);
}

/* Changes the profile from loading to reading, or back. */
static PyObject *turn(PyObject *object, ow_status (*to)(ow_profile *, struct ow_error *),
		      bool frozen)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct handle *handle = enter_loading(object, NULL);
	ow_status status;

	if (!handle)
		return NULL;
	WITHOUT_GIL(status = to(handle->profile, &err));
	if (profile_leave(handle, &handle->watch, status, &err))
		return NULL;
	((struct profile *)object)->frozen = frozen;
	Py_RETURN_NONE;
}

static PyObject *profile_freeze(PyObject *object, PyObject *none)
{
	(void)none;
	return turn(object, ow_profile_freeze, true);
}

/* thaw(): allows adding more; no result may exist. */
static PyObject *profile_thaw(PyObject *object, PyObject *none)
{
	(void)none;
	return turn(object, ow_profile_thaw, false);
}

static PyObject *profile_set_checkpoint(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct handle *handle;
	PyObject *path = NULL;
	ow_status status;

	if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
		return NULL;
	handle = enter_loading(object, NULL);
	if (handle) {
		const char *prefix = PyBytes_AsString(path);

		WITHOUT_GIL(status = ow_profile_set_checkpoint(handle->profile, prefix, &err));
		if (profile_leave(handle, &handle->watch, status, &err))
			handle = NULL;
	}
	Py_DECREF(path);
	return handle ? (Py_INCREF(Py_None), Py_None) : NULL;
}

typedef ow_status (*table_fn)(ow_profile *profile, const char *name,
			      const struct ow_view_options *options, ow_result **result,
			      struct ow_error *err);

static PyObject *ask_table(PyObject *object, PyObject *args, table_fn ask)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *keep = PyList_New(0), *made = NULL;
	struct ow_view_options options;
	ow_result *result = NULL;
	struct handle *handle;
	const char *name;
	ow_status status;

	ow_view_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "s|O", &name, &keywords) ||
	    !fields_fill(view_fields, &options, keywords, keep))
		goto out;
	/* the code view raises NotFound instead */
	options.explain_empty = strcmp(name, "code") != 0;
	handle = profile_enter(object);
	if (!handle)
		goto out;
	WITHOUT_GIL(status = ask(handle->profile, name, &options, &result, &err));
	if (status == OW_OK)
		made = result_wrap(handle, result);
	profile_leave(handle, NULL, status, &err);
out:
	Py_XDECREF(keep);
	return made;
}

/* view(name, options) -> Result */
static PyObject *profile_view(PyObject *object, PyObject *args)
{
	return ask_table(object, args, ow_view);
}

/* nsys_stats(report, options) -> Result */
static PyObject *profile_nsys_stats(PyObject *object, PyObject *args)
{
	return ask_table(object, args, ow_nsys_stats);
}

/* advise(rules or None) -> Result */
static PyObject *profile_advise(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *names = Py_None, *keep = PyList_New(0), *made = NULL;
	ow_result *result = NULL;
	struct handle *handle;
	struct ow_list rules;
	ow_status status;

	if (!keep || !PyArg_ParseTuple(args, "|O", &names) ||
	    !list_fill(&rules, names, "rules", keep))
		goto out;
	handle = profile_enter(object);
	if (!handle)
		goto out;
	WITHOUT_GIL(status =
			    ow_advise(handle->profile, rules.count ? &rules : NULL, &result, &err));
	if (status == OW_OK)
		made = result_wrap(handle, result);
	profile_leave(handle, NULL, status, &err);
out:
	Py_XDECREF(keep);
	return made;
}

/* path(by or None, options) -> Result */
static PyObject *profile_path(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *keep = PyList_New(0), *made = NULL;
	struct ow_view_options options;
	ow_result *result = NULL;
	const char *by = NULL;
	struct handle *handle;
	ow_status status;

	ow_view_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "|zO", &by, &keywords) ||
	    !fields_fill(view_fields, &options, keywords, keep))
		goto out;
	handle = profile_enter(object);
	if (!handle)
		goto out;
	WITHOUT_GIL(status = ow_path(handle->profile, &options, by, &result, &err));
	if (status == OW_OK)
		made = result_wrap(handle, result);
	profile_leave(handle, NULL, status, &err);
out:
	Py_XDECREF(keep);
	return made;
}

/* what_if(changes, options) -> Result */
static PyObject *profile_what_if(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *list = NULL, *keep = PyList_New(0), *made = NULL;
	struct ow_view_options options;
	ow_result *result = NULL;
	struct ow_list changes;
	struct handle *handle;
	ow_status status;

	ow_view_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "O|O", &list, &keywords) ||
	    !list_fill(&changes, list, "changes", keep) ||
	    !fields_fill(view_fields, &options, keywords, keep))
		goto out;
	handle = profile_enter(object);
	if (!handle)
		goto out;
	WITHOUT_GIL(status = ow_what_if(handle->profile, &changes, &options, &result, &err));
	if (status == OW_OK)
		made = result_wrap(handle, result);
	profile_leave(handle, NULL, status, &err);
out:
	Py_XDECREF(keep);
	return made;
}

/* verdict(options) -> str */
static PyObject *profile_verdict(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *keep = PyList_New(0), *made = NULL;
	struct ow_view_options options;
	struct handle *handle;
	char text[2048] = "";
	ow_status status;

	ow_view_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "|O", &keywords) ||
	    !fields_fill(view_fields, &options, keywords, keep))
		goto out;
	handle = profile_enter(object);
	if (!handle)
		goto out;
	WITHOUT_GIL(status = ow_verdict(handle->profile, &options, text, sizeof(text), &err));
	if (!profile_leave(handle, NULL, status, &err))
		made = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
out:
	Py_XDECREF(keep);
	return made;
}

/* save(path, progress=None) */
static PyObject *profile_save(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *progress = NULL, *path = NULL;
	struct ow_save_options options;
	struct handle *handle;
	struct watch watch;
	ow_status status;

	if (!PyArg_ParseTuple(args, "O&|O", PyUnicode_FSConverter, &path, &progress))
		return NULL;
	ow_save_options_init(&options);
	watch_init(&watch, progress);
	options.progress = watch_progress;
	options.progress_arg = &watch;
	handle = profile_enter(object);
	if (handle) {
		const char *name = PyBytes_AsString(path);

		WITHOUT_GIL(status = ow_profile_save(handle->profile, name, &options, &err));
		if (profile_leave(handle, &watch, status, &err))
			handle = NULL;
	}
	Py_DECREF(path);
	return handle ? (Py_INCREF(Py_None), Py_None) : NULL;
}

/* verify() -> bytes of the opwatch file, 0 when there is none */
static PyObject *profile_verify(PyObject *object, PyObject *none)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct handle *handle = profile_enter(object);
	uint64_t bytes = 0;
	ow_status status;

	(void)none;
	if (!handle)
		return NULL;
	WITHOUT_GIL(status = ow_profile_verify(handle->profile, &bytes, &err));
	return profile_leave(handle, NULL, status, &err)
		       ? NULL
		       : PyLong_FromUnsignedLongLong((unsigned long long)bytes);
}

static PyObject *profile_step_numbers(PyObject *object, PyObject *none)
{
	struct handle *handle = profile_enter(object);
	int64_t *numbers = NULL;
	PyObject *list = NULL;
	struct ow_error err;
	ow_status status;
	size_t count;

	(void)none;
	if (!handle)
		return NULL;
	status = ow_profile_steps(handle->profile, NULL, 0, &count, &err);
	numbers = status == OW_OK ? calloc(count + 1, sizeof(*numbers)) : NULL;
	if (numbers)
		WITHOUT_GIL(
			status = ow_profile_steps(handle->profile, numbers, count, &count, &err));
	if (status == OW_OK)
		list = numbers ? PyList_New((Py_ssize_t)count) : PyErr_NoMemory();
	for (size_t i = 0; list && numbers && i < count; i++) {
		PyObject *number = PyLong_FromLongLong(numbers[i]);

		if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) != 0)
			Py_CLEAR(list);
	}
	free(numbers);
	if (profile_leave(handle, NULL, status, &err))
		Py_CLEAR(list);
	return list;
}

static PyObject *profile_memory(PyObject *object, PyObject *none)
{
	struct handle *handle = profile_enter(object);
	struct ow_memory_use use = { .size = sizeof(use) };

	(void)none;
	if (!handle)
		return NULL;
	ow_profile_memory(handle->profile, &use);
	profile_leave(handle, NULL, OW_OK, NULL);
	return Py_BuildValue("(KKK)", (unsigned long long)use.used, (unsigned long long)use.peak,
			     (unsigned long long)use.limit);
}

static PyObject *get_closed(PyObject *object, void *none)
{
	(void)none;
	return PyBool_FromLong(((struct profile *)object)->handle == NULL);
}

static PyObject *get_frozen(PyObject *object, void *none)
{
	(void)none;
	return PyBool_FromLong(((struct profile *)object)->frozen);
}

static PyObject *ask_flag(PyObject *object, bool (*flag)(const ow_profile *profile))
{
	struct handle *handle = profile_enter(object);
	bool set;

	if (!handle)
		return NULL;
	set = flag(handle->profile);
	profile_leave(handle, NULL, OW_OK, NULL);
	return PyBool_FromLong(set);
}

static PyObject *get_has_code(PyObject *object, void *none)
{
	(void)none;
	return ask_flag(object, ow_profile_has_code);
}

static PyObject *get_damaged(PyObject *object, void *none)
{
	(void)none;
	return ask_flag(object, ow_profile_damaged);
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "profiles are made by opwatch.open");
	return NULL;
}

static PyMethodDef methods[] = {
	{ "new", profile_new, METH_VARARGS | METH_STATIC, "new(options) -> an empty Profile" },
	{ "open", profile_open, METH_VARARGS | METH_STATIC, "open(paths, options, progress)" },
	{ "close", profile_close, METH_NOARGS, NULL },
	{ "add_file", profile_add_file, METH_VARARGS, "add_file(path, format, step, progress)" },
	{ "add_memory", profile_add_memory, METH_VARARGS,
	  "add_memory(name, bytes, format, step, progress, forget)" },
	{ "freeze", profile_freeze, METH_NOARGS, NULL },
	{ "thaw", profile_thaw, METH_NOARGS,
	  "Allow more files to be added; no result may be in use." },
	{ "tf_profile", profile_tf_profile, METH_NOARGS, "A ProfileProto, serialized." },
	{ "tf_op_log", profile_tf_op_log, METH_NOARGS, "An OpLogProto, serialized." },
	{ "set_checkpoint", profile_set_checkpoint, METH_VARARGS, "set_checkpoint(prefix)" },
	{ "view", profile_view, METH_VARARGS, "view(name, options) -> Result" },
	{ "nsys_stats", profile_nsys_stats, METH_VARARGS, "nsys_stats(report, options) -> Result" },
	{ "advise", profile_advise, METH_VARARGS, "advise(rules) -> Result" },
	{ "path", profile_path, METH_VARARGS, "path(by, options) -> Result" },
	{ "what_if", profile_what_if, METH_VARARGS, "what_if(changes, options) -> Result" },
	{ "verdict", profile_verdict, METH_VARARGS, "verdict(options) -> str" },
	{ "info_json", profile_info_json, METH_NOARGS, NULL },
	{ "timeline", profile_timeline, METH_VARARGS, "timeline(options, path) -> bytes or None" },
	{ "timeline_memory", profile_timeline_memory, METH_VARARGS,
	  "timeline_memory(options) -> (bytes, changes of memory)" },
	{ "save", profile_save, METH_VARARGS, "save(path, progress)" },
	{ "report", profile_report, METH_VARARGS, "report(path, max_bytes, title)" },
	{ "verify", profile_verify, METH_NOARGS, NULL },
	{ "step_numbers", profile_step_numbers, METH_NOARGS, NULL },
	{ "memory", profile_memory, METH_NOARGS, "memory() -> (used, peak, limit)" },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef getters[] = {
	{ "closed", get_closed, NULL, NULL, NULL },
	{ "frozen", get_frozen, NULL, NULL, NULL },
	{ "has_code", get_has_code, NULL, NULL, NULL },
	{ "damaged", get_damaged, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_dealloc, (void *)profile_dealloc },
	{ Py_tp_methods, methods },
	{ Py_tp_getset, getters },
	{ Py_tp_new, (void *)refuse_new },
	{ 0, NULL },
};

static PyType_Spec spec = { "_opwatch.Profile", sizeof(struct profile), 0, Py_TPFLAGS_DEFAULT,
			    slots };

PyObject *profile_type_add(PyObject *module)
{
	profile_type = PyType_FromSpec(&spec);
	if (profile_type)
		PyModule_AddObject(module, "Profile", (Py_INCREF(profile_type), profile_type));
	return profile_type;
}
