/*
 * cut.c: see cut.h. The ring is gone through twice: first to see when its last record ended and which processes have
 * records in the wanted time, then to copy: all that says who is who, and the records. Records of before that say
 * whose a ring is stay, the rest of what is older goes; what is left of a run keeps its numbers.
 */
#include "live/cut.h"

#include "live/live_blocks.h"
#include "live/recording.h"
#include "live/stack_copy.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4096u
#define NUMBER_MAX ((uint32_t)1 << 20)
#define COUNTS_BEFORE_NS ((int64_t)2000000000) /* rates need the value before */

struct ring_file {
	struct input in;
	struct opw_file file;
};

struct baseline { /* of a ring: drops before the cut */
	uint32_t process, ring;
	uint64_t dropped;
};

struct cutting {
	const struct cut *cut;
	struct mem *mem;
	struct arena arena;
	struct ring_file *files;
	size_t count;
	size_t file; /* that the blocks are of */
	struct live_blocks blocks;
	struct live_session session;
	bool has_session;
	uint8_t *processes; /* by number: PROCESS_… */
	size_t process_cap;
	struct baseline *baselines;
	size_t baseline_count, baseline_cap;
	int64_t from_ns, first_ns, last_ns;
	struct recording out;
	struct stack_copy stacks;
	size_t stacks_file; /* whose numbers it knows */
	struct cut_summary *summary;
	struct error *err;
};

enum { PROCESS_USED = 1, PROCESS_WRITTEN = 2 };

/* ---- the files ---- */

static ow_status open_files(struct cutting *c)
{
	const struct job_info *job = c->cut->job;
	size_t most = job->first_file ? job->last_file - job->first_file + 1 : 0;
	char path[JOBS_PATH + 32];

	if (most > FILES_MAX)
		return error_set(c->err, OW_E_CORRUPT, "%s: has too many files", job->folder);
	c->files = ARENA_ARRAY(&c->arena, struct ring_file, most + 1);
	if (!c->files)
		return error_no_memory(c->err);
	for (uint32_t i = 0; i < most; i++) {
		struct ring_file *f = &c->files[c->count];
		ow_status status;

		job_file_path(job, job->first_file + i, path, sizeof(path));
		status = input_open(&f->in, c->mem, path, c->err);
		if (status == OW_E_NOT_FOUND || status == OW_E_EMPTY)
			continue; /* just dropped, or just made */
		if (status != OW_OK)
			return status;
		status = opw_read(&f->file, &f->in, &c->arena, c->err);
		if (status == OW_OK)
			c->count++;
		else
			input_close(&f->in);
		if (status == OW_E_NO_MEMORY)
			return status;
	}
	error_clear(c->err);
	c->summary->files = (uint32_t)c->count;
	return OW_OK;
}

static ow_status each_segment(struct cutting *c, unsigned wanted,
			      ow_status (*each)(struct cutting *c))
{
	for (size_t i = 0; i < c->count; i++)
		for (size_t k = 0; k < c->files[i].file.count; k++) {
			const struct opw_segment *s = &c->files[i].file.segments[k];

			if (s->head.kind != OPW_LIVE)
				continue;
			c->file = i;
			OW_TRY(live_blocks_read(&c->blocks, &c->files[i].in, s, wanted, c->err));
			OW_TRY(each(c));
		}
	return OW_OK;
}

/* ---- what is where ---- */

#define EACH(c, block, type, row, body)                                                            \
	do {                                                                                       \
		struct str left_ = (c)->blocks.all[block];                                         \
		for (; left_.len >= sizeof(type); left_ = str_skip(left_, sizeof(type))) {         \
			type row;                                                                  \
			memcpy(&row, left_.ptr, sizeof(row));                                      \
			body;                                                                      \
		}                                                                                  \
	} while (0)

static int64_t end_of(const struct ring_record *r)
{
	uint64_t end = r->start_ns + r->dur_ns;

	return r->start_ns <= INT64_MAX && r->dur_ns <= INT64_MAX && end <= INT64_MAX ? (int64_t)end
										      : 0;
}

