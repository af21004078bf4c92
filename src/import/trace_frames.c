/*
 * trace_frames.c: stackFrames (a table of frames, each with its caller) and the samples that name them.
 * A frame becomes a stack of the model; events name it by `sf`. Samples of the top level are no events
 * of the list: they are not counted among those, but become points in time on the track of their thread.
 */
#include "import/trace_int.h"

#define FRAMES_MAX ((uint64_t)1 << 30)

struct trace_frame {
	struct trace_id id, parent; /* text ids are model strings */
	str_id name, category;
	stack_id stack;
	bool visited;
};

static uint32_t decode(struct trace *t, struct str raw)
{
	struct buf scratch;
	str_id id;

	if (json_is_plain(raw))
		return builder_str(t->b, raw).v;
	buf_init(&scratch, t->mem);
	json_decode(raw, &scratch);
	if (scratch.failed)
		builder_no_memory(t->b);
	id = builder_str(t->b, buf_str(&scratch));
	buf_release(&scratch);
	return id.v;
}

static struct trace_id frame_id_of(struct trace *t, struct json_value v)
{
	struct trace_id id = { .kind = ID_INT };

	if (v.kind != JSON_STRING && v.kind != JSON_NUMBER)
		return (struct trace_id){ 0 };
	if (str_to_i64(json_text(v), &id.value))
		return id;
	id.kind = ID_TEXT;
	id.value = decode(t, json_text(v));
	return id;
}

static uint64_t hash_frame(struct trace_id id)
{
	return map_hash_u64((uint64_t)id.value, id.kind);
}

static struct trace_frame *find_frame(struct trace *t, struct trace_id id)
{
	for (struct map_iter it = map_find(&t->frame_map, hash_frame(id)); it.value;
	     it = map_next(&t->frame_map, it))
		if (t->frames[it.value].id.value == id.value &&
		    t->frames[it.value].id.kind == id.kind)
			return &t->frames[it.value];
	return NULL;
}

static bool add_frame(struct trace *t, struct str key, struct json_value value)
{
	struct trace_frame frame = {
		.id = frame_id_of(t, (struct json_value){ key.ptr, (uint32_t)key.len, JSON_STRING })
	};
	struct json_value name = json_find(json_text(value), "name");
	struct json_value category = json_find(json_text(value), "category");
	void *frames = t->frames;

	frame.parent = frame_id_of(t, json_find(json_text(value), "parent"));
	frame.name.v = decode(t, json_text(name));
	frame.category.v = decode(t, json_text(category));
	if (!mem_grow(t->mem, &frames, &t->frame_cap, (size_t)t->frame_count + 1, sizeof(frame)))
		return false;
	t->frames = frames;
	t->frames[t->frame_count] = frame;
	return map_add(&t->frame_map, hash_frame(frame.id), t->frame_count++);
}

/* Walks up to a caller that has its stack already, then down again. A cycle is cut where it closes. */
static void resolve(struct trace *t, struct trace_frame *frame, struct trace_frame **chain)
{
	size_t depth = 0;
	stack_id stack = { 0 };

	while (frame && !frame->visited) {
		frame->visited = true;
		chain[depth++] = frame;
		frame = frame->parent.kind ? find_frame(t, frame->parent) : NULL;
	}
	if (frame)
		stack = frame->stack;
	while (depth--) {
		frame = chain[depth];
		stack = builder_stack(
			t->b, stack,
			builder_frame(t->b, &(struct frame_row){ .file = frame->category,
								 .function = frame->name }));
		frame->stack = stack;
	}
}

static ow_status resolve_all(struct trace *t)
{
	struct trace_frame **chain = mem_alloc(t->mem, t->frame_count * sizeof(*chain));

	if (!chain)
		return error_no_memory(t->ctx->err);
	for (uint32_t i = 1; i < t->frame_count; i++)
		resolve(t, &t->frames[i], chain);
	mem_free(t->mem, chain, t->frame_count * sizeof(*chain));
	return builder_status(t->b);
}

