/*
 * details.c: the routes that answer about items of the timeline: all that is known about one event or sample, names
 * that a regular expression matches or that a line of code runs, and sums over an area (a range of time on some
 * tracks). Each answer takes at most two passes over the events. Times count from ow_ui.zero_ns, as in timeline.c.
 */
#include "page/page_int.h"

#include "base/json_escape.h"
#include "base/regex/regex.h"
#include "relation/args.h"

#define NAMES_SHOWN 1000u
#define LINKS_SHOWN 100u
#define FRAMES_SHOWN 200u
#define TRACKS_SHOWN 32u
#define ARGS_SHOWN ((size_t)256 << 10)

static void add_text(struct buf *to, const char *key, struct str text)
{
	buf_printf(to, ",\n\"%s\": ", key);
	json_quote(to, text);
}

static void add_frames(struct buf *to, const struct model *m, stack_id stack)
{
	uint32_t count = 0;

	buf_puts(to, ",\n\"stack\": [");
	for (; stack.v && count < FRAMES_SHOWN; stack = m->stack.parent[stack.v]) {
		uint32_t frame = m->stack.frame[stack.v].v;

		buf_puts(to, count++ ? ",\n  {" : "\n  {");
		buf_printf(to, "\"frame\": %u, \"line\": %d", frame, m->frame.line[frame]);
		add_text(to, "file", model_str(m, m->frame.file[frame]));
		add_text(to, "function", model_str(m, m->frame.function[frame]));
		add_text(to, "text", model_str(m, m->frame.text[frame]));
		buf_puts(to, "}");
	}
	buf_puts(to, "]");
}

static void add_link(struct buf *to, const struct ow_ui *ui, uint32_t link, uint32_t other,
		     bool to_it)
{
	const struct model *m = ui->profile->m;
	uint8_t kind = m->link.kind[link];

	buf_printf(
		to,
		"{\"event\": %u, \"direction\": \"%s\", \"kind\": \"%.*s\", \"ts\": %lld, \"row\": "
		"%lld",
		other, to_it ? "from" : "to", STR_ARG(page_word(&words_link_kind, kind + 1u)),
		(long long)wrap_sub(m->event.ts_ns[other], ui->zero_ns),
		(long long)(int32_t)tiles_row_of_event(ui->tiles, (event_id){ other }));
	add_text(to, "name", model_str(m, page_event_name(m, other)));
	buf_puts(to, "}");
}

static void add_links(struct buf *to, const struct ow_ui *ui, uint32_t event)
{
	const struct model *m = ui->profile->m;
	uint32_t count = 0;

	buf_puts(to, ",\n\"links\": [");
	for (uint32_t i = 1; i < m->link.count; i++) {
		bool out = m->link.src[i].v == event, in = m->link.dst[i].v == event;

		if ((!out && !in) || count >= LINKS_SHOWN)
			continue;
		buf_puts(to, count++ ? ",\n  " : "\n  ");
		add_link(to, ui, i, out ? m->link.dst[i].v : m->link.src[i].v, in && !out);
	}
	buf_puts(to, "]");
}

static ow_status add_args(struct buf *to, struct ow_ui *ui, uint32_t event, struct ow_error *err)
{
	struct arena arena;
	struct str text = { 0 };
	ow_status status;

	arena_init(&arena, &ui->mem);
	status = args_read_all(ui->profile->m, &event, 1, &text, &arena, err);
	if (status == OW_OK && text.ptr)
		add_text(to, "args", str_first(text, ARGS_SHOWN));
	arena_release(&arena);
	return status;
}

/* Marks the ops with this name, so that each event needs one lookup instead of following its op's row. */
static bool *ops_named(const struct model *m, str_id name, struct arena *arena)
{
	bool *named = ARENA_ARRAY(arena, bool, m->op.count);

	for (uint32_t op = 0; named && op < m->op.count; op++)
		named[op] = m->op.name[op].v == name.v;
	return named;
}

/* Adds the number and durations of all events with the same name. */
static ow_status add_like(struct buf *to, const struct ow_ui *ui, uint32_t event,
			  struct ow_error *err)
{
	const struct model *m = ui->profile->m;
	str_id name = page_event_name(m, event);
	int64_t least = INT64_MAX, most = INT64_MIN, sum = 0;
	uint64_t count = 0, longer = 0;
	struct arena arena;
	bool *named;

