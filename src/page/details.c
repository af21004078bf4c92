/*
 * details.c: the routes that answer about items of the timeline: all that is known of one event, names that a regular
 * expression matches, and sums over an area (a range of time on some tracks). Each answer takes one pass over the events at
 * most. Times count from ow_ui.zero_ns, as in timeline.c.
 */
#include "page/page_int.h"

#include "base/json_escape.h"
#include "base/regex/regex.h"
#include "relation/args.h"

#define NAMES_SHOWN 1000u
#define LINKS_SHOWN 100u
#define FRAMES_SHOWN 200u
#define ARGS_SHOWN ((size_t)256 << 10)

static void add_text(struct buf *to, const char *key, struct str text)
{
	buf_printf(to, ",\n\"%s\": ", key);
	json_quote(to, text);
}

/* ---- one event ---- */

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

/* Marks the ops with this name: one look per event instead of a walk over its op's row. */
static bool *ops_named(const struct model *m, str_id name, struct arena *arena)
{
	bool *named = ARENA_ARRAY(arena, bool, m->op.count);

	for (uint32_t op = 0; named && op < m->op.count; op++)
		named[op] = m->op.name[op].v == name.v;
	return named;
}

/* All events of the same name: how many, and how long they take. */
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
	/* Only slices of traces have a time of their own; elsewhere the column is zero. */
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

PAGE_HANDLER(event)
{
	struct ow_ui *u = ui;
	int64_t event = server_param_int(request, "id", 0);
	struct reading reading;
	struct ow_error err = { 0 };
	struct model *m;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	m = u->profile->m;
	if (event <= 0 || event >= m->event.count) {
		server_fail(reply, 404, "there is no event %lld", (long long)event);
		return;
	}
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = model_require_stacks(m, &err);
		if (status == OW_OK) {
			add_event(&reply->body, u, (uint32_t)event);
			add_links(&reply->body, u, (uint32_t)event);
			status = add_like(&reply->body, u, (uint32_t)event, &err);
			if (status == OW_OK)
				status = add_args(&reply->body, u, (uint32_t)event, &err);
		}
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
	else
		buf_puts(&reply->body, "}\n");
}

/* ---- sums by name ---- */

struct name_sum {
	uint32_t name, first; /* first: the event that takes longest */
	uint64_t count;
	int64_t time_ns, longest_ns;
};

struct sums {
	struct mem *mem;
	struct name_sum *by_name; /* index: string id */
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

/* The names with events, the costliest first, and how many there are. Destroys the index. */
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

/* ---- search ---- */

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

static ow_status search(struct ow_ui *ui, const char *pattern, struct buf *to, struct ow_error *err)
{
	const struct model *m = ui->profile->m;
	char why[OW_ERROR_TEXT] = "";
	char *whole;
	struct regex_list regex;
	struct sums sums = { 0 };
	struct arena arena;
	ow_status status;

	arena_init(&arena, &ui->mem);
	whole = arena_printf(&arena, "(?is).*(?:%s).*", pattern);
	status = whole ? regex_list_init(&regex, &ui->mem, (const char *const *)&whole, 1,
					 on_invalid, why, err)
		       : error_no_memory(err);
	arena_release(&arena);
	OW_TRY(status);
	if (*why)
		status = error_set(err, OW_E_USAGE, "%s", why);
	else
		status = sums_init(&sums, ui, err);
	if (status == OW_OK && sums.by_name) {
		for (uint32_t i = 1; i < m->event.count; i++)
			sums_add(&sums, page_event_name(m, i).v, i, known_duration(m, i));
		for (uint32_t i = 1; i < m->sample.count; i++)
			sums_add(&sums, page_sample_name(m, i).v, 0, 0);
		drop_unmatched(&sums, m, &regex);
		status = regex_list_status(&regex, err);
		buf_puts(to, "{");
		add_sums(to, &sums, ui);
		buf_puts(to, "}\n");
		sums_release(&sums);
	}
	regex_list_release(&regex);
	return status;
}

PAGE_HANDLER(search)
{
	struct ow_ui *u = ui;
	const char *pattern = server_param(request, "q");
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = search(u, pattern ? pattern : "", &reply->body, &err);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

/* ---- an area ---- */

/* Which tracks: numbers with commas between; all without any. */
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

/* Each event counts with the part of its duration that lies in the range. */
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
