/*
 * import_xspace.c: the importer of XSpace, the files (*.xplane.pb) of the profilers of TensorFlow 2, JAX and XProf. It
 * recognises them, runs the passes over planes and lines (xspace_int.h), sorts events, and writes facts and notes.
 * import/interpret (producer_xprof.c) decides what the events mean.
 */
#include "import/xspace/xspace_int.h"
#include "import/common/model_text.h"

#define TOP 5
#define LINES_MAX 20000 /* limit of lines that the facts list; a file has a line per thread */

void xspace_line_facts(struct xspace *x, const struct xline *line, fact_id list, uint64_t events,
		       int64_t sum_ps)
{
	fact_id object;

	if (x->line_total > LINES_MAX)
		return;
	object = fact_object(x->b, list, NULL);
	fact_int(x->b, object, "id", line->id);
	fact_text(x->b, object, "name", model_str(x->b->m, xspace_text(x, line->name)));
	if (line->display.len)
		fact_text(x->b, object, "display_name",
			  model_str(x->b->m, xspace_text(x, line->display)));
	fact_int(x->b, object, "timestamp_ns", line->timestamp_ns);
	fact_int(x->b, object, "events", (int64_t)events);
	fact_int(x->b, object, "sum_duration_ps", sum_ps);
}

/* Whether a comes before b: the longer one first, then by name. */
static bool before(const struct xplane *plane, uint32_t a, uint32_t b)
{
	if (plane->events[a].sum_ps != plane->events[b].sum_ps)
		return plane->events[a].sum_ps > plane->events[b].sum_ps;
	return str_cmp(plane->texts[a].name, plane->texts[b].name) < 0;
}

static void top_facts(struct xspace *x, const struct xplane *plane, fact_id object)
{
	uint32_t top[TOP + 1];
	fact_id list = fact_list(x->b, object, "top5_duration_ps");
	size_t count = 0;

	for (uint32_t i = 1; i < plane->event_ids.count; i++) {
		size_t at = count;

		if (!plane->events[i].runs)
			continue;
		for (; at && before(plane, i, top[at - 1]); at--)
			top[at] = top[at - 1];
		top[at] = i;
		count = MIN(count + 1, (size_t)TOP);
	}
	for (size_t i = 0; i < count; i++) {
		fact_id item = fact_list(x->b, list, NULL);

		fact_text(x->b, item, NULL,
			  model_str(x->b->m, xspace_text(x, plane->texts[top[i]].name)));
		fact_int(x->b, item, NULL, plane->events[top[i]].sum_ps);
		fact_int(x->b, item, NULL, (int64_t)plane->events[top[i]].runs);
	}
}

/* Adds the plane's own stats as facts: capabilities of a device, versions, times. */
static void value_facts(struct xspace *x, const struct xplane *plane, fact_id object)
{
	fact_id values = { 0 };

	for (size_t i = 0; i < plane->value_count; i++) {
		const struct xvalue *v = &plane->values[i];
		uint32_t row = xids_find(&plane->stat_ids, v->stat);
		const char *name;

		if (!row || !plane->stats[row].name.len || v->field == 6 || !v->field)
			continue;
		if (!values.v)
			values = fact_object(x->b, object, "capabilities");
		name = model_str(x->b->m, xspace_text(x, plane->stats[row].name)).ptr;
		if (v->field == 2)
			fact_real(x->b, values, name, pb_double(v->bits));
		else if (v->field == 5 || v->field == 7)
			fact_text(x->b, values, name,
				  model_str(x->b->m, xspace_text(x, xvalue_text(plane, v))));
		else
			fact_int(x->b, values, name, (int64_t)v->bits);
	}
}

