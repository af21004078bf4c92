/*
 * xspace_line.c: the events of the lines of a plane, straight from the bytes into the model's columns. This is
 * where the time goes when a large file is loaded: an event has some 50 bytes and five stats, most of which are
 * passed over by a look at a table.
 *
 * Python's frames are on the line of their thread among its other events; they become a track of their own, as
 * frames of any trace do, by reading such a line twice.
 */
#include "import/xspace_int.h"

#define CHUNK ((size_t)64 << 10)
#define EPOCH_NS                                                                                   \
	((int64_t)100000000000000000) /* a larger timestamp is a date, not a time since the start */

struct xevent {
	uint64_t entry; /* id */
	int64_t offset_ps, duration_ps, occurrences;
	bool aggregated;
	uint64_t has; /* 1 << enum xstat */
	int64_t group, step_num, producer_type, consumer_type;
	uint64_t program, correlation, producer, consumer;
	struct xvalue tf_op, hlo_op, step_name, details;
};

struct reading {
	struct xspace *x;
	struct xplane *plane;
	const struct xline *line;
	bool device, frames; /* frames: only those are wanted */
	bool skipped_frames;
	track_id track;
	int64_t line_ps; /* of the line, from the start of the profile, for the facts */
	int64_t base_ns; /* of the line: what its offsets count from */
	int64_t last_ns, last_end_ns;
	uint64_t events;
	int64_t sum_ps;
};

/* ---- reading an event ---- */

/* Any length, as pb_varint_at; made for the three to seven bytes that times have. */
OW_ALWAYS_INLINE struct pb_varint read_varint(const uint8_t *at, const uint8_t *end)
{
	uint64_t word, stop;

	if (OW_LIKELY(at < end && *at < 0x80))
		return (struct pb_varint){ at + 1, *at };
	if (OW_UNLIKELY(end - at < 8))
		return at < end ? pb_varint_at(at, end) : (struct pb_varint){ NULL, PB_TRUNCATED };
	word = pb_load64(at);
	stop = ~word & 0x8080808080808080ull;
	if (OW_UNLIKELY(!stop))
		return pb_varint_at(at, end);
	word &= stop ^ (stop - 1);
	word &= 0x7f7f7f7f7f7f7f7full;
	word = (word & 0x007f007f007f007full) | (word & 0x7f007f007f007f00ull) >> 1;
	word = (word & 0x00003fff00003fffull) | (word & 0x3fff00003fff0000ull) >> 2;
	word = (word & 0x000000000fffffffull) | (word & 0x0fffffff00000000ull) >> 4;
	return (struct pb_varint){ at + (__builtin_ctzll(stop) >> 3) + 1, word };
}

static void take_stat(struct xevent *ev, const struct xvalue *v, enum xstat stat)
{
	switch (stat) {
	case XSTAT_OTHER:
		return;
	case XSTAT_GROUP_ID:
		ev->group = xvalue_int(v);
		break;
	case XSTAT_STEP_NUM:
		ev->step_num = xvalue_int(v);
		break;
	case XSTAT_CORRELATION_ID:
		ev->correlation = (uint64_t)xvalue_int(v);
		break;
	case XSTAT_PROGRAM_ID:
		ev->program = (uint64_t)xvalue_int(v);
		break;
	case XSTAT_PRODUCER_TYPE:
		ev->producer_type = xvalue_int(v);
		break;
	case XSTAT_CONSUMER_TYPE:
		ev->consumer_type = xvalue_int(v);
		break;
	case XSTAT_PRODUCER_ID:
		ev->producer = (uint64_t)xvalue_int(v);
		break;
	case XSTAT_CONSUMER_ID:
		ev->consumer = (uint64_t)xvalue_int(v);
		break;
	case XSTAT_TF_OP:
	case XSTAT_ANNOTATION:
		ev->tf_op = *v;
		stat = XSTAT_TF_OP;
		break;
	case XSTAT_HLO_OP:
		ev->hlo_op = *v;
		break;
	case XSTAT_STEP_NAME:
		ev->step_name = *v;
		break;
	case XSTAT_DETAILS:
		ev->details = *v;
		break;
	default:
		break;
	}
	ev->has |= (uint64_t)1 << stat;
}

