/*
 * pprof_text.c: reads the text profiles of gperftools, Go, jemalloc and Java for import_pprof_legacy.c: heaps with
 * growth and fragmentation, contention, threads, and Go's counts ("goroutine profile: total 7"). Sampled allocations
 * are scaled to all allocations, as in pprof. Lines that cannot be parsed are counted and left out.
 */
#include "import/pprof/pprof_legacy.h"

#include <math.h>

#define GPERFTOOLS "heap profile:"
#define JEMALLOC "heap_v2/"
#define JAVA_RATE 524288 /* bytes between two samples of Java's heap */

/* State while a text is read. */
struct legacy_text {
	struct legacy *l;
	struct text_lines *lines;
	struct str line;
	bool again; /* next_line returns the same line once more */
};

static bool next_line(struct legacy_text *t)
{
	if (t->again) {
		t->again = false;
		return true;
	}
	return text_lines_next(t->lines, &t->line);
}

/* Whether a line begins the memory map. */
static bool is_map(struct str line)
{
	return str_has(line, STR("--- Memory map: ---")) || str_has(line, STR("MAPPED_LIBRARIES:"));
}

static void note_bad(struct legacy_text *t)
{
	legacy_note_bad(t->l, t->lines->offset);
}

/* Adds the addresses of a line to the last sample. */
static ow_status add_addresses(struct legacy_text *t, struct str line)
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

/* Moves to the next line that can be a sample, and reads the comments before it. False at the memory map, at a line
 * that begins with --- (if `dashes`), and at the end of the file. */
static bool next_row(struct legacy_text *t, bool dashes, struct str *line, ow_status *status)
{
	while (*status == OW_OK && next_line(t)) {
		*line = str_trim(t->line);
		if (is_map(*line) || (dashes && str_starts(*line, STR("---")))) {
			t->again = true;
			return false;
		}
		if (line->len && *line->ptr != '#')
			return true;
		*status = legacy_comment_line(t->l, *line);
	}
	return false;
}

struct heap_text {
	struct legacy_text *t;
	bool alloc;   /* the file has two columns: all allocations, and those in use */
	bool sampled; /* allocations were sampled, at l->period */
};

static int64_t to_count(double value)
{
	return value >= 9.2e18 ? INT64_MAX : value > 0 ? (int64_t)value : 0;
}

/* Scales sampled allocations to all of them, as pprof does: an allocation of mean size s is sampled with the probability
 * 1 - e^(-s/rate). */
static void scale_heap(int64_t rate, int64_t *count, int64_t *size)
{
	double factor;

	if (!*count || !*size) {
		*count = *size = 0;
		return;
	}
	if (rate <= 1)
		return;
	factor = 1 / (1 - exp(-((double)*size / (double)*count) / (double)rate));
	*count = to_count((double)*count * factor);
	*size = to_count((double)*size * factor);
}

/* Reads "3: 4096 [5: 8192]". */
static bool take_numbers(struct str *line, int64_t n[4])
{
	return legacy_take_number(line, &n[0]) && legacy_take_word(line, ":") &&
	       legacy_take_number(line, &n[1]) && legacy_take_word(line, "[") &&
	       legacy_take_number(line, &n[2]) && legacy_take_word(line, ":") &&
	       legacy_take_number(line, &n[3]) && legacy_take_word(line, "]");
}

static void add_types(const struct heap_text *h)
{
	struct legacy *l = h->t->l;

	if (h->alloc) {
		legacy_type(l, "alloc_objects", STR("count"));
		legacy_type(l, "alloc_space", STR("bytes"));
	}
	legacy_type(l, h->alloc ? "inuse_objects" : "objects", STR("count"));
	legacy_type(l, h->alloc ? "inuse_space" : "space", STR("bytes"));
}

static void set_values(const struct heap_text *h, struct legacy_sample *s, const int64_t n[4])
{
	int64_t *to = s->value;

	for (int i = h->alloc ? 2 : 0; i >= 0; i -= 2) {
		to[0] = n[i];
		to[1] = n[i + 1];
		if (h->sampled)
			scale_heap(h->t->l->period, &to[0], &to[1]);
		to += 2;
	}
	s->block = n[0] ? n[1] / n[0] : n[2] ? n[3] / n[2] : 0;
}

