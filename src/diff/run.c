/*
 * run.c: computes the cells of one run (run.h). One pass over the events cuts them into pieces that lie in the steps
 * that are used; a sweep over these, by time, assigns each instant to the innermost event of the first active phase, in
 * the order of precedence that `phases` has. Device work counts for the operator that launched it, if the recording
 * links them. Linear but for one radix sort.
 */
#include "diff/arguments.h"

#include "analyze/samples/samples.h"
#include "base/radix.h"
#include "base/vec.h"

#include <stdlib.h>

#define LINE_BYTES 256
/* limit of the sequence of a step; a longer one takes time and adds nothing */
#define SEQUENCE_MOST 65536u

/* The part of an event that lies in a step. */
struct piece {
	uint64_t key; /* begin as an unsigned sort key */
	int64_t end;
	uint32_t event;
	uint32_t cell; /* number of the cell; 0 = not known yet */
	uint8_t class;
	bool starts; /* the event begins in this step */
};

/* The outermost operators of a track, by time. */
struct operators {
	struct operator_span {
		int64_t begin, end;
		uint32_t event;
	} * items;
	size_t count, cap;
};

struct cell_key {
	uint32_t class, op, outer, frame;
	uint32_t name; /* name of an event without an op */
	int32_t rank;
};

struct reader {
	struct model *m;
	struct mem *mem;
	struct ow_error *err;
	struct diff_run *run;
	struct arena scratch;
	struct phases phases;
	uint32_t *launch; /* for each event of a device: the call that launched it, 0 = unknown */
	struct operators *operators; /* one entry for each track */
	/* for each track: another track of the same thread, 0 = none */
	uint32_t *next_of_thread;
	uint32_t *own_frame; /* for each stack: its frame in the user's code; may be NULL */
	struct map cell_map;
	struct cell_key *keys; /* one for each cell of the run */
	size_t key_cap;
	uint8_t *has_device; /* for each source: whether it has device events */
	/* for each track: it has the Python frames of a thread that runs operators */
	uint8_t *python;
	bool any_python;
	struct piece *pieces;
	size_t piece_count, piece_cap;
	struct diff_read_options options;
	bool async; /* requests that overlap freely (asynchronous events) count, too */
	struct argument_reader arguments;
};

static bool is_operator(const struct reader *r, uint32_t event)
{
	const struct model *m = r->m;
	uint32_t op = m->event.op[event].v, track = m->event.track[event].v;
	enum phase_class class;

	if (!op || m->op.flags[op] & (OP_WRAPS | OP_WAITS | OP_STEP_MARK) ||
	    !event_is_slice(m, event) || track_work(m, (track_id){ track }) != WORK_HOST)
		return false;
	class = phase_class_of(m, event, r->has_device[m->track.source[track].v]);
	return class == CLASS_HOST || class == CLASS_COMPUTE || class == CLASS_COMMUNICATION;
}

/* Finds the outermost operators. Events of a track are sorted by time, the longest first: an event that begins
 * before the previous outermost one ends lies inside it. */
static ow_status find_operators(struct reader *r)
{
	const struct model *m = r->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		struct operators *list = &r->operators[m->event.track[i].v];
		struct operator_span *last;
		int64_t begin = m->event.ts_ns[i], end;

		if (!is_operator(r, i))
			continue;
		end = event_end(m, i);
		last = list->count ? &list->items[list->count - 1] : NULL;
		if (last && begin < last->end) {
			if (end <= last->end)
				continue;
			/* times are rounded: the event follows the previous one and is not inside it */
			last->end = begin;
		}
		if (!vec_push(r->mem, list->items, list->count, list->cap,
			      (struct operator_span){ begin, end, i }))
			return error_no_memory(r->err);
	}
	return OW_OK;
}

static uint64_t thread_hash(const struct model *m, uint32_t track)
{
	return map_hash_u64(
		map_hash_u64((uint64_t)m->track.pid[track], (uint64_t)m->track.tid[track]),
		m->track.source[track].v);
}