static bool is_slice(const struct ring_record *r)
{
	return r->kind == RING_SLICE || r->kind == RING_SPAN || r->kind == RING_DEVICE;
}

static bool is_wanted(const struct cutting *c, const struct ring_record *r)
{
	return !is_slice(r) || end_of(r) >= c->from_ns;
}

/* Goes through the runs of a segment. */
static ow_status each_run(struct cutting *c,
			  ow_status (*each)(struct cutting *c, const struct live_run *run,
					    const char *records))
{
	struct str runs = c->blocks.all[LIVE_BLOCK_RUN], records = c->blocks.all[LIVE_BLOCK_RECORD];

	while (runs.len >= sizeof(struct live_run)) {
		struct live_run run;

		memcpy(&run, runs.ptr, sizeof(run));
		if (run.count > records.len / sizeof(struct ring_record))
			break; /* damaged */
		OW_TRY(each(c, &run, records.ptr));
		runs = str_skip(runs, sizeof(run));
		records = str_skip(records, run.count * sizeof(struct ring_record));
	}
	return OW_OK;
}

static struct ring_record record_at(const char *records, uint32_t i)
{
	struct ring_record r;

	memcpy(&r, records + (size_t)i * sizeof(r), sizeof(r));
	return r;
}

static ow_status find_last(struct cutting *c, const struct live_run *run, const char *records)
{
	for (uint32_t i = 0; i < run->count; i++) {
		struct ring_record r = record_at(records, i);

		if (is_slice(&r))
			c->last_ns = MAX(c->last_ns, end_of(&r));
	}
	return OW_OK;
}

static ow_status look_for_end(struct cutting *c)
{
	struct str session = c->blocks.all[LIVE_BLOCK_SESSION];

	if (session.len == sizeof(c->session) && !c->has_session) {
		memcpy(&c->session, session.ptr, sizeof(c->session));
		c->has_session = true;
	}
	EACH(c, LIVE_BLOCK_SAMPLE, struct live_sample, row,
	     c->last_ns = MAX(c->last_ns, row.ts_ns));
	return each_run(c, find_last);
}

static ow_status mark(struct cutting *c, uint32_t process)
{
	void *list = c->processes;
	size_t old = c->process_cap;

	if (!process || process > NUMBER_MAX)
		return OW_OK;
	if (process >= old) {
		if (!mem_grow(c->mem, &list, &c->process_cap, (size_t)process + 1, 1))
			return error_no_memory(c->err);
		c->processes = list;
		memset(c->processes + old, 0, c->process_cap - old);
	}
	c->summary->processes += !c->processes[process];
	c->processes[process] |= PROCESS_USED;
	return OW_OK;
}

/* The drops that a ring had counted before the wanted time. */
static ow_status keep_baseline(struct cutting *c, const struct live_run *run)
{
	void *list = c->baselines;
	size_t i = 0;

	while (i < c->baseline_count &&
	       (c->baselines[i].process != run->process || c->baselines[i].ring != run->ring))
		i++;
	if (i == c->baseline_count) {
		if (!run->dropped)
			return OW_OK;
		if (!mem_grow(c->mem, &list, &c->baseline_cap, i + 1, sizeof(*c->baselines)))
			return error_no_memory(c->err);
		c->baselines = list;
		c->baseline_count++;
	}
	c->baselines[i] = (struct baseline){ run->process, run->ring, run->dropped };
	return OW_OK;
}

static ow_status look_at_run(struct cutting *c, const struct live_run *run, const char *records)
{
	for (uint32_t i = 0; i < run->count; i++) {
		struct ring_record r = record_at(records, i);

		if (!is_slice(&r) || end_of(&r) < c->from_ns)
			continue;
		c->first_ns = MIN(c->first_ns, (int64_t)r.start_ns);
		return mark(c, run->process);
	}
	return keep_baseline(c, run);
}