static bool parse_heap_head(struct heap_text *h, struct str line)
{
	struct legacy *l = h->t->l;
	int64_t n[4], rate = 0;
	struct str kind;
	size_t slash;

	if (!legacy_take_word(&line, GPERFTOOLS) || !take_numbers(&line, n) ||
	    !legacy_take_word(&line, "@"))
		return false;
	kind = str_trim(line);
	slash = str_find_char(kind, '/');
	if (slash != STR_NONE) {
		if (!str_to_i64(str_skip(kind, slash + 1), &rate) || rate < 0)
			return false;
		kind = str_first(kind, slash);
	}
	l->period = 1;
	l->kind = str_starts(kind, STR("growth"))	   ? "growth"
		  : str_starts(kind, STR("fragmentation")) ? "fragmentation"
							   : "heap";
	if (!str_starts(kind, STR("heap")))
		return kind.len > 0;
	h->alloc = (n[2] != n[0] && n[2]) || (n[3] != n[1] && n[3]);
	h->sampled = !str_eq(kind, STR("heapprofile"));
	if (h->sampled) /* Go writes twice its rate */
		l->period = str_eq(kind, STR("heap")) ? rate / 2 : rate;
	return true;
}

static ow_status read_gperftools(struct heap_text *h)
{
	struct legacy_text *t = h->t;
	ow_status status = OW_OK;
	struct str line;

	while (next_row(t, false, &line, &status)) {
		int64_t n[4];

		if (!take_numbers(&line, n) || !legacy_take_word(&line, "@")) {
			note_bad(t);
			continue;
		}
		OW_TRY(legacy_sample_begin(t->l, NULL));
		set_values(h, &t->l->samples[t->l->sample_count - 1], n);
		OW_TRY(add_addresses(t, line));
	}
	return status == OW_OK ? t->l->b->status : status;
}

static ow_status read_jemalloc_line(struct heap_text *h, struct str line, bool *open)
{
	struct legacy *l = h->t->l;
	int64_t n[4];

	if (legacy_take_word(&line, "@")) {
		if (!l->type_count)
			add_types(h);
		*open = true;
		OW_TRY(legacy_sample_begin(l, NULL));
		return add_addresses(h->t, line);
	}
	if (!legacy_take_word(&line, "t*:")) /* a line about a single thread */
		return OW_OK;
	if (!take_numbers(&line, n))
		note_bad(h->t);
	else if (!l->sample_count) /* the totals of all stacks */
		h->alloc = n[2] || n[3];
	else if (*open)
		set_values(h, &l->samples[l->sample_count - 1], n);
	*open = false;
	return OW_OK;
}

/* Reads a stack of jemalloc: addresses first, then a line for all threads and one for each. */
static ow_status read_jemalloc(struct heap_text *h)
{
	struct legacy_text *t = h->t;
	bool open = false;

	while (next_line(t)) {
		if (is_map(t->line)) {
			t->again = true;
			break;
		}
		OW_TRY(read_jemalloc_line(h, str_trim(t->line), &open));
	}
	if (!t->l->type_count)
		add_types(h);
	return t->l->b->status;
}

static bool is_heap(struct str line)
{
	return str_starts(line, STR(GPERFTOOLS)) || str_starts(line, STR(JEMALLOC));
}

/* Reads a heap profile up to its memory map. */
static ow_status read_heap(struct legacy_text *t)
{
	struct heap_text h = { .t = t };
	struct legacy *l = t->l;
	struct str line = t->line;

	if (legacy_take_word(&line, JEMALLOC)) {
		if (!legacy_take_number(&line, &l->period))
			note_bad(t);
		h.sampled = true;
		l->kind = "heap";
		return read_jemalloc(&h);
	}
	if (!parse_heap_head(&h, line))
		return error_at(l->ctx->err, OW_E_FORMAT, t->lines->offset,
				"%s: the first line of this heap profile cannot be understood",
				l->ctx->in->name);
	add_types(&h);
	return read_gperftools(&h);
}

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