static bool is_same_thread(const struct model *m, uint32_t a, uint32_t b)
{
	return m->track.pid[a] == m->track.pid[b] && m->track.tid[a] == m->track.tid[b] &&
	       m->track.source[a].v == m->track.source[b].v;
}

/* Links the tracks of one thread in a ring, so that a call finds the operators of its thread. */
static ow_status join_threads(struct reader *r)
{
	const struct model *m = r->m;
	struct map map;
	ow_status status = OW_OK;

	map_init(&map, r->mem);
	for (uint32_t t = 1; status == OW_OK && t < m->track.count; t++) {
		uint64_t hash = thread_hash(m, t);
		struct map_iter it = map_find(&map, hash);

		r->next_of_thread[t] = t;
		while (it.value && !is_same_thread(m, it.value, t))
			it = map_next(&map, it);
		if (it.value) {
			r->next_of_thread[t] = r->next_of_thread[it.value];
			r->next_of_thread[it.value] = t;
		} else if (!map_add(&map, hash, t)) {
			status = error_no_memory(r->err);
		}
	}
	map_release(&map);
	return status;
}

/* Finds tracks whose Python frames count, as in `phases`: those of threads that also have calls. */
static ow_status find_python(struct reader *r)
{
	const struct model *m = r->m;
	uint8_t *has_calls = ARENA_ARRAY(&r->scratch, uint8_t, m->track.count + 1);
	bool any = false;

	r->python = ARENA_ARRAY(&r->scratch, uint8_t, m->track.count + 1);
	if (!has_calls || !r->python)
		return error_no_memory(r->err);
	for (uint32_t t = 1; t < m->track.count; t++)
		any = any || m->track.kind[t] == TRACK_FRAMES;
	for (uint32_t i = 1; any && i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;

		if (!has_calls[track] && track_work(m, (track_id){ track }) == WORK_HOST)
			has_calls[track] =
				phase_class_of(m, i, r->has_device[m->track.source[track].v]) !=
				CLASS_COUNT;
	}
	for (uint32_t t = 1; any && t < m->track.count; t++)
		for (uint32_t k = r->next_of_thread[t];
		     m->track.kind[t] == TRACK_FRAMES && k != t && !r->python[t];
		     k = r->next_of_thread[k])
			r->python[t] = has_calls[k];
	for (uint32_t t = 1; any && t < m->track.count; t++)
		r->any_python = r->any_python || r->python[t];
	return OW_OK;
}

static uint32_t operator_at(const struct operators *list, int64_t ts)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (list->items[middle].end <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low < list->count && list->items[low].begin <= ts ? list->items[low].event : 0;
}

/* The outermost operator around a host event; 0 when there is none. */
static uint32_t operator_of(const struct reader *r, uint32_t event)
{
	uint32_t track = r->m->event.track[event].v, t = track, found = 0;

	do {
		found = operator_at(&r->operators[t], r->m->event.ts_ns[event]);
		t = r->next_of_thread[t];
	} while (!found && t != track && t);
	return found;
}

static struct str op_text(const struct model *m, uint32_t op)
{
	struct str type = model_str(m, m->op.type[op]);

	struct str name = model_str(m, m->op.name[op]);

	if (type.len && (m->op.flags[op] & OP_SHORT_TYPE || !name.len))
		return type;
	return name.len ? name : STR("[unnamed]");
}

static uint32_t frame_of(const struct reader *r, uint32_t event)
{
	const struct model *m = r->m;
	uint32_t stack = event ? COLUMN_GET(m->event.stack, event).v : 0;

	if (!stack && event)
		stack = COLUMN_GET(m->op.stack, m->event.op[event].v).v;
	return stack && r->own_frame ? r->own_frame[stack] : 0;
}

static bool is_of_device(const struct reader *r, uint32_t event)
{
	return track_work(r->m, r->m->event.track[event]) == WORK_DEVICE;
}

static struct cell_key key_of(const struct reader *r, uint32_t event, enum phase_class class)
{
	const struct model *m = r->m;
	uint32_t track = m->event.track[event].v, outer, frame;
	uint32_t call = is_of_device(r, event) ? (r->launch ? r->launch[event] : 0) : event;