	arena_init(&arena, to->mem);
	named = ops_named(m, name, &arena);
	for (uint32_t i = 1; named && i < m->event.count; i++) {
		str_id own = COLUMN_GET(m->event.name, i);
		int64_t dur;

		if (own.v ? own.v != name.v : !named[m->event.op[i].v])
			continue;
		dur = m->event.dur_ns[i];
		if (dur == TIME_UNKNOWN)
			continue;
		count++;
		longer += dur > m->event.dur_ns[event];
		sum = wrap_add(sum, dur);
		least = MIN(least, dur);
		most = MAX(most, dur);
	}
	arena_release(&arena);
	if (!named)
		return error_no_memory(err);
	if (count)
		buf_printf(to,
			   ",\n\"same_name\": {\"count\": %llu, \"total_ns\": %lld, \"min_ns\": "
			   "%lld, \"max_ns\": %lld, \"longer\": %llu}",
			   (unsigned long long)count, (long long)sum, (long long)least,
			   (long long)most, (unsigned long long)longer);
	return OW_OK;
}

static void add_known(struct buf *to, const char *key, int64_t value)
{
	if (value == TIME_UNKNOWN)
		buf_printf(to, ",\n\"%s\": null", key);
	else
		buf_printf(to, ",\n\"%s\": %lld", key, (long long)value);
}

static void add_event(struct buf *to, const struct ow_ui *ui, uint32_t event)
{
	const struct model *m = ui->profile->m;
	uint32_t op = m->event.op[event].v, step = m->event.step[event].v;
	uint32_t track = m->event.track[event].v;
	uint8_t phase = COLUMN_GET(m->event.phase, event);
	stack_id stack = COLUMN_GET(m->event.stack, event);

	buf_printf(to, "{\"event\": %u, \"row\": %lld, \"track\": %u", event,
		   (long long)(int32_t)tiles_row_of_event(ui->tiles, (event_id){ event }), track);
	add_text(to, "name", model_str(m, page_event_name(m, event)));
	add_text(to, "op", model_str(m, m->op.name[op]));
	add_text(to, "type", model_str(m, m->op.type[op]));
	add_text(to, "track_name", model_str(m, m->track.name[track]));
	add_text(to, "process", model_str(m, m->track.process[track]));
	add_text(to, "category", model_str(m, COLUMN_GET(m->event.category, event)));
	add_text(to, "phase", page_word(&words_event_phase, phase));
	add_known(to, "ts", wrap_sub(m->event.ts_ns[event], ui->zero_ns));
	add_known(to, "dur_ns", m->event.dur_ns[event]);
	/* Only slices of traces have a self time; for other events the column is zero. */
	add_known(to, "self_ns",
		  COLUMN_GET(m->track.flags, track) & TRACK_NESTED
			  ? COLUMN_GET(m->event.self_ns, event)
			  : TIME_UNKNOWN);
	add_known(to, "step", step ? m->step.number[step] : TIME_UNKNOWN);
	if (COLUMN_GET(m->event.bytes, event))
		add_known(to, "bytes", COLUMN_GET(m->event.bytes, event));
	add_frames(to, m, stack.v ? stack : COLUMN_GET(m->op.stack, op));
	buf_printf(to, ",\n\"stack_of\": \"%s\"", stack.v ? "call" : "creation");
}

/* Adds what the event's own row holds; the page shows it first. */
static ow_status add_facts(struct buf *to, struct ow_ui *ui, uint32_t event, struct ow_error *err)
{
	OW_TRY(model_require_stacks(ui->profile->m, err));
	add_event(to, ui, event);
	return add_args(to, ui, event, err);
}

/* Adds what needs a pass over all links and events. */
static ow_status add_others(struct buf *to, struct ow_ui *ui, uint32_t event, struct ow_error *err)
{
	add_links(to, ui, event);
	return add_like(to, ui, event, err);
}

/* Parameter part: "facts" returns the event itself, "others" its links and events of the same name; without it,
 * both. */
PAGE_HANDLER(event)
{
	struct ow_ui *u = ui;
	int64_t event = server_param_int(request, "id", 0);
	const char *part = server_param(request, "part");
	bool facts = !part || strcmp(part, "others") != 0;
	bool others = !part || strcmp(part, "facts") != 0;
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	if (event <= 0 || event >= u->profile->m->event.count) {
		server_fail(reply, 404, "there is no event %lld", (long long)event);
		return;
	}
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		if (facts)
			status = add_facts(&reply->body, u, (uint32_t)event, &err);
		else
			buf_printf(&reply->body, "{\"event\": %lld", (long long)event);
		if (status == OW_OK && others)
			status = add_others(&reply->body, u, (uint32_t)event, &err);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
	else
		buf_puts(&reply->body, "}\n");
}

