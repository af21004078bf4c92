/*
 * event_trace.c: writes events and samples of a model as a Chrome trace (event_trace.h). If the profile is one trace,
 * the ids of processes and threads are kept; with several sources, or sources without such ids, they are numbered from
 * 1.
 */
#include "sink/timeline/event_trace.h"
#include "base/map.h"
#include "base/writer.h"
#include "sink/sink.h"
#include "model/event_filter.h"
#include "table/table.h"

typedef void (*sample_slice_fn)(void *arg, uint32_t track, struct str name, int64_t ts_ns,
				int64_t dur_ns);

/* Slices of samples. In samples with times, the frames that consecutive samples of a thread share, from the root on,
 * become one slice. A sample whose weight is a time lasts as long as its weight; a sample of another metric (cycles,
 * page faults) lasts until the next one, but not much longer than usual. Small gaps, which timers cause, are closed.
 */

#define DEPTH_MAX 2048 /* frames beyond this depth are left out, at the leaf's end */

struct open_frame {
	uint64_t key;
	uint32_t frame;
	int64_t start;
};

struct slices {
	const struct model *m;
	const struct event_filter *filter;
	/* wanted: one entry for each metric; skip: one entry for each track */
	const uint8_t *wanted, *skip;
	sample_slice_fn emit;
	void *arg;
	uint32_t track, depth;
	/* end: of the open slices; usual: mean distance of this track's samples */
	int64_t end, usual;
	struct open_frame open[DEPTH_MAX];
	uint32_t path[DEPTH_MAX]; /* frames of the current sample, the root first */
	char text[512];
};

/* Whether the model has samples with times. */
static bool sample_slices_any(const struct model *m)
{
	for (uint32_t i = 1; i < m->sample.count; i++)
		if (m->sample.ts_ns[i] != TIME_UNKNOWN)
			return true;
	return false;
}

static bool is_wanted(const struct slices *s, uint32_t i)
{
	const struct sample_table *t = &s->m->sample;

	return t->ts_ns[i] != TIME_UNKNOWN && !s->skip[t->track[i].v] &&
	       s->wanted[t->metric[i].v] && t->ts_ns[i] >= s->filter->from_ns &&
	       t->ts_ns[i] < s->filter->to_ns && filter_track(s->filter, s->m, t->track[i]) &&
	       filter_step(s->filter, COLUMN_GET(t->step, i));
}

/* The key by which two frames are merged into one slice: the function, or else the frame's text. */
static uint64_t key_of(const struct model *m, uint32_t frame)
{
	uint32_t function = m->frame.function[frame].v;

	if (function)
		return function;
	return (uint64_t)1 << 63 | (uint64_t)COLUMN_GET(m->frame.module, frame).v << 31 |
	       m->frame.file[frame].v;
}

static struct str name_of(struct slices *s, uint32_t frame)
{
	const struct frame_table *f = &s->m->frame;
	struct str module = model_str(s->m, COLUMN_GET(f->module, frame));
	size_t slash = str_rfind_char(module, '/');

	if (f->function[frame].v)
		return model_str(s->m, f->function[frame]);
	if (f->file[frame].v)
		return model_str(s->m, f->file[frame]);
	if (!module.len)
		return STR("[unknown]");
	if (slash != STR_NONE)
		module = str_skip(module, slash + 1);
	snprintf(s->text, sizeof(s->text), "[%.*s]", (int)MIN(module.len, 480), module.ptr);
	return str_from(s->text);
}

static uint32_t find_path(struct slices *s, stack_id stack)
{
	const struct stack_table *t = &s->m->stack;
	uint32_t depth = 0, count;

	for (stack_id at = stack; at.v; at = t->parent[at.v])
		depth++;
	count = MIN(depth, DEPTH_MAX);
	for (stack_id at = stack; at.v; at = t->parent[at.v])
		if (--depth < count)
			s->path[depth] = t->frame[at.v].v;
	return count;
}

