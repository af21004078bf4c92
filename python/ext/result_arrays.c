/*
 * result_arrays.c: provides whole columns of a result to numpy, through addresses that _result.py puts into the array
 * interface, and to consumers of Arrow's PyCapsules.
 */
#include "result.h"

#include <stdlib.h>
#include <string.h>

/* Rows mostly repeat a few texts, at the same address (in profiles, which intern them) or at others (in results of
 * SQL), and then share one str. A small cache by content finds nearly all of them; it is given up if all texts
 * differ. */
#define CACHE_BITS 14
/* number of rows after which the cache is judged: an eighth of them should be hits */
#define CACHE_TRIAL 4096
#define FETCH_AHEAD 16
/* bytes hashed at both ends of a text; enough to distinguish most long texts */
#define HASH_ENDS 32

struct shared {
	const char *ptr;
	size_t len;
	PyObject *text; /* a reference that the cache owns */
};

struct texts {
	struct shared *cache;
	const struct shared *last; /* entry of the previous row */
	uint32_t asked, found;
	bool apart;
};

static PyObject *text_new(const struct ow_text *text)
{
	return PyUnicode_DecodeUTF8(text->ptr ? text->ptr : "", (Py_ssize_t)text->len, "replace");
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t len)
{
	uint64_t word;

	for (; len > 8; bytes += 8, len -= 8) {
		memcpy(&word, bytes, 8);
		hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, bytes, len);
	hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 32;
}

static uint64_t text_hash(const struct ow_text *text)
{
	uint64_t hash = text->len;

	if (text->len <= 2 * HASH_ENDS)
		return hash_bytes(hash, text->ptr, text->len);
	hash = hash_bytes(hash, text->ptr, HASH_ENDS);
	return hash_bytes(hash, text->ptr + text->len - HASH_ENDS, HASH_ENDS);
}

static bool is_same(const struct shared *place, const struct ow_text *text)
{
	return place->text && place->len == text->len &&
	       (place->ptr == text->ptr || memcmp(place->ptr, text->ptr, text->len) == 0);
}

static PyObject *text_shared(struct texts *t, const struct ow_text *text)
{
	struct shared *place;

	if (t->last && is_same(t->last, text)) {
		Py_INCREF(t->last->text);
		return t->last->text;
	}
	if (!text->ptr || !text->len)
		return text_new(text); /* Python has only one empty str */
	place = &t->cache[text_hash(text) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - CACHE_BITS)];
	t->asked++;
	if (is_same(place, text)) {
		t->found++;
	} else {
		PyObject *made = text_new(text);

		if (!made)
			return NULL;
		Py_XDECREF(place->text);
		*place = (struct shared){ text->ptr, text->len, made };
	}
	t->last = place;
	t->apart = t->asked == CACHE_TRIAL && t->found < CACHE_TRIAL / 8;
	Py_INCREF(place->text);
	return place->text;
}

static void texts_release(struct texts *t)
{
	for (size_t i = 0; t->cache && i < (size_t)1 << CACHE_BITS; i++)
		Py_XDECREF(t->cache[i].text);
	free(t->cache);
}

/* Stores a value, and takes over its reference; returns false to stop. */
typedef bool (*put_fn)(void *to, uint32_t row, PyObject *value);

static PyObject *next_value(struct texts *t, const struct column *column, uint32_t row,
			    uint32_t rows)
{
	if (column->type != OW_TYPE_TEXT || (column->marks && !column->marks[row]))
		return column_cell(column, row);
	if (!t->apart)
		return text_shared(t, &column->texts[row]);
	/* prefetch: texts are in the order of the file, not of the rows */
	if (row + FETCH_AHEAD < rows)
		__builtin_prefetch(column->texts[row + FETCH_AHEAD].ptr);
	return text_new(&column->texts[row]);
}

static bool put_all(const struct column *column, uint32_t rows, put_fn put, void *to)
{
	struct texts t = { .cache = calloc((size_t)1 << CACHE_BITS, sizeof(*t.cache)) };
	bool good = t.cache != NULL;

	if (!good)
		PyErr_NoMemory();
	for (uint32_t i = 0; good && i < rows; i++) {
		PyObject *value = next_value(&t, column, i, rows);

		good = value && put(to, i, value);
	}
	texts_release(&t);
	return good;
}

static bool put_list(void *to, uint32_t row, PyObject *value)
{
	return PyList_SetItem(to, row, value) == 0;
}

static bool put_object(void *to, uint32_t row, PyObject *value)
{
	PyObject *old = ((PyObject **)to)[row];

	((PyObject **)to)[row] = value;
	Py_XDECREF(old);
	return true;
}