/* Reads "key = value" lines up to the first other line. */
static ow_status read_keys(struct legacy_text *t, struct keys *k)
{
	while (next_line(t)) {
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
		scale_heap(JAVA_RATE, &values[0], &values[1]);
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

/* Reads "delay count @ addresses"; the metrics have the opposite order. */
static ow_status read_delay(struct legacy_text *t, const struct keys *k, bool *is_row)
{
	int64_t values[LEGACY_TYPES] = { 0 };
	struct str line = t->line;
	int64_t block;

	*is_row = legacy_take_number(&line, &values[1]) && legacy_take_number(&line, &values[0]) &&
		  legacy_take_word(&line, "@");
	if (!*is_row)
		return OW_OK;
	block = k->heap && values[0] ? values[1] / values[0] : 0;
	set_delay(t->l, k, values);
	OW_TRY(legacy_sample_begin(t->l, values));
	t->l->samples[t->l->sample_count - 1].block = block;
	return add_addresses(t, line);
}

static ow_status read_delays(struct legacy_text *t, const struct keys *k)
{
	ow_status status = OW_OK;
	struct str line;
	bool is_row;

	while (next_row(t, true, &line, &status)) {
		OW_TRY(read_delay(t, k, &is_row));
		if (!is_row && k->java) {
			t->again = true; /* the list of methods begins */
			break;
		}
		if (!is_row)
			note_bad(t);
	}
	return status == OW_OK ? t->l->b->status : status;
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

/* Reads the line of a thread: "--- Thread 7f79 (name: main/14748) stack: ---". */
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

/* Reads frames: "PC:  0x12: name", "0x12: name", "0x12 0x13", "creator: 0x12". */
static ow_status take_frames(struct legacy_text *t, struct str line)
{
	struct legacy *l = t->l;
	uint64_t address;

	if (legacy_take_word(&line, "PC:") || legacy_take_word(&line, "creator:"))
		line = str_trim(line);
	while (legacy_take_hex(&line, &address)) {
		OW_TRY(legacy_sample_address(l, address));
		if (!legacy_take_word(&line, ":"))
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

/* Handles "same as previous thread": copies the previous sample into the last one. */
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
	while (next_line(t)) {
		struct str line = str_trim(t->line);

		if (str_starts(line, STR("---")) || is_map(line)) {
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
	while (next_line(t)) {
		struct str line = str_trim(t->line);

		if (is_map(line)) {
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

/* Reads the first line of Go's counts: "goroutine profile: total 7". */
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
	ow_status status = OW_OK;
	struct str line;
	char text[64];

	snprintf(text, sizeof(text), "%.*s", (int)MIN(name.len, sizeof(text) - 1), name.ptr);
	l->kind = "count";
	l->period = 1;
	legacy_type(l, text, STR("count"));
	while (next_row(t, true, &line, &status)) {
		int64_t values[LEGACY_TYPES] = { 0 };

		if (!legacy_take_number(&line, &values[0]) || !legacy_take_word(&line, "@")) {
			note_bad(t);
			continue;
		}
		OW_TRY(legacy_sample_begin(l, values));
		OW_TRY(add_addresses(t, line));
	}
	return status == OW_OK ? l->b->status : status;
}

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

	return is_heap(line) || is_contention(line) || is_threads(line) ||
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

/* Reads the memory map, or the list of Java's methods, up to the end of the file. */
static ow_status read_rest(struct legacy_text *t)
{
	while (next_line(t))
		OW_TRY(t->l->named ? legacy_method_line(t->l, t->line)
				   : legacy_map_line(t->l, t->line));
	return t->l->b->status;
}

static ow_status read_profile(struct legacy_text *t)
{
	struct str name;

	if (is_heap(t->line))
		return read_heap(t);
	if (is_contention(t->line))
		return read_contention(t);
	if (is_threads(t->line))
		return read_threads(t);
	if (take_count_head(t->line, &name))
		return read_counts(t, name);
	return error_at(t->l->ctx->err, OW_E_FORMAT, t->lines->offset,
			"%s: this is not a profile that pprof wrote", t->l->ctx->in->name);
}

ow_status legacy_text_read(struct legacy *l, struct text_lines *lines)
{
	struct legacy_text t = { .l = l, .lines = lines };

	if (!l->words) {
		do {
			if (!next_line(&t))
				return text_lines_status(lines) != OW_OK
					       ? text_lines_status(lines)
					       : error_set(l->ctx->err, OW_E_EMPTY,
							   "%s: this file has no profile in it",
							   l->ctx->in->name);
			t.line = str_trim(t.line);
		} while (!t.line.len || *t.line.ptr == '#');
		OW_TRY(read_profile(&t));
	}
	OW_TRY(read_rest(&t));
	return text_lines_status(lines);
}
