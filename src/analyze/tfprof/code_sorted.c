/*
 * code_sorted.c: makes the folded lines of code_lines.h directly from the traces of ops, without a tree of stacks.
 * Traces sorted by the names of their lines are already in display order; the part that a trace shares with its
 * neighbours is lines of their own, the rest is a chain. Used in the usual case: rows ordered by name and chains that
 * can be folded. Called by code_lines.c.
 */
#include "analyze/tfprof/code_lines.h"

#include "base/radix.h"
#include "base/vec.h"

#define DIGIT 11 /* number of bits per sorting pass */
#define FEW 64	 /* up to this many items are sorted by comparing */
#define SAME UINT32_MAX
#define LINE_FRAMES 16 /* number of frames in a cache line */

/* The properties of a trace that sorting needs, side by side, because traces are read in random order. */
struct place {
	uint32_t first, len; /* range of the trace's frames */
	uint32_t rank;	     /* place of the trace's op by name; gradients come after all others */
	uint32_t gradient;   /* 1: the op is shown under the calls of its forward op */
};

/* An op and the trace under which it is shown. */
struct traced {
	uint64_t key; /* next labels of the trace, as many as fit */
	uint32_t op, place;
};

/* Traces that are equal up to a depth and must be sorted from there on. */
struct range {
	uint32_t begin, end, depth;
};

struct sorted {
	struct code_lines *l;
	const struct code_traces *t;
	struct traced *list, *other;
	struct place *places; /* places, in the order of the ops that have the traces */
	uint32_t count;
	/* number of bits of a label in a key, and number of labels per key */
	uint32_t bits, labels;
	/* for each trace: number of lines in common with the trace before, or SAME; later its
	 * lines */
	uint32_t *shared;
	/* Frames of the traces that lines are made of, in the order of the lines: a later pass over the lines reads
	 * them one after the other. */
	struct code_traces *kept;
	struct range *ranges; /* ranges still to be sorted */
	size_t range_count, range_cap;
	uint32_t *path; /* for each depth: the node of the current trace */
	size_t path_cap;
};

static const struct place *place_of(const struct sorted *s, const struct traced *x)
{
	return &s->places[x->place];
}

/* Returns the label at a depth; 0 behind the last frame. */
static uint32_t label_at(const struct sorted *s, const struct place *p, uint32_t depth)
{
	if (depth >= p->len)
		return 0;
	return s->l->frame_label[p->gradient][s->t->frames[p->first + depth].v];
}

/* Prefetches traces that come some places later, because they are scattered in memory. */
static void fetch_ahead(const struct sorted *s, uint32_t i)
{
	const frame_id *frames;

	if (i + 32 >= s->count)
		return;
	__builtin_prefetch(place_of(s, &s->list[i + 32]));
	frames = &s->t->frames[place_of(s, &s->list[i + 16])->first];
	__builtin_prefetch(frames);
	__builtin_prefetch(frames + LINE_FRAMES - 1);
}

static void set_keys(struct sorted *s, const struct range *r)
{
	for (uint32_t i = r->begin; i < r->end; i++) {
		struct traced *x = &s->list[i];
		const struct place *p = place_of(s, x);

		fetch_ahead(s, i);
		x->key = 0;
		for (uint32_t k = 0; k < s->labels; k++)
			x->key = x->key << s->bits | label_at(s, p, r->depth + k);
	}
}