static void close_down_to(struct slices *s, uint32_t depth)
{
	while (s->depth > depth) {
		const struct open_frame *o = &s->open[--s->depth];

		s->emit(s->arg, s->track, name_of(s, o->frame), o->start,
			wrap_sub(s->end, o->start));
	}
}

static void add_sample(struct slices *s, uint32_t i, int64_t end)
{
	uint32_t count = find_path(s, s->m->sample.stack[i]), same = 0;
	int64_t ts = s->m->sample.ts_ns[i];

	if (s->end < ts)
		close_down_to(s, 0);
	while (same < count && same < s->depth && s->open[same].key == key_of(s->m, s->path[same]))
		same++;
	close_down_to(s, same);
	for (; s->depth < count; s->depth++)
		s->open[s->depth] = (struct open_frame){ key_of(s->m, s->path[s->depth]),
							 s->path[s->depth], ts };
	s->end = end;
}

/* The end of sample i; next is the following sample of the track, or 0. */
static int64_t end_of(const struct slices *s, uint32_t i, uint32_t next)
{
	const struct sample_table *t = &s->m->sample;
	bool clock = str_eq(model_str(s->m, s->m->metric.unit[t->metric[i].v]), STR("ns"));
	int64_t ts = t->ts_ns[i], gap = next ? wrap_sub(t->ts_ns[next], ts) : INT64_MAX, dur;

	dur = clock ? MAX(t->weight[i], 0) : MIN(gap, s->usual);
	if (gap >= 0 && (gap < dur || gap - dur <= dur / 2))
		dur = gap;
	return ts > INT64_MAX - dur ? INT64_MAX : ts + dur;
}

static uint32_t next_of(const struct slices *s, uint32_t i)
{
	const struct sample_table *t = &s->m->sample;

	for (uint32_t k = i + 1; k < t->count && t->track[k].v == t->track[i].v; k++)
		if (is_wanted(s, k))
			return k;
	return 0;
}

/* Begins a track: a distance of more than four times the mean between its samples counts as a gap. */
static void begin_track(struct slices *s, uint32_t first)
{
	const struct sample_table *t = &s->m->sample;
	uint32_t last = first;

	close_down_to(s, 0);
	s->track = t->track[first].v;
	while (last + 1 < t->count && t->track[last + 1].v == s->track)
		last++;
	s->usual = wrap_sub(t->ts_ns[last], t->ts_ns[first]) / MAX((int64_t)(last - first), 1);
	s->usual = MAX(MIN(s->usual, INT64_MAX / 4) * 4, 1);
	s->end = INT64_MIN;
}

/* Calls `emit` for the slices of tracks that `skip` does not mark, for the metrics that `wanted` marks; a slice
 * comes after the slices inside it. False if memory runs out. */
static bool sample_slices(const struct model *m, const struct event_filter *filter,
			  const uint8_t *wanted, const uint8_t *skip, sample_slice_fn emit,
			  void *arg)
{
	struct slices *s = mem_zalloc(m->mem, sizeof(*s));

	if (!s)
		return false;
	s->m = m;
	s->filter = filter;
	s->wanted = wanted;
	s->skip = skip;
	s->emit = emit;
	s->arg = arg;
	for (uint32_t i = 1, next; i < m->sample.count; i = next) {
		next = i + 1;
		if (!is_wanted(s, i))
			continue;
		if (m->sample.track[i].v != s->track)
			begin_track(s, i);
		next = next_of(s, i);
		add_sample(s, i, end_of(s, i, next));
		next = next ? next : i + 1;
	}
	close_down_to(s, 0);
	mem_free(m->mem, s, sizeof(*s));
	return true;
}

struct place {
	int64_t pid, tid;
};

struct event_trace {
	struct model *m;
	const struct event_trace_options *options;
	struct writer w;
	struct place *places; /* process and thread id of each track */
	uint8_t *busy;	      /* for each track: whether it has events */
	struct buf args;
	bool any, several; /* any: some source has tracks; several: more than one has */
};

static bool is_trace(const struct model *m, uint32_t source)
{
	return str_eq(model_str(m, m->source.format[source]), STR("trace"));
}

