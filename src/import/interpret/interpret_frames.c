/*
 * interpret_frames.c: finds call stacks. Frames are separate slices (python_function, $file.py:12), nested by time, or
 * one text among an operator's arguments. Every slice of the thread gets the stack in which it started, the work that
 * it launched gets the same, and an op that of its first run.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"

#define STACK_PROBES 64

static frame_id add_frame(struct interpret *x, struct str file, int64_t line, struct str function)
{
	struct frame_row row = { .file = builder_str(x->b, file),
				 .function = builder_str(x->b, function),
				 .line = (int32_t)MIN(line, (int64_t)INT32_MAX) };

	return builder_frame(x->b, &row);
}

/* Parses a frame of XProf: "$file.py:12 function"; builtins have no line: "$module function". */
static frame_id xprof_frame(struct interpret *x, struct str text)
{
	size_t space = str_find_char(text, ' ');
	struct str place = str_first(text, space == STR_NONE ? text.len : space);
	struct str function = space == STR_NONE ? STR("") : str_skip(text, space + 1);
	size_t colon = str_rfind_char(place, ':');
	int64_t line = 0;

	if (colon != STR_NONE && str_to_i64(str_skip(place, colon + 1), &line) && line >= 0)
		return add_frame(x, str_first(place, colon), line, function);
	return add_frame(x, STR(""), 0, text);
}

/* Parses a frame such as "file.py(12): function" or "$file.py:12 function". */
static frame_id interpret_frame(struct interpret *x, struct str text)
{
	size_t colon = str_find(text, STR("): ")), open;
	int64_t line;

	if (text.len && text.ptr[0] == '$')
		return xprof_frame(x, str_skip(text, 1));
	if (colon != STR_NONE) {
		struct str place = str_first(text, colon);

		open = str_rfind_char(place, '(');
		if (open != STR_NONE && str_to_i64(str_skip(place, open + 1), &line) && line >= 0)
			return add_frame(x, str_first(place, open), line,
					 str_skip(text, colon + 3));
	}
	return add_frame(x, STR(""), 0, text);
}

/* Frames that are open at a moment: rows of events, whose stacks are known. */
struct open_frames {
	uint32_t *list;
	size_t count, cap;
};

static bool push(struct interpret *x, struct open_frames *open, uint32_t event)
{
	return vec_push(x->mem, open->list, open->count, open->cap, event);
}

static void close_ended(const struct interpret *x, struct open_frames *open, int64_t ts)
{
	while (open->count && interpret_end(x, open->list[open->count - 1]) <= ts)
		open->count--;
}

static ow_status nest_frames(struct interpret *x, uint32_t t, struct open_frames *open,
			     uint32_t *frames)
{
	const struct interpret_track *track = interpret_track(x, t);

	open->count = 0;
	for (uint32_t e = track->first; e < track->last && builder_status(x->b) == OW_OK; e++) {
		str_id name = interpret_name(x, e);
		stack_id caller = { 0 };
		frame_id frame = { name.v < x->string_count ? frames[name.v] : 0 };

		if (!interpret_is_slice(x, e))
			continue;
		if (!frame.v)
			frame = interpret_frame(x, model_str(x->m, name));
		if (name.v < x->string_count)
			frames[name.v] = frame.v;
		close_ended(x, open, x->m->event.ts_ns[e]);
		if (open->count)
			caller = x->m->event.stack[open->list[open->count - 1]];
		x->m->event.stack[e] = builder_stack(x->b, caller, frame);
		if (!push(x, open, e))
			return interpret_no_memory(x);
	}
	return builder_status(x->b);
}

/* Gives slices of a track the innermost frame that is open when they start. */
static ow_status give_stacks(struct interpret *x, uint32_t frames, uint32_t t,
			     struct open_frames *open)
{
	const struct interpret_track *from = interpret_track(x, frames),
				     *to = interpret_track(x, t);
	const struct event_table *events = &x->m->event;
	uint32_t next = from->first;

	open->count = 0;
	for (uint32_t e = to->first; e < to->last; e++) {
		for (; next < from->last && events->ts_ns[next] <= events->ts_ns[e]; next++) {
			if (!interpret_is_slice(x, next))
				continue;
			close_ended(x, open, events->ts_ns[next]);
			if (!push(x, open, next))
				return interpret_no_memory(x);
		}
		close_ended(x, open, events->ts_ns[e]);
		if (open->count && interpret_is_slice(x, e) && !events->stack[e].v)
			events->stack[e] = events->stack[open->list[open->count - 1]];
	}
	return OW_OK;
}

