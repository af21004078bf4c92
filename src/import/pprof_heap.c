/*
 * pprof_heap.c: heap profiles as text, see pprof_legacy.h: of gperftools and Go ("heap profile: 3: 96 [3: 96] @ heap/…")
 * with growth and fragmentation, and jemalloc's ("heap_v2/…"). Allocations that were sampled are scaled to
 * what there must have been, as pprof does.
 */
#include "import/pprof_legacy.h"

#include <math.h>

#define GPERFTOOLS "heap profile:"
#define JEMALLOC "heap_v2/"

struct heap_text {
	struct legacy_text *t;
	bool alloc;   /* both columns are there: all that was allocated, and what is in use */
	bool sampled; /* at l->period */
};

static int64_t cut(double value)
{
	return value >= 9.2e18 ? INT64_MAX : value > 0 ? (int64_t)value : 0;
}

/* An allocation of mean size s is seen with the probability 1 - e^(-s/rate). */
void legacy_heap_scale(int64_t rate, int64_t *count, int64_t *size)
{
	double factor;

	if (!*count || !*size) {
		*count = *size = 0;
		return;
	}
	if (rate <= 1)
		return;
	factor = 1 / (1 - exp(-((double)*size / (double)*count) / (double)rate));
	*count = cut((double)*count * factor);
	*size = cut((double)*size * factor);
}

/* "3: 4096 [5: 8192]" */
static bool take_numbers(struct str *line, int64_t n[4])
{
	return legacy_take_number(line, &n[0]) && legacy_take(line, ":") &&
	       legacy_take_number(line, &n[1]) && legacy_take(line, "[") &&
	       legacy_take_number(line, &n[2]) && legacy_take(line, ":") &&
	       legacy_take_number(line, &n[3]) && legacy_take(line, "]");
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
			legacy_heap_scale(h->t->l->period, &to[0], &to[1]);
		to += 2;
	}
	s->block = n[0] ? n[1] / n[0] : n[2] ? n[3] / n[2] : 0;
}

static void note_bad(const struct heap_text *h)
{
	legacy_note_bad(h->t->l, h->t->lines->offset);
}

/* ---- gperftools and Go ---- */

static bool parse_head(struct heap_text *h, struct str line)
{
	struct legacy *l = h->t->l;
	int64_t n[4], rate = 0;
	struct str kind;
	size_t slash;

	if (!legacy_take(&line, GPERFTOOLS) || !take_numbers(&line, n) || !legacy_take(&line, "@"))
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
	if (h->sampled) /* Go tells the double of it */
		l->period = str_eq(kind, STR("heap")) ? rate / 2 : rate;
	return true;
}

static ow_status read_gperftools(struct heap_text *h)
{
	struct legacy_text *t = h->t;

	while (legacy_next_line(t)) {
		struct str line = str_trim(t->line);
		int64_t n[4];

		if (legacy_is_map(line)) {
			t->again = true;
			break;
		}
		if (!line.len || *line.ptr == '#') {
			OW_TRY(legacy_comment_line(t->l, line));
			continue;
		}
		if (!take_numbers(&line, n) || !legacy_take(&line, "@")) {
			note_bad(h);
			continue;
		}
		OW_TRY(legacy_sample_begin(t->l, NULL));
		set_values(h, &t->l->samples[t->l->sample_count - 1], n);
		OW_TRY(legacy_take_addresses(t, line));
	}
	return t->l->b->status;
}

/* ---- jemalloc ---- */

static ow_status read_jemalloc_line(struct heap_text *h, struct str line, bool *open)
{
	struct legacy *l = h->t->l;
	int64_t n[4];

	if (legacy_take(&line, "@")) {
		if (!l->type_count)
			add_types(h);
		*open = true;
		OW_TRY(legacy_sample_begin(l, NULL));
		return legacy_take_addresses(h->t, line);
	}
	if (!legacy_take(&line, "t*:")) /* one thread's share */
		return OW_OK;
	if (!take_numbers(&line, n))
		note_bad(h);
	else if (!l->sample_count) /* of all stacks together */
		h->alloc = n[2] || n[3];
	else if (*open)
		set_values(h, &l->samples[l->sample_count - 1], n);
	*open = false;
	return OW_OK;
}

/* The addresses come first, then a line for all threads and one for each. */
static ow_status read_jemalloc(struct heap_text *h)
{
	struct legacy_text *t = h->t;
	bool open = false;

	while (legacy_next_line(t)) {
		if (legacy_is_map(t->line)) {
			t->again = true;
			break;
		}
		OW_TRY(read_jemalloc_line(h, str_trim(t->line), &open));
	}
	if (!t->l->type_count)
		add_types(h);
	return t->l->b->status;
}

/* ---- both ---- */

bool legacy_heap_fits(struct str line)
{
	return str_starts(line, STR(GPERFTOOLS)) || str_starts(line, STR(JEMALLOC));
}

ow_status legacy_heap_read(struct legacy_text *t)
{
	struct heap_text h = { .t = t };
	struct legacy *l = t->l;
	struct str line = t->line;

	if (legacy_take(&line, JEMALLOC)) {
		if (!legacy_take_number(&line, &l->period))
			note_bad(&h);
		h.sampled = true;
		l->kind = "heap";
		return read_jemalloc(&h);
	}
	if (!parse_head(&h, line))
		return error_at(l->ctx->err, OW_E_FORMAT, t->lines->offset,
				"%s: the first line of this heap profile cannot be read",
				l->ctx->in->name);
	add_types(&h);
	return read_gperftools(&h);
}