static bool is_number(int64_t id)
{
	/* Smaller ids are "none", or MODEL_TEXT_NUMBER + a string. */
	return id > MODEL_TEXT_NUMBER + UINT32_MAX;
}

/* Whether ids can be kept: every track comes from a trace and has numbers, and there is only one source. */
static bool may_keep_ids(struct event_trace *t)
{
	const struct track_table *track = &t->m->track;
	uint32_t source = 0;

	for (uint32_t i = 1; i < track->count; i++) {
		t->several |= source && track->source[i].v != source;
		source = track->source[i].v;
	}
	for (uint32_t i = 1; i < track->count; i++)
		if (t->several || !is_trace(t->m, track->source[i].v) ||
		    !is_number(track->pid[i]) || !is_number(track->tid[i]))
			return false;
	return true;
}

/* Whether two tracks belong to one process: tracks with the same source and pid, of a trace or of samples. Any other
 * track is a process of its own. */
static bool same_process(const struct track_table *track, uint32_t a, uint32_t b, bool trace)
{
	return trace && track->source[a].v == track->source[b].v && track->pid[a] == track->pid[b];
}

static ow_status number_places(struct event_trace *t, struct ow_error *err)
{
	const struct track_table *track = &t->m->track;
	int64_t next = 1;
	struct map map;

	map_init(&map, t->m->mem);
	for (uint32_t i = 1; i < track->count; i++) {
		bool trace = is_trace(t->m, track->source[i].v) ||
			     (t->m->sample.count > 1 && t->m->event.count <= 1 && track->pid[i]);
		uint64_t hash = map_hash_u64((uint64_t)track->pid[i], track->source[i].v);
		uint32_t first = 0;

		for (struct map_iter it = map_find(&map, hash); it.value && !first;
		     it = map_next(&map, it))
			if (same_process(track, it.value, i, trace))
				first = it.value;
		if (!first && !map_add(&map, hash, i)) {
			map_release(&map);
			return error_no_memory(err);
		}
		t->places[i].pid = first ? t->places[first].pid : next++;
		t->places[i].tid = trace && is_number(track->tid[i]) ? track->tid[i] : (int64_t)i;
	}
	map_release(&map);
	return OW_OK;
}

static ow_status find_places(struct event_trace *t, struct ow_error *err)
{
	const struct track_table *track = &t->m->track;

	if (!may_keep_ids(t))
		return number_places(t, err);
	for (uint32_t i = 1; i < track->count; i++)
		t->places[i] = (struct place){ track->pid[i], track->tid[i] };
	return OW_OK;
}

static void begin(struct event_trace *t)
{
	writer_puts(&t->w, t->any ? ",\n{" : "\n{");
	t->any = true;
}

static void put_place(struct event_trace *t, uint32_t track)
{
	writer_puts(&t->w, ", \"pid\": ");
	writer_int(&t->w, t->places[track].pid);
	writer_puts(&t->w, ", \"tid\": ");
	writer_int(&t->w, t->places[track].tid);
}

static void put_time(struct event_trace *t, const char *key, int64_t ns)
{
	writer_puts(&t->w, key);
	writer_micros(&t->w, ns);
}

static void open_event(struct event_trace *t, const char *ph, struct str name, str_id category,
		       uint32_t track, int64_t ts_ns)
{
	begin(t);
	writer_printf(&t->w, "\"ph\": \"%s\", \"name\": ", ph);
	writer_json(&t->w, name);
	if (category.v) {
		writer_puts(&t->w, ", \"cat\": ");
		writer_json(&t->w, model_str(t->m, category));
	}
	put_place(t, track);
	put_time(t, ", \"ts\": ", ts_ns);
}

static void put_metadata(struct event_trace *t, const char *what, uint32_t track, struct str text,
			 struct str source)
{
	begin(t);
	writer_printf(&t->w, "\"ph\": \"M\", \"name\": \"%s\"", what);
	put_place(t, track);
	writer_puts(&t->w, ", \"args\": {\"name\": \"");
	if (source.len) {
		writer_json_ascii(&t->w, source);
		writer_puts(&t->w, ": ");
	}
	writer_json_ascii(&t->w, text);
	writer_puts(&t->w, "\"}}");
}

