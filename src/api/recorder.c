/*
 * recorder.c: the bodies of the ow_recorder functions: a program writes its own steps and slices into a file that
 * opens as any profile. The work is in wire/journal.c.
 */
#include "api/api_int.h"

#include "wire/journal.h"

#include "opwatch_config.h"

struct ow_recorder {
	struct mem mem;
	struct journal journal;
};

void ow_recorder_options_init(struct ow_recorder_options *options)
{
	*options = (struct ow_recorder_options){ .size = sizeof(*options) };
}

ow_status ow_recorder_open(const char *path, const struct ow_recorder_options *options,
			   ow_recorder **recorder, struct error *err)
{
	ow_recorder *r = calloc(1, sizeof(*r));
	struct ow_recorder_options full;
	ow_status status;

	error_clear(err);
	*recorder = NULL;
	if (!r)
		return error_no_memory(err);
	ow_recorder_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	mem_init(&r->mem, (size_t)full.memory_limit);
	status = journal_open(&r->journal, &r->mem, path, "opwatch " OPWATCH_VERSION, err);
	if (status != OW_OK) {
		free(r);
		return status;
	}
	r->journal.next_step = full.first_step;
	*recorder = r;
	return OW_OK;
}

ow_status ow_recorder_close(ow_recorder *r, struct error *err)
{
	ow_status status;

	error_clear(err);
	if (!r)
		return OW_OK;
	status = journal_close(&r->journal, err);
	free(r);
	return status;
}

bool ow_recorder_is_ours(const ow_recorder *r)
{
	return journal_is_ours(&r->journal);
}

int64_t ow_recorder_now(const ow_recorder *r)
{
	return journal_now(&r->journal);
}

uint32_t ow_recorder_name(ow_recorder *r, const char *text, size_t len)
{
	return journal_name(&r->journal, str_make(text, len));
}

void ow_recorder_name_thread(ow_recorder *r, uint32_t name)
{
	journal_name_thread(&r->journal, name);
}

void ow_recorder_mark(ow_recorder *r, uint32_t name)
{
	journal_mark(&r->journal, name);
}

void ow_recorder_slice(ow_recorder *r, uint32_t name, int64_t start_ns, int64_t end_ns)
{
	journal_slice(&r->journal, name, start_ns, end_ns);
}

int64_t ow_recorder_step(ow_recorder *r, int64_t number, int64_t start_ns)
{
	return journal_step(&r->journal, number,
			    start_ns == INT64_MIN ? journal_now(&r->journal) : start_ns);
}

void ow_recorder_end_step(ow_recorder *r, bool drop)
{
	journal_end_step(&r->journal, drop);
}

void ow_recorder_value(ow_recorder *r, uint32_t name, double value)
{
	journal_value(&r->journal, name, value);
}
