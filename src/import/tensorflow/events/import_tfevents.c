/*
 * import_tfevents.c: reads TensorBoard event files (events.out.tfevents.*): records with CRCs, each an Event. The
 * graphs and every tagged run metadata inside are read by the readers of those formats, in place; graphs first,
 * wherever they are, so that run metadata finds its ops. Summaries, log messages and session marks are only counted.
 * Damaged records are skipped and counted in notes.
 */
#include "import/importer.h"
#include "base/vec.h"
#include "import/tensorflow/run/run_metadata.h"
#include "import/tensorflow/graph/tf_graph.h"
#include "wire/protobuf/pb_stream.h"
#include "wire/tensorflow/tfrecord.h"

/* bytes searched for a first good record, when the file begins with damage */
#define SEARCHED ((size_t)64 << 10)
#define TAG_MAX 4096 /* limit of bytes of a tag that are read */

/* Event { wall_time #1, step #2, oneof … } */
enum event_field {
	EVENT_WALL_TIME = 1,
	EVENT_STEP = 2,
	EVENT_FILE_VERSION = 3,
	EVENT_GRAPH_DEF = 4,
	EVENT_SUMMARY = 5,
	EVENT_LOG_MESSAGE = 6,
	EVENT_SESSION_LOG = 7,
	EVENT_TAGGED_RUN = 8,
	EVENT_META_GRAPH = 9,
	EVENT_SOURCE = 10,
	EVENT_FIELDS
};

static const char *const field_names[EVENT_FIELDS] = {
	[EVENT_WALL_TIME] = "wall_time",       [EVENT_STEP] = "step",
	[EVENT_FILE_VERSION] = "file_version", [EVENT_GRAPH_DEF] = "graph_def",
	[EVENT_SUMMARY] = "summary",	       [EVENT_LOG_MESSAGE] = "log_message",
	[EVENT_SESSION_LOG] = "session_log",   [EVENT_TAGGED_RUN] = "tagged_run_metadata",
	[EVENT_META_GRAPH] = "meta_graph_def", [EVENT_SOURCE] = "source_metadata",
};

/* A range of bytes of the input that holds a message. */
struct range {
	uint64_t begin, end;
};

struct run {
	struct range metadata;
	str_id tag;
	int64_t number; /* step number; TF_NEXT_STEP when it is unknown */
};

struct events {
	struct import_ctx ctx; /* a copy with its own error, for nested messages */
	struct builder *b;
	struct ow_error nested;
	struct tfrecord records;
	uint64_t fields[EVENT_FIELDS];
	uint64_t events, bad_events, bad_event_offset;
	struct range *graphs, *metas;
	size_t graph_count, graph_cap, meta_count, meta_cap;
	struct run *runs;
	size_t run_count, run_cap;
};

/* Whether a record of an event file begins here: its first field is the wall time. */
static bool is_event_at(const struct sniff *s, size_t at)
{
	const unsigned char *bytes = (const unsigned char *)s->head.ptr + at;
	uint64_t len;

	return s->head.len - at > TFRECORD_HEADER + 9 && pb_load64(bytes) < s->size &&
	       tfrecord_header(bytes, &len) && len >= 9 && len < s->size &&
	       bytes[TFRECORD_HEADER] == PB_TAG(EVENT_WALL_TIME, PB_FIXED64);
}

static int sniff(const struct sniff *s)
{
	uint64_t len;

	if (s->head.len < TFRECORD_HEADER)
		return 0;
	if (is_event_at(s, 0))
		return 95;
	if (tfrecord_header((const unsigned char *)s->head.ptr, &len) && len < s->size)
		return 30; /* records of another kind; loading reports it */
	for (size_t i = 1; i < MIN(s->head.len, SEARCHED); i++)
		if (is_event_at(s, i))
			return 40;
	return 0;
}

static bool add_range(struct events *e, struct range **ranges, size_t *count, size_t *cap,
		      const struct pb_stream_field *f)
{
	if (!mem_grow(e->b->m->mem, (void **)ranges, cap, *count + 1, sizeof(**ranges))) {
		builder_no_memory(e->b);
		return false;
	}
	(*ranges)[(*count)++] = (struct range){ f->offset, f->offset + f->size };
	return true;
}

/* Reads the number at the end of a tag, as in "step_100". */
static bool number_of_tag(struct str tag, int64_t *number)
{
	size_t begin = tag.len;

	while (begin && tag.ptr[begin - 1] >= '0' && tag.ptr[begin - 1] <= '9')
		begin--;
	return str_to_i64(str_skip(tag, begin), number);
}

static void read_tag(struct events *e, struct pb_stream *s, const struct pb_stream_field *f,
		     struct run *run)
{
	const uint8_t *bytes = f->size <= TAG_MAX ? pb_stream_bytes(s, f) : NULL;
	struct str tag = str_make(bytes, bytes ? (size_t)f->size : 0);

	if (!bytes)
		return;
	if (!number_of_tag(tag, &run->number))
		run->number = TF_NEXT_STEP;
	run->tag = builder_str(e->b, str_first(tag, utf8_valid_prefix(tag)));
}