static struct str base_name(struct str path)
{
	size_t slash = str_rfind_char(path, '/');

	return slash == STR_NONE ? path : str_skip(path, slash + 1);
}

static void put_names(struct event_trace *t)
{
	const struct model *m = t->m;

	for (uint32_t i = 1; i < m->track.count && t->w.status == OW_OK; i++) {
		struct str name = model_str(m, m->track.name[i]);
		struct str process = model_str(m, m->track.process[i]);
		struct str source = model_str(m, m->source.path[m->track.source[i].v]);

		if (!process.len)
			process = model_str(m, m->device.name[m->track.device[i].v]);
		if (!process.len && !is_trace(m, m->track.source[i].v))
			process = name;
		if (process.len || t->several)
			put_metadata(t, "process_name", i, process,
				     t->several ? base_name(source) : STR(""));
		if (name.len)
			put_metadata(t, "thread_name", i, name, STR(""));
	}
}

static ow_status put_args(struct event_trace *t, uint32_t event, uint32_t source,
			  struct ow_error *err)
{
	const struct model *m = t->m;
	uint32_t size = COLUMN_GET(m->event.args_size, event);
	op_id op = m->event.op[event];

	if (size && is_trace(m, source) && source < m->input_cap && m->inputs[source]) {
		buf_clear(&t->args);
		if (!buf_reserve(&t->args, size))
			return error_no_memory(err);
		OW_TRY(input_read_at(m->inputs[source], COLUMN_GET(m->event.args_offset, event),
				     t->args.ptr, size, err));
		if (t->args.ptr[0] != '{' || t->args.ptr[size - 1] != '}')
			return OW_OK;
		writer_puts(&t->w, ", \"args\": ");
		writer_add(&t->w, t->args.ptr, size);
	} else if (m->op.type[op.v].v && !is_trace(m, source)) {
		writer_puts(&t->w, ", \"args\": {\"name\": ");
		writer_json(&t->w, model_str(m, m->op.name[op.v]));
		writer_puts(&t->w, ", \"op\": ");
		writer_json(&t->w, model_str(m, m->op.type[op.v]));
		writer_puts(&t->w, "}");
	}
	return OW_OK;
}

static ow_status put_event(struct event_trace *t, uint32_t i, struct ow_error *err)
{
	const struct model *m = t->m;
	uint32_t track = m->event.track[i].v;
	str_id own = COLUMN_GET(m->event.name, i), category = COLUMN_GET(m->event.category, i);
	struct str name = model_str(m, own.v ? own : m->op.name[m->event.op[i].v]);
	int64_t dur = m->event.dur_ns[i], ts = m->event.ts_ns[i];
	bool async = m->track.kind[track] == TRACK_ASYNC && dur != TIME_UNKNOWN;

	open_event(t, async ? "b" : dur == TIME_UNKNOWN ? "i" : "X", name, category, track, ts);
	if (async)
		writer_printf(&t->w, ", \"id\": \"0x%x\"", i);
	else if (dur == TIME_UNKNOWN)
		writer_puts(&t->w, ", \"s\": \"t\"");
	else
		put_time(t, ", \"dur\": ", dur);
	OW_TRY(put_args(t, i, m->track.source[track].v, err));
	writer_char(&t->w, '}');
	if (!async)
		return OW_OK;
	open_event(t, "e", name, category, track, wrap_add(ts, dur));
	writer_printf(&t->w, ", \"id\": \"0x%x\"}", i);
	return OW_OK;
}

static bool is_asked_for(const struct event_trace *t, uint32_t event)
{
	const struct event_filter *filter = &t->options->filter;
	int64_t begin = t->m->event.ts_ns[event], end = event_end(t->m, event);

	return filter_step(filter, t->m->event.step[event]) &&
	       filter_track(filter, t->m, t->m->event.track[event]) &&
	       filter_clip(filter, &begin, &end);
}

/* Whether a point event is selected. Points have no step of their own: they belong to the step that is running at
 * their time. */