static void add_sample(struct buf *to, const struct ow_ui *ui, uint32_t sample)
{
	const struct model *m = ui->profile->m;
	uint32_t track = m->sample.track[sample].v, metric = m->sample.metric[sample].v;
	uint32_t step = COLUMN_GET(m->sample.step, sample).v;
	int32_t cpu = COLUMN_GET(m->sample.cpu, sample);

	buf_printf(to, "{\"sample\": %u, \"track\": %u, \"weight\": %lld", sample, track,
		   (long long)m->sample.weight[sample]);
	add_text(to, "name", model_str(m, page_sample_name(m, sample)));
	add_text(to, "metric", model_str(m, m->metric.name[metric]));
	add_text(to, "unit", model_str(m, m->metric.unit[metric]));
	add_text(to, "track_name", model_str(m, m->track.name[track]));
	add_text(to, "process", model_str(m, m->track.process[track]));
	add_text(to, "label", model_str(m, COLUMN_GET(m->sample.label, sample)));
	add_text(to, "phase", page_word(&words_event_phase, COLUMN_GET(m->sample.phase, sample)));
	add_known(to, "ts",
		  m->sample.ts_ns[sample] == TIME_UNKNOWN
			  ? TIME_UNKNOWN
			  : wrap_sub(m->sample.ts_ns[sample], ui->zero_ns));
	add_known(to, "step", step ? m->step.number[step] : TIME_UNKNOWN);
	if (cpu)
		add_known(to, "cpu", cpu - 1);
	add_frames(to, m, m->sample.stack[sample]);
}

PAGE_HANDLER(sample)
{
	struct ow_ui *u = ui;
	int64_t sample = server_param_int(request, "id", 0);
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	if (sample <= 0 || sample >= u->profile->m->sample.count) {
		server_fail(reply, 404, "there is no sample %lld", (long long)sample);
		return;
	}
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = model_require_stacks(u->profile->m, &err);
		if (status == OW_OK)
			add_sample(&reply->body, u, (uint32_t)sample);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
	else
		buf_puts(&reply->body, "}\n");
}

struct name_sum {
	uint32_t name, first; /* first: the event with the longest duration */
	uint64_t count;
	int64_t time_ns, longest_ns;
};

struct sums {
	struct mem *mem;
	struct name_sum *by_name; /* indexed by string id */
	uint32_t names;
};

static ow_status sums_init(struct sums *s, struct ow_ui *ui, struct ow_error *err)
{
	s->mem = &ui->mem;
	s->names = ui->profile->m->strings.count;
	s->by_name = mem_zalloc(s->mem, (size_t)s->names * sizeof(*s->by_name) + 1);
	return s->by_name ? OW_OK : error_no_memory(err);
}

static void sums_release(struct sums *s)
{
	mem_free(s->mem, s->by_name, (size_t)s->names * sizeof(*s->by_name) + 1);
}