/* Most stats are not wanted, which the first bytes tell. False when it is damaged. */
OW_ALWAYS_INLINE bool read_stat(const struct reading *r, struct xevent *ev, const uint8_t *at,
				const uint8_t *end)
{
	const struct xplane *plane = r->plane;
	struct xvalue value = { 0 };
	struct pb_varint id = { NULL, 0 }, number;
	enum xstat stat;

	if (OW_LIKELY(end - at > 2 && *at == PB_TAG(1, PB_VARINT)))
		id = read_varint(at + 1, end);
	if (OW_LIKELY(id.next && id.value < plane->wanted_count)) {
		stat = (enum xstat)plane->wanted[id.value];
		if (stat == XSTAT_OTHER)
			return true;
		if (OW_LIKELY(id.next < end && !(*id.next & 0x87))) { /* a number or a reference */
			number = read_varint(id.next + 1, end);
			if (OW_LIKELY(number.next == end)) {
				value.stat = id.value;
				value.bits = number.value;
				value.field = (uint8_t)(*id.next >> 3);
				take_stat(ev, &value, stat);
				return true;
			}
		}
	}
	if (!xvalue_read(pb_over(at, (size_t)(end - at)), &value))
		return false;
	stat = value.stat < plane->wanted_count ? (enum xstat)plane->wanted[value.stat]
						: xvalue_stat(plane, &value);
	take_stat(ev, &value, stat);
	return true;
}

/* The fields as all profilers write them: entry, offset, duration, then stats. Where it leaves that order the
 * rest is read by read_event. */
OW_ALWAYS_INLINE const uint8_t *read_times(const uint8_t *at, const uint8_t *end, struct xevent *ev)
{
	struct pb_varint v;

	if (at < end && *at == PB_TAG(1, PB_VARINT)) {
		v = read_varint(at + 1, end);
		if (!v.next)
			return at;
		ev->entry = v.value;
		at = v.next;
	}
	if (at < end && *at == PB_TAG(2, PB_VARINT)) {
		v = read_varint(at + 1, end);
		if (!v.next)
			return at;
		ev->offset_ps = (int64_t)v.value;
		at = v.next;
	}
	if (at < end && *at == PB_TAG(3, PB_VARINT)) {
		v = read_varint(at + 1, end);
		if (!v.next)
			return at;
		ev->duration_ps = (int64_t)v.value;
		at = v.next;
	}
	return at;
}

/* False when it is damaged. */
static bool read_event(struct reading *r, struct pb message, struct xevent *ev)
{
	struct pb_field f;

	ev->entry = 0;
	ev->offset_ps = ev->duration_ps = ev->occurrences = 0;
	ev->aggregated = false;
	ev->has = 0;
	message.at = read_times(message.at, message.end, ev);
	while (message.end - message.at >= 2 && message.at[0] == PB_TAG(4, PB_BYTES) &&
	       message.at[1] < 0x80 && message.at[1] <= message.end - message.at - 2) {
		const uint8_t *end = message.at + 2 + message.at[1];

		r->plane->event_stats += !r->frames;
		if (!read_stat(r, ev, message.at + 2, end))
			return false;
		message.at = end;
	}
	while (pb_next(&message, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			ev->entry = f.value;
			break;
		case PB_TAG(2, PB_VARINT):
			ev->offset_ps = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_VARINT):
			ev->duration_ps = (int64_t)f.value;
			break;
		case PB_TAG(5, PB_VARINT):
			ev->occurrences = (int64_t)f.value;
			ev->aggregated = true;
			break;
		case PB_TAG(4, PB_BYTES):
			r->plane->event_stats += !r->frames;
			if (!read_stat(r, ev, f.ptr, f.ptr + f.value))
				return false;
			break;
		default:
			break;
		}
	}
	return !message.problem;
}