static bool is_point_asked_for(const struct event_trace *t, track_id track, int64_t ts)
{
	const struct event_filter *filter = &t->options->filter;
	const struct step_table *step = &t->m->step;
	int64_t begin = ts, end = ts;

	if (filter->step && (ts < step->start_ns[filter->step] || ts > step->end_ns[filter->step]))
		return false;
	return filter_track(filter, t->m, track) && filter_clip(filter, &begin, &end);
}

static ow_status put_events(struct event_trace *t, struct ow_error *err)
{
	for (uint32_t i = 1; i < t->m->event.count && t->w.status == OW_OK; i++)
		if (is_asked_for(t, i))
			OW_TRY(put_event(t, i, err));
	return t->w.status;
}

/* Writes flow arrows. Ids are kept within one source; text ids, and ids of several sources, get new numbers. */
static void put_flows(struct event_trace *t)
{
	const struct model *m = t->m;

	for (uint32_t i = 1; i < m->flow.count && t->w.status == OW_OK; i++) {
		const char ph[] = { (char)m->flow.ph[i], '\0' };
		uint32_t track = m->flow.track[i].v;

		if (!ph[0] || !strchr("stf", ph[0]) ||
		    !is_point_asked_for(t, m->flow.track[i], m->flow.ts_ns[i]))
			continue;
		open_event(t, ph, model_str(m, m->flow.name[i]), m->flow.category[i], track,
			   m->flow.ts_ns[i]);
		writer_printf(&t->w, ", \"id\": \"%u/%" PRIx64 "\"%s}", m->track.source[track].v,
			      m->flow.id[i],
			      COLUMN_GET(m->flow.enclosing, i) ? ", \"bp\": \"e\"" : "");
	}
}

static bool same_sample(const struct model *m, uint32_t a, uint32_t b)
{
	const struct counter_table *c = &m->counter;

	return c->track[a].v == c->track[b].v && c->name[a].v == c->name[b].v &&
	       c->ts_ns[a] == c->ts_ns[b];
}

static void put_counters(struct event_trace *t)
{
	const struct model *m = t->m;

	for (uint32_t i = 1, next; i < m->counter.count && t->w.status == OW_OK; i = next) {
		next = i + 1;
		if (!is_point_asked_for(t, m->counter.track[i], m->counter.ts_ns[i]))
			continue;
		open_event(t, "C", model_str(m, m->counter.name[i]), (str_id){ 0 },
			   m->counter.track[i].v, m->counter.ts_ns[i]);
		writer_puts(&t->w, ", \"args\": {");
		for (next = i; next < m->counter.count && same_sample(m, i, next); next++) {
			double value = m->counter.value[next];

			writer_puts(&t->w, next > i ? ", " : "");
			writer_json(&t->w, model_str(m, m->counter.series[next]));
			writer_puts(&t->w, ": ");
			if (__builtin_isfinite(value))
				writer_real(&t->w, value);
			else
				writer_puts(&t->w, "null");
		}
		writer_puts(&t->w, "}}");
	}
}

static void put_slice(void *arg, uint32_t track, struct str name, int64_t ts_ns, int64_t dur_ns)
{
	struct event_trace *t = arg;

	if (t->w.status != OW_OK)
		return;
	open_event(t, "X", name, (str_id){ 0 }, track, ts_ns);
	put_time(t, ", \"dur\": ", dur_ns);
	writer_char(&t->w, '}');
}

/* Writes samples as slices, except for threads that have events of their own. */
static void put_samples(struct event_trace *t, struct ow_error *err)
{
	for (uint32_t i = 1; i < t->m->event.count; i++)
		t->busy[t->m->event.track[i].v] = 1;
	if (!sample_slices(t->m, &t->options->filter,
			   t->options->metrics ? t->options->metrics : t->m->metric.is_default,
			   t->busy, put_slice, t))
		writer_fail(&t->w, error_no_memory(err));
}

static const char *const path_columns[] = { "event", "kind", "track", "line", "rank" };