	outer = call ? operator_of(r, call) : 0;
	frame = frame_of(r, outer);
	if (!frame)
		frame = frame_of(r, call ? call : event);
	return (struct cell_key){ class,
				  m->event.op[event].v,
				  outer ? m->event.op[outer].v : 0,
				  frame,
				  m->event.op[event].v ? 0 : COLUMN_GET(m->event.name, event).v,
				  m->source.rank[m->track.source[track].v] };
}

static uint64_t key_hash(const struct cell_key *k)
{
	return map_hash_u64(map_hash_u64(k->class, map_hash_u64(k->op, k->name)),
			    map_hash_u64(map_hash_u64(k->outer, k->frame), (uint64_t)k->rank + 1));
}

/* The event that has the shapes: the operator around the event, or around the call that launched it. */
static uint32_t shape_event(const struct reader *r, uint32_t event)
{
	uint32_t call = is_of_device(r, event) ? (r->launch ? r->launch[event] : 0) : event;
	uint32_t outer = call ? operator_of(r, call) : 0;

	return outer ? outer : call;
}

static ow_status new_cell(struct reader *r, const struct cell_key *key, uint32_t event,
			  uint32_t *number)
{
	struct diff_run *run = r->run;
	struct str own =
		key->name ? model_str(r->m, (str_id){ key->name }) : op_text(r->m, key->op);
	struct diff_cell cell = { .class = (enum phase_class)key->class,
				  .rank = key->rank,
				  .op = own };
	char line[LINE_BYTES] = "";

	if (key->outer && key->outer != key->op) {
		cell.op = op_text(r->m, key->outer);
		cell.part = own;
	}
	if (key->frame) {
		own_line_name(r->m, key->frame, line, sizeof(line));
		cell.file = model_str(r->m, r->m->frame.file[key->frame]);
		cell.line_number = r->m->frame.line[key->frame];
	}
	cell.line = arena_str(&run->arena, str_from(line));
	cell.device = is_of_device(r, event);
	if (!vec_reserve(r->mem, r->keys, r->key_cap, run->cell_count + 1) ||
	    !vec_push(r->mem, run->cells, run->cell_count, run->cell_cap, cell))
		return error_no_memory(r->err);
	r->keys[run->cell_count - 1] = *key;
	*number = (uint32_t)run->cell_count;
	return map_add(&r->cell_map, key_hash(key), *number) ? OW_OK : error_no_memory(r->err);
}

/* The number of the event's cell, from 1; it is added if it is new. */
static ow_status cell_of(struct reader *r, uint32_t event, enum phase_class class, uint32_t *number)
{
	struct cell_key key = key_of(r, event, class);

	for (struct map_iter it = map_find(&r->cell_map, key_hash(&key)); it.value;
	     it = map_next(&r->cell_map, it))
		if (memcmp(&r->keys[it.value - 1], &key, sizeof(key)) == 0) {
			*number = it.value;
			return OW_OK;
		}
	return new_cell(r, &key, event, number);
}

struct used {
	const struct phase_window **windows; /* steps of one source that are used, sorted by time */
	uint32_t count;
	uint32_t typical; /* index of the step nearest to the median */
};

static ow_status add_pieces(struct reader *r, const struct used *used, uint32_t event,
			    enum phase_class class)
{
	int64_t begin = r->m->event.ts_ns[event], end = event_end(r->m, event);
	uint32_t low = 0, high = used->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (used->windows[middle]->end_ns <= begin)
			low = middle + 1;
		else
			high = middle;
	}
	/* Events of zero length have no time, but they are counted. */
	for (; low < used->count &&
	       (used->windows[low]->start_ns < end || used->windows[low]->start_ns == begin);
	     low++) {
		const struct phase_window *w = used->windows[low];
		int64_t from = MAX(begin, w->start_ns);
		struct piece piece = { (uint64_t)from ^ (uint64_t)INT64_MIN,
				       MIN(end, w->end_ns),
				       event,
				       0,
				       (uint8_t) class,
				       begin >= w->start_ns };

		if ((piece.end > from || begin == end) &&
		    !vec_push(r->mem, r->pieces, r->piece_count, r->piece_cap, piece))
			return error_no_memory(r->err);
	}
	return OW_OK;
}

