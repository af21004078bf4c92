/*
 * info.c: facts about the inputs, and what opening a file would take.
 *
 * The estimate loads the first megabytes as a cut file and scales what that took: it works for every
 * format, also inside gzip and zstd, without any importer knowing of it.
 */
#include "api/api_int.h"

#include "sink/facts_json.h"
#include "wire/opw.h"

#define SAMPLE_BYTES ((size_t)4 << 20)

struct info_writer {
	ow_write_fn write;
	void *arg;
};

static ow_status write_bytes(void *arg, const void *bytes, size_t len, struct error *err)
{
	struct info_writer *writer = arg;

	if (writer->write(writer->arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the output was closed");
}

ow_status ow_info_json(ow_profile *p, ow_write_fn write, void *arg, struct error *err)
{
	struct info_writer writer = { write, arg };
	struct out out = { write_bytes, &writer };
	struct reading reading;
	ow_status status;

	error_clear(err);
	if (!p->frozen)
		return error_set(err, OW_E_USAGE, "the profile is still being loaded");
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	status = model_require_stacks(p->m, err); /* or none would be counted */
	if (status == OW_OK)
		status = facts_write_json(p->m, &out, err);
	return api_read_end(p, &reading, status, err);
}

static uint64_t scaled(uint64_t value, uint64_t whole, uint64_t part)
{
	return part ? (uint64_t)((double)value * ((double)whole / (double)part)) : value;
}

static ow_status load_sample(ow_profile *p, const void *head, size_t len, const char *name,
			     struct ow_estimate *e, struct error *err)
{
	struct prepared prepared;
	struct input in;
	struct import_ctx ctx;
	uint64_t before = atomic_load(&p->mem.used), content;
	ow_status status;

	OW_TRY(input_from_memory(&in, &p->mem, name, head, len, err));
	OW_TRY(import_prepare(&in, NULL, &prepared, err));
	e->format = prepared.importer->name;
	e->container = prepared.unpacked.container ? prepared.unpacked.container : "";
	content = prepared.in->size;
	e->content_bytes = scaled(content, e->file_bytes, len);
	status = import_prepared(&p->b, &prepared, &p->import, &ctx, err);
	/* A cut sample may hold too little to be usable; the sizes are still worth telling. */
	if (status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED)
		return status;
	if (p->b.status == OW_OK)
		OW_TRY(model_require_rows(p->m, TABLES_ALL, err));
	e->events = scaled(p->m->event.count - 1, e->content_bytes, content);
	e->memory_bytes =
		scaled(atomic_load(&p->mem.used) - before, e->content_bytes, content) + before;
	return OW_OK;
}

/* A file of our own takes little more to open than to estimate, and a part of it says nothing. */
static ow_status measure_stored(ow_profile *p, struct input *in, struct ow_estimate *e,
				struct error *err)
{
	struct prepared prepared;
	struct import_ctx ctx;

	OW_TRY(import_prepare(in, &import_opw, &prepared, err));
	OW_TRY(import_prepared(&p->b, &prepared, &p->import, &ctx, err));
	e->format = import_opw.name;
	e->content_bytes = e->file_bytes;
	e->events = p->m->event.count - 1;
	e->memory_bytes = atomic_load(&p->mem.used);
	return OW_OK;
}

static bool is_stored(const struct input *in)
{
	char head[8];

	return input_read_at(in, 0, head, sizeof(head), NULL) == OW_OK &&
	       opw_is(str_make(head, sizeof(head)));
}

ow_status ow_estimate_file(const char *path, struct ow_estimate *estimate, struct error *err)
{
	const struct input_options options = { .judge = import_judge };
	struct ow_estimate e = { .size = sizeof(e), .container = "" };
	struct input in;
	ow_profile *p;
	unsigned char *head = NULL;
	size_t len = 0;
	ow_status status;

	error_clear(err);
	OW_TRY(ow_profile_new(NULL, &p, err));
	p->import.infer = false;
	p->import.estimate = true;
	status = input_open_with(&in, &p->mem, path, &options, err);
	if (status != OW_OK) {
		ow_profile_free(p);
		return status;
	}
	e.file_bytes = in.size;
	if (is_stored(&in)) {
		status = measure_stored(p, &in, &e, err);
		goto out;
	}
	len = (size_t)MIN((uint64_t)SAMPLE_BYTES, in.size);
	head = malloc(len + 1);
	status = head ? input_read_at(&in, 0, head, len, err) : error_no_memory(err);
	if (status == OW_OK && !len)
		status = error_set(err, OW_E_EMPTY,
				   "%s: the file is empty; was it written to the end?", path);
	if (status == OW_OK)
		status = load_sample(p, head, len, path, &e, err);
	input_close(&in);
out:
	ow_profile_free(p);
	free(head);
	if (status == OW_OK)
		memcpy(estimate, &e, MIN(estimate->size, sizeof(e)));
	return status;
}
