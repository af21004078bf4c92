/* cut.c: see cut.h. The ring is followed once to its end (follow.h), and what is wanted of it is cut out. */
#include "live/cut.h"

#include "base/error.h"

static ow_status read_ring(struct follow *f, struct error *err)
{
	do
		OW_TRY(follow_turn(f, err));
	while (!f->caught_up && f->file_count);
	return OW_OK;
}

static uint32_t count_processes(const struct follow *f, int64_t from_ns)
{
	uint32_t count = 0;

	for (size_t i = 0; i < f->process_count; i++)
		count += f->processes[i].last_ns > INT64_MIN && f->processes[i].last_ns >= from_ns;
	return count;
}

static ow_status nothing_there(const struct cut *cut, struct error *err)
{
	return error_set(err, OW_E_EMPTY, "job %s: nothing was recorded%s", cut->job->name,
			 cut->from_ns ? " in that time" : " yet");
}

static ow_status cut_followed(const struct cut *cut, struct follow *f, struct cut_summary *summary,
			      struct error *err)
{
	int64_t newest = MAX(f->newest_ns, f->newest_sample_ns);
	struct follow_range range = { .from_ns = INT64_MIN, .to_ns = INT64_MAX, .exact = true };

	if (cut->from_ns)
		range.from_ns = cut->from_ns;
	else if (cut->last_ns && newest > 0)
		range.from_ns = newest - cut->last_ns;
	summary->files = (uint32_t)f->file_count;
	summary->processes = count_processes(f, range.from_ns);
	if (!f->has_session || !summary->processes)
		return nothing_there(cut, err);
	OW_TRY(cut->save(f, &range, cut->out_path, err));
	summary->records = range.records;
	summary->samples = range.samples;
	summary->covers_ns = newest - range.first_ns;
	return OW_OK;
}

ow_status cut_ring(const struct cut *cut, struct mem *mem, struct cut_summary *summary,
		   struct error *err)
{
	struct follow follow;
	ow_status status;

	*summary = (struct cut_summary){ 0 };
	OW_TRY(follow_open(&follow, mem, cut->job->folder, FOLLOW_ALL, err));
	status = read_ring(&follow, err);
	if (status == OW_OK)
		status = cut_followed(cut, &follow, summary, err);
	follow_release(&follow);
	return status;
}