static int64_t piece_begin(const struct piece *p)
{
	return (int64_t)(p->key ^ (uint64_t)INT64_MIN);
}

/* Events of a class that began and may still run; the one that began last is on top. */
struct open_events {
	struct piece **items;
	size_t count, cap;
};

struct sweep {
	struct reader *r;
	struct open_events open[CLASS_COUNT];
	const struct used *used;
};

static ow_status charge(struct sweep *s, struct piece *piece, int64_t ns)
{
	struct diff_cell *cell;

	if (!piece->cell)
		OW_TRY(cell_of(s->r, piece->event, (enum phase_class)piece->class, &piece->cell));
	cell = &s->r->run->cells[piece->cell - 1];
	cell->ns = span_add(cell->ns, ns);
	return OW_OK;
}

/* Distributes the time from t to the next begin; only ends of events lie in between. */
static ow_status run_until(struct sweep *s, int64_t t, int64_t next)
{
	while (t < next) {
		struct piece *top = NULL;
		int64_t until = next;

		for (unsigned c = 0; c < CLASS_COUNT && !top; c++) {
			struct open_events *open = &s->open[c];

			while (open->count && open->items[open->count - 1]->end <= t)
				open->count--;
			top = open->count ? open->items[open->count - 1] : NULL;
		}
		if (top) {
			until = MIN(next, top->end);
			OW_TRY(charge(s, top, span_length(t, until)));
		} else {
			s->r->run->idle_ns = span_add(s->r->run->idle_ns, span_length(t, next));
		}
		t = until;
	}
	return OW_OK;
}

static ow_status begin_piece(struct sweep *s, struct piece *piece, bool typical)
{
	struct reader *r = s->r;
	struct diff_run *run = r->run;
	struct open_events *open = &s->open[piece->class];
	uint32_t number;

	if (!vec_push(r->mem, open->items, open->count, open->cap, piece))
		return error_no_memory(r->err);
	if (!piece->starts)
		return OW_OK;
	OW_TRY(cell_of(r, piece->event, (enum phase_class)piece->class, &number));
	piece->cell = number;
	run->cells[number - 1].count++;
	if (r->arguments.left && !r->python[r->m->event.track[piece->event].v])
		OW_TRY(arguments_count(&r->arguments, shape_event(r, piece->event),
				       &run->cells[number - 1].arguments, r->err));
	run->float_ops += (double)r->m->op.float_ops[r->m->event.op[piece->event].v];
	if (piece->class == CLASS_LAUNCH)
		run->launches++;
	if (typical && run->sequence_count < SEQUENCE_MOST &&
	    !vec_push(r->mem, run->sequence, run->sequence_count, run->sequence_cap, number))
		return error_no_memory(r->err);
	return OW_OK;
}

static ow_status sweep_window(struct sweep *s, struct piece *pieces, size_t count, size_t *at,
			      const struct phase_window *w, bool typical)
{
	int64_t t = w->start_ns;

	for (unsigned c = 0; c < CLASS_COUNT; c++)
		s->open[c].count = 0;
	while (*at < count && piece_begin(&pieces[*at]) < w->end_ns) {
		int64_t begin = piece_begin(&pieces[*at]);

		OW_TRY(run_until(s, t, begin));
		t = begin;
		OW_TRY(begin_piece(s, &pieces[(*at)++], typical));
	}
	OW_TRY(run_until(s, t, w->end_ns));
	s->r->run->steps++;
	arguments_end_step(&s->r->arguments);
	s->r->run->total_ns = span_add(s->r->run->total_ns, span_length(w->start_ns, w->end_ns));
	return OW_OK;
}