static ow_status look(struct cutting *c)
{
	EACH(c, LIVE_BLOCK_SAMPLE, struct live_sample, row, {
		if (row.ts_ns < c->from_ns)
			continue;
		c->first_ns = MIN(c->first_ns, row.ts_ns);
		OW_TRY(mark(c, row.process));
	});
	return each_run(c, look_at_run);
}

/* ---- copying ---- */

static bool is_used(const struct cutting *c, uint32_t process)
{
	return process < c->process_cap && c->processes[process] & PROCESS_USED;
}

static uint64_t dropped_since(const struct cutting *c, const struct live_run *run)
{
	for (size_t i = 0; i < c->baseline_count; i++)
		if (c->baselines[i].process == run->process && c->baselines[i].ring == run->ring)
			return run->dropped - MIN(run->dropped, c->baselines[i].dropped);
	return run->dropped;
}

/* Each piece of the run that is wanted becomes a run. */
static ow_status copy_run(struct cutting *c, const struct live_run *run, const char *records)
{
	if (!is_used(c, run->process))
		return OW_OK;
	for (uint32_t i = 0, end; i < run->count; i = end) {
		struct ring_record r = record_at(records, i);
		struct live_run piece = *run;
		struct ring_record *to;

		end = i + 1;
		if (!is_wanted(c, &r))
			continue;
		for (; end < run->count; end++) {
			r = record_at(records, end);
			if (!is_wanted(c, &r))
				break;
		}
		piece.first += i;
		piece.count = end - i;
		piece.dropped = dropped_since(c, run);
		to = recording_add_run(&c->out, &piece);
		if (!to)
			return error_no_memory(c->err);
		memcpy(to, records + (size_t)i * sizeof(*to), piece.count * sizeof(*to));
		c->summary->records += piece.count;
	}
	return OW_OK;
}

static void copy_process(struct cutting *c, const struct live_process *row)
{
	if (!is_used(c, row->number) || c->processes[row->number] & PROCESS_WRITTEN)
		return;
	c->processes[row->number] |= PROCESS_WRITTEN;
	recording_add_process(&c->out, row);
}

/* Texts of process 0 are what stacks are made of. */
static ow_status copy_text(struct cutting *c, const struct live_text *head, struct str text)
{
	if (!head->process && head->kind == LIVE_SOURCE)
		return stack_copy_text(&c->stacks, head->number, text) ? OW_OK
								       : error_no_memory(c->err);
	if (is_used(c, head->process))
		recording_add_text(&c->out, head->process, (enum live_text_kind)head->kind,
				   head->number, text);
	return OW_OK;
}

static ow_status copy_texts(struct cutting *c)
{
	struct str left = c->blocks.all[LIVE_BLOCK_TEXT];

	while (left.len >= sizeof(struct live_text)) {
		struct live_text head;

		memcpy(&head, left.ptr, sizeof(head));
		if (live_text_bytes(head.len) > left.len)
			break;
		OW_TRY(copy_text(c, &head, str_make(left.ptr + sizeof(head), head.len)));
		left = str_skip(left, (size_t)live_text_bytes(head.len));
	}
	return OW_OK;
}

static ow_status copy_samples(struct cutting *c)
{
	bool good = true;

	EACH(c, LIVE_BLOCK_FRAME, struct live_frame, row,
	     good &= stack_copy_frame(&c->stacks, &row));
	EACH(c, LIVE_BLOCK_STACK, struct live_stack, row,
	     good &= stack_copy_stack(&c->stacks, &row));
	EACH(c, LIVE_BLOCK_SAMPLE, struct live_sample, row, {
		row.stack = stack_copy_number(&c->stacks, row.stack);
		if (row.stack && row.ts_ns >= c->from_ns && is_used(c, row.process)) {
			recording_add_sample(&c->out, &row);
			c->summary->samples++;
		}
	});
	return good ? OW_OK : error_no_memory(c->err);
}

