/*
 * xspace_plane.c: where the planes of an XSpace are, and what stands around the events of one: its name, its
 * dictionaries, its own stats, and the heads of its lines. Events are not read here.
 */
#include "import/xspace_int.h"

#define ENTRY_STATS_MAX ((size_t)64 << 10) /* of an entry; HLO programs are read elsewhere */
#define HEAD_BYTES ((size_t)4 << 10)	   /* what stands before a long field */

/* ---- the planes ---- */

static enum xplane_kind kind_of(struct str name)
{
	if (str_eq(name, STR("/host:metadata")))
		return XPLANE_METADATA;
	if (str_starts(name, STR("/device:GPU:")))
		return XPLANE_GPU;
	if (str_starts(name, STR("/device:TPU:")))
		return XPLANE_TPU;
	if (str_starts(name, STR("/device:")) || str_starts(name, STR("/virtualdevice:")))
		return XPLANE_DEVICE;
	return str_starts(name, STR("/host:")) ? XPLANE_HOST : XPLANE_OTHER;
}

static ow_status add_plane(struct xspace *x, const struct pb_stream_field *f)
{
	void *planes = x->planes;

	if (!mem_grow(x->mem, &planes, &x->plane_cap, x->plane_count + 1, sizeof(*x->planes)))
		return xspace_no_memory(x);
	x->planes = planes;
	x->planes[x->plane_count] = (struct xplane){ .offset = f->offset,
						     .size = f->size,
						     .kind = XPLANE_OTHER,
						     .number = (int64_t)x->plane_count + 1,
						     .min_start_ps = INT64_MAX,
						     .max_end_ps = INT64_MIN };
	x->plane_count++;
	return OW_OK;
}

static ow_status add_hostname(struct xspace *x, struct pb_stream *s,
			      const struct pb_stream_field *f)
{
	const uint8_t *bytes = f->size <= 4096 ? pb_stream_bytes(s, f) : NULL;
	void *names = x->hostnames;

	if (!bytes)
		return OW_OK;
	if (!mem_grow(x->mem, &names, &x->hostname_cap, x->hostname_count + 1,
		      sizeof(*x->hostnames)))
		return xspace_no_memory(x);
	x->hostnames = names;
	x->hostnames[x->hostname_count++] = xspace_text(x, str_make(bytes, f->size));
	return builder_status(x->b);
}

/* The end of what can be read; what came before is used. */
static void tell_problem(struct xspace *x, const struct pb_stream *s)
{
	if (s->status == OW_OK || x->truncated)
		return;
	x->truncated = true;
	x->truncated_at = s->at;
}

/* Errors and warnings of the profiler itself. */
static void tell_message(struct xspace *x, struct pb_stream *s, const struct pb_stream_field *f)
{
	const uint8_t *bytes = f->size <= 64 << 10 ? pb_stream_bytes(s, f) : NULL;

	if (bytes)
		builder_note(x->b, NOTE_INFO, f->start, "the profiler says: %.*s",
			     STR_ARG(model_str(
				     x->b->m,
				     xspace_text(x, str_first(str_make(bytes, f->size), 500)))));
}

/* Its name stands before its lines. */
static ow_status read_plane_head(struct xspace *x, struct xplane *plane)
{
	struct str head = window_peek(&x->window, plane->offset,
				      (size_t)MIN(plane->size, (uint64_t)HEAD_BYTES));
	struct pb_field f;
	struct pb r;

	if (!head.ptr)
		return plane->size ? x->window.status : OW_OK;
	r = pb_over(head.ptr, (size_t)MIN(plane->size, (uint64_t)head.len));
	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(2, PB_BYTES)) {
			plane->name = arena_str(&x->arena, pb_str(&f));
			plane->kind = kind_of(plane->name);
			return plane->name.ptr ? OW_OK : xspace_no_memory(x);
		}
		if (f.tag == PB_TAG(3, PB_BYTES))
			break;
	}
	return OW_OK;
}

ow_status xspace_find_planes(struct xspace *x)
{
	struct pb_stream s;
	struct pb_stream_field f;

	pb_stream_init(&s, &x->window, 0, x->ctx->in->size);
	while (pb_stream_next(&s, &f)) {
		uint32_t number = f.tag >> 3;

		if (f.tag == PB_TAG(1, PB_BYTES)) {
			OW_TRY(add_plane(x, &f));
			if (f.cut) {
				x->truncated = true;
				x->truncated_at = x->ctx->in->size;
			}
			continue;
		}
		x->others[number < ARRAY_COUNT(x->others) ? number : 0]++;
		if (f.tag == PB_TAG(2, PB_BYTES) || f.tag == PB_TAG(3, PB_BYTES))
			tell_message(x, &s, &f);
		if (f.tag == PB_TAG(4, PB_BYTES))
			OW_TRY(add_hostname(x, &s, &f));
		OW_TRY(builder_status(x->b));
	}
	if (s.status != OW_OK && s.status != OW_E_CORRUPT)
		return s.status;
	tell_problem(x, &s);
	for (size_t i = 0; i < x->plane_count; i++)
		OW_TRY(read_plane_head(x, &x->planes[i]));
	return OW_OK;
}

