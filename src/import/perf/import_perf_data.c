/*
 * import_perf_data.c: the importer of perf.data, which `perf record` writes to a file or into a pipe, in either byte
 * order. This file recognises the format, walks over its sections and reports their contents; perf_data.h says which
 * file does the rest. Names of functions come from the file itself and from the places where perf finds them on this
 * machine (perf_names.h). Stacks are not unwound.
 */
#include "import/perf/perf_data.h"

#define FILE_HEADER 104
#define PIPE_HEADER 16
#define FEATURE_COUNT 256
#define TYPE_MAX 200 /* a larger type is not a record, for example a message of perf in a pipe */
#define SECTION_MAX ((uint64_t)64 << 20)
#define RECORD_MAX ((size_t)64 << 10)

struct section {
	uint64_t offset, size;
};

struct header {
	uint64_t size, attr_size;
	struct section attrs, data;
	unsigned char features[FEATURE_COUNT / 8];
};

static bool is_swapped(struct str head, bool *swap)
{
	*swap = str_starts(head, STR("2ELIFREP"));
	return *swap || str_starts(head, STR("PERFILE2"));
}

static int sniff_perf_data(const struct sniff *sniff)
{
	bool swap;

	return is_swapped(sniff->head, &swap) ? 100 : 0;
}

static struct section section_at(const unsigned char *p, bool swap)
{
	return (struct section){ perf_u64(p, swap), perf_u64(p + 8, swap) };
}

static bool inside(const struct perf_file *f, struct section s)
{
	return s.offset <= f->ctx->in->size && s.size <= f->ctx->in->size - s.offset;
}

static ow_status read_ids(struct perf_file *f, struct window *w, struct section ids, uint32_t event)
{
	const unsigned char *p;

	if (!inside(f, ids) || ids.size > SECTION_MAX)
		return OW_OK;
	p = window_at(w, ids.offset, (size_t)ids.size);
	if (!p)
		return w->status;
	for (size_t at = 0; at + 8 <= ids.size; at += 8)
		OW_TRY(perf_event_id(f, event, perf_u64(p + at, f->swap)));
	return OW_OK;
}

static ow_status read_attrs(struct perf_file *f, struct window *w, const struct header *h)
{
	if (h->attr_size < 80 || h->attr_size > 4096 || !inside(f, h->attrs)) {
		builder_note(f->b, NOTE_DAMAGED, 16, "the list of events cannot be read");
		return OW_OK;
	}
	for (uint64_t at = 0; at + h->attr_size <= h->attrs.size; at += h->attr_size) {
		const unsigned char *p = window_at(w, h->attrs.offset + at, (size_t)h->attr_size);
		struct section ids;
		uint32_t event = 0;

		if (!p)
			return w->status;
		ids = section_at(p + h->attr_size - 16, f->swap);
		OW_TRY(perf_event_add(f, p, (size_t)h->attr_size - 16, &event));
		OW_TRY(read_ids(f, w, ids, event));
	}
	return OW_OK;
}

/* Reads the features, which come after the records, one section each. */
static ow_status read_features(struct perf_file *f, struct window *w, const struct header *h)
{
	uint64_t at = h->data.offset + h->data.size;
	fact_id list = fact_list(f->b, (fact_id){ 0 }, "feature_bits");

	for (unsigned bit = 0; bit < FEATURE_COUNT; bit++) {
		const unsigned char *p;
		struct section s;

		if (!(perf_u64(h->features + bit / 64 * 8, f->swap) >> bit % 64 & 1))
			continue;
		fact_int(f->b, list, NULL, bit);
		if (at + 16 > f->ctx->in->size || at + 16 < at)
			break;
		p = window_at(w, at, 16);
		if (!p)
			return w->status;
		s = section_at(p, f->swap);
		at += 16;
		if (!s.size || s.size > SECTION_MAX || !inside(f, s))
			continue;
		p = window_at(w, s.offset, (size_t)s.size);
		if (!p)
			return w->status;
		OW_TRY(perf_feature_read(f, bit, p, (size_t)s.size));
	}
	return OW_OK;
}

/* The number of bytes that follow a record and are not included in its size. */
static uint64_t tail_of(const struct perf_file *f, const unsigned char *p, size_t size)
{
	uint32_t type = perf_u32(p, f->swap);

	if (type == PERF_TRACING_DATA && size >= 12)
		return ((uint64_t)perf_u32(p + 8, f->swap) + 7) & ~(uint64_t)7;
	if (type == PERF_AUXTRACE && size >= 16)
		return perf_u64(p + 8, f->swap);
	return 0;
}

static void count_aux(struct perf_file *f, const unsigned char *p, size_t size)
{
	uint32_t type = perf_u32(p, f->swap);

	if (type == PERF_AUXTRACE_INFO && size >= 12)
		f->aux_type = perf_u32(p + 8, f->swap);
	if (type == PERF_AUXTRACE && size >= 16)
		f->aux_bytes += MIN(perf_u64(p + 8, f->swap), f->ctx->in->size);
}

