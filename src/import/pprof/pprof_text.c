/*
 * pprof_text.c: the text profiles of gperftools and Go, see pprof_legacy.h: contention, threads, Go's counts
 * ("goroutine profile: total 7"), the Java forms of heap and contention; pprof_heap.c has the other heaps. Lines that
 * make no sense are counted and left out.
 */
#include "import/pprof_legacy.h"

#define JAVA_RATE 524288

bool legacy_next_line(struct legacy_text *t)
{
	if (t->again) {
		t->again = false;
		return true;
	}
	return text_lines_next(t->lines, &t->line);
}

bool legacy_is_map(struct str line)
{
	return str_has(line, STR("--- Memory map: ---")) || str_has(line, STR("MAPPED_LIBRARIES:"));
}

static void note_bad(struct legacy_text *t)
{
	legacy_note_bad(t->l, t->lines->offset);
}

ow_status legacy_take_addresses(struct legacy_text *t, struct str line)
{
	uint64_t address;

	while (legacy_take_hex(&line, &address))
		OW_TRY(legacy_sample_address(t->l, address));
	if (str_trim(line).len)
		note_bad(t);
	return t->l->b->status;
}

static int64_t product(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* ---- contention, and what Java writes ---- */

struct keys {
	int64_t hz;
	bool java, heap;
	str_id unit;
};

static bool take_key(struct legacy_text *t, struct str line, struct keys *k)
{
	size_t equals = str_find_char(line, '=');
	struct str key, value;
	struct legacy *l = t->l;
	int64_t number = 0;

	if (equals == STR_NONE)
		return false;
	key = str_trim(str_first(line, equals));
	value = str_trim(str_skip(line, equals + 1));
	(void)str_to_i64(value, &number);
	if (str_eq(key, STR("cycles/second")))
		k->hz = number;
	else if (str_eq(key, STR("sampling period")))
		l->period = number;
	else if (str_eq(key, STR("ms since reset")))
		l->duration = product(number, 1000000);
	else if (str_eq(key, STR("format")))
		k->java = str_eq(value, STR("java"));
	else if (str_eq(key, STR("resolution")))
		k->unit = builder_str(l->b, value);
	return true;
}

/* Keys until something else comes. */
static ow_status read_keys(struct legacy_text *t, struct keys *k)
{
	while (legacy_next_line(t)) {
		struct str line = str_trim(t->line);

		if (!line.len || *line.ptr == '#' || take_key(t, line, k))
			continue;
		t->again = true;
		break;
	}
	return t->l->b->status;
}

static void set_delay(const struct legacy *l, const struct keys *k, int64_t values[LEGACY_TYPES])
{
	double delay;

	if (k->heap) {
		legacy_heap_scale(JAVA_RATE, &values[0], &values[1]);
		return;
	}
	if (l->period <= 0)
		return;
	values[0] = product(values[0], l->period);
	if (k->java) {
		values[1] = product(values[1], l->period);
	} else if (k->hz > 0) {
		delay = (double)values[1] * (double)l->period / ((double)k->hz / 1e9);
		values[1] = delay < 9.2e18 ? (int64_t)delay : INT64_MAX;
	}
}

/* "delay count @ addresses": the other way round than the metrics are. */
static ow_status read_delay(struct legacy_text *t, const struct keys *k, bool *is_row)
{
	int64_t values[LEGACY_TYPES] = { 0 };
	struct str line = t->line;
	int64_t block;

	*is_row = legacy_take_number(&line, &values[1]) && legacy_take_number(&line, &values[0]) &&
		  legacy_take(&line, "@");
	if (!*is_row)
		return OW_OK;
	block = k->heap && values[0] ? values[1] / values[0] : 0;
	set_delay(t->l, k, values);
	OW_TRY(legacy_sample_begin(t->l, values));
	t->l->samples[t->l->sample_count - 1].block = block;
	return legacy_take_addresses(t, line);
}

static ow_status read_delays(struct legacy_text *t, const struct keys *k)
{
	while (legacy_next_line(t)) {
		struct str line = str_trim(t->line);
		bool is_row;

		if (str_starts(line, STR("---")) || legacy_is_map(line)) {
			t->again = true;
			break;
		}
		if (!line.len || *line.ptr == '#') {
			OW_TRY(legacy_comment_line(t->l, line));
			continue;
		}
		OW_TRY(read_delay(t, k, &is_row));
		if (!is_row && k->java) {
			t->again = true; /* the list of methods */
			break;
		}
		if (!is_row)
			note_bad(t);
	}
	return t->l->b->status;
}

static ow_status read_contention(struct legacy_text *t)
{
	struct keys k = { .heap = str_starts(t->line, STR("--- heapz")) };
	struct legacy *l = t->l;

	l->period = k.heap ? 0 : 1;
	OW_TRY(read_keys(t, &k));
	l->kind = k.heap ? "heap" : "contention";
	l->named = k.java;
	legacy_type(l, k.heap ? "inuse_objects" : "contentions", STR("count"));
	if (k.unit.v)
		legacy_type(l, k.heap ? "inuse_space" : "delay", model_str(l->b->m, k.unit));
	else
		legacy_type(l, k.heap ? "inuse_space" : "delay",
			    k.heap ? STR("bytes") : STR("nanoseconds"));
	return read_delays(t, &k);
}

/* ---- threads ---- */

/* "--- Thread 7f79 (name: main/14748) stack: ---" */
static bool take_thread(struct legacy_text *t, struct str line, struct track_row *track)
{
	size_t open = str_find(line, STR("(name: ")), close = str_rfind_char(line, ')'), slash;
	struct str name;

	if (!str_starts(line, STR("--- Thread ")) || open == STR_NONE || close == STR_NONE ||
	    close < open + 7)
		return false;
	name = str_first(str_skip(line, open + 7), close - open - 7);
	slash = str_rfind_char(name, '/');
	*track = (struct track_row){ .kind = TRACK_HOST, .source = t->l->b->source };
	if (slash != STR_NONE) {
		(void)str_to_i64(str_skip(name, slash + 1), &track->tid);
		name = str_first(name, slash);
	}
	track->name = builder_str(t->l->b, name);
	return true;
}

/* "PC:  0x12: name", "0x12: name", "0x12 0x13", "creator: 0x12". */
static ow_status take_frames(struct legacy_text *t, struct str line)
{
	struct legacy *l = t->l;
	uint64_t address;

	if (legacy_take(&line, "PC:") || legacy_take(&line, "creator:"))
		line = str_trim(line);
	while (legacy_take_hex(&line, &address)) {
		OW_TRY(legacy_sample_address(l, address));
		if (!legacy_take(&line, ":"))
			continue;
		line = str_trim(line);
		if (line.len && l->address_count)
			OW_TRY(legacy_name(l, l->addresses[l->address_count - 1], line));
		return l->b->status;
	}
	if (str_trim(line).len)
		note_bad(t);
	return l->b->status;
}

/* The same again, for the next thread. */
static ow_status repeat_last(struct legacy *l, track_id track)
{
	struct legacy_sample last;
	static const int64_t one[LEGACY_TYPES] = { 1 };

	if (l->sample_count < 2)
		return OW_OK;
	last = l->samples[l->sample_count - 2];
	last.track = track;
	memcpy(last.value, one, sizeof(one));
	l->samples[l->sample_count - 1] = last;
	return OW_OK;
}

static ow_status read_thread(struct legacy_text *t, const struct track_row *row)
{
	static const int64_t one[LEGACY_TYPES] = { 1 };
	struct legacy *l = t->l;
	track_id track = builder_track(l->b, row);

	OW_TRY(legacy_sample_begin(l, one));
	l->samples[l->sample_count - 1].track = track;
	while (legacy_next_line(t)) {
		struct str line = str_trim(t->line);

		if (str_starts(line, STR("---")) || legacy_is_map(line)) {
			t->again = true;
			break;
		}
		if (str_has(line, STR("same as previous thread")))
			OW_TRY(repeat_last(l, track));
		else if (line.len)
			OW_TRY(take_frames(t, line));
	}
	legacy_drop_double(l, &l->samples[l->sample_count - 1]);
	return l->b->status;
}

static ow_status read_threads(struct legacy_text *t)
{
	struct track_row track;
	struct legacy *l = t->l;

	l->kind = "thread";
	l->period = 1;
	l->leaf_is_exact = true;
	legacy_type(l, "thread", STR("count"));
	t->again = !str_starts(t->line, STR("--- threadz"));
	while (legacy_next_line(t)) {
		struct str line = str_trim(t->line);

		if (legacy_is_map(line)) {
			t->again = true;
			break;
		}
		if (take_thread(t, line, &track))
			OW_TRY(read_thread(t, &track));
		else if (str_starts(line, STR("---- no stack trace")))
			break;
	}
	return l->b->status;
}

/* ---- Go's counts ---- */

/* "goroutine profile: total 7" */
static bool take_count_head(struct str line, struct str *name)
{
	size_t at = str_find(line, STR(" profile: total "));

	if (at == STR_NONE || !at || str_find_char(str_first(line, at), ' ') != STR_NONE)
		return false;
	*name = str_first(line, at);
	return true;
}

static ow_status read_counts(struct legacy_text *t, struct str name)
{
	struct legacy *l = t->l;
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(name.len, sizeof(text) - 1), name.ptr);
	l->kind = "count";
	l->period = 1;
	legacy_type(l, text, STR("count"));
	while (legacy_next_line(t)) {
		struct str line = str_trim(t->line);
		int64_t values[LEGACY_TYPES] = { 0 };

		if (str_starts(line, STR("---")) || legacy_is_map(line)) {
			t->again = true;
			break;
		}
		if (!line.len || *line.ptr == '#') {
			OW_TRY(legacy_comment_line(l, line));
			continue;
		}
		if (!legacy_take_number(&line, &values[0]) || !legacy_take(&line, "@")) {
			note_bad(t);
			continue;
		}
		OW_TRY(legacy_sample_begin(l, values));
		OW_TRY(legacy_take_addresses(t, line));
	}
	return l->b->status;
}