static bool same_thread(const struct interpret *x, uint32_t a, uint32_t b)
{
	const struct track_table *t = &x->m->track;

	return t->pid[a] == t->pid[b] && t->tid[a] == t->tid[b];
}

static ow_status stacks_of_slices(struct interpret *x)
{
	uint32_t *frames = ARENA_ARRAY(&x->scratch, uint32_t, x->string_count);
	struct open_frames open = { 0 };
	ow_status status = frames ? OW_OK : interpret_no_memory(x);

	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		if (x->m->track.kind[t] != TRACK_FRAMES)
			continue;
		status = nest_frames(x, t, &open, frames);
		for (uint32_t o = t;
		     o-- > x->first_track && same_thread(x, o, t) && status == OW_OK;)
			if (x->m->track.kind[o] == TRACK_HOST)
				status = give_stacks(x, t, o, &open);
		for (uint32_t o = t + 1;
		     o < x->last_track && same_thread(x, o, t) && status == OW_OK; o++)
			if (x->m->track.kind[o] == TRACK_HOST)
				status = give_stacks(x, t, o, &open);
	}
	mem_free(x->mem, open.list, open.cap * sizeof(*open.list));
	return status;
}

struct texts {
	struct buf text, last; /* decoded text, and that of the previous event */
	stack_id stack;	       /* stack of the previous event */
};

/* Makes a stack of a text whose innermost frame comes first. */
static stack_id stack_of_text(struct interpret *x, struct str text)
{
	stack_id stack = { 0 };

	while (text.len && builder_status(x->b) == OW_OK) {
		size_t semicolon = str_rfind_char(text, ';');
		struct str frame = semicolon == STR_NONE ? text : str_skip(text, semicolon + 1);

		if (frame.len)
			stack = builder_stack(x->b, stack, interpret_frame(x, frame));
		text = str_first(text, semicolon == STR_NONE ? 0 : semicolon);
	}
	return stack;
}

static void take_call_stack(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	struct json_value value = json_find(args, "Call stack");
	struct texts *t = arg;
	struct buf swap;

	if (value.kind != JSON_STRING || !value.len)
		return;
	buf_clear(&t->text);
	json_decode(json_text(value), &t->text);
	if (t->text.failed) {
		interpret_no_memory(x);
		return;
	}
	if (!t->stack.v || !str_eq(buf_str(&t->text), buf_str(&t->last))) {
		t->stack = stack_of_text(x, buf_str(&t->text));
		swap = t->text;
		t->text = t->last;
		t->last = swap;
	}
	x->m->event.stack[event] = t->stack;
}

static ow_status collect_operators(struct interpret *x, size_t most, struct interpret_rows *rows)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!(track->categories & 1u << CATEGORY_OPERATOR))
			continue;
		for (uint32_t e = track->first; e < track->last && rows->count < most; e++)
			if (interpret_category(x, e) == CATEGORY_OPERATOR)
				OW_TRY(interpret_rows_add(x, rows, e));
	}
	return OW_OK;
}

static void probe_call_stack(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	bool *found = arg;

	(void)x;
	(void)event;
	*found |= json_find(args, "Call stack").len > 0;
}

/* Reads a few operators to find out whether reading all is useful. */
static ow_status have_arguments(struct interpret *x, bool *found)
{
	struct interpret_rows rows = { 0 };
	ow_status status = collect_operators(x, STACK_PROBES, &rows);

	*found = false;
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, probe_call_stack, found);
	interpret_rows_release(x, &rows);
	return status;
}

static ow_status stacks_of_arguments(struct interpret *x)
{
	struct interpret_rows rows = { 0 };
	struct texts texts = { 0 };
	ow_status status = collect_operators(x, SIZE_MAX, &rows);

	buf_init(&texts.text, x->mem);
	buf_init(&texts.last, x->mem);
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_call_stack, &texts);
	interpret_rows_release(x, &rows);
	buf_release(&texts.text);
	buf_release(&texts.last);
	return status;
}

/* Gives slices without a stack that of the innermost enclosing slice which has one: calls of a device's library have
 * no stack among their arguments, and the work that they launch should have the operator's line. */