static const char *aux_name(uint32_t type)
{
	static const char *const names[] = { "a hardware trace", "Intel PT",
					     "Intel BTS",	 "Arm CoreSight",
					     "Arm SPE",		 "s390 CPU-measurement sampling",
					     "HiSilicon PTT" };

	return names[type < ARRAY_COUNT(names) ? type : 0];
}

/* Reads the complete records in len bytes. *used receives the bytes of the records and their tails. */
static ow_status read_some(struct perf_file *f, const unsigned char *p, size_t len, uint64_t at,
			   uint64_t *used)
{
	size_t done = 0;

	*used = 0;
	while (len - done >= 8) {
		uint32_t type = perf_u32(p + done, f->swap);
		uint32_t size = perf_record_size(p + done, type, f->swap);
		uint64_t tail;

		if (size < 8 || (type > TYPE_MAX && !perf_is_simple(type)))
			break;
		if (size > len - done) {
			/* skips a long record of simpleperf: none of them is needed */
			*used = size > UINT16_MAX ? (uint64_t)done + size : done;
			return OW_OK;
		}
		f->at = at + done;
		if (OW_LIKELY(type == PERF_SAMPLE)) {
			OW_TRY(perf_samples_read(f, p + done, len - done, &done,
						 &f->records[PERF_SAMPLE]));
			continue;
		}
		OW_TRY(perf_record_read(f, p + done, size, true));
		count_aux(f, p + done, size);
		tail = tail_of(f, p + done, size);
		done += size;
		if (tail) {
			*used = tail <= UINT64_MAX - done ? done + tail : UINT64_MAX;
			return OW_OK;
		}
	}
	*used = done;
	return OW_OK;
}

static ow_status read_records(struct perf_file *f, struct window *w, uint64_t at, uint64_t end)
{
	f->data_at = at;
	f->data_end = end;
	while (end - at >= 8) {
		struct str some = window_peek(w, at, RECORD_MAX);
		uint64_t used;

		if (!some.ptr)
			return w->status;
		OW_TRY(read_some(f, (const unsigned char *)some.ptr,
				 (size_t)MIN((uint64_t)some.len, end - at), at, &used));
		if (!perf_chains_finish(f)) /* pending samples still refer to these bytes */
			return import_no_memory(f->ctx);
		if (!used || used > end - at)
			break;
		at += used;
	}
	if (at < end)
		builder_note(f->b, f->pipe ? NOTE_INFO : NOTE_TRUNCATED, at,
			     "the last %" PRIu64 " bytes are left out: no record begins there",
			     end - at);
	return OW_OK;
}

static ow_status read_file(struct perf_file *f, struct window *w, const unsigned char *p)
{
	struct header h = { .size = perf_u64(p + 8, f->swap),
			    .attr_size = perf_u64(p + 16, f->swap),
			    .attrs = section_at(p + 24, f->swap),
			    .data = section_at(p + 40, f->swap) };
	uint64_t size = f->ctx->in->size;

	memcpy(h.features, p + 72, sizeof(h.features));
	OW_TRY(read_attrs(f, w, &h));
	fact_int(f->b, (fact_id){ 0 }, "attr_size", (int64_t)MIN(h.attr_size, INT64_MAX));
	fact_int(f->b, (fact_id){ 0 }, "attrs", (int64_t)f->event_count);
	fact_int(f->b, (fact_id){ 0 }, "data_offset", (int64_t)MIN(h.data.offset, INT64_MAX));
	fact_int(f->b, (fact_id){ 0 }, "data_size", (int64_t)MIN(h.data.size, INT64_MAX));
	if (h.data.offset > size)
		return error_at(f->ctx->err, OW_E_CORRUPT, 40,
				"%s: the header says that the records begin behind the end of the "
				"file; record again",
				f->ctx->in->name);
	if (!h.data.size) {
		builder_note(f->b, NOTE_TRUNCATED, 48,
			     "the recording did not end properly; records are read up to the end "
			     "of the file");
		h.data.size = size - h.data.offset;
	} else {
		OW_TRY(read_features(f, w, &h));
	}
	if (h.data.size > size - h.data.offset) {
		builder_note(f->b, NOTE_TRUNCATED, size,
			     "the file is cut short: it ends before its last record");
		h.data.size = size - h.data.offset;
	}
	return read_records(f, w, h.data.offset, h.data.offset + h.data.size);
}