void xspace_plane_facts(struct xspace *x, struct xplane *plane, fact_id object)
{
	bool any = plane->min_start_ps != INT64_MAX;

	fact_text(x->b, object, "name", model_str(x->b->m, xspace_text(x, plane->name)));
	fact_int(x->b, object, "id", plane->id);
	fact_int(x->b, object, "lines", (int64_t)plane->line_count);
	fact_int(x->b, object, "events", (int64_t)plane->event_count);
	fact_int(x->b, object, "event_stats", (int64_t)plane->event_stats);
	fact_int(x->b, object, "event_metadata", plane->entries);
	fact_int(x->b, object, "stat_metadata", (int64_t)plane->stat_ids.count - 1);
	fact_int(x->b, object, "stats", (int64_t)plane->value_count);
	if (any) {
		fact_int(x->b, object, "min_start_ps", plane->min_start_ps);
		fact_int(x->b, object, "max_end_ps", plane->max_end_ps);
	}
	top_facts(x, plane, object);
	value_facts(x, plane, object);
}

static ow_status xspace_facts(struct xspace *x)
{
	fact_id nil = { 0 }, others, hosts;

	fact_int(x->b, nil, "planes", (int64_t)x->plane_count);
	fact_int(x->b, nil, "lines", (int64_t)x->line_total);
	fact_int(x->b, nil, "events", (int64_t)x->event_total);
	others = fact_object(x->b, nil, "other_toplevel_fields");
	for (unsigned i = 0; i < ARRAY_COUNT(x->others); i++) {
		char number[8];

		snprintf(number, sizeof(number), "%u", i);
		if (x->others[i])
			fact_int(x->b, others, i ? number : "other", (int64_t)x->others[i]);
	}
	hosts = fact_list(x->b, nil, "hostnames");
	for (size_t i = 0; i < x->hostname_count; i++)
		fact_text(x->b, hosts, NULL, model_str(x->b->m, x->hostnames[i]));
	if (x->start_ns)
		fact_int(x->b, nil, "profile_start_time", x->start_ns);
	if (x->stop_ns)
		fact_int(x->b, nil, "profile_stop_time", x->stop_ns);
	return builder_status(x->b);
}

static const char *const plane_names[] = {
	"/host:",	    "/device:",	 "/virtualdevice:", "#Chip",
	"Task Environment", "Host CPUs", "Syscalls",	    "/task:",
};

static bool is_plane_name(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(plane_names); i++)
		if (str_starts(name, str_from(plane_names[i])))
			return true;
	return false;
}

/* Recognises a plane by the bytes that the head contains: id, then the name. */
static int sniff_plane(struct pb plane)
{
	struct pb_field f;

	for (int i = 0; i < 3 && pb_next(&plane, &f); i++) {
		if (f.tag == PB_TAG(2, PB_BYTES))
			return is_plane_name(pb_str(&f)) ? 95 : 0;
		if (f.tag != PB_TAG(1, PB_VARINT))
			return 0;
	}
	return 0;
}

#define REPLACED "\xef\xbf\xbd" /* the bytes that replace an invalid byte in a conversion of text */

/* Whether a binary file was converted as if it were text: its length is replaced bytes, and the name of a plane
 * follows soon. */
static bool was_text(struct str head)
{
	struct str start = str_first(head, 64);

	if (head.ptr[0] != PB_TAG(1, PB_BYTES) || !str_has(str_first(start, 8), STR(REPLACED)))
		return false;
	return str_has(start, STR("/device:")) || str_has(start, STR("/host:"));
}

static int sniff(const struct sniff *s)
{
	struct pb r = pb_over(s->head.ptr, s->head.len);
	struct pb_varint len;

	/* The first plane may be longer than the head. */
	if (s->head.len < 4 || r.at[0] != PB_TAG(1, PB_BYTES))
		return 0;
	if (was_text(s->head))
		return 95;
	len = pb_varint_at(r.at + 1, r.end);
	if (!len.next || len.value > s->size)
		return 0;
	r.at = len.next;
	if (len.value < (uint64_t)(r.end - r.at))
		r.end = r.at + len.value;
	return sniff_plane(r);
}

ow_status xspace_no_memory(struct xspace *x)
{
	return import_no_memory(x->ctx);
}

void xspace_damage(struct xspace *x, uint64_t offset)
{
	if (!x->damaged++)
		x->first_damage = offset;
}