static ow_status pass_to_inner(struct interpret *x, struct open_frames *open)
{
	const struct event_table *e = &x->m->event;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		open->count = 0;
		for (uint32_t i = track->first; interpret_on_host(x, t) && i < track->last; i++) {
			if (!interpret_is_slice(x, i))
				continue;
			close_ended(x, open, e->ts_ns[i]);
			if (!e->stack[i].v && open->count)
				e->stack[i] = e->stack[open->list[open->count - 1]];
			if (e->stack[i].v && !push(x, open, i))
				return interpret_no_memory(x);
		}
	}
	return OW_OK;
}

/* Gives the stack of an operator to its gradient, which counts for the same line. */
static void pass_to_backward(struct interpret *x)
{
	const struct link_table *l = &x->m->link;
	stack_id *stack = x->m->event.stack;

	for (uint32_t i = x->first_link; i < l->count; i++)
		if (l->kind[i] == LINK_FORWARD_BACKWARD && !stack[l->dst[i].v].v)
			stack[l->dst[i].v] = stack[l->src[i].v];
}

/* Returns the stack outside of __enter__, in which a range is opened but spends no time. */
static stack_id outside_of_enter(const struct model *m, stack_id stack)
{
	for (uint32_t s = stack.v; s; s = m->stack.parent[s].v)
		if (str_has(model_str(m, m->frame.function[m->stack.frame[s].v]), STR("__enter__")))
			return m->stack.parent[s];
	return stack;
}

/* Removes the line from ranges: the time of a range belongs to the code that runs in it, never to the line that
 * opens it. Ranges of waits, such as a loader's, keep the line that waits. */
static void correct_ranges(struct interpret *x)
{
	const struct event_table *e = &x->m->event;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		for (uint32_t i = track->first; interpret_on_host(x, t) && i < track->last; i++) {
			if (!e->stack[i].v || !e->op[i].v ||
			    !interpret_is_annotation(x, i, interpret_name(x, i)))
				continue;
			if (x->m->op.flags[e->op[i].v] & OP_WRAPS)
				e->stack[i].v = 0;
			else
				e->stack[i] = outside_of_enter(x->m, e->stack[i]);
		}
	}
}

static void pass_to_launched(struct interpret *x)
{
	const struct link_table *l = &x->m->link;

	for (uint32_t i = x->first_link; i < l->count; i++)
		if (l->kind[i] == LINK_LAUNCH && x->m->event.stack[l->src[i].v].v)
			x->m->event.stack[l->dst[i].v] = x->m->event.stack[l->src[i].v];
}

static ow_status give_to_ops(struct interpret *x)
{
	for (uint32_t e = x->first_event; e < x->last_event; e++) {
		stack_id stack = x->m->event.stack[e];
		op_id op = x->m->event.op[e];

		if (!stack.v || !op.v || COLUMN_GET(x->m->op.stack, op.v).v)
			continue;
		BUILDER_SET(x->b, op, stack, op, stack);
		x->m->op.flags[op.v] |= OP_HAS_CODE;
		x->m->has_code = true;
		OW_TRY(builder_status(x->b));
	}
	return OW_OK;
}

ow_status interpret_stacks(struct interpret *x)
{
	bool frames = false, arguments = false;
	struct open_frames open = { 0 };
	ow_status status;

	for (uint32_t t = x->first_track; t < x->last_track; t++)
		frames |= x->m->track.kind[t] == TRACK_FRAMES;
	if (!frames && x->categories & 1u << CATEGORY_OPERATOR)
		OW_TRY(have_arguments(x, &arguments));
	if (!frames && !arguments && !x->in->stacks)
		return OW_OK;
	if (!builder_need_column(x->b, TABLE_event, offsetof(struct event_table, stack)))
		return builder_status(x->b);
	if (frames)
		OW_TRY(stacks_of_slices(x));
	else if (arguments)
		OW_TRY(stacks_of_arguments(x));
	if (frames ||
	    arguments) { /* stacks that the source gives to single events belong to them alone */
		correct_ranges(x);
		pass_to_backward(x);
		status = pass_to_inner(x, &open);
		mem_free(x->mem, open.list, open.cap * sizeof(*open.list));
		OW_TRY(status);
	}
	pass_to_launched(x);
	return give_to_ops(x);
}