static ow_status sweep_source(struct reader *r, const struct used *used, bool first)
{
	struct sweep s = { .r = r, .used = used };
	struct piece *spare = NULL, *sorted;
	size_t at = 0, bytes = r->piece_count * sizeof(*spare);
	ow_status status = OW_OK;

	if (r->piece_count) {
		spare = mem_alloc(r->mem, bytes);
		if (!spare)
			return error_no_memory(r->err);
	}
	sorted = r->piece_count ? radix_sort(r->pieces, spare, r->piece_count, key, 11) : NULL;
	for (uint32_t w = 0; status == OW_OK && w < used->count; w++)
		status = sweep_window(&s, sorted, r->piece_count, &at, used->windows[w],
				      first && w == used->typical);
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		vec_free(r->mem, s.open[c].items, s.open[c].cap);
	mem_free(r->mem, spare, bytes);
	return status;
}

static int by_start(const void *a, const void *b)
{
	const struct phase_window *x = *(const struct phase_window *const *)a,
				  *y = *(const struct phase_window *const *)b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static ow_status choose_windows(struct reader *r, const struct steady_steps *steady,
				struct used *used)
{
	int64_t best = INT64_MAX;

	used->windows =
		ARENA_ARRAY(&r->scratch, const struct phase_window *, steady->used_count + 1);
	if (!used->windows)
		return error_no_memory(r->err);
	used->count = steady->used_count;
	for (uint32_t i = 0; i < used->count; i++)
		used->windows[i] = &r->phases.windows[steady->used[i]];
	qsort(used->windows, used->count, sizeof(*used->windows), by_start);
	for (uint32_t i = 0; i < used->count; i++) {
		int64_t length = span_length(used->windows[i]->start_ns, used->windows[i]->end_ns);
		int64_t off = length > steady->step_ns ? length - steady->step_ns
						       : steady->step_ns - length;

		if (off < best) {
			best = off;
			used->typical = i;
		}
	}
	return OW_OK;
}

/* Whether an event has a time that counts. */
static bool is_timed(const struct reader *r, uint32_t event)
{
	uint8_t ph = COLUMN_GET(r->m->event.ph, event);

	return event_is_slice(r->m, event) ||
	       (r->async && (ph == 'b' || ph == 'S') && r->m->event.dur_ns[event] != TIME_UNKNOWN);
}

/* The class of an event in the sweep: that of `phases`; if no event of the recording has a phase, every slice is
 * host work. */
static enum phase_class piece_class(const struct reader *r, uint32_t event, uint32_t source,
				    bool unclassified)
{
	uint32_t track = r->m->event.track[event].v;

	if (!unclassified && r->python[track])
		return phase_class_of_frame(r->m, event);
	if (!unclassified)
		return phase_class_of(r->m, event, r->has_device[source]);
	return r->m->track.kind[track] == TRACK_SPAN || r->m->track.kind[track] == TRACK_DERIVED
		       ? CLASS_COUNT
		       : CLASS_HOST;
}

/* Collects the pieces of one source's events: of Python frames, or of all others. */
static ow_status collect_pieces(struct reader *r, uint32_t source, const struct used *used,
				bool unclassified, bool frames)
{
	const struct model *m = r->m;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;
		enum phase_class class;

		if (m->track.source[track].v != source || r->python[track] != frames ||
		    !is_timed(r, i))
			continue;
		class = piece_class(r, i, source, unclassified);
		if (class != CLASS_COUNT)
			OW_TRY(add_pieces(r, used, i, class));
	}
	return OW_OK;
}

/* Sweeps over the steps of a source. Python frames come first: of two events that begin at the same time, the
 * operator is the inner one. */
static ow_status sweep_windows(struct reader *r, uint32_t source, const struct used *used,
			       bool unclassified)
{
	bool first = !r->run->steps;

	if (!vec_push(r->mem, r->run->ranks, r->run->rank_count, r->run->rank_cap,
		      r->m->source.rank[source]))
		return error_no_memory(r->err);
	r->piece_count = 0;
	if (r->any_python)
		OW_TRY(collect_pieces(r, source, used, unclassified, true));
	OW_TRY(collect_pieces(r, source, used, unclassified, false));
	return sweep_source(r, used, first);
}

