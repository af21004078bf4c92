/*
 * regex_class.c: sets of code points: named classes, case folding, complement, and the bytes of UTF-8
 * that they mean. Called by regex_parse.c. The Unicode tables are made by
 * tools/make-unicode-tables.
 */
#include "base/regex/regex_int.h"
#include "base/regex/regex_unicode_tables.h"
#include "base/vec.h"

static uint32_t unicode_next_case(uint32_t rune)
{
	for (size_t i = 0; i < ARRAY_COUNT(folds); i++)
		if (folds[i].lo <= rune && rune <= folds[i].hi &&
		    (rune - folds[i].lo) % folds[i].stride == 0)
			return (uint32_t)((int32_t)rune + folds[i].delta);
	return rune;
}

static void unicode_cased(uint32_t lo, uint32_t hi, void (*each)(void *arg, uint32_t rune),
			  void *arg)
{
	for (size_t i = 0; i < ARRAY_COUNT(folds); i++)
		for (uint32_t c = folds[i].lo; c <= MIN(folds[i].hi, hi); c += folds[i].stride)
			if (c >= lo)
				each(arg, c);
}

/* Adds the runs of the wanted kinds; the kind is in the low `bits` of a run. */
static void add_runs(struct ranges *r, const uint32_t *runs, size_t count, unsigned bits,
		     const bool *wanted)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t end = i + 1 < count ? runs[i + 1] >> bits : RUNE_MAX + 1;

		if (wanted[runs[i] & ((1u << bits) - 1)])
			ranges_add(r, runs[i] >> bits, end - 1);
	}
}

static bool unicode_class(struct ranges *r, struct str name)
{
	bool wanted[256] = { false }, known = false;

	if (str_eq(name, STR("Any"))) {
		ranges_add(r, 0, RUNE_MAX);
		return true;
	}
	for (size_t i = 0; i < ARRAY_COUNT(category_names);
	     i++) { /* "Lu" names one category, "L" all that begin with L */
		wanted[i] = name.len && str_starts(str_from(category_names[i]), name);
		known |= wanted[i];
	}
	if (known) {
		add_runs(r, category_runs, ARRAY_COUNT(category_runs), 5, wanted);
		return true;
	}
	for (size_t i = 0; i < ARRAY_COUNT(script_names) && !known; i++)
		known = wanted[i] = str_eq(name, str_from(script_names[i]));
	if (known)
		add_runs(r, script_runs, ARRAY_COUNT(script_runs), 8, wanted);
	return known;
}

void ranges_add(struct ranges *r, uint32_t lo, uint32_t hi)
{
	if (r->failed || lo > hi)
		return;
	if (!vec_reserve(r->mem, r->items, r->cap, r->count + 1)) {
		r->failed = true;
		return;
	}
	r->items[r->count++] = (struct range){ lo, hi };
}

static void add_orbit(void *arg, uint32_t rune)
{
	struct ranges *r = arg;

	for (uint32_t next = unicode_next_case(rune); next != rune; next = unicode_next_case(next))
		ranges_add(r, next, next);
}

void ranges_add_folded(struct ranges *r, uint32_t lo, uint32_t hi)
{
	ranges_add(r, lo, hi);
	if (lo == 0 && hi == RUNE_MAX)
		return;
	unicode_cased(lo, hi, add_orbit, r);
}