/* ---- what it becomes ---- */

/* "kind:… size:123 dest:0 async:1", or num_bytes:123. */
static int64_t bytes_of(struct str text)
{
	static const char *const keys[] = { "num_bytes:", "size:" };

	for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
		size_t at = str_find(text, str_from(keys[i])), len = 0;
		struct str digits = at == STR_NONE ? STR("") : str_skip(text, at + strlen(keys[i]));
		int64_t bytes;

		while (len < digits.len && digits.ptr[len] >= '0' && digits.ptr[len] <= '9')
			len++;
		if (str_to_i64(str_first(digits, len), &bytes))
			return bytes;
	}
	return 0;
}

/* The op that the stats of a kernel name: nil for none. */
static str_id op_of_kernel(struct reading *r, const struct xevent *ev)
{
	struct xspace *x = r->x;
	struct xstat_entry *entry = NULL;
	str_id op = { 0 };

	if (ev->has & (uint64_t)1 << XSTAT_TF_OP) {
		uint32_t row =
			ev->tf_op.field == 7 ? xids_find(&r->plane->stat_ids, ev->tf_op.bits) : 0;

		if (row)
			entry = &r->plane->stats[row];
		if (entry && entry->resolved)
			op = entry->op;
		else
			op = xspace_op_of_text(x, xvalue_text(r->plane, &ev->tf_op));
		if (entry) {
			entry->op = op;
			entry->resolved = true;
		}
	}
	if (!op.v && ev->has & (uint64_t)1 << XSTAT_HLO_OP) {
		uint32_t row = xspace_hlo_find(x, ev->program, xvalue_text(r->plane, &ev->hlo_op));

		op = xspace_hlo_op(x, row);
	}
	return op;
}

static ow_status add_end(struct xspace *x, int64_t type, uint64_t id, uint32_t event, bool consumer)
{
	void *ends = x->ends;

	if (!mem_grow(x->mem, &ends, &x->end_cap, x->end_count + 1, sizeof(*x->ends)))
		return xspace_no_memory(x);
	x->ends = ends;
	x->ends[x->end_count++] = (struct xend){ id, type, event, consumer };
	return OW_OK;
}

static ow_status add_sum(struct reading *r, const struct xevent *ev, str_id op)
{
	struct xspace *x = r->x;
	void *sums = x->sums;

	if (!mem_grow(x->mem, &sums, &x->sum_cap, x->sum_count + 1, sizeof(*x->sums)))
		return xspace_no_memory(x);
	x->sums = sums;
	x->sums[x->sum_count++] =
		(struct xsum){ op, MAX(ev->occurrences, 0), MAX(ev->duration_ps, 0), r->device };
	return OW_OK;
}

/* Times of hostile files are held within what can be counted. */
static int64_t held(struct xspace *x, int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum) && sum < INT64_MAX / 2 && sum > -INT64_MAX / 2)
		return sum;
	x->clamped++;
	return b > 0 ? INT64_MAX / 2 : -INT64_MAX / 2;
}

static int64_t floor_ns(int64_t ps, uint16_t *rest)
{
	int64_t ns = ps / 1000, over = ps % 1000;

	if (over < 0) {
		over += 1000;
		ns--;
	}
	*rest = (uint16_t)over;
	return ns;
}

static ow_status mark_step(struct reading *r, const struct xevent *ev, struct event_row *row,
			   struct str name)
{
	struct xspace *x = r->x;
	int64_t end = row->ts_ns + row->dur_ns;