/* TaggedRunMetadata { tag #1, run_metadata #2 } */
static void read_tagged_run(struct events *e, struct pb_stream *s, const struct pb_stream_field *f)
{
	struct run run = { .number = TF_NEXT_STEP };
	struct pb_stream_field part;

	if (!pb_stream_enter(s, f))
		return;
	while (pb_stream_next(s, &part)) {
		if (part.tag == PB_TAG(1, PB_BYTES))
			read_tag(e, s, &part, &run);
		else if (part.tag == PB_TAG(2, PB_BYTES))
			run.metadata = (struct range){ part.offset, part.offset + part.size };
	}
	pb_stream_leave(s);
	if (!run.metadata.end)
		return;
	if (!vec_push(e->b->m->mem, e->runs, e->run_count, e->run_cap, run))
		builder_no_memory(e->b);
}

static void read_field(struct events *e, struct pb_stream *s, const struct pb_stream_field *f)
{
	uint32_t number = f->tag >> 3;

	if (number < EVENT_FIELDS)
		e->fields[number]++;
	if (f->tag == PB_TAG(EVENT_GRAPH_DEF, PB_BYTES))
		add_range(e, &e->graphs, &e->graph_count, &e->graph_cap, f);
	else if (f->tag == PB_TAG(EVENT_META_GRAPH, PB_BYTES))
		add_range(e, &e->metas, &e->meta_count, &e->meta_cap, f);
	else if (f->tag == PB_TAG(EVENT_TAGGED_RUN, PB_BYTES))
		read_tagged_run(e, s, f);
}

/* Reads one record whose CRC is right; its content may still not be an Event. */
static ow_status read_event(struct events *e)
{
	uint64_t begin = e->records.data_offset;
	size_t runs = e->run_count;
	struct pb_stream_field f;
	struct pb_stream s;
	int64_t step = TF_NEXT_STEP;
	bool timed = false;

	pb_stream_init(&s, &e->records.window, begin, begin + e->records.data_len);
	while (e->b->status == OW_OK && pb_stream_next(&s, &f)) {
		timed |= f.tag == PB_TAG(EVENT_WALL_TIME, PB_FIXED64);
		if (f.tag == PB_TAG(EVENT_STEP, PB_VARINT))
			step = (int64_t)f.value;
		read_field(e, &s, &f);
	}
	for (; runs < e->run_count; runs++)
		if (e->runs[runs].number == TF_NEXT_STEP)
			e->runs[runs].number = step;
	if (s.status != OW_OK && s.status != OW_E_CORRUPT && s.status != OW_E_LIMIT)
		return s.status;
	if ((s.status != OW_OK || !timed) && !e->bad_events++)
		e->bad_event_offset = begin;
	e->events += timed;
	return e->b->status;
}

static ow_status read_records(struct events *e)
{
	while (tfrecord_next(&e->records))
		OW_TRY(read_event(e));
	return e->records.status;
}

/* Turns the failure of a nested message into a note; only failures of memory or the disk end the import. */
static ow_status nested_status(struct events *e, ow_status status, uint64_t offset,
			       const char *what)
{
	switch (status) {
	case OW_E_CORRUPT:
	case OW_E_FORMAT:
	case OW_E_LIMIT:
	case OW_E_EMPTY:
	case OW_E_UNSUPPORTED:
		builder_note(e->b, NOTE_DAMAGED, offset, "%s in the event file: %s", what,
			     e->nested.text);
		return e->b->status;
	default:
		return status;
	}
}

static ow_status read_graphs(struct events *e)
{
	fact_id list = fact_list(e->b, (fact_id){ 0 }, "graphs");

	for (size_t i = 0; i < e->graph_count; i++) {
		struct range at = e->graphs[i];
		uint64_t nodes;
		ow_status status = tf_graph_read(&e->ctx, at.begin, at.end,
						 fact_object(e->b, list, NULL), &nodes);

		OW_TRY(nested_status(e, status, at.begin, "a graph"));
	}
	return OW_OK;
}

/* Reads meta graphs: mostly the same graphs once more, but with the list of trainable variables. */
static ow_status read_meta_graphs(struct events *e)
{
	fact_id list = { 0 };

	if (e->meta_count)
		list = fact_list(e->b, list, "meta_graphs");
	for (size_t i = 0; i < e->meta_count; i++) {
		struct range at = e->metas[i];
		uint64_t unknown;
		ow_status status = tf_meta_read(&e->ctx, at.begin, at.end,
						fact_object(e->b, list, NULL), false, &unknown);

		OW_TRY(nested_status(e, status, at.begin, "a meta graph"));
	}
	return OW_OK;
}

/* Whether the step number is new in this file. A job that was restarted repeats numbers. */
static bool first_use(struct events *e, struct map *used, size_t run)
{
	uint64_t hash = map_hash_u64((uint64_t)e->runs[run].number, 3);
	struct map_iter it;

	for (it = map_find(used, hash); it.value; it = map_next(used, it))
		if (e->runs[it.value - 1].number == e->runs[run].number)
			return false;
	if (!map_add(used, hash, (uint32_t)run + 1))
		builder_no_memory(e->b);
	return true;
}