/* ---- lines ---- */

/* What stands before the events; a display name stands after them. */
static ow_status read_line_head(struct xspace *x, struct xline *line)
{
	struct str head = window_peek(&x->window, line->offset,
				      (size_t)MIN(line->size, (uint64_t)HEAD_BYTES));
	struct pb_field f;
	struct pb r;

	if (!head.ptr)
		return line->size ? x->window.status : OW_OK;
	r = pb_over(head.ptr, (size_t)MIN(line->size, (uint64_t)head.len));
	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(4, PB_BYTES))
			break;
		if (f.tag == PB_TAG(1, PB_VARINT))
			line->id = (int64_t)f.value;
		else if (f.tag == PB_TAG(3, PB_VARINT))
			line->timestamp_ns = (int64_t)f.value;
		else if (f.tag == PB_TAG(2, PB_BYTES))
			line->name = arena_str(&x->shelf, pb_str(&f));
	}
	return line->name.len && !line->name.ptr ? xspace_no_memory(x) : OW_OK;
}

static ow_status add_line(struct xspace *x, struct xplane *plane, const struct pb_stream_field *f)
{
	void *lines = plane->lines;

	if (!mem_grow(x->mem, &lines, &plane->line_cap, plane->line_count + 1,
		      sizeof(*plane->lines)))
		return xspace_no_memory(x);
	plane->lines = lines;
	plane->lines[plane->line_count++] = (struct xline){ .offset = f->offset, .size = f->size };
	return OW_OK;
}

/* Lines of the same id are one. */
static ow_status join_lines(struct xspace *x, struct xplane *plane)
{
	uint32_t *last = ARENA_ARRAY(&x->shelf, uint32_t, plane->line_count + 1);
	ow_status status = last ? OW_OK : xspace_no_memory(x);
	struct xids seen;

	xids_init(&seen, x->mem);
	for (size_t i = 0; i < plane->line_count && status == OW_OK; i++) {
		uint32_t before = seen.count, row = xids_add(&seen, (uint64_t)plane->lines[i].id);

		if (!row) {
			status = xspace_no_memory(x);
			break;
		}
		if (row < before) {
			plane->lines[last[row]].next = (uint32_t)i;
			plane->lines[i].joined = true;
		}
		last[row] = (uint32_t)i;
	}
	xids_release(&seen);
	return status;
}

/* ---- dictionaries ---- */

/* A copy for as long as the plane is read. */
static struct str keep(struct xspace *x, struct str text, bool *failed)
{
	struct str copy = text.len ? arena_str(&x->shelf, text) : STR("");

	*failed |= !copy.ptr;
	return copy;
}

/* The message of a map's entry: key #1, value #2. */
static bool read_pair(struct pb record, uint64_t *key, struct pb *value)
{
	struct pb_field f;

	*key = 0;
	*value = pb_over("", 0);
	while (pb_next(&record, &f)) {
		if (f.tag == PB_TAG(1, PB_VARINT))
			*key = f.value;
		else if (f.tag == PB_TAG(2, PB_BYTES))
			*value = pb_message(&f);
	}
	return !record.problem;
}

/* Stats of an entry, one after the other, without those that are large. */
static struct str keep_stats(struct xspace *x, struct pb message, bool *failed)
{
	struct pb r = message;
	struct pb_field f;
	size_t size = 0;
	char *to, *at;

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(5, PB_BYTES) && f.value <= ENTRY_STATS_MAX)
			size += (size_t)f.value + PB_VARINT_BYTES + 1;
	if (!size)
		return STR("");
	to = at = arena_push_aligned(&x->shelf, size, 1);
	if (!to) {
		*failed = true;
		return STR("");
	}
	for (r = message; pb_next(&r, &f);) {
		uint64_t len = f.value;

		if (f.tag != PB_TAG(5, PB_BYTES) || len > ENTRY_STATS_MAX)
			continue;
		*at++ = PB_TAG(5, PB_BYTES);
		for (; len >= 0x80; len >>= 7)
			*at++ = (char)(len | 0x80);
		*at++ = (char)len;
		memcpy(at, f.ptr, (size_t)f.value);
		at += f.value;
	}
	return str_make(to, (size_t)(at - to));
}