	if (ev->has & (uint64_t)1 << XSTAT_STEP_NUM && str_find_char(name, '/') == STR_NONE)
		return xspace_mark(x, XSTEP_NUMBER, row->ts_ns, end, ev->step_num,
				   row->name.v ? row->name : (str_id){ row->op.v });
	if (ev->has & (uint64_t)1 << XSTAT_STEP_NAME)
		return xspace_mark(x, XSTEP_NAME, row->ts_ns, end,
				   ev->has & (uint64_t)1 << XSTAT_GROUP_ID ? ev->group : INT64_MIN,
				   row->name.v ? row->name : (str_id){ row->op.v });
	if (ev->has & (uint64_t)1 << XSTAT_GROUP_ID)
		return xspace_mark(x, XSTEP_GROUP, row->ts_ns, end, ev->group, (str_id){ 0 });
	return OW_OK;
}

#define STEP_BITS                                                                                  \
	((uint64_t)1 << XSTAT_STEP_NUM | (uint64_t)1 << XSTAT_STEP_NAME |                          \
	 (uint64_t)1 << XSTAT_GROUP_ID)
#define LINK_BITS ((uint64_t)1 << XSTAT_PRODUCER_ID | (uint64_t)1 << XSTAT_CONSUMER_ID)

/* A run is called after its step, its op is not. */
static ow_status use_step_name(struct reading *r, const struct xevent *ev, struct event_row *row)
{
	struct xspace *x = r->x;
	str_id name = xspace_text(x, xvalue_text(r->plane, &ev->step_name));
	struct xop *op = xspace_op(x, (str_id){ row->op.v });

	if (!op)
		return builder_status(x->b);
	if (!op->type)
		op->type = row->op.v;
	row->name.v = name.v == row->op.v ? 0 : name.v;
	return builder_status(x->b);
}

/* What few events have. */
static ow_status add_rest(struct reading *r, const struct xevent *ev, struct event_row *row,
			  const struct xevent_entry *entry)
{
	uint32_t event = r->x->b->m->event.count;

	if (!r->device && ev->has & (uint64_t)1 << XSTAT_STEP_NAME)
		OW_TRY(use_step_name(r, ev, row));
	if (!r->device && ev->has & STEP_BITS)
		OW_TRY(mark_step(r, ev, row, entry->name));
	if (ev->has & (uint64_t)1 << XSTAT_PRODUCER_ID)
		OW_TRY(add_end(r->x, ev->producer_type, ev->producer, event, false));
	if (ev->has & (uint64_t)1 << XSTAT_CONSUMER_ID)
		OW_TRY(add_end(r->x, ev->consumer_type, ev->consumer, event, true));
	if (ev->has & (uint64_t)1 << XSTAT_DETAILS)
		row->bytes = bytes_of(xvalue_text(r->plane, &ev->details));
	return OW_OK;
}

static void count_event(struct reading *r, const struct xevent *ev, struct xevent_entry *entry,
			int64_t start_ps, int64_t end_ps)
{
	struct xplane *plane = r->plane;

	r->events++;
	r->sum_ps = wrap_add(r->sum_ps, ev->duration_ps);
	entry->sum_ps = wrap_add(entry->sum_ps, ev->duration_ps);
	entry->runs++;
	if (ev->aggregated)
		return;
	plane->min_start_ps = MIN(plane->min_start_ps, wrap_add(r->line_ps, start_ps));
	plane->max_end_ps = MAX(plane->max_end_ps, wrap_add(r->line_ps, end_ps));
}

/* Only once there is something on it. */
static void start_track(struct reading *r)
{
	struct xspace *x = r->x;
	struct track_row row = { .process = xspace_text(x, r->plane->name),
				 .pid = r->plane->number,
				 .tid = r->line->id,
				 .kind = r->frames ? TRACK_FRAMES : TRACK_HOST,
				 .source = x->b->source,
				 .flags = TRACK_SLICES,
				 .process_sort_index = (int32_t)MIN(r->plane->number, INT32_MAX) };

	if (r->plane->kind == XPLANE_OTHER)
		row.kind = TRACK_OTHER;
	r->track = builder_add_track(x->b, &row);
}