static ow_status read_all(struct perf_file *f, struct window *w)
{
	struct str head = window_peek(w, 0, FILE_HEADER);
	const unsigned char *p = (const unsigned char *)head.ptr;
	uint64_t size;

	if (!p)
		return w->status;
	if (!is_swapped(head, &f->swap) || head.len < PIPE_HEADER)
		return error_at(f->ctx->err, OW_E_FORMAT, 0, "%s: not a perf.data file",
				f->ctx->in->name);
	size = perf_u64(p + 8, f->swap);
	f->pipe = size == PIPE_HEADER;
	if (f->pipe)
		return read_records(f, w, PIPE_HEADER, f->ctx->in->size);
	if (size < FILE_HEADER || head.len < FILE_HEADER)
		return error_at(f->ctx->err, OW_E_CORRUPT, 8,
				"%s: this perf.data file ends inside its header; record again",
				f->ctx->in->name);
	return read_file(f, w, p);
}

static void add_notes_and_facts(struct perf_file *f)
{
	struct builder *b = f->b;
	const fact_id top = { 0 };
	fact_id list;

	if (f->lost)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, f->lost,
				  "samples or records that perf lost while it recorded");
	if (f->bad)
		builder_note_many(b, NOTE_DAMAGED, f->bad_offset, f->bad,
				  "damaged records are left out");
	if (f->unknown)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, f->unknown,
				  "records of an unknown type are left out");
	if (f->aux_bytes)
		builder_note(b, NOTE_DROPPED, OW_NO_OFFSET,
			     "%" PRIu64 " bytes of %s are left out: opwatch does not decode them; "
			     "open the output of 'perf script --itrace=i100us', which does",
			     f->aux_bytes, aux_name(f->aux_type));
	fact_text(b, top, "kind", STR("perf.data"));
	fact_text(b, top, "magic", STR("PERFILE2"));
	fact_text(b, top, "mode", f->pipe ? STR("pipe") : STR("file"));
	fact_text(b, top, "byte_order", f->swap ? STR("big") : STR("little"));
	fact_int(b, top, "samples", (int64_t)f->rows.count);
	list = fact_object(b, top, "records");
	for (uint32_t i = 0; i < PERF_TYPES; i++)
		if (f->records[i] && perf_type_name(i))
			fact_int(b, list, perf_type_name(i), (int64_t)f->records[i]);
}

/* Chooses the default metric: the first event with samples, as in perf; time off the processors if there is nothing
 * else. */
static void choose_default(struct perf_file *f)
{
	struct metric_table *metrics = &f->b->m->metric;

	for (size_t i = 0; i < f->event_count; i++)
		if (f->events[i].metric.v) {
			metrics->is_default[f->events[i].metric.v] = 1;
			return;
		}
	if (f->switches.metric.v)
		metrics->is_default[f->switches.metric.v] = 1;
}

/* Adds a note if samples contain copies of stacks, because only perf can unwind them. */
static void note_copied_stacks(struct perf_file *f)
{
	bool copied = false;

	for (size_t i = 0; i < f->event_count; i++)
		copied |= f->events[i].metric.v &&
			  f->events[i].attr.sample_type >> SAMPLE_STACK_USER & 1;
	if (copied)
		builder_note(f->b, NOTE_DROPPED, OW_NO_OFFSET,
			     "opwatch does not unwind copies of stacks (perf record --call-graph "
			     "dwarf), so functions of programs have no callers; open the output of "
			     "'perf script', or record with --call-graph fp or lbr");
}

static ow_status load_file(struct perf_file *f, struct window *w)
{
	OW_TRY(read_all(f, w));
	OW_TRY(f->b->status);
	add_notes_and_facts(f);
	OW_TRY(perf_samples_resolve(f));
	OW_TRY(perf_switches_resolve(f));
	if (f->names.other_id)
		builder_note_many(f->b, NOTE_MISSING, OW_NO_OFFSET, f->names.other_id,
				  "programs or libraries that changed since the recording: their "
				  "functions have no names");
	note_copied_stacks(f);
	choose_default(f);
	if (!f->rows.count)
		builder_note(f->b, NOTE_MISSING, OW_NO_OFFSET, "this file has no samples");
	return f->b->status;
}

static ow_status load_perf_data(struct import_ctx *ctx)
{
	struct perf_file f = { .ctx = ctx, .b = ctx->b, .mem = ctx->b->m->mem };
	uint32_t first_sample = ctx->b->m->sample.count;
	struct window w;
	ow_status status;

	perf_records_init(&f);
	perf_samples_init(&f);
	window_init(&w, ctx->in, ctx->err);
	status = load_file(&f, &w);
	if (status != OW_OK) /* removes unfinished rows */
		ctx->b->m->sample.count = first_sample;
	window_release(&w);
	perf_records_release(&f);
	perf_samples_release(&f);
	perf_switches_release(&f);
	return status;
}

const struct importer import_perf_data = {
	.name = "perf_data",
	.summary = "perf.data of Linux perf, from a file or a pipe",
	.extensions = "perf.data *.data",
	.role = ROLE_TRACE,
	.sniff = sniff_perf_data,
	.load = load_perf_data,
};
