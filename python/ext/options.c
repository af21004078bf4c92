/*
 * options.c: copies keyword arguments into the option structs of the public headers, by tables: a new option of the
 * library is one line here. It checks type and range of values; the library checks their meaning.
 */
#include "ext.h"

#include <opwatch/ranks.h>
#include <string.h>

#define AT(type, field) offsetof(struct type, field)

const struct field open_fields[] = {
	{ "memory_limit", FIELD_UINT64, AT(ow_open_options, memory_limit) },
	{ "infer", FIELD_BOOL, AT(ow_open_options, infer) },
	{ "redact", FIELD_BOOL, AT(ow_open_options, redact) },
	{ "strict_proto", FIELD_BOOL, AT(ow_open_options, strict_proto) },
	{ "input_shapes", FIELD_LIST, AT(ow_open_options, input_shapes) },
	{ "step_marker", FIELD_TEXT, AT(ow_open_options, step_marker) },
	{ "align_clocks", FIELD_BOOL, AT(ow_open_options, align_clocks) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field view_fields[] = {
	{ "max_depth", FIELD_INT32, AT(ow_view_options, max_depth) },
	{ "min_bytes", FIELD_INT64, AT(ow_view_options, min_bytes) },
	{ "min_peak_bytes", FIELD_INT64, AT(ow_view_options, min_peak_bytes) },
	{ "min_residual_bytes", FIELD_INT64, AT(ow_view_options, min_residual_bytes) },
	{ "min_output_bytes", FIELD_INT64, AT(ow_view_options, min_output_bytes) },
	{ "min_micros", FIELD_INT64, AT(ow_view_options, min_micros) },
	{ "min_accelerator_micros", FIELD_INT64, AT(ow_view_options, min_accelerator_micros) },
	{ "min_cpu_micros", FIELD_INT64, AT(ow_view_options, min_cpu_micros) },
	{ "min_params", FIELD_INT64, AT(ow_view_options, min_params) },
	{ "min_float_ops", FIELD_INT64, AT(ow_view_options, min_float_ops) },
	{ "min_occurrence", FIELD_INT64, AT(ow_view_options, min_occurrence) },
	{ "step", FIELD_INT64, AT(ow_view_options, step) },
	{ "order_by", FIELD_TEXT, AT(ow_view_options, order_by) },
	{ "account_type_regexes", FIELD_LIST, AT(ow_view_options, account_type_regexes) },
	{ "start_name_regexes", FIELD_LIST, AT(ow_view_options, start_name_regexes) },
	{ "trim_name_regexes", FIELD_LIST, AT(ow_view_options, trim_name_regexes) },
	{ "show_name_regexes", FIELD_LIST, AT(ow_view_options, show_name_regexes) },
	{ "hide_name_regexes", FIELD_LIST, AT(ow_view_options, hide_name_regexes) },
	{ "account_displayed_op_only", FIELD_BOOL, AT(ow_view_options, account_displayed_op_only) },
	{ "select", FIELD_LIST, AT(ow_view_options, select) },
	{ "limit", FIELD_UINT32, AT(ow_view_options, limit) },
	{ "time_from_ns", FIELD_INT64, AT(ow_view_options, time_from_ns) },
	{ "time_to_ns", FIELD_INT64, AT(ow_view_options, time_to_ns) },
	{ "rank", FIELD_INT32, AT(ow_view_options, rank) },
	{ "full_names", FIELD_BOOL, AT(ow_view_options, full_names) },
	{ "all_metrics", FIELD_BOOL, AT(ow_view_options, all_metrics) },
	{ "peak", FIELD_TEXT, AT(ow_view_options, peak) },
	{ "metric", FIELD_TEXT, AT(ow_view_options, metric) },
	{ "style", FIELD_TEXT, AT(ow_view_options, style) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field write_fields[] = {
	{ "width", FIELD_UINT32, AT(ow_write_options, width) },
	{ "colour", FIELD_BOOL, AT(ow_write_options, colour) },
	{ "metric", FIELD_TEXT, AT(ow_write_options, metric) },
	{ "title", FIELD_TEXT, AT(ow_write_options, title) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field timeline_fields[] = {
	{ "show_dataflow", FIELD_BOOL, AT(ow_timeline_options, show_dataflow) },
	{ "show_memory", FIELD_BOOL, AT(ow_timeline_options, show_memory) },
	{ "show_path", FIELD_BOOL, AT(ow_timeline_options, show_path) },
	{ "step", FIELD_INT64, AT(ow_timeline_options, step) },
	{ "gzip", FIELD_BOOL, AT(ow_timeline_options, gzip) },
	{ "time_from_ns", FIELD_INT64, AT(ow_timeline_options, time_from_ns) },
	{ "time_to_ns", FIELD_INT64, AT(ow_timeline_options, time_to_ns) },
	{ "rank", FIELD_INT32, AT(ow_timeline_options, rank) },
	{ "metric", FIELD_TEXT, AT(ow_timeline_options, metric) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field merge_fields[] = {
	{ "memory_limit", FIELD_UINT64, AT(ow_merge_options, memory_limit) },
	{ "align", FIELD_ALIGN, AT(ow_merge_options, align) },
	{ "no_labels", FIELD_BOOL, AT(ow_merge_options, no_labels) },
	{ "redact", FIELD_BOOL, AT(ow_merge_options, redact) },
	{ "keep_names", FIELD_LIST, AT(ow_merge_options, keep_names) },
	{ "keep_categories", FIELD_LIST, AT(ow_merge_options, keep_categories) },
	{ "keep_pids", FIELD_LIST, AT(ow_merge_options, keep_pids) },
	{ "keep_from_ns", FIELD_INT64, AT(ow_merge_options, keep_from_ns) },
	{ "keep_to_ns", FIELD_INT64, AT(ow_merge_options, keep_to_ns) },
	{ "keep_first_step", FIELD_INT64, AT(ow_merge_options, keep_first_step) },
	{ "keep_last_step", FIELD_INT64, AT(ow_merge_options, keep_last_step) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field sql_fields[] = {
	{ "memory_limit", FIELD_UINT64, AT(ow_sql_options, memory_limit) },
	{ "temp_dir", FIELD_TEXT, AT(ow_sql_options, temp_dir) },
	{ "threads", FIELD_UINT32, AT(ow_sql_options, threads) },
	{ "allow_io", FIELD_BOOL, AT(ow_sql_options, allow_io) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field ask_fields[] = {
	{ "memory_limit", FIELD_UINT64, AT(ow_ask_options, memory_limit) },
	{ "temp_dir", FIELD_TEXT, AT(ow_ask_options, temp_dir) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field hang_fields[] = {
	{ "memory_limit", FIELD_UINT64, AT(ow_hang_options, memory_limit) },
	{ "redact", FIELD_BOOL, AT(ow_hang_options, redact) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field ranks_fields[] = {
	{ "memory_limit", FIELD_UINT64, AT(ow_ranks_options, memory_limit) },
	{ "redact", FIELD_BOOL, AT(ow_ranks_options, redact) },
	{ NULL, FIELD_BOOL, 0 },
};

const struct field export_fields[] = {
	{ "to", FIELD_TEXT, AT(ow_export_options, format) },
	{ "tables", FIELD_LIST, AT(ow_export_options, tables) },
	{ "partition", FIELD_TEXT, AT(ow_export_options, partition) },
	{ "sort", FIELD_TEXT, AT(ow_export_options, sort) },
	{ "compress", FIELD_TEXT, AT(ow_export_options, compress) },
	{ "file_bytes", FIELD_UINT64, AT(ow_export_options, file_bytes) },
	{ "bigquery", FIELD_BOOL, AT(ow_export_options, bigquery) },
	{ "overwrite", FIELD_BOOL, AT(ow_export_options, overwrite) },
	{ NULL, FIELD_BOOL, 0 },
};

PyObject *field_names(const struct field *fields)
{
	Py_ssize_t count = 0;
	PyObject *names;

	while (fields[count].name)
		count++;
	names = PyTuple_New(count);
	for (Py_ssize_t i = 0; names && i < count; i++) {
		PyObject *name = PyUnicode_FromString(fields[i].name);

		if (!name || PyTuple_SetItem(names, i, name) != 0)
			Py_CLEAR(names);
	}
	return names;
}

/* The UTF-8 bytes of a str without NULs; `keep` owns them. */
static const char *text_of(PyObject *value, const char *name, PyObject *keep)
{
	PyObject *bytes;
	char *text;

	if (!PyUnicode_Check(value)) {
		PyErr_Format(PyExc_TypeError, "%s: a str is needed, not %R", name, Py_TYPE(value));
		return NULL;
	}
	bytes = PyUnicode_AsUTF8String(value);
	if (!bytes)
		return NULL;
	if (PyBytes_AsStringAndSize(bytes, &text, NULL) != 0 || PyList_Append(keep, bytes) != 0)
		text = NULL;
	Py_DECREF(bytes); /* the list holds its own reference */
	return text;
}

/* A path in the file system encoding, from a str, bytes or os.PathLike. */
static const char *path_of(PyObject *value, const char *name, PyObject *keep)
{
	PyObject *bytes = NULL;
	char *text = NULL;

	(void)name;
	if (!PyUnicode_FSConverter(value, &bytes))
		return NULL;
	if (PyList_Append(keep, bytes) == 0)
		text = PyBytes_AsString(bytes);
	Py_DECREF(bytes);
	return text;
}

typedef const char *(*text_fn)(PyObject *value, const char *name, PyObject *keep);

/* An array of `count` pointers, owned by `keep`. */
static const char **pointers_new(Py_ssize_t count, PyObject *keep)
{
	PyObject *block = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(char *));
	const char **pointers = NULL;

	if (block && PyList_Append(keep, block) == 0)
		pointers = (const char **)(void *)PyBytes_AsString(block);
	Py_XDECREF(block);
	return pointers;
}

static bool fill_items(struct ow_list *list, PyObject *items, const char *name, text_fn text,
		       PyObject *keep)
{
	Py_ssize_t count = PyList_Size(items);
	const char **texts = pointers_new(count, keep);

	for (Py_ssize_t i = 0; texts && i < count; i++) {
		texts[i] = text(PyList_GetItem(items, i), name, keep);
		if (!texts[i])
			texts = NULL;
	}
	*list = (struct ow_list){ texts, (size_t)count };
	return texts != NULL;
}

bool list_fill(struct ow_list *list, PyObject *value, const char *name, PyObject *keep)
{
	PyObject *items;
	bool good;

	*list = (struct ow_list){ NULL, 0 };
	if (value == Py_None)
		return true;
	items = PyUnicode_Check(value) ? Py_BuildValue("[O]", value) : PySequence_List(value);
	if (!items) {
		PyErr_Format(PyExc_TypeError, "%s: a str or a list of them is needed, not %R", name,
			     Py_TYPE(value));
		return false;
	}
	good = fill_items(list, items, name, text_of, keep);
	Py_DECREF(items);
	return good;
}

bool paths_fill(struct ow_list *list, PyObject *value, PyObject *keep)
{
	PyObject *items = PySequence_List(value);
	bool good = items && fill_items(list, items, "path", path_of, keep);

	Py_XDECREF(items);
	return good;
}

static bool fill_integer(const struct field *field, void *to, PyObject *value)
{
	PyObject *number = PyNumber_Index(value);
	int overflow = 0;
	long long n = 0;

	if (!number) {
		PyErr_Format(PyExc_TypeError, "%s: an int is needed, not %R", field->name,
			     Py_TYPE(value));
		return false;
	}
	n = PyLong_AsLongLongAndOverflow(number, &overflow);
	Py_DECREF(number);
	if (n == -1 && PyErr_Occurred())
		return false;
	switch (field->kind) {
	case FIELD_INT32:
		if (overflow || n < INT32_MIN || n > INT32_MAX)
			break;
		*(int32_t *)to = (int32_t)n;
		return true;
	case FIELD_UINT32:
		if (overflow || n < 0 || n > UINT32_MAX)
			break;
		*(uint32_t *)to = (uint32_t)n;
		return true;
	case FIELD_UINT64:
		if (overflow || n < 0)
			break;
		*(uint64_t *)to = (uint64_t)n;
		return true;
	default:
		if (overflow)
			break;
		*(int64_t *)to = (int64_t)n;
		return true;
	}
	PyErr_Format(PyExc_OverflowError, "%s: %S is out of range", field->name, value);
	return false;
}

static bool fill_align(void *to, const char *text)
{
	static const char *const names[] = { "keep", "start", "sequence", "clocks" };

	for (int i = 0; i < 4; i++)
		if (strcmp(text, names[i]) == 0) {
			*(ow_align *)to = (ow_align)i;
			return true;
		}
	PyErr_Format(PyExc_ValueError, "align: '%s' is not one of keep, start, sequence, clocks",
		     text);
	return false;
}

static bool fill_one(const struct field *field, void *to, PyObject *value, PyObject *keep)
{
	const char *text;
	int truth;

	switch (field->kind) {
	case FIELD_BOOL:
		truth = PyObject_IsTrue(value);
		if (truth >= 0)
			*(bool *)to = truth;
		return truth >= 0;
	case FIELD_LIST:
		return list_fill(to, value, field->name, keep);
	case FIELD_TEXT:
		if (value == Py_None)
			return true;
		text = text_of(value, field->name, keep);
		*(const char **)to = text;
		return text != NULL;
	case FIELD_ALIGN:
		text = text_of(value, field->name, keep);
		return text && fill_align(to, text);
	default:
		return value == Py_None || fill_integer(field, to, value);
	}
}

static const struct field *find(const struct field *fields, PyObject *name)
{
	for (; fields->name; fields++)
		if (PyUnicode_CompareWithASCIIString(name, fields->name) == 0)
			return fields;
	return NULL;
}

bool fields_fill(const struct field *fields, void *to, PyObject *options, PyObject *keep)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;

	if (!options || options == Py_None)
		return true;
	while (PyDict_Next(options, &at, &name, &value)) {
		const struct field *field = PyUnicode_Check(name) ? find(fields, name) : NULL;

		if (!field) {
			PyErr_Format(PyExc_TypeError, "there is no option %R", name);
			return false;
		}
		if (!fill_one(field, (char *)to + field->offset, value, keep))
			return false;
	}
	return true;
}