static ow_status read_run(struct events *e, const struct run *run, int64_t number, fact_id list)
{
	fact_id facts = fact_object(e->b, list, NULL);
	ow_status status;

	fact_text(e->b, facts, "tag", model_str(e->b->m, run->tag));
	status = tf_run_read(&e->ctx, run->metadata.begin, run->metadata.end, false, number, facts);
	return nested_status(e, status, run->metadata.begin, "run metadata");
}

static ow_status read_runs(struct events *e)
{
	int64_t wanted = e->ctx.options->step;
	ow_status status = OW_OK;
	fact_id list = { 0 };
	struct map used;

	if (e->run_count)
		list = fact_list(e->b, (fact_id){ 0 }, "run_metadata");
	map_init(&used, e->b->m->mem);
	for (size_t i = 0; i < e->run_count && status == OW_OK; i++) {
		int64_t number = e->runs[i].number;

		if (e->run_count == 1 && wanted != INT64_MIN)
			number = wanted;
		else if (number != TF_NEXT_STEP && !first_use(e, &used, i))
			number = TF_NEXT_STEP;
		status = e->b->status == OW_OK ? read_run(e, &e->runs[i], number, list)
					       : e->b->status;
	}
	map_release(&used);
	return status;
}

static void add_facts(struct events *e)
{
	fact_id nil = { 0 }, fields;

	fact_int(e->b, nil, "records", (int64_t)e->records.report.records);
	fields = fact_object(e->b, nil, "fields");
	for (int i = 1; i < EVENT_FIELDS; i++)
		if (e->fields[i])
			fact_int(e->b, fields, field_names[i], (int64_t)e->fields[i]);
	if (e->records.report.bad) {
		fact_int(e->b, nil, "bad_records", (int64_t)e->records.report.bad);
		fact_int(e->b, nil, "skipped_bytes", (int64_t)e->records.report.skipped_bytes);
	}
}

static void add_notes(struct events *e)
{
	const struct tfrecord_report *report = &e->records.report;

	if (report->bad)
		builder_note_many(e->b, NOTE_DAMAGED, report->first_bad_offset, report->bad,
				  "damaged records of the event file were skipped");
	if (report->truncated)
		builder_note(e->b, NOTE_TRUNCATED, OW_NO_OFFSET,
			     "the event file ends inside a record: the program that writes it was "
			     "stopped or is still running");
	if (e->bad_events)
		builder_note_many(
			e->b, NOTE_DAMAGED, e->bad_event_offset, e->bad_events,
			"records of the event file are not complete events; they were skipped");
	if (!e->graph_count && !e->meta_count && !e->run_count)
		builder_note(e->b, NOTE_INFO, OW_NO_OFFSET,
			     "the event file has neither a graph nor run metadata, so there is "
			     "nothing to profile in it");
}

static ow_status check_usable(const struct events *e, struct import_ctx *ctx)
{
	if (e->events)
		return OW_OK;
	if (!e->records.report.records)
		return error_at(
			ctx->err, OW_E_CORRUPT, 0,
			"%s: no record of this event file can be read; copy it again, as binary",
			ctx->in->name);
	return error_set(
		ctx->err, OW_E_FORMAT,
		"%s: the records of this file are not TensorFlow events (maybe training data "
		"in TFRecord form, which holds no profile)",
		ctx->in->name);
}

static ow_status read_all(struct events *e, struct import_ctx *ctx)
{
	OW_TRY(read_records(e));
	OW_TRY(check_usable(e, ctx));
	add_facts(e);
	add_notes(e);
	OW_TRY(read_graphs(e));
	OW_TRY(read_meta_graphs(e));
	return read_runs(e);
}

static ow_status load(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct events e = { .ctx = *ctx, .b = ctx->b };
	struct ow_error trouble = { 0 };
	ow_status status;

	e.ctx.err = &e.nested;
	tfrecord_init(&e.records, ctx->in, &trouble);
	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("Event"));
	status = read_all(&e, ctx);
	if (status != OW_OK && ctx->err && ctx->err->status == OW_OK)
		*ctx->err = e.nested.status == status ? e.nested : trouble;
	ctx->coverage = e.ctx.coverage;
	ctx->missing_step_stats = e.ctx.missing_step_stats;
	tfrecord_release(&e.records);
	mem_free(mem, e.graphs, e.graph_cap * sizeof(*e.graphs));
	mem_free(mem, e.metas, e.meta_cap * sizeof(*e.metas));
	mem_free(mem, e.runs, e.run_cap * sizeof(*e.runs));
	return status;
}

const struct importer import_tfevents = {
	.name = "tfevents",
	.summary = "TensorBoard event file: its graphs and tagged run metadata",
	.extensions = "events.out.tfevents.*",
	.role = ROLE_GRAPH,
	.defers = true,
	.sniff = sniff,
	.load = load,
};