uint32_t xspace_add_entry(struct xspace *x, struct xplane *plane, uint64_t id,
			  const struct xevent_text *text)
{
	uint32_t row = xids_add(&plane->event_ids, id);
	void *events = plane->events, *texts = plane->texts;

	if (!row ||
	    !mem_grow(x->mem, &events, &plane->event_cap, (size_t)row + 1, sizeof(*plane->events)))
		return 0;
	plane->events = events;
	plane->events[row] = (struct xevent_entry){ 0 };
	if (!mem_grow(x->mem, &texts, &plane->text_cap, (size_t)row + 1, sizeof(*plane->texts)))
		return 0;
	plane->texts = texts;
	plane->texts[row] = *text;
	return row;
}

static ow_status add_event_entry(struct xspace *x, struct xplane *plane, uint64_t id,
				 struct pb message)
{
	struct xevent_text entry = { .name = STR(""), .display = STR(""), .stats = STR("") };
	bool failed = false;
	struct pb r = message;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(2, PB_BYTES))
			entry.name = keep(x, pb_str(&f), &failed);
		else if (f.tag == PB_TAG(4, PB_BYTES))
			entry.display = keep(x, pb_str(&f), &failed);
	}
	entry.stats = keep_stats(x, message, &failed);
	return !failed && xspace_add_entry(x, plane, id, &entry) ? OW_OK : xspace_no_memory(x);
}

static ow_status add_stat_entry(struct xspace *x, struct xplane *plane, uint64_t id,
				struct pb message)
{
	uint32_t row = xids_add(&plane->stat_ids, id);
	void *stats = plane->stats;
	struct str name = STR("");
	bool failed = false;
	struct pb_field f;

	if (!row ||
	    !mem_grow(x->mem, &stats, &plane->stat_cap, (size_t)row + 1, sizeof(*plane->stats)))
		return xspace_no_memory(x);
	plane->stats = stats;
	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(2, PB_BYTES))
			name = keep(x, pb_str(&f), &failed);
	plane->stats[row] = (struct xstat_entry){ .name = name, .stat = (uint8_t)xstat_of(name) };
	return failed ? xspace_no_memory(x) : OW_OK;
}

static ow_status add_value(struct xspace *x, struct xplane *plane, struct pb message)
{
	void *values = plane->values;
	struct xvalue value;
	bool failed = false;

	if (!xvalue_read(message, &value))
		return OW_OK;
	value.text = keep(x, value.text, &failed);
	if (failed || !mem_grow(x->mem, &values, &plane->value_cap, plane->value_count + 1,
				sizeof(*plane->values)))
		return xspace_no_memory(x);
	plane->values = values;
	plane->values[plane->value_count++] = value;
	return OW_OK;
}

static ow_status read_record(struct xspace *x, struct xplane *plane, struct pb_stream *s,
			     const struct pb_stream_field *f)
{
	struct pb record, value;
	uint64_t id;

	if (!pb_stream_record(s, f, &record)) {
		if (f->cut)
			xspace_damage(x, f->start);
		return s->status == OW_E_NO_MEMORY || s->status == OW_E_IO ? s->status : OW_OK;
	}
	if (f->tag == PB_TAG(2, PB_BYTES)) {
		plane->name = arena_str(&x->arena, str_make(record.at, f->size));
		plane->kind = kind_of(plane->name);
		return plane->name.ptr ? OW_OK : xspace_no_memory(x);
	}
	if (f->tag == PB_TAG(6, PB_BYTES))
		return add_value(x, plane, record);
	if (!read_pair(record, &id, &value)) {
		xspace_damage(x, f->start);
		return OW_OK;
	}
	return f->tag == PB_TAG(4, PB_BYTES) ? add_event_entry(x, plane, id, value)
					     : add_stat_entry(x, plane, id, value);
}

static ow_status read_fields(struct xspace *x, struct xplane *plane, struct pb_stream *s)
{
	struct pb_stream_field f;

	while (pb_stream_next(s, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			plane->id = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_BYTES):
			OW_TRY(add_line(x, plane, &f));
			break;
		case PB_TAG(2, PB_BYTES):
		case PB_TAG(4, PB_BYTES):
		case PB_TAG(5, PB_BYTES):
		case PB_TAG(6, PB_BYTES):
			OW_TRY(read_record(x, plane, s, &f));
			break;
		default:
			break;
		}
	}
	return s->status == OW_E_CORRUPT ? OW_OK : s->status;
}

ow_status xspace_read_plane(struct xspace *x, struct xplane *plane)
{
	struct pb_stream s;

	xids_init(&plane->event_ids, x->mem);
	xids_init(&plane->stat_ids, x->mem);
	pb_stream_init(&s, &x->window, plane->offset, plane->offset + plane->size);
	OW_TRY(read_fields(x, plane, &s));
	if (s.status != OW_OK)
		tell_problem(x, &s);
	for (size_t i = 0; i < plane->line_count; i++)
		OW_TRY(read_line_head(x, &plane->lines[i]));
	OW_TRY(xspace_choose_stats(x, plane));
	return join_lines(x, plane);
}