static void sums_add(struct sums *s, uint32_t name, uint32_t event, int64_t ns)
{
	struct name_sum *sum = &s->by_name[name];

	sum->name = name;
	sum->count++;
	sum->time_ns = wrap_add(sum->time_ns, ns);
	if (!sum->first || ns > sum->longest_ns) {
		sum->first = event;
		sum->longest_ns = ns;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct name_sum *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns > y->time_ns ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Adds the names with events, the costliest first, and their number. Destroys the index. */
static void add_sums(struct buf *to, struct sums *s, const struct ow_ui *ui)
{
	const struct model *m = ui->profile->m;
	uint32_t used = 0;

	for (uint32_t i = 0; i < s->names; i++)
		if (s->by_name[i].count)
			s->by_name[used++] = s->by_name[i];
	qsort(s->by_name, used, sizeof(*s->by_name), by_time);
	buf_printf(to, "\"names\": %u, \"rows\": [", used);
	for (uint32_t i = 0; i < used && i < NAMES_SHOWN; i++) {
		const struct name_sum *sum = &s->by_name[i];

		buf_printf(to,
			   "%s\n{\"id\": %u, \"count\": %llu, \"time_ns\": %lld, \"longest\": %u, "
			   "\"longest_ns\": %lld, \"name\": ",
			   i ? "," : "", sum->name, (unsigned long long)sum->count,
			   (long long)sum->time_ns, sum->first, (long long)sum->longest_ns);
		json_quote(to, model_str(m, (str_id){ sum->name }));
		buf_puts(to, "}");
	}
	buf_puts(to, "]");
}

static int64_t known_duration(const struct model *m, uint32_t event)
{
	return MAX(m->event.dur_ns[event], 0);
}

static void on_invalid(void *arg, struct str pattern, const char *why)
{
	(void)pattern;
	snprintf(arg, OW_ERROR_TEXT, "not a valid regular expression: %s", why);
}

static void drop_unmatched(struct sums *s, const struct model *m, struct regex_list *regex)
{
	for (uint32_t i = 0; i < s->names; i++)
		if (s->by_name[i].count && !regex_match(regex, model_str(m, (str_id){ i })))
			s->by_name[i].count = 0;
}

static void sum_events(struct sums *s, const struct model *m)
{
	for (uint32_t i = 1; i < m->event.count; i++)
		sums_add(s, page_event_name(m, i).v, i, known_duration(m, i));
	for (uint32_t i = 1; i < m->sample.count; i++)
		sums_add(s, page_sample_name(m, i).v, 0, 0);
}

static ow_status search_names(struct ow_ui *ui, const char *pattern, struct sums *sums,
			      struct ow_error *err)
{
	const struct model *m = ui->profile->m;
	char why[OW_ERROR_TEXT] = "";
	char *whole;
	struct regex_list regex;
	struct arena arena;
	ow_status status;

	arena_init(&arena, &ui->mem);
	whole = arena_printf(&arena, "(?is).*(?:%s).*", pattern);
	status = whole ? regex_list_init(&regex, &ui->mem, (const char *const *)&whole, 1,
					 on_invalid, why, err)
		       : error_no_memory(err);
	arena_release(&arena);
	OW_TRY(status);
	if (*why) {
		status = error_set(err, OW_E_USAGE, "%s", why);
	} else {
		sum_events(sums, m);
		drop_unmatched(sums, m, &regex);
		status = regex_list_status(&regex, err);
	}
	regex_list_release(&regex);
	return status;
}

enum { STACK_NEW, STACK_OTHER, STACK_OF_LINE };

/* Whether a stack contains a line. Each stack is examined once: `state` stores the result. */
static bool goes_through(const struct model *m, stack_id stack, const bool *frame_of_line,
			 uint8_t *state)
{
	stack_id at = stack;
	uint8_t found;

	while (at.v && !state[at.v] && !frame_of_line[m->stack.frame[at.v].v])
		at = m->stack.parent[at.v];
	found = !at.v ? STACK_OTHER : state[at.v] ? state[at.v] : STACK_OF_LINE;
	for (; stack.v && stack.v != at.v; stack = m->stack.parent[stack.v])
		state[stack.v] = found;
	if (at.v)
		state[at.v] = found;
	return found == STACK_OF_LINE;
}

/* Finds the events that a line of code runs, or whose op it made. */
static ow_status search_line(struct ow_ui *ui, const char *file, int64_t line, struct sums *sums,
			     struct ow_error *err)
{
	struct model *m = ui->profile->m;
	struct arena arena;
	bool *of_line;
	uint8_t *state;

	OW_TRY(model_require_stacks(m, err));
	arena_init(&arena, &ui->mem);
	of_line = ARENA_ARRAY(&arena, bool, (size_t)m->frame.count + 1);
	state = ARENA_ARRAY(&arena, uint8_t, (size_t)m->stack.count + 1);
	if (!of_line || !state) {
		arena_release(&arena);
		return error_no_memory(err);
	}
	for (uint32_t i = 1; i < m->frame.count; i++)
		of_line[i] = m->frame.line[i] == line &&
			     str_eq(model_str(m, m->frame.file[i]), str_from(file));
	for (uint32_t i = 1; i < m->event.count; i++) {
		stack_id stack = COLUMN_GET(m->event.stack, i);

		if (!stack.v)
			stack = COLUMN_GET(m->op.stack, m->event.op[i].v);
		if (goes_through(m, stack, of_line, state))
			sums_add(sums, page_event_name(m, i).v, i, known_duration(m, i));
	}
	for (uint32_t i = 1; i < m->sample.count; i++)
		if (goes_through(m, m->sample.stack[i], of_line, state))
			sums_add(sums, page_sample_name(m, i).v, 0, 0);
	arena_release(&arena);
	return OW_OK;
}

struct track_sum {
	uint32_t track;
	int64_t ns;
};

static int by_track_time(const void *a, const void *b)
{
	const struct track_sum *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->track > y->track) - (x->track < y->track);
}

/* Adds the tracks that run the found events, the busiest first. */
static ow_status add_tracks(struct buf *to, const struct sums *s, const struct model *m,
			    struct ow_error *err)
{
	struct arena arena;
	struct track_sum *tracks;

	arena_init(&arena, to->mem);
	tracks = ARENA_ARRAY(&arena, struct track_sum, (size_t)m->track.count + 1);
	for (uint32_t i = 1; tracks && i < m->event.count; i++)
		if (s->by_name[page_event_name(m, i).v].count) {
			uint32_t track = m->event.track[i].v;

			tracks[track].track = track;
			tracks[track].ns = wrap_add(tracks[track].ns, known_duration(m, i) + 1);
		}
	if (tracks)
		qsort(tracks, m->track.count, sizeof(*tracks), by_track_time);
	buf_puts(to, "\"tracks\": [");
	for (uint32_t i = 0; tracks && i < m->track.count && i < TRACKS_SHOWN && tracks[i].ns > 0;
	     i++)
		buf_printf(to, "%s%u", i ? ", " : "", tracks[i].track);
	buf_puts(to, "], ");
	arena_release(&arena);
	return tracks ? OW_OK : error_no_memory(err);
}

/* Parameters: q, a regular expression; or file and line, a line of code. With tracks=1 the answer also lists the
 * tracks. */
static ow_status search(struct ow_ui *ui, const struct server_request *request, struct buf *to,
			struct ow_error *err)
{
	const char *pattern = server_param(request, "q"), *file = server_param(request, "file");
	struct sums sums = { 0 };
	ow_status status = sums_init(&sums, ui, err);

	if (status != OW_OK)
		return status;
	status = file ? search_line(ui, file, server_param_int(request, "line", 0), &sums, err)
		      : search_names(ui, pattern ? pattern : "", &sums, err);
	buf_puts(to, "{");
	if (status == OW_OK && server_param_int(request, "tracks", 0))
		status = add_tracks(to, &sums, ui->profile->m, err);
	if (status == OW_OK)
		add_sums(to, &sums, ui);
	buf_puts(to, "}\n");
	sums_release(&sums);
	return status;
}

PAGE_HANDLER(search)
{
	struct ow_ui *u = ui;
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = search(u, request, &reply->body, &err);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

/* Reads the parameter tracks: numbers separated by commas; without it, all tracks. */
static bool *choose_tracks(const struct model *m, const char *list, struct arena *arena)
{
	bool *chosen = ARENA_ARRAY(arena, bool, m->track.count + 1);
	struct str rest = str_from(list ? list : ""), word;
	bool all = !rest.len;
	int64_t track;

	if (!chosen)
		return NULL;
	memset(chosen, all, m->track.count);
	while (str_split(&rest, ',', &word))
		if (str_to_i64(word, &track) && track > 0 && track < m->track.count)
			chosen[track] = true;
	return chosen;
}

/* Sums the area; each event counts with the part of its duration that lies in the range. */
static uint64_t sum_area(const struct model *m, const bool *chosen, int64_t from, int64_t to,
			 struct sums *sums)
{
	uint64_t events = 0;

	for (uint32_t i = 1; i < m->event.count; i++) {
		int64_t start = m->event.ts_ns[i], end;

		if (!chosen[m->event.track[i].v] || start >= to)
			continue;
		if (__builtin_add_overflow(start, known_duration(m, i), &end))
			end = INT64_MAX;
		if (end < from || (end == from && start != from))
			continue;
		events++;
		sums_add(sums, page_event_name(m, i).v, i, MIN(end, to) - MAX(start, from));
	}
	return events;
}

PAGE_HANDLER(area)
{
	struct ow_ui *u = ui;
	int64_t from = wrap_add(u->zero_ns, server_param_int(request, "from", 0));
	int64_t to = wrap_add(u->zero_ns, server_param_int(request, "to", 0));
	struct reading reading;
	struct ow_error err = { 0 };
	struct arena arena;
	struct sums sums = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	arena_init(&arena, &u->mem);
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		const struct model *m = u->profile->m;
		bool *chosen = choose_tracks(m, server_param(request, "tracks"), &arena);

		status = chosen ? sums_init(&sums, u, &err) : error_no_memory(&err);
		if (status == OW_OK && chosen && sums.by_name) {
			buf_printf(&reply->body, "{\"events\": %llu, ",
				   (unsigned long long)sum_area(m, chosen, from, to, &sums));
			add_sums(&reply->body, &sums, u);
			buf_puts(&reply->body, "}\n");
			sums_release(&sums);
		}
		status = api_read_end(u->profile, &reading, status, &err);
	}
	arena_release(&arena);
	if (status != OW_OK)
		page_fail(reply, status, &err);
}