static ow_status store(struct reading *r, const struct xevent *ev, const struct xevent_entry *entry,
		       int64_t start_ps, int64_t end_ps)
{
	struct xspace *x = r->x;
	struct event_row row = { .op = { entry->op.v }, .name = entry->label };
	uint16_t start_rest, end_rest;
	int64_t start = floor_ns(start_ps, &start_rest), end = floor_ns(end_ps, &end_rest);

	if (OW_UNLIKELY(!r->track.v))
		start_track(r);
	row.track = r->track;
	row.ts_ns = held(x, start, r->base_ns);
	row.dur_ns = end - start;
	row.ts_rest = start_rest;
	row.end_rest = end_rest;
	if (ev->has) {
		if (ev->has & (uint64_t)1 << XSTAT_CORRELATION_ID && ev->correlation <= UINT32_MAX)
			row.correlation = (uint32_t)ev->correlation;
		if (r->device) {
			str_id op = op_of_kernel(r, ev);

			if (op.v && op.v != row.op.v) {
				row.name.v = row.name.v ? row.name.v : row.op.v;
				row.op.v = op.v;
			}
		}
		OW_TRY(add_rest(r, ev, &row, entry));
	}
	if (row.ts_ns < r->last_ns ||
	    (row.ts_ns == r->last_ns && row.ts_ns + row.dur_ns > r->last_end_ns))
		x->unsorted = true;
	r->last_ns = row.ts_ns;
	r->last_end_ns = row.ts_ns + row.dur_ns;
	builder_add_event(x->b, &row);
	return builder_status(x->b);
}

/* An event whose entry the file does not have is called after its number. */
static uint32_t missing_entry(struct reading *r, uint64_t id)
{
	struct xplane *plane = r->plane;
	uint32_t row = xids_add(&plane->event_ids, id);
	void *events = plane->events;
	char *name;

	if (!row || !mem_grow(r->x->mem, &events, &plane->event_cap, (size_t)row + 1,
			      sizeof(*plane->events)))
		return 0;
	plane->events = events;
	name = arena_printf(&r->x->shelf, "event %" PRIu64, id);
	plane->events[row] = (struct xevent_entry){ .name = str_from(name),
						    .display = STR(""),
						    .stats = STR("") };
	r->x->unnamed++;
	return name ? row : 0;
}

static ow_status take_event(struct reading *r, struct pb message, uint64_t offset)
{
	struct xspace *x = r->x;
	struct xevent_entry *entry;
	struct xevent ev;
	int64_t start, end;
	uint32_t row;

	if (!read_event(r, message, &ev)) {
		if (!r->frames)
			xspace_damage(x, offset);
		return OW_OK;
	}
	row = xids_find(&r->plane->event_ids, ev.entry);
	if (OW_UNLIKELY(!row)) {
		row = missing_entry(r, ev.entry);
		if (!row)
			return xspace_no_memory(x);
	}
	entry = &r->plane->events[row];
	if (OW_UNLIKELY(!entry->resolved))
		OW_TRY(xspace_resolve(x, r->plane, entry));
	if (ev.duration_ps < 0) {
		x->clamped++;
		ev.duration_ps = 0;
	}
	start = held(x, 0, ev.offset_ps);
	end = held(x, start, ev.duration_ps);
	if (!r->frames)
		count_event(r, &ev, entry, start, end);
	if (ev.aggregated)
		return r->frames ? OW_OK : add_sum(r, &ev, entry->op);
	if ((entry->kind == XEVENT_FRAME) != r->frames) {
		r->skipped_frames |= entry->kind == XEVENT_FRAME;
		return OW_OK;
	}
	if (entry->kind == XEVENT_INTERNAL)
		return OW_OK;
	if (entry->kind == XEVENT_MEMORY)
		return xspace_take_memory(x, r->plane, message, held(x, start / 1000, r->base_ns),
					  entry->release);
	return store(r, &ev, entry, start, end);
}

/* ---- lines ---- */