str_id xspace_text(struct xspace *x, struct str text)
{
	if (OW_LIKELY(utf8_valid(text)))
		return builder_str(x->b, text);
	x->bad_text++;
	return utf8_repair(x->b, text);
}

static ow_status read_environment(struct xspace *x, struct xplane *plane)
{
	OW_TRY(xspace_read_plane(x, plane));
	for (size_t i = 0; i < plane->value_count; i++) {
		enum xstat stat = xvalue_stat(plane, &plane->values[i]);
		int64_t time = xvalue_int(&plane->values[i]);

		if (stat == XSTAT_START_TIME)
			x->start_ns = MAX(time, 0);
		else if (stat == XSTAT_STOP_TIME)
			x->stop_ns = MAX(time, 0);
	}
	return OW_OK;
}

/* Reads the parts that other planes need: the start of the profile, and the programs. */
static ow_status read_first(struct xspace *x)
{
	ow_status status = OW_OK;

	for (size_t i = 0; i < x->plane_count && status == OW_OK; i++) {
		struct xplane *plane = &x->planes[i];

		if (str_eq(plane->name, STR("Task Environment"))) {
			x->hyphen = true;
			status = read_environment(x, plane);
			xspace_release_plane(x, plane);
		} else if (plane->kind == XPLANE_METADATA) {
			status = xspace_read_hlo(x, plane);
		}
	}
	return status;
}

static ow_status read_planes(struct xspace *x)
{
	ow_status status = OW_OK;

	x->plane_list = fact_list(x->b, (fact_id){ 0 }, "plane_list");
	for (size_t i = 0; i < x->plane_count && status == OW_OK; i++) {
		status = xspace_read_plane(x, &x->planes[i]);
		x->planes[i].entries = (int64_t)x->planes[i].event_ids.count - 1;
		if (status == OW_OK)
			status = xspace_read_lines(x, &x->planes[i]);
		xspace_release_plane(x, &x->planes[i]);
	}
	return status;
}

static int by_place(const void *a, const void *b, void *arg)
{
	const struct event_table *e = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (e->track[x].v != e->track[y].v)
		return e->track[x].v < e->track[y].v ? -1 : 1;
	if (e->ts_ns[x] != e->ts_ns[y])
		return e->ts_ns[x] < e->ts_ns[y] ? -1 : 1;
	if (e->dur_ns[x] != e->dur_ns[y])
		return e->dur_ns[x] > e->dur_ns[y] ? -1 : 1;
	return (x > y) - (x < y);
}

/* Sorts the events by time, for files whose lines are not sorted; all files seen so far are. */
static ow_status sort_events(struct xspace *x)
{
	struct event_table *e = &x->b->m->event;
	size_t size = e->count * sizeof(uint32_t);
	uint32_t *order, *where;
	ow_status status = OW_OK;

	if (!x->unsorted)
		return OW_OK;
	order = mem_alloc(x->mem, size);
	where = order ? mem_alloc(x->mem, size) : NULL;
	if (where) {
		for (uint32_t i = 0; i < e->count; i++)
			order[i] = i;
		qsort_r(order + x->draft.first, e->count - x->draft.first, sizeof(*order), by_place,
			e);
		for (uint32_t i = 0; i < e->count; i++)
			where[order[i]] = i;
		status = builder_permute(x->b, TABLE_event, order);
		if (status == OW_OK && !event_draft_permute(&x->draft, order, e->count))
			status = xspace_no_memory(x);
		for (size_t i = 0; i < x->end_count; i++)
			x->ends[i].event = where[x->ends[i].event];
	} else {
		status = xspace_no_memory(x);
	}
	mem_free(x->mem, where, size);
	if (status != OW_OK) {
		mem_free(x->mem, order, size);
		return status;
	}
	x->order = order;
	x->order_rows = e->count;
	return OW_OK;
}

static void set_stack(struct xspace *x, uint32_t op, const struct hlo_op *h)
{
	frame_id frame = builder_frame(
		x->b, &(struct frame_row){ .file = xspace_text(x, h->file), .line = h->line });
	stack_id stack = builder_stack(x->b, (stack_id){ 0 }, frame);

	BUILDER_SET(x->b, op, stack, (op_id){ op }, stack);
}