/* ---- all of them ---- */

static bool is_contention(struct str line)
{
	return str_starts(line, STR("--- contention")) || str_starts(line, STR("--- mutex:")) ||
	       str_starts(line, STR("--- heapz "));
}

static bool is_threads(struct str line)
{
	return str_starts(line, STR("--- threadz ")) || str_starts(line, STR("--- Thread "));
}

static bool line_fits(struct str line)
{
	struct str name;

	return legacy_heap_fits(line) || is_contention(line) || is_threads(line) ||
	       take_count_head(line, &name);
}

bool legacy_text_fits(struct str head)
{
	struct str line;

	while (str_split(&head, '\n', &line)) {
		line = str_trim(line);
		if (line.len && *line.ptr != '#')
			return line_fits(line);
	}
	return false;
}

/* Mappings, or Java's methods, up to the end. */
static ow_status read_rest(struct legacy_text *t)
{
	while (legacy_next_line(t))
		OW_TRY(t->l->named ? legacy_method_line(t->l, t->line)
				   : legacy_map_line(t->l, t->line));
	return t->l->b->status;
}

static ow_status read_profile(struct legacy_text *t)
{
	struct str name;

	if (legacy_heap_fits(t->line))
		return legacy_heap_read(t);
	if (is_contention(t->line))
		return read_contention(t);
	if (is_threads(t->line))
		return read_threads(t);
	if (take_count_head(t->line, &name))
		return read_counts(t, name);
	return error_at(t->l->ctx->err, OW_E_FORMAT, t->lines->offset,
			"%s: no profile of pprof begins here", t->l->ctx->in->name);
}

ow_status legacy_text_read(struct legacy *l, struct text_lines *lines)
{
	struct legacy_text t = { .l = l, .lines = lines };

	if (!l->words) {
		do {
			if (!legacy_next_line(&t))
				return text_lines_status(lines) != OW_OK
					       ? text_lines_status(lines)
					       : error_set(l->ctx->err, OW_E_EMPTY,
							   "%s: there is no profile in this file",
							   l->ctx->in->name);
			t.line = str_trim(t.line);
		} while (!t.line.len || *t.line.ptr == '#');
		OW_TRY(read_profile(&t));
	}
	OW_TRY(read_rest(&t));
	return text_lines_status(lines);
}