static void count_all_steps(struct reader *r, const uint32_t *windows, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct phase_window *w = &r->phases.windows[windows[i]];

		r->run->all_steps++;
		r->run->all_steps_ns =
			span_add(r->run->all_steps_ns, span_length(w->start_ns, w->end_ns));
	}
}

static ow_status read_source(struct reader *r, uint32_t source)
{
	struct steady_steps steady;
	struct used used = { 0 };

	OW_TRY(steady_find(r->m, &r->phases, 0, (source_id){ source }, &r->scratch, &steady,
			   r->err));
	if (!steady.used_count)
		return OW_OK;
	r->run->known = r->run->steps ? r->run->known && steady.known : steady.known;
	OW_TRY(choose_windows(r, &steady, &used));
	count_all_steps(r, steady.used, steady.used_count);
	count_all_steps(r, steady.left_out, steady.left_out_count);
	return sweep_windows(r, source, &used, false);
}

/* Reads a recording without steps as one step, from the first event to the last. */
static ow_status read_whole(struct reader *r, uint32_t source, bool unclassified)
{
	const struct model *m = r->m;
	struct phase_window window = { .start_ns = INT64_MAX, .end_ns = INT64_MIN };
	const struct phase_window *windows[] = { &window };
	struct used used = { .windows = windows, .count = 1 };

	for (uint32_t i = 1; i < m->event.count; i++)
		if (m->track.source[m->event.track[i].v].v == source && is_timed(r, i) &&
		    piece_class(r, i, source, unclassified) != CLASS_COUNT) {
			window.start_ns = MIN(window.start_ns, m->event.ts_ns[i]);
			window.end_ns = MAX(window.end_ns, event_end(m, i));
		}
	return window.start_ns < window.end_ns ? sweep_windows(r, source, &used, unclassified)
					       : OW_OK;
}

static ow_status add_plain_cell(struct reader *r, struct str op, struct str line, int64_t ns,
				int64_t count)
{
	struct diff_cell cell = {
		.class = CLASS_HOST, .rank = -1, .op = op, .line = line, .ns = ns, .count = count
	};

	r->run->total_ns = span_add(r->run->total_ns, ns);
	return vec_push(r->mem, r->run->cells, r->run->cell_count, r->run->cell_cap, cell)
		       ? OW_OK
		       : error_no_memory(r->err);
}

/* Reads profiles of TensorFlow 1, which have sums for each op and step; the step is the sum of its ops, not the
 * elapsed time. */
static ow_status read_op_steps(struct reader *r)
{
	const struct model *m = r->m;

	for (uint32_t i = 1; i < m->op_step.count; i++) {
		int64_t ns = span_add(m->op_step.accelerator_ns[i], m->op_step.cpu_ns[i]);

		if (ns > 0)
			OW_TRY(add_plain_cell(r, op_text(m, m->op_step.op[i].v), STR(""), ns,
					      m->op_step.run_count[i]));
	}
	r->run->steps = r->run->cell_count ? MAX(m->step.count, 2u) - 1 : 0;
	r->run->known = r->run->steps && !r->options.whole;
	if (r->options.whole)
		r->run->steps = MIN(r->run->steps, 1u);
	return OW_OK;
}

static ow_status read_slices(struct reader *r)
{
	for (uint32_t s = 1; s < r->m->source.count; s++)
		OW_TRY(read_whole(r, s, true));
	return OW_OK;
}

/* Reads a recording without phases, by the first kind of data that it has. */
static ow_status read_without_phases(struct reader *r)
{
	OW_TRY(read_slices(r));
	if (!r->run->steps)
		OW_TRY(read_op_steps(r));
	if (!r->run->steps)
		OW_TRY(diff_samples_read(r->m, &r->options, r->run, r->err));
	if (!r->run->steps) {
		r->async = true;
		OW_TRY(read_slices(r));
	}
	return OW_OK;
}