static void put_value(struct event_trace *t, const struct table_column *column, uint32_t row,
		      bool first)
{
	if (column->known && !column->known[row])
		return;
	writer_printf(&t->w, "%s\"%s\": ", first ? "" : ", ", column->name);
	if (column->type == TYPE_TEXT)
		writer_json(&t->w, column->texts[row]);
	else
		writer_int(&t->w, column->ints[row]);
}

/* Writes the critical path as a process of its own. Its pieces are asynchronous spans, so that programs that read
 * the timeline do not count them as work of a thread. */
static void put_path(struct event_trace *t, const struct table *path)
{
	uint32_t op = table_find_column(path, STR("op")),
		 ts = table_find_column(path, STR("ts_ns"));
	uint32_t dur = table_find_column(path, STR("dur_ns"));
	int64_t pid = 1;

	for (uint32_t i = 1; i < t->m->track.count; i++)
		pid = MAX(pid, MIN(t->places[i].pid, INT64_MAX - 1) + 1);
	begin(t);
	writer_printf(&t->w,
		      "\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %lld, \"tid\": 0, "
		      "\"args\": {\"name\": \"critical path\"}}",
		      (long long)pid);
	for (uint32_t i = 0; i < path->row_count && t->w.status == OW_OK; i++) {
		int64_t from = path->columns[ts].ints[i];
		bool first = true;

		for (int end = 0; end < 2; end++) {
			begin(t);
			writer_printf(&t->w,
				      "\"ph\": \"%s\", \"cat\": \"critical_path\", \"id\": "
				      "\"path\", \"pid\": %lld, \"tid\": 0, \"name\": ",
				      end ? "e" : "b", (long long)pid);
			writer_json(&t->w, path->columns[op].texts[i]);
			put_time(t, ", \"ts\": ",
				 end ? wrap_add(from, path->columns[dur].ints[i]) : from);
			writer_puts(&t->w, end ? "}" : ", \"args\": {");
			for (size_t k = 0; !end && k < ARRAY_COUNT(path_columns); k++) {
				const struct table_column *column =
					&path->columns[table_find_column(
						path, str_from(path_columns[k]))];

				put_value(t, column, i, first);
				first &= column->known && !column->known[i];
			}
			writer_puts(&t->w, end ? "" : "}}");
		}
	}
}

static ow_status write_all(struct event_trace *t, const struct out *out, struct ow_error *err)
{
	ow_status status = find_places(t, err);

	if (status != OW_OK)
		return status;
	writer_init(&t->w, t->m->mem, out, err);
	writer_puts(&t->w, "{\"traceEvents\": [");
	put_names(t);
	status = put_events(t, err);
	if (status == OW_OK && t->options->show_dataflow)
		put_flows(t);
	if (status == OW_OK && t->m->sample.count > 1)
		put_samples(t, err);
	if (status == OW_OK)
		put_counters(t);
	if (status == OW_OK && t->options->path)
		put_path(t, t->options->path);
	writer_puts(&t->w, "\n]}\n");
	writer_fail(&t->w, status);
	return writer_finish(&t->w);
}

ow_status event_trace_write(struct model *m, const struct event_trace_options *options,
			    const struct out *out, struct ow_error *err)
{
	struct event_trace t = { .m = m, .options = options };
	size_t size = m->track.count * sizeof(*t.places);
	ow_status status;

	if (m->event.count <= 1 && m->counter.count <= 1 && !sample_slices_any(m))
		return error_set(
			err, OW_E_UNSUPPORTED,
			"there are no events in these files, so there is nothing for a timeline");
	t.places = mem_zalloc(m->mem, size);
	t.busy = t.places ? mem_zalloc(m->mem, m->track.count) : NULL;
	if (!t.busy) {
		mem_free(m->mem, t.places, t.places ? size : 0);
		return error_no_memory(err);
	}
	buf_init(&t.args, m->mem);
	status = write_all(&t, out, err);
	buf_release(&t.args);
	mem_free(m->mem, t.busy, m->track.count);
	mem_free(m->mem, t.places, size);
	return status;
}