/* After the merge: ids of events are model strings by then, and so are ours. */
ow_status trace_read_frames(struct trace *t)
{
	struct json_reader r;
	struct json_value value;
	struct str key;
	char *text;
	ow_status status;

	t->frame_count = 1;
	if (!t->frames_size || t->frames_size > FRAMES_MAX)
		return OW_OK;
	text = mem_alloc(t->mem, (size_t)t->frames_size);
	if (!text)
		return error_no_memory(t->ctx->err);
	status = input_read_at(t->ctx->in, t->frames_offset, text, (size_t)t->frames_size,
			       t->ctx->err);
	r = json_over(str_make(text, (size_t)t->frames_size));
	while (status == OW_OK && json_next_member(&r, &key, &value)) {
		if (value.kind == JSON_OBJECT && !add_frame(t, key, value))
			status = error_no_memory(t->ctx->err);
	}
	mem_free(t->mem, text, (size_t)t->frames_size);
	return status == OW_OK ? resolve_all(t) : status;
}

void trace_frames_release(struct trace *t)
{
	mem_free(t->mem, t->frames, t->frame_cap * sizeof(*t->frames));
	map_release(&t->frame_map);
}

stack_id trace_stack(struct trace *t, struct trace_id id)
{
	const struct trace_frame *frame = find_frame(t, id);

	return frame ? frame->stack : (stack_id){ 0 };
}

/* ---- samples ---- */

/* A sample as a point of the worker, until tracks are known. */
static void take_sample(struct trace_worker *w, const struct json_event *ev)
{
	size_t before = w->point_count;
	struct json_event copy = *ev;

	/* As an event of an unknown kind, whose id is the frame. */
	copy.have &= ~(1u << FIELD_ID2);
	copy.have |= 1u << FIELD_PH;
	copy.value[FIELD_PH] = (struct json_value){ "s", 1, JSON_STRING };
	copy.value[FIELD_ID] = ev->value[FIELD_SF];
	if (json_event_has(ev, FIELD_SF))
		copy.have |= 1u << FIELD_ID;
	else
		copy.have &= ~(1u << FIELD_ID);
	trace_take_event(w, &copy);
	for (size_t i = before; i < w->point_count; i++) {
		w->points[i].ph = 'P';
		w->points[i].flags |= POINT_SAMPLE;
	}
}

void trace_read_samples(struct trace *t, struct trace_worker *w, const struct json_item *item)
{
	struct json_event ev;
	enum json_scan_result result;

	(void)t;
	json_scan_seek(&w->scan, item->offset + 1);
	while (w->status == OW_OK && ((result = json_scan_event(&w->scan, item->offset + item->size,
								&ev)) == SCAN_EVENT ||
				      result == SCAN_OTHER || result == SCAN_DAMAGE))
		if (result == SCAN_EVENT)
			take_sample(w, &ev);
	if (w->status == OW_OK)
		w->status = w->scan.status;
	json_scan_seek(&w->scan, item->offset + item->size);
}

/* The track of a sample: that of its thread, in whatever process, when it names none. */
static uint32_t sample_lane(const struct trace *t, const struct trace_point *p)
{
	const struct trace_track *key = &t->lanes[p->track].key;

	if (key->pid.kind)
		return p->track;
	for (uint32_t i = 1; i < t->lane_count; i++) {
		const struct trace_track *other = &t->lanes[i].key;

		if (other->pid.kind && other->layer == LAYER_THREAD &&
		    other->tid.kind == key->tid.kind && other->tid.value == key->tid.value)
			return i;
	}
	return p->track;
}

ow_status trace_place_samples(struct trace *t)
{
	uint32_t last_track = 0, lane = 0;

	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *part = &t->accepted[i];
		struct trace_worker *w = &t->workers[part->worker];

		if (!part->samples)
			continue;
		for (size_t r = part->first.points; r < part->last.points; r++) {
			const struct trace_point *p = &w->points[r];
			struct trace_mark mark = { .slice = (uint32_t)w->slices.count,
						   .frame = { p->id, p->id_kind } };

			if (p->flags & POINT_NO_TS)
				continue;
			if (p->track != last_track)
				lane = sample_lane(t, p);
			last_track = p->track;
			if (!trace_add_slice(t, part->worker, p, TIME_UNKNOWN, lane) ||
			    !trace_add_mark(w, &mark))
				return error_no_memory(t->ctx->err);
		}
	}
	return OW_OK;
}