static int by_lo(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

void ranges_normalize(struct ranges *r)
{
	size_t kept = 0;

	if (r->count > 1)
		qsort(r->items, r->count, sizeof(*r->items), by_lo);
	for (size_t i = 0; i < r->count; i++) {
		struct range item = r->items[i];

		if (kept && item.lo <= r->items[kept - 1].hi + 1)
			r->items[kept - 1].hi = MAX(r->items[kept - 1].hi, item.hi);
		else
			r->items[kept++] = item;
	}
	r->count = kept;
}

void ranges_negate(struct ranges *r)
{
	uint32_t next = 0;
	size_t kept = 0;

	ranges_normalize(r);
	for (size_t i = 0; i < r->count; i++) {
		struct range item = r->items[i];

		if (item.lo > next)
			r->items[kept++] = (struct range){ next, item.lo - 1 };
		next = item.hi + 1;
	}
	r->count = kept;
	if (next <= RUNE_MAX)
		ranges_add(r, next, RUNE_MAX);
}

void ranges_add_set(struct ranges *r, const struct range *items, size_t count, bool negated,
		    bool fold)
{
	struct ranges set = { .mem = r->mem };

	for (size_t i = 0; i < count; i++) {
		if (fold)
			ranges_add_folded(&set, items[i].lo, items[i].hi);
		else
			ranges_add(&set, items[i].lo, items[i].hi);
	}
	if (negated)
		ranges_negate(&set);
	for (size_t i = 0; i < set.count; i++)
		ranges_add(r, set.items[i].lo, set.items[i].hi);
	r->failed |= set.failed;
	mem_free(set.mem, set.items, set.cap * sizeof(*set.items));
}

static const struct range digit[] = { { '0', '9' } };
static const struct range perl_space[] = { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } };
static const struct range word[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };

#define SET(ranges) ranges, ARRAY_COUNT(ranges)

bool ranges_add_perl(struct ranges *r, char letter, bool fold)
{
	bool negated = letter >= 'A' && letter <= 'Z';

	switch (letter) {
	case 'd':
	case 'D':
		ranges_add_set(r, SET(digit), negated, fold);
		return true;
	case 's':
	case 'S':
		ranges_add_set(r, SET(perl_space), negated, fold);
		return true;
	case 'w':
	case 'W':
		ranges_add_set(r, SET(word), negated, fold);
		return true;
	default:
		return false;
	}
}