/* column(index) -> list */
PyObject *result_column(PyObject *object, PyObject *number)
{
	const struct result *self = (const struct result *)object;
	const struct column *column = result_find(self, number);
	PyObject *values = column ? PyList_New(self->rows) : NULL;

	if (values && !put_all(column, self->rows, put_list, values))
		Py_CLEAR(values);
	return values;
}

/* fill(index, address): writes the values as objects into an array of objects, such as numpy's with dtype object */
PyObject *result_fill(PyObject *object, PyObject *args)
{
	const struct result *self = (const struct result *)object;
	const struct column *column;
	PyObject *number, *address;
	void *to;

	if (!PyArg_ParseTuple(args, "OO", &number, &address))
		return NULL;
	column = result_find(self, number);
	to = column ? PyLong_AsVoidPtr(address) : NULL;
	if (!to || !put_all(column, self->rows, put_object, to))
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no address");
	Py_RETURN_NONE;
}

/* values(index) -> (address, numpy's type) of numbers; bytes for truth values, one each; None for texts. The address
 * is valid as long as the result exists. */
PyObject *result_values(PyObject *object, PyObject *number)
{
	const struct result *self = (const struct result *)object;
	const struct column *column = result_find(self, number);
	PyObject *bytes;
	char *to;

	if (!column)
		return NULL;
	switch (column->type) {
	case OW_TYPE_INT:
		return Py_BuildValue("(Ns)", PyLong_FromVoidPtr((void *)(uintptr_t)column->ints),
				     "<i8");
	case OW_TYPE_REAL:
		return Py_BuildValue("(Ns)", PyLong_FromVoidPtr((void *)(uintptr_t)column->reals),
				     "<f8");
	case OW_TYPE_TEXT:
	case OW_TYPE_NUMBER:
		Py_RETURN_NONE;
	default:
		break;
	}
	bytes = PyBytes_FromStringAndSize(NULL, self->rows);
	to = bytes ? PyBytes_AsString(bytes) : NULL;
	for (uint32_t i = 0; to && i < self->rows; i++)
		to[i] = column->ints[i] != 0;
	return bytes;
}

/* known(index) -> bytes, 0 for each unknown value; None when all are known */
PyObject *result_known(PyObject *object, PyObject *number)
{
	const struct result *self = (const struct result *)object;
	const struct column *column = result_find(self, number);

	if (!column)
		return NULL;
	if (!column->marks || !memchr(column->marks, 0, self->rows))
		Py_RETURN_NONE;
	return PyBytes_FromStringAndSize((const char *)column->marks, self->rows);
}

static void drop_stream(PyObject *capsule)
{
	struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");

	if (stream && stream->release) /* no consumer took the stream */
		stream->release(stream);
	free(stream);
}

static void drop_schema(PyObject *capsule)
{
	struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");

	if (schema && schema->release)
		schema->release(schema);
	free(schema);
}

static void arrow_options(struct ow_arrow_options *options, struct core *core)
{
	ow_arrow_options_init(options);
	options->release = core_drop;
	options->owner = core;
	atomic_fetch_add(&core->refs, 1);
}

PyObject *result_arrow_stream(PyObject *object, PyObject *none)
{
	struct ArrowArrayStream *stream = calloc(1, sizeof(*stream));
	struct core *core = ((struct result *)object)->core;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_arrow_options options;
	PyObject *capsule;
	ow_status status;

	(void)none;
	if (!stream)
		return PyErr_NoMemory();
	arrow_options(&options, core);
	WITHOUT_GIL(status = ow_result_arrow_stream(core->result, &options, stream, &err));
	if (status != OW_OK) {
		core_drop(core);
		free(stream);
		return raise_status(&err);
	}
	capsule = PyCapsule_New(stream, "arrow_array_stream", drop_stream);
	if (!capsule) {
		stream->release(stream);
		free(stream);
	}
	return capsule;
}

PyObject *result_arrow_schema(PyObject *object, PyObject *none)
{
	struct ArrowSchema *schema = calloc(1, sizeof(*schema));
	struct core *core = ((struct result *)object)->core;
	struct ow_error err = { .offset = OW_NO_OFFSET };
	struct ow_arrow_options options;
	PyObject *capsule;
	ow_status status;

	(void)none;
	if (!schema)
		return PyErr_NoMemory();
	arrow_options(&options, core);
	WITHOUT_GIL(status = ow_result_arrow(core->result, &options, schema, NULL, &err));
	if (status != OW_OK) {
		core_drop(core);
		free(schema);
		return raise_status(&err);
	}
	capsule = PyCapsule_New(schema, "arrow_schema", drop_schema);
	if (!capsule) {
		schema->release(schema);
		free(schema);
	}
	return capsule;
}