/* Adds float operations and bytes to ops that are known instructions. */
static ow_status describe_ops(struct xspace *x)
{
	struct op_table *t = &x->b->m->op;

	for (uint32_t op = 1; op < t->count; op++) {
		uint32_t name = t->name[op].v;
		const struct hlo_op *h;

		if (name >= x->op_cap || !x->ops[name].hlo)
			continue;
		h = &x->hlo.ops[x->ops[name].hlo];
		if (h->flops > 0)
			t->float_ops[op] = h->flops;
		if (h->accessed > 0)
			BUILDER_SET(x->b, op, accessed, (op_id){ op }, h->accessed);
		if (h->file.len && !COLUMN_GET(t->stack, op).v)
			set_stack(x, op, h);
		OW_TRY(builder_status(x->b));
	}
	return OW_OK;
}

/* Adds events without a time as sums of their op. */
static ow_status add_sums(struct xspace *x)
{
	for (size_t i = 0; i < x->sum_count; i++) {
		const struct xsum *sum = &x->sums[i];
		op_id op = builder_find_op(x->b, sum->op);

		if (!op.v)
			op = builder_new_op(x->b, &(struct op_row){ .name = sum->op,
								    .type = sum->op,
								    .flags = OP_FROM_RUN });
		builder_add_op_step(x->b,
				    &(struct op_step_row){
					    .op = op,
					    .run_count = sum->runs,
					    .accelerator_ns = sum->device ? sum->sum_ps / 1000 : 0,
					    .cpu_ns = sum->device ? 0 : sum->sum_ps / 1000 });
		OW_TRY(builder_status(x->b));
	}
	return OW_OK;
}

static ow_status find_meaning(struct xspace *x)
{
	size_t count = x->op_cap;
	struct op_hint *hints = mem_zalloc(x->mem, (count + 1) * sizeof(*hints));
	ow_status status;

	if (!hints)
		return xspace_no_memory(x);
	for (size_t i = 0; i < count; i++)
		hints[i] = (struct op_hint){ { x->ops[i].type }, x->ops[i].flags };
	status = interpret_trace(x->b, &(struct interpret_input){ .source = x->b->source,
								  .input = x->ctx->in,
								  .options = x->ctx->options,
								  .draft = &x->draft,
								  .first_track = x->first_track,
								  .first_flow = x->first_flow,
								  .first_link = x->first_link,
								  .only_slices = true,
								  .xspace = true,
								  .hints = hints,
								  .hint_count = (uint32_t)count,
								  .steps = x->steps,
								  .step_count = x->step_count });
	mem_free(x->mem, hints, (count + 1) * sizeof(*hints));
	return status;
}

static void add_notes(struct xspace *x)
{
	if (x->truncated)
		builder_note(x->b, NOTE_TRUNCATED, x->truncated_at,
			     "the file ends inside a message, or other data follows; everything "
			     "before it is used");
	if (x->damaged)
		builder_note_many(x->b, NOTE_DAMAGED, x->first_damage, x->damaged,
				  "unreadable events or entries: left out");
	if (x->unnamed)
		builder_note_many(
			x->b, NOTE_MISSING, OW_NO_OFFSET, x->unnamed,
			"kinds of events have no name in the file: their number is shown");
	if (x->clamped)
		builder_note_many(x->b, NOTE_REPAIRED, OW_NO_OFFSET, x->clamped,
				  "times out of range: replaced by the limit, durations by 0");
	if (x->bad_text)
		builder_note_many(x->b, NOTE_REPAIRED, OW_NO_OFFSET, x->bad_text,
				  "texts are not UTF-8: the invalid bytes were replaced");
}

