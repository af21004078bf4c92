/*
 * xspace_take.c: any event of a line of an XSpace, whatever it is: a row, a sum, a marker of a step, an allocation, the value of a
 * counter, or nothing. See xspace_reading.h; xspace_line.c calls this for what its fast way leaves.
 */
#include "import/xspace_reading.h"

/* ---- ops that stats name ---- */

str_id xspace_resolve_op(struct reading *r, const struct xevent *ev)
{
	str_id op = xspace_op_of_text(r->x, xevent_text(r->plane, ev, XSTAT_TF_OP));
	uint64_t ref = ev->bits[XSTAT_TF_OP];

	if (!(ev->inlined & XSTAT_BIT(XSTAT_TF_OP)) && ref < r->plane->wanted_count &&
	    op.v < UINT32_MAX)
		r->plane->ref_ops[ref] = op.v + 1;
	return op;
}

str_id xspace_op_of_instruction(struct reading *r, const struct xevent *ev)
{
	uint64_t program = number_of(ev, XSTAT_PROGRAM_ID);
	struct str name = xevent_text(r->plane, ev, XSTAT_HLO_OP);

	return xspace_hlo_op(r->x, xspace_hlo_find(r->x, program, name));
}

/* ---- parts of it ---- */

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

int64_t xspace_held(struct xspace *x, int64_t a, int64_t b)
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

static ow_status mark_step(struct reading *r, const struct xevent *ev, int64_t start, int64_t end,
			   str_id name, struct str text)
{
	bool grouped = ev->has & XSTAT_BIT(XSTAT_GROUP_ID);
	int64_t group = grouped ? (int64_t)ev->bits[XSTAT_GROUP_ID] : INT64_MIN;

	if (ev->has & XSTAT_BIT(XSTAT_STEP_NUM) && str_find_char(text, '/') == STR_NONE)
		return xspace_mark(r->x, XSTEP_NUMBER, start, end,
				   (int64_t)ev->bits[XSTAT_STEP_NUM], name);
	if (ev->has & XSTAT_BIT(XSTAT_STEP_NAME))
		return xspace_mark(r->x, XSTEP_NAME, start, end, group, name);
	return grouped ? xspace_mark(r->x, XSTEP_GROUP, start, end, group, (str_id){ 0 }) : OW_OK;
}

/* A run is called after its step, its op is not. */
static ow_status use_step_name(struct reading *r, const struct xevent *ev, struct event_row *row)
{
	struct xspace *x = r->x;
	str_id name = xspace_text(x, xevent_text(r->plane, ev, XSTAT_STEP_NAME));
	struct xop *op = xspace_op(x, (str_id){ row->op.v });

	if (!op)
		return builder_status(x->b);
	if (!op->type)
		op->type = row->op.v;
	row->name.v = name.v == row->op.v ? 0 : name.v;
	return builder_status(x->b);
}

#define STEP_BITS (XSTAT_BIT(XSTAT_STEP_NUM) | XSTAT_BIT(XSTAT_STEP_NAME))
#define REST_BITS                                                                                  \
	(STEP_BITS | XSTAT_BIT(XSTAT_ROOT) | XSTAT_BIT(XSTAT_GROUP_ID) |                           \
	 XSTAT_BIT(XSTAT_PRODUCER_ID) | XSTAT_BIT(XSTAT_CONSUMER_ID) | XSTAT_BIT(XSTAT_DETAILS))

uint64_t xspace_rest_bits(const struct xspace *x)
{
	return x->step_source > XSTEP_GROUP ? REST_BITS & ~XSTAT_BIT(XSTAT_GROUP_ID) : REST_BITS;
}

static ow_status add_rest(struct reading *r, const struct xevent *ev, struct event_row *row,
			  struct str text)
{
	uint32_t event = r->x->b->m->event.count;

	if (ev->has & XSTAT_BIT(XSTAT_STEP_NAME))
		OW_TRY(use_step_name(r, ev, row));
	if (ev->has & (STEP_BITS | XSTAT_BIT(XSTAT_GROUP_ID)))
		OW_TRY(mark_step(r, ev, row->ts_ns, row->ts_ns + row->dur_ns,
				 row->name.v ? row->name : (str_id){ row->op.v }, text));
	if (ev->has & XSTAT_BIT(XSTAT_PRODUCER_ID))
		OW_TRY(xspace_add_end(r->x, (int64_t)number_of(ev, XSTAT_PRODUCER_TYPE),
				      ev->bits[XSTAT_PRODUCER_ID], event, false));
	if (ev->has & XSTAT_BIT(XSTAT_CONSUMER_ID))
		OW_TRY(xspace_add_end(r->x, (int64_t)number_of(ev, XSTAT_CONSUMER_TYPE),
				      ev->bits[XSTAT_CONSUMER_ID], event, true));
	if (ev->has & XSTAT_BIT(XSTAT_DETAILS))
		row->bytes = tf_copy_bytes(xevent_text(r->plane, ev, XSTAT_DETAILS));
	return OW_OK;
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