bool ranges_add_posix(struct ranges *r, struct str name, bool negated, bool fold)
{
	static const struct {
		const char *name;
		struct range ranges[4];
	} classes[] = {
		{ "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
		{ "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
		{ "ascii", { { 0, 0x7f } } },
		{ "blank", { { '\t', '\t' }, { ' ', ' ' } } },
		{ "cntrl", { { 0, 0x1f }, { 0x7f, 0x7f } } },
		{ "digit", { { '0', '9' } } },
		{ "graph", { { '!', '~' } } },
		{ "lower", { { 'a', 'z' } } },
		{ "print", { { ' ', '~' } } },
		{ "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } } },
		{ "space", { { '\t', '\r' }, { ' ', ' ' } } },
		{ "upper", { { 'A', 'Z' } } },
		{ "word", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
		{ "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
	};

	for (size_t i = 0; i < ARRAY_COUNT(classes); i++) {
		size_t count = 0;

		if (!str_eq(name, str_from(classes[i].name)))
			continue;
		while (count < 4 && classes[i].ranges[count].hi)
			count++;
		ranges_add_set(r, classes[i].ranges, count, negated, fold);
		return true;
	}
	return false;
}

bool ranges_add_unicode(struct ranges *r, struct str name, bool negated, bool fold)
{
	struct ranges set = { .mem = r->mem };
	bool known = unicode_class(&set, name);

	if (known)
		ranges_add_set(r, set.items, set.count, negated, fold);
	r->failed |= set.failed;
	mem_free(set.mem, set.items, set.cap * sizeof(*set.items));
	return known;
}

/* One alternative of a set: ranges of bytes, one after the other. */
struct sequence {
	uint8_t lo[4], hi[4];
	uint32_t len;
};

/* Emits one alternative. Alternatives are chained: SPLIT, sequence, JUMP to the end; the last
 * one needs neither SPLIT nor JUMP. */
static void emit_sequence(struct program *p, const struct sequence *q, bool last, size_t *jumps)
{
	if (!last)
		program_emit(p, (struct inst){ .op = INST_SPLIT, .jump = (int32_t)q->len + 2 });
	for (uint32_t i = 0; i < q->len; i++)
		program_emit(p, (struct inst){ .op = INST_RANGE, .lo = q->lo[i], .hi = q->hi[i] });
	if (last || program_failed(p))
		return;
	program_emit(p, (struct inst){ .op = INST_JUMP, .jump = (int32_t)*jumps });
	*jumps = p->count - 1;
}

static uint32_t encode(uint32_t rune, uint8_t *to)
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	uint32_t len = rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;

	for (uint32_t i = len - 1; i > 0; i--) {
		to[i] = (uint8_t)(0x80 | (rune & 0x3f));
		rune >>= 6;
	}
	to[0] = (uint8_t)(lead[len] | rune);
	return len;
}

/* A range that must be split before its bytes are ranges, too: returns the end of its first part, which may have to
 * be split itself. */
static uint32_t split(struct range r)
{
	static const uint32_t longest[] = { 0x7f, 0x7ff, 0xffff };

	for (size_t i = 0; i < ARRAY_COUNT(longest); i++)
		if (r.lo <= longest[i] && longest[i] < r.hi)
			return longest[i];
	if (r.hi < 0x80)
		return r.hi;
	for (uint32_t shift = 6; shift <= 18; shift += 6) {
		uint32_t mask = (1u << shift) - 1;

		if ((r.lo & ~mask) == (r.hi & ~mask))
			continue;
		if (r.lo & mask)
			return r.lo | mask;
		if ((r.hi & mask) != mask)
			return (r.hi & ~mask) - 1;
	}
	return r.hi;
}

/* Returns the first part of a range of code points whose UTF-8 bytes are ranges. */
static struct range first_part(struct range r)
{
	uint32_t hi;

	while ((hi = split(r)) != r.hi)
		r.hi = hi;
	return r;
}

/* Emits everything beyond ASCII, as RE2 does: overlong forms and surrogates match, too, which makes the
 * program smaller. */
static void emit_beyond_ascii(struct program *p, bool last, size_t *jumps)
{
	static const struct sequence parts[] = {
		{ { 0xc2, 0x80 }, { 0xdf, 0xbf }, 2 },
		{ { 0xe0, 0x80, 0x80 }, { 0xef, 0xbf, 0xbf }, 3 },
		{ { 0xf0, 0x80, 0x80, 0x80 }, { 0xf4, 0xbf, 0xbf, 0xbf }, 4 },
	};

	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		emit_sequence(p, &parts[i], last && i == 2, jumps);
}

static void emit_range(struct program *p, struct range r, bool last, size_t *jumps)
{
	while (!program_failed(p)) {
		struct range part = first_part(r);
		struct sequence q = { 0 };
		bool end;

		if (r.lo == 0x80 && r.hi == RUNE_MAX) {
			emit_beyond_ascii(p, last, jumps);
			return;
		}
		end = part.hi == r.hi;
		q.len = encode(part.lo, q.lo);
		encode(part.hi, q.hi);
		emit_sequence(p, &q, last && end, jumps);
		if (end)
			return;
		r.lo = part.hi + 1;
	}
}

void ranges_emit(const struct ranges *r, struct program *p)
{
	size_t jumps = SIZE_MAX;

	if (r->failed)
		p->no_memory = true;
	if (!r->count)
		program_emit(p, (struct inst){ .op = INST_FAIL });
	for (size_t i = 0; i < r->count; i++)
		emit_range(p, r->items[i], i == r->count - 1, &jumps);
	if (program_failed(p))
		return;
	while (jumps != SIZE_MAX) {
		struct inst *inst = &p->insts[jumps];
		size_t previous = inst->jump < 0 ? SIZE_MAX : (size_t)inst->jump;

		inst->jump = (int32_t)(p->count - jumps);
		jumps = previous;
	}
}