/* Reports a file without content: a binary file that was converted as text has nothing left to be read. */
static ow_status explain_empty(struct xspace *x)
{
	struct str head = window_peek(&x->window, 0, (size_t)MIN(x->ctx->in->size, 4096u));

	if (head.ptr && str_has(head, STR(REPLACED)))
		return error_at(x->ctx->err, OW_E_CORRUPT, str_find(head, STR(REPLACED)),
				"%s: this XSpace was converted as if it were text, which destroys "
				"it; copy the original file again, as binary",
				x->ctx->in->name);
	if (x->truncated || x->damaged)
		return error_at(x->ctx->err, OW_E_CORRUPT,
				x->truncated ? x->truncated_at : x->first_damage,
				"%s: the XSpace is truncated or damaged before its first event; "
				"copy it again",
				x->ctx->in->name);
	return error_set(x->ctx->err, OW_E_EMPTY,
			 "%s: the XSpace has no readable plane: nothing was recorded",
			 x->ctx->in->name);
}

static ow_status load_all(struct xspace *x)
{
	struct model *m = x->b->m;

	OW_TRY(xspace_find_planes(x));
	OW_TRY(read_first(x));
	event_draft_init(&x->draft, x->b);
	x->first_track = m->track.count;
	x->first_flow = m->flow.count;
	x->first_link = m->link.count;
	OW_TRY(read_planes(x));
	if (!x->plane_count || ((x->damaged || x->truncated) && !x->event_total))
		return explain_empty(x);
	OW_TRY(xspace_facts(x));
	OW_TRY(sort_events(x));
	OW_TRY(xspace_link_ends(x));
	OW_TRY(xspace_steps_of_roots(x));
	xspace_finish_steps(x);
	OW_TRY(find_meaning(x));
	OW_TRY(describe_ops(x));
	OW_TRY(add_sums(x));
	OW_TRY(xspace_add_memory(x));
	OW_TRY(xspace_offer_args(x));
	add_notes(x);
	return builder_status(x->b);
}

static void release(struct xspace *x)
{
	for (size_t i = 0; i < x->plane_count; i++)
		xspace_release_plane(x, &x->planes[i]);
	mem_free(x->mem, x->planes, x->plane_cap * sizeof(*x->planes));
	mem_free(x->mem, x->hlo.ops, x->hlo.cap * sizeof(*x->hlo.ops));
	mem_free(x->mem, x->hlo.modules, x->hlo.module_cap * sizeof(*x->hlo.modules));
	mem_free(x->mem, x->ops, x->op_cap * sizeof(*x->ops));
	mem_free(x->mem, x->hostnames, x->hostname_cap * sizeof(*x->hostnames));
	mem_free(x->mem, x->steps, x->step_cap * sizeof(*x->steps));
	mem_free(x->mem, x->ends, x->end_cap * sizeof(*x->ends));
	mem_free(x->mem, x->sums, x->sum_cap * sizeof(*x->sums));
	mem_free(x->mem, x->heaps, x->heap_cap * sizeof(*x->heaps));
	event_draft_release(&x->draft);
	xspace_release_roots(x);
	mem_free(x->mem, x->pieces, x->piece_cap * sizeof(*x->pieces));
	mem_free(x->mem, x->order, x->order_rows * sizeof(*x->order));
	map_release(&x->hlo.map);
	map_release(&x->groups);
	arena_release(&x->arena);
	arena_release(&x->shelf);
	window_release(&x->window);
}

static ow_status load(struct import_ctx *ctx)
{
	struct xspace x = { .ctx = ctx, .b = ctx->b, .mem = ctx->b->m->mem };
	ow_status status;

	map_init(&x.hlo.map, x.mem);
	map_init(&x.groups, x.mem);
	map_init(&x.iteration_map, x.mem);
	arena_init(&x.arena, x.mem);
	arena_init(&x.shelf, x.mem);
	window_init(&x.window, ctx->in, ctx->err);
	status = load_all(&x);
	release(&x);
	return status == OW_OK ? OW_OK : builder_fail(ctx->b, status);
}

const struct importer import_xspace = {
	.name = "xspace",
	.summary = "XSpace of TensorFlow 2, JAX and XProf: hosts, GPUs and TPUs",
	.extensions = "*.xplane.pb",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
