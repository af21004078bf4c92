/*
 * profile_write.c: methods of _opwatch.Profile that write it in the formats of other programs: timelines for trace
 * viewers, and TensorFlow's messages. The type and all other methods are in profile.c.
 */
#include "profile.h"

#include <string.h>

/* timeline(options, path or None) -> bytes, or None when there is a path */
PyObject *profile_timeline(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *path = Py_None, *file = NULL, *keep = PyList_New(0),
		 *made = NULL;
	struct ow_timeline_options options;
	struct sink_bytes out = { 0 };
	struct handle *handle;
	const char *name = NULL;
	ow_status status;

	ow_timeline_options_init(&options);
	if (!keep || !PyArg_ParseTuple(args, "|OO", &keywords, &path) ||
	    (path != Py_None && !PyUnicode_FSConverter(path, &file)) ||
	    !fields_fill(timeline_fields, &options, keywords, keep))
		goto out;
	handle = profile_enter(object);
	if (!handle)
		goto out;
	if (file)
		name = PyBytes_AsString(file);
	WITHOUT_GIL(status = name ? ow_timeline_write_file(handle->profile, &options, name, &err)
				  : ow_timeline_write(handle->profile, &options, sink_bytes_write,
						      &out, &err));
	if (out.no_memory)
		err.status = OW_E_NO_MEMORY, err.text[0] = 0;
	if (!profile_leave(handle, NULL, status, &err))
		made = name ? (Py_INCREF(Py_None), Py_None)
			    : PyBytes_FromStringAndSize(out.bytes, (Py_ssize_t)out.len);
	sink_bytes_free(&out);
out:
	Py_XDECREF(file);
	Py_XDECREF(keep);
	return made;
}

/* A change of memory, collected without the GIL: numbers and lengths; the texts follow. */
struct memory_head {
	int64_t ts_us, bytes;
	size_t allocator_len, tensor_len;
};

static void note_memory(void *arg, const struct ow_timeline_memory *change)
{
	const struct memory_head head = { change->ts_us, change->bytes, change->allocator_len,
					  change->tensor_len };

	(void)(sink_bytes_write(arg, &head, sizeof(head)) &&
	       sink_bytes_write(arg, change->allocator, change->allocator_len) &&
	       sink_bytes_write(arg, change->tensor, change->tensor_len));
}

/* Makes a list of (allocator, time in microseconds, bytes, tensor). */
static PyObject *memory_list(const struct sink_bytes *notes)
{
	PyObject *list = PyList_New(0);

	for (size_t at = 0; list && at < notes->len;) {
		struct memory_head head;
		const char *text = notes->bytes + at + sizeof(head);
		PyObject *allocator, *tensor, *row;

		memcpy(&head, notes->bytes + at, sizeof(head));
		allocator = PyUnicode_DecodeUTF8(text, (Py_ssize_t)head.allocator_len, "replace");
		tensor = PyUnicode_DecodeUTF8(text + head.allocator_len,
					      (Py_ssize_t)head.tensor_len, "replace");
		row = allocator && tensor
			      ? Py_BuildValue("(OLLO)", allocator, (long long)head.ts_us,
					      (long long)head.bytes, tensor)
			      : NULL;
		Py_XDECREF(allocator);
		Py_XDECREF(tensor);
		if (!row || PyList_Append(list, row) != 0)
			Py_CLEAR(list);
		Py_XDECREF(row);
		at += sizeof(head) + head.allocator_len + head.tensor_len;
	}
	return list;
}

/* timeline_memory(options) -> (bytes, list of memory changes) */
PyObject *profile_timeline_memory(PyObject *object, PyObject *args)
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	PyObject *keywords = NULL, *keep = PyList_New(0), *made = NULL, *list;
	struct sink_bytes out = { 0 }, notes = { 0 };
	struct ow_timeline_options options;
	struct handle *handle;
	ow_status status;

	ow_timeline_options_init(&options);
	options.memory = note_memory;
	options.memory_arg = &notes;
	if (!keep || !PyArg_ParseTuple(args, "|O", &keywords) ||
	    !fields_fill(timeline_fields, &options, keywords, keep))
		goto out;
	handle = profile_enter(object);
	if (!handle)
		goto out;
	WITHOUT_GIL(status = ow_timeline_write(handle->profile, &options, sink_bytes_write, &out,
					       &err));
	if (out.no_memory || notes.no_memory) {
		status = err.status = OW_E_NO_MEMORY;
		err.text[0] = 0;
	}
	if (!profile_leave(handle, NULL, status, &err)) {
		list = memory_list(&notes);
		made = list ? Py_BuildValue("(y#N)", out.bytes ? out.bytes : "",
					    (Py_ssize_t)out.len, list)
			    : NULL;
	}
	sink_bytes_free(&out);
	sink_bytes_free(&notes);
out:
	Py_XDECREF(keep);
	return made;
}

static PyObject *as_bytes(PyObject *object,
			  ow_status (*write)(ow_profile *, ow_write_fn, void *, struct ow_error *))
{
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct handle *handle = profile_enter(object);
	struct sink_bytes out = { 0 };
	PyObject *made = NULL;
	ow_status status;

	if (!handle)
		return NULL;
	WITHOUT_GIL(status = write(handle->profile, sink_bytes_write, &out, &err));
	if (out.no_memory)
		err.status = OW_E_NO_MEMORY, err.text[0] = 0;
	if (!profile_leave(handle, NULL, status, &err))
		made = PyBytes_FromStringAndSize(out.bytes, (Py_ssize_t)out.len);
	sink_bytes_free(&out);
	return made;
}

/* info_json() -> bytes */
PyObject *profile_info_json(PyObject *object, PyObject *none)
{
	(void)none;
	return as_bytes(object, ow_info_json);
}

PyObject *profile_tf_profile(PyObject *object, PyObject *none)
{
	(void)none;
	return as_bytes(object, ow_tf_profile_write);
}

PyObject *profile_tf_op_log(PyObject *object, PyObject *none)
{
	(void)none;
	return as_bytes(object, ow_tf_op_log_write);
}