	if (r->plane->kind == XPLANE_OTHER || r->counters)
		row.kind = TRACK_OTHER;
	r->track = builder_add_track(x->b, &row);
}

/* ---- all of it ---- */

static ow_status store(struct reading *r, const struct xevent *ev, uint32_t entry_row,
		       int64_t start_ps, int64_t end_ps)
{
	struct xspace *x = r->x;
	const struct xevent_entry *entry = &r->plane->events[entry_row];
	struct event_row row = { .op = { entry->op.v }, .name = entry->label };
	int64_t start = floor_ns(start_ps, &row.ts_rest), end = floor_ns(end_ps, &row.end_rest);

	if (!r->track.v)
		start_track(r);
	row.track = r->track;
	row.ts_ns = xspace_held(x, start, r->base_ns);
	row.dur_ns = end - start;
	row.correlation = correlation_of(ev);
	if (r->device)
		name_kernel(r, ev, &row);
	OW_TRY(add_rest(r, ev, &row, r->plane->texts[entry_row].name));
	if (r->rest != xspace_rest_bits(x)) {
		r->rest = xspace_rest_bits(x);
		xspace_forget_groups(x, r->plane);
	}
	watch_order(r, &row);
	return add_row(x->b, &row);
}

/* An event whose entry the file does not have is called after its number. */
static uint32_t missing_entry(struct reading *r, uint64_t id)
{
	char *name = arena_printf(&r->x->shelf, "event %" PRIu64, id);
	struct xevent_text text = { str_from(name), STR(""), STR("") };

	r->x->unnamed++;
	return name ? xspace_add_entry(r->x, r->plane, id, &text) : 0;
}

static ow_status take_counter(struct reading *r, const struct xevent_entry *entry,
			      struct pb message, int64_t start_ps)
{
	uint16_t rest;

	if (!r->track.v)
		start_track(r);
	return xspace_take_counter(r->x, r->plane, entry->label.v ? entry->label : entry->op,
				   message, r->track,
				   xspace_held(r->x, floor_ns(start_ps, &rest), r->base_ns));
}

ow_status xspace_take_event(struct reading *r, struct xevent *ev, struct pb message)
{
	struct xspace *x = r->x;
	struct xevent_entry *entry;
	uint32_t row = xids_find(&r->plane->event_ids, ev->entry);
	int64_t start, end;

	if (OW_UNLIKELY(!row)) {
		row = missing_entry(r, ev->entry);
		if (!row)
			return xspace_no_memory(x);
	}
	entry = &r->plane->events[row];
	if (OW_UNLIKELY(!entry->resolved))
		OW_TRY(xspace_resolve(x, r->plane, row));
	if (ev->duration_ps < 0) {
		x->clamped++;
		ev->duration_ps = 0;
	}
	start = xspace_held(x, 0, ev->offset_ps);
	end = xspace_held(x, start, ev->duration_ps);
	if (!r->frames)
		tally_event(&r->tally, entry, start, end, ev->duration_ps, ev->aggregated);
	if (r->counters)
		return take_counter(r, entry, message, start);
	if (ev->aggregated)
		return r->frames ? OW_OK : add_sum(r, ev, entry->op);
	if ((entry->kind == XEVENT_FRAME) != r->frames) {
		r->skipped_frames |= entry->kind == XEVENT_FRAME;
		return OW_OK;
	}
	if (entry->kind == XEVENT_INTERNAL)
		return OW_OK;
	if (entry->kind == XEVENT_MEMORY)
		return xspace_take_memory(x, r->plane, message,
					  xspace_held(x, start / 1000, r->base_ns), entry->release);
	OW_TRY(store(r, ev, row, start, end));
	if (entry->kind == XEVENT_ROOT || ev->has & XSTAT_BIT(XSTAT_ROOT))
		return xspace_take_root(x, r->plane, tf_op_name_strip(r->plane->texts[row].name),
					message, x->b->m->event.count - 1);
	return OW_OK;
}