static ow_status copy(struct cutting *c)
{
	if (c->stacks_file != c->file)
		stack_copy_begin_file(&c->stacks);
	c->stacks_file = c->file;
	EACH(c, LIVE_BLOCK_PROCESS, struct live_process, row, copy_process(c, &row));
	OW_TRY(copy_texts(c));
	EACH(c, LIVE_BLOCK_PLACE, struct live_place, row, {
		if (is_used(c, row.process))
			recording_add_place(&c->out, &row);
	});
	OW_TRY(each_run(c, copy_run));
	EACH(c, LIVE_BLOCK_COUNT, struct live_count, row, {
		if (is_used(c, row.process) && row.ts_ns >= c->from_ns - COUNTS_BEFORE_NS)
			recording_add_count(&c->out, &row);
	});
	EACH(c, LIVE_BLOCK_END, struct live_end, row, {
		if (is_used(c, row.process))
			recording_add_end(&c->out, &row);
	});
	OW_TRY(copy_samples(c));
	return recording_flush(&c->out, c->err);
}

/* ---- all ---- */

static ow_status nothing_there(const struct cutting *c)
{
	return error_set(c->err, OW_E_EMPTY, "job %s: nothing was recorded%s", c->cut->job->name,
			 c->cut->from_ns ? " in that time" : " yet");
}

static ow_status write_to(struct cutting *c, const char *path)
{
	ow_status closed, status = recording_open_as(&c->out, c->mem, path, c->cut->writer,
						     &c->session, c->err);

	OW_TRY(status);
	stack_copy_init(&c->stacks, c->mem, &c->out);
	status = each_segment(c, (1u << LIVE_BLOCKS) - 1, copy);
	stack_copy_release(&c->stacks);
	closed = recording_close(&c->out, status == OW_OK ? c->err : NULL);
	return status != OW_OK ? status : closed;
}

/* All of it, or what was there before: half of it would look like all. Pipes and the like are written to as they are. */
static ow_status write_out(struct cutting *c)
{
	const char *path = c->cut->out_path;
	struct stat st;
	ow_status status;
	char *part;

	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return write_to(c, path);
	part = arena_printf(&c->arena, "%s.part-%d", path, (int)getpid());
	if (!part)
		return error_no_memory(c->err);
	status = write_to(c, part);
	if (status == OW_OK && rename(part, path) != 0)
		status = error_errno(c->err, errno, "%s", path);
	if (status != OW_OK)
		unlink(part);
	return status;
}

static ow_status run(struct cutting *c)
{
	const unsigned records =
		1u << LIVE_BLOCK_RUN | 1u << LIVE_BLOCK_RECORD | 1u << LIVE_BLOCK_SAMPLE;

	OW_TRY(open_files(c));
	OW_TRY(each_segment(c, records | 1u << LIVE_BLOCK_SESSION, look_for_end));
	if (!c->has_session || !c->last_ns)
		return nothing_there(c);
	if (c->cut->from_ns)
		c->from_ns = c->cut->from_ns;
	else if (c->cut->last_ns)
		c->from_ns = c->last_ns - c->cut->last_ns;
	OW_TRY(each_segment(c, records, look));
	if (!c->summary->processes)
		return nothing_there(c);
	c->summary->covers_ns = c->last_ns - c->first_ns;
	return write_out(c);
}

ow_status cut_ring(const struct cut *cut, struct mem *mem, struct cut_summary *summary,
		   struct error *err)
{
	struct error unused = { 0 };
	struct cutting c = { .cut = cut,
			     .mem = mem,
			     .from_ns = INT64_MIN / 2,
			     .first_ns = INT64_MAX,
			     .summary = summary,
			     .err = err ? err : &unused };
	ow_status status;

	*summary = (struct cut_summary){ 0 };
	arena_init(&c.arena, mem);
	live_blocks_init(&c.blocks, mem);
	status = run(&c);
	for (size_t i = 0; i < c.count; i++)
		input_close(&c.files[i].in);
	mem_free(mem, c.processes, c.process_cap);
	mem_free(mem, c.baselines, c.baseline_cap * sizeof(*c.baselines));
	live_blocks_release(&c.blocks);
	arena_release(&c.arena);
	return status;
}