static int by_key(const void *a, const void *b)
{
	const struct traced *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Orders equal traces by the names of their ops. */
static int by_rank(const void *a, const void *b, void *arg)
{
	const uint32_t *rank = arg;
	uint32_t x = rank[((const struct traced *)a)->op], y = rank[((const struct traced *)b)->op];

	return (x > y) - (x < y);
}

static void sort_keys(struct sorted *s, const struct range *r)
{
	struct traced *list = s->list + r->begin;
	uint32_t count = r->end - r->begin;

	if (count <= FEW)
		qsort(list, count, sizeof(*list), by_key);
	else
		radix_sort_in_place(list, s->other + r->begin, count, key, DIGIT);
}

static bool push_range(struct sorted *s, struct range r)
{
	return vec_push(s->l->a->mem, s->ranges, s->range_count, s->range_cap, r);
}

/* Returns how many leading labels of two different keys are equal. */
static uint32_t equal_labels(const struct sorted *s, uint64_t a, uint64_t b)
{
	return s->labels - 1 - (63u - (uint32_t)__builtin_clzll(a ^ b)) / s->bits;
}

/* Handles traces with equal keys: they continue, or have ended and are the same. */
static bool push_range_of_one_key(struct sorted *s, struct range r)
{
	if (r.end - r.begin == 1)
		return true;
	if (s->list[r.begin].key & ((UINT64_C(1) << s->bits) - 1))
		return push_range(s, r);
	qsort_r(s->list + r.begin, r.end - r.begin, sizeof(*s->list), by_rank, s->l->rank);
	for (uint32_t i = r.begin + 1; i < r.end; i++)
		s->shared[i] = SAME;
	return true;
}

/* Handles sorted traces: neighbours with different keys have a known common prefix. */
static bool push_equal(struct sorted *s, const struct range *r)
{
	uint32_t begin = r->begin, depth = r->depth + s->labels;

	for (uint32_t i = r->begin + 1; i <= r->end; i++) {
		if (i < r->end && s->list[i].key == s->list[begin].key)
			continue;
		if (i < r->end)
			s->shared[i] =
				r->depth + equal_labels(s, s->list[begin].key, s->list[i].key);
		if (!push_range_of_one_key(s, (struct range){ begin, i, depth }))
			return false;
		begin = i;
	}
	return true;
}

static bool sort(struct sorted *s)
{
	bool ok = push_range(s, (struct range){ 0, s->count, 0 });

	for (s->bits = 1; s->l->label_count >> s->bits; s->bits++)
		;
	s->labels = 64 / s->bits;
	while (ok && s->range_count) {
		struct range r = s->ranges[--s->range_count];

		set_keys(s, &r);
		sort_keys(s, &r);
		ok = push_equal(s, &r);
	}
	return ok;
}

/* Traces that end at the same line, with the number of frames shared with the traces before and after. */
struct group {
	uint32_t begin, end, len, before, behind;
	/* Properties of the trace whose op comes first by name; the line is made for it. */
	uint32_t rank;	/* place of that op by name */
	uint32_t first; /* first of the trace's frames in the list of kept frames */
	bool gradient;
};

/* Adds the line of the current group at a depth. Its depth is kept in op_count for now. */
static uint32_t add_line(struct sorted *s, const struct group *g, uint32_t depth)
{
	frame_id frame = s->kept->frames[g->first + depth];
	uint32_t label = s->l->frame_label[g->gradient][frame.v];
	uint32_t line = code_lines_append(s->l, s->path[depth], label, g->gradient);
	struct code_node *node = &s->l->nodes[line];

	node->frame = frame;
	node->op_first = g->rank;
	node->op_count = depth;
	s->path[depth + 1] = line;
	return line;
}

static bool room_for(struct sorted *s, uint32_t len)
{
	if (!vec_reserve(s->l->a->mem, s->path, s->path_cap, (size_t)len + 1))
		return false;
	return code_lines_reserve(s->l, len);
}

/* Returns the trace of a group whose op comes first by name. */
static const struct place *first_of(const struct sorted *s, const struct group *g)
{
	const struct place *first = place_of(s, &s->list[g->begin]);

	for (uint32_t i = g->begin + 1; i < g->end; i++) {
		const struct place *p = place_of(s, &s->list[i]);

		if (p->rank < first->rank)
			first = p;
	}
	return first;
}

static void keep_trace(struct sorted *s, struct group *g)
{
	const struct place *p = first_of(s, g);

	g->rank = p->rank;
	g->gradient = p->gradient;
	g->first = (uint32_t)s->kept->count;
	memcpy(s->kept->frames + s->kept->count, s->t->frames + p->first,
	       g->len * sizeof(frame_id));
	s->kept->count += g->len;
}

/* Lists the ops of a group. Own values of a line are in the row of its first op. */
static void list_group(struct sorted *s, const struct group *g, uint32_t line)
{
	for (uint32_t i = g->begin; i < g->end; i++) {
		if (i + 16 < s->count)
			__builtin_prefetch(&s->l->line_of[s->list[i + 16].op], 1);
		s->l->line_of[s->list[i].op] = g->begin + 1;
		s->l->sorted_ops[i].v = s->list[i].op;
		s->shared[i] = i == g->begin ? line : SAME;
	}
}

static bool add_group(struct sorted *s, struct group *g)
{
	uint32_t shared = MAX(g->before, g->behind), depth = g->before, line;

	if (!room_for(s, g->len))
		return false;
	keep_trace(s, g);
	while (depth < g->len && (depth < shared || g->len - depth > CODE_CHAIN_MAX + 1))
		add_line(s, g, depth++);
	if (depth < g->len) {
		line = add_line(s, g, depth);
		s->l->nodes[line].chain_count = g->len - depth - 1;
		s->l->nodes[line].chain_end.v = g->first + g->len - 1;
	} else {
		line = s->path[g->len];
	}
	list_group(s, g, line);
	return true;
}

static bool add_groups(struct sorted *s)
{
	struct group g = { 0 };
	bool ok = true;

	s->path[0] = 0;
	while (ok && g.begin < s->count) {
		fetch_ahead(s, g.begin);
		g.len = place_of(s, &s->list[g.begin])->len;
		for (g.end = g.begin + 1; g.end < s->count && s->shared[g.end] == SAME; g.end++)
			fetch_ahead(s, g.end);
		g.behind = g.end < s->count ? s->shared[g.end] : 0;
		ok = add_group(s, &g);
		g = (struct group){ .begin = g.end, .before = g.behind };
	}
	return ok;
}

/* Passes ranks on to callers; lines get the frames of their first ops. */
static void finish(struct sorted *s)
{
	struct code_lines *l = s->l;

	for (uint32_t i = l->count; i-- > 1;) {
		struct code_node *node = &l->nodes[i], *up = &l->nodes[node->parent];
		uint32_t rank = node->op_first, ops = l->m->op.count;

		if (!node->frame.v) {
			uint32_t from = l->ops[rank < ops ? rank : rank - ops].v;

			node->frame = s->t->frames[s->t->first[from] + node->op_count];
		}
		node->op_count = 0;
		if (node->parent && rank < up->op_first) {
			up->op_first = rank;
			up->frame.v = 0; /* the frame belongs to another op */
		}
	}
}

/* Counts the frames of all traces. */
static uint64_t count_traced(const struct code_lines *l, uint32_t *count)
{
	uint64_t frames = 0;

	*count = 0;
	for (uint32_t op = 1; op < l->m->op.count; op++) {
		uint32_t before = *count;

		*count += l->line_of[op] != 0;
		for (uint32_t g = l->gradient_first[op]; g; g = l->gradient_next[g])
			++*count;
		frames += (uint64_t)(*count - before) * l->traces->len[op];
	}
	return frames;
}

/* Lists one op. `from` is the op under whose calls it is shown: itself or its forward op. */
static void list_one(struct sorted *s, uint32_t op, uint32_t from)
{
	uint32_t i = s->count++;

	s->list[i] = (struct traced){ .op = op, .place = i };
	s->places[i] = (struct place){ s->t->first[from], s->t->len[from],
				       s->l->rank[from] + (op != from ? s->l->m->op.count : 0),
				       op != from };
}

static bool list_traced(struct sorted *s)
{
	struct code_lines *l = s->l;
	struct arena *arena = &l->a->tree->arena;
	uint32_t count;
	uint64_t frames = count_traced(l, &count);

	s->kept = ARENA_ARRAY(arena, struct code_traces, 1);
	if (!s->kept || frames >= UINT32_MAX)
		return false;
	s->kept->frames = arena_push_aligned(arena, (size_t)frames * sizeof(frame_id), 4);
	l->sorted_ops = arena_push_aligned(arena, (size_t)count * sizeof(op_id), 4);
	s->places = arena_push_aligned(&l->a->scratch, count * sizeof(*s->places), 16);
	s->list = arena_push_aligned(&l->a->scratch, count * sizeof(*s->list), 8);
	s->other = arena_push_aligned(&l->a->scratch, count * sizeof(*s->other), 8);
	s->shared = arena_push_aligned(&l->a->scratch, count * sizeof(*s->shared), 4);
	if (!s->kept->frames || !l->sorted_ops || !s->places || !s->list || !s->other || !s->shared)
		return false;
	for (uint32_t op = 1; op < l->m->op.count; op++) {
		if (l->line_of[op])
			list_one(s, op, op);
		for (uint32_t g = l->gradient_first[op]; g; g = l->gradient_next[g])
			list_one(s, g, op);
	}
	return true;
}

ow_status code_sorted_add(struct code_lines *l)
{
	struct sorted s = { .l = l, .t = l->traces };
	struct mem *mem = l->a->mem;
	bool ok = list_traced(&s) && code_lines_root(l) && room_for(&s, 1) && sort(&s) &&
		  add_groups(&s);

	if (ok)
		finish(&s);
	l->sorted_count = s.count;
	l->sorted_line = s.shared;
	l->kept = s.kept;
	mem_free(mem, s.ranges, s.range_cap * sizeof(*s.ranges));
	mem_free(mem, s.path, s.path_cap * sizeof(*s.path));
	return ok ? OW_OK : error_no_memory(l->a->err);
}