static ow_status prepare(struct reader *r)
{
	struct model *m = r->m;

	r->has_device = ARENA_ARRAY(&r->scratch, uint8_t, m->source.count + 1);
	r->operators = ARENA_ARRAY(&r->scratch, struct operators, m->track.count + 1);
	r->next_of_thread = ARENA_ARRAY(&r->scratch, uint32_t, m->track.count + 1);
	if (!r->has_device || !r->operators || !r->next_of_thread)
		return error_no_memory(r->err);
	for (uint32_t i = 0; i < r->phases.lane_count; i++)
		if (r->phases.lanes[i].has_device)
			r->has_device[r->phases.lanes[i].source.v] = 1;
	if (m->stack.count > 1) {
		r->own_frame = line_own_frames(m, &r->scratch);
		if (!r->own_frame)
			return error_no_memory(r->err);
	}
	if (m->link.count > 1) {
		r->launch = ARENA_ARRAY(&r->scratch, uint32_t, m->event.count);
		if (!r->launch)
			return error_no_memory(r->err);
		for (uint32_t i = 1; i < m->link.count; i++)
			if (m->link.kind[i] == LINK_LAUNCH)
				r->launch[m->link.dst[i].v] = m->link.src[i].v;
	}
	OW_TRY(join_threads(r));
	OW_TRY(find_python(r));
	return find_operators(r);
}

static bool any_device(const struct reader *r)
{
	for (uint32_t s = 1; s < r->m->source.count; s++)
		if (r->has_device[s])
			return true;
	return false;
}

static ow_status read_all(struct reader *r)
{
	/* the user asked for a metric of samples */
	if (r->options.metric && r->m->sample.count > 1) {
		OW_TRY(diff_samples_read(r->m, &r->options, r->run, r->err));
	} else {
		OW_TRY(phases_analyse(r->m, &EVENT_FILTER_ALL, &r->phases, r->err));
		OW_TRY(prepare(r));
		for (uint32_t s = 1; s < r->m->source.count; s++)
			OW_TRY(r->options.whole ? read_whole(r, s, false) : read_source(r, s));
		r->run->launches_known = r->run->steps && (r->run->launches || !any_device(r));
		if (!r->run->steps)
			OW_TRY(read_without_phases(r));
	}
	OW_TRY(diff_settings_read(r->m, r->run, r->err));
	return diff_memory_read(r->m, !r->run->steps, r->run, r->err);
}

static void release_reader(struct reader *r)
{
	if (r->operators)
		for (uint32_t t = 0; t < r->m->track.count; t++)
			vec_free(r->mem, r->operators[t].items, r->operators[t].cap);
	vec_free(r->mem, r->keys, r->key_cap);
	vec_free(r->mem, r->pieces, r->piece_cap);
	map_release(&r->cell_map);
	phases_release(&r->phases);
	arena_release(&r->scratch);
}

static int by_rank(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

ow_status diff_run_read(struct model *m, const struct diff_read_options *options,
			struct diff_run *run, struct ow_error *err)
{
	struct reader r = { .m = m, .mem = m->mem, .err = err, .run = run, .options = *options };
	ow_status status;

	*run = (struct diff_run){ .peak_memory = -1, .whole = options->whole };
	arena_init(&run->arena, m->mem);
	arena_init(&r.scratch, m->mem);
	map_init(&r.cell_map, m->mem);
	arguments_init(&r.arguments, m, run, &r.scratch);
	status = model_require_rows(m, TABLES_ALL, err);
	if (status == OW_OK)
		status = read_all(&r);
	if (run->rank_count)
		qsort(run->ranks, run->rank_count, sizeof(*run->ranks), by_rank);
	release_reader(&r);
	return status;
}

void diff_run_release(struct diff_run *run)
{
	struct mem *mem = run->arena.mem;

	if (!mem)
		return;
	vec_free(mem, run->cells, run->cell_cap);
	vec_free(mem, run->frames, run->frame_cap);
	vec_free(mem, run->sequence, run->sequence_cap);
	vec_free(mem, run->ranks, run->rank_cap);
	vec_free(mem, run->settings, run->setting_cap);
	arena_release(&run->arena);
}