/* Which stats say something about events of hosts, and of devices. */
static const struct {
	uint8_t stat, taken_as, kinds;
	bool host, device;
} wanted_stats[] = {
	{ XSTAT_CORRELATION_ID, XSTAT_CORRELATION_ID, XKIND_NUMBER, true, true },
	{ XSTAT_PRODUCER_TYPE, XSTAT_PRODUCER_TYPE, XKIND_NUMBER, true, true },
	{ XSTAT_PRODUCER_ID, XSTAT_PRODUCER_ID, XKIND_NUMBER, true, true },
	{ XSTAT_CONSUMER_TYPE, XSTAT_CONSUMER_TYPE, XKIND_NUMBER, true, true },
	{ XSTAT_CONSUMER_ID, XSTAT_CONSUMER_ID, XKIND_NUMBER, true, true },
	{ XSTAT_DETAILS, XSTAT_DETAILS, XKIND_REF, true, true },
	{ XSTAT_TF_OP, XSTAT_TF_OP, XKIND_REF, false, true },
	{ XSTAT_ANNOTATION, XSTAT_TF_OP, XKIND_REF, false, true },
	{ XSTAT_HLO_OP, XSTAT_HLO_OP, XKIND_REF, false, true },
	{ XSTAT_PROGRAM_ID, XSTAT_PROGRAM_ID, XKIND_NUMBER, false, true },
	{ XSTAT_GROUP_ID, XSTAT_GROUP_ID, XKIND_NUMBER, true, false },
	{ XSTAT_STEP_NUM, XSTAT_STEP_NUM, XKIND_NUMBER, true, false },
	{ XSTAT_STEP_NAME, XSTAT_STEP_NAME, XKIND_REF, true, false },
	{ XSTAT_ROOT, XSTAT_ROOT, XKIND_NUMBER, true, false },
};

struct xwanted xspace_wanted(const struct xplane *plane, enum xstat stat)
{
	for (size_t i = 0; i < ARRAY_COUNT(wanted_stats); i++)
		if (wanted_stats[i].stat == stat &&
		    (plane->device ? wanted_stats[i].device : wanted_stats[i].host))
			return (struct xwanted){ wanted_stats[i].taken_as, wanted_stats[i].kinds };
	return (struct xwanted){ 0, 0 };
}

ow_status xspace_choose_stats(struct xspace *x, struct xplane *plane)
{
	plane->device = plane->kind == XPLANE_GPU || plane->kind == XPLANE_TPU ||
			plane->kind == XPLANE_DEVICE;
	plane->wanted_count = plane->stat_ids.dense_cap;
	plane->wanted =
		ARENA_ARRAY(&x->shelf, struct xwanted, MAX(plane->wanted_count, (size_t)128));
	plane->ref_ops = ARENA_ARRAY(&x->shelf, uint32_t, plane->wanted_count + 1);
	if (!plane->wanted || !plane->ref_ops)
		return xspace_no_memory(x);
	for (size_t id = 0; id < plane->wanted_count; id++) {
		uint32_t row = plane->stat_ids.dense[id];

		if (row)
			plane->wanted[id] =
				xspace_wanted(plane, (enum xstat)plane->stats[row].stat);
	}
	xspace_forget_groups(x, plane);
	return OW_OK;
}

void xspace_forget_groups(const struct xspace *x, struct xplane *plane)
{
	for (size_t id = 0; id < plane->wanted_count && x->step_source == XSTEP_NUMBER; id++)
		if (plane->wanted[id].stat == XSTAT_GROUP_ID)
			plane->wanted[id] = (struct xwanted){ 0, 0 };
}

void xspace_release_plane(struct xspace *x, struct xplane *plane)
{
	xids_release(&plane->event_ids);
	xids_release(&plane->stat_ids);
	mem_free(x->mem, plane->events, plane->event_cap * sizeof(*plane->events));
	mem_free(x->mem, plane->texts, plane->text_cap * sizeof(*plane->texts));
	mem_free(x->mem, plane->stats, plane->stat_cap * sizeof(*plane->stats));
	mem_free(x->mem, plane->lines, plane->line_cap * sizeof(*plane->lines));
	mem_free(x->mem, plane->values, plane->value_cap * sizeof(*plane->values));
	plane->events = NULL;
	plane->texts = NULL;
	plane->stats = NULL;
	plane->lines = NULL;
	plane->values = NULL;
	plane->wanted = NULL;
	plane->ref_ops = NULL;
	plane->shapes = NULL;
	plane->wanted_count = 0;
	plane->event_cap = plane->text_cap = plane->stat_cap = plane->line_cap = plane->value_cap =
		0;
	plane->line_count = plane->value_count = 0;
	arena_clear(&x->shelf);
}