/* Fields of a line beside its events: those after them are read here. */
static ow_status take_field(struct reading *r, const struct pb_field *f)
{
	struct xline *line = &r->plane->lines[r->line - r->plane->lines];

	if (f->tag != PB_TAG(11, PB_BYTES) || line->display.len)
		return OW_OK;
	line->display = arena_str(&r->x->shelf, pb_str(f));
	return line->display.ptr ? OW_OK : xspace_no_memory(r->x);
}

static ow_status read_line(struct reading *r)
{
	struct xspace *x = r->x;
	uint64_t at = r->line->offset, end = at + r->line->size;
	size_t want = CHUNK;

	while (at < end) {
		struct str bytes =
			window_peek(&x->window, at, (size_t)MIN(end - at, (uint64_t)want));
		struct pb p;
		struct pb_field f;
		const uint8_t *before;

		if (!bytes.ptr)
			return x->window.status;
		p = pb_over(bytes.ptr, (size_t)MIN(end - at, (uint64_t)bytes.len));
		before = p.at;
		while (pb_next(&p, &f)) {
			if (OW_LIKELY(f.tag == PB_TAG(4, PB_BYTES)))
				OW_TRY(take_event(
					r, pb_message(&f),
					at + (uint64_t)(f.ptr - (const uint8_t *)bytes.ptr)));
			else
				OW_TRY(take_field(r, &f));
			before = p.at;
		}
		if (!p.problem && before == (const uint8_t *)bytes.ptr)
			break;
		if (p.problem && before == (const uint8_t *)bytes.ptr) {
			/* more of it may be there */
			if (p.problem != PB_TRUNCATED || bytes.len >= end - at) {
				if (!r->frames)
					xspace_damage(x, at);
				return OW_OK;
			}
			want = want < SIZE_MAX / 4 ? want * 4 : want;
			continue;
		}
		at += (uint64_t)(before - (const uint8_t *)bytes.ptr);
		want = CHUNK;
	}
	return OW_OK;
}

/* ---- tracks ---- */

/* The line and all others of the same id. */
static ow_status read_track(struct reading *r, size_t first, fact_id list)
{
	struct xplane *plane = r->plane;
	struct xspace *x = r->x;

	r->track.v = 0;
	r->last_ns = r->last_end_ns = INT64_MIN;
	for (size_t i = first, more = 1; more; more = i = plane->lines[i].next) {
		bool epoch = plane->lines[i].timestamp_ns > EPOCH_NS;

		r->line = &plane->lines[i];
		r->base_ns = held(x, epoch ? 0 : x->start_ns, r->line->timestamp_ns);
		r->line_ps = us_to_ns(r->line->timestamp_ns);
		r->events = 0;
		r->sum_ps = 0;
		OW_TRY(read_line(r));
		if (!r->frames)
			xspace_line_facts(x, r->line, list, r->events, r->sum_ps);
		plane->event_count += r->frames ? 0 : r->events;
	}
	r->line = &plane->lines[first];
	if (r->track.v)
		x->b->m->track.name[r->track.v] =
			xspace_text(x, r->line->display.len ? r->line->display : r->line->name);
	return builder_status(x->b);
}

static ow_status read_thread(struct xspace *x, struct xplane *plane, size_t i, fact_id list)
{
	struct reading r = { .x = x,
			     .plane = plane,
			     .device = plane->kind == XPLANE_GPU || plane->kind == XPLANE_TPU ||
				       plane->kind == XPLANE_DEVICE };

	OW_TRY(read_track(&r, i, list));
	if (!r.skipped_frames)
		return OW_OK;
	r.frames = true;
	return read_track(&r, i, list);
}

ow_status xspace_read_lines(struct xspace *x, struct xplane *plane)
{
	fact_id object = fact_object(x->b, x->plane_list, NULL);
	fact_id list = fact_list(x->b, object, "line_list");

	for (size_t i = 0; i < plane->line_count; i++)
		if (!plane->lines[i].joined)
			OW_TRY(read_thread(x, plane, i, list));
	xspace_plane_facts(x, plane, object);
	x->event_total += plane->event_count;
	x->line_total += plane->line_count;
	return builder_status(x->b);
}
