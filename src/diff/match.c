/*
 * match.c: finds which cells of two groups of runs correspond (diff.h). Equal op and line come first; then the same op
 * at another line; then the place in the order of the step; then names that differ in digits, architecture or types
 * only. The remaining cells are new or gone. Called by diff.c.
 */
#include "diff/diff.h"

#include "base/map.h"

#include <ctype.h>
#include <stdlib.h>

#define LOOK_AHEAD 48u
#define NAMES_MOST 200u /* no more names are joined beyond this many bytes */
#define SURE 0.6	/* this share of a row's places must vote for the same match */

static bool is_left(const struct diff_row *row, unsigned side)
{
	return !row->merged && row->on[side] && !row->on[!side];
}

/* Joins two names, "a + b"; long lists are cut. If memory runs out, the first name. */
static struct str both_names(struct diff_rows *d, struct str first, struct str second)
{
	size_t size = first.len + second.len + 8;
	char *text;

	if (!first.len || str_eq(first, second))
		return second;
	text = first.len < NAMES_MOST ? arena_push(&d->arena, size) : NULL;
	if (!text)
		return first;
	snprintf(text, size, "%.*s + %.*s", STR_ARG(first), STR_ARG(second));
	return str_from(text);
}

/* Adds another row of the base that was fused into the same row of the new side. */
static void join_fused(struct diff_rows *d, size_t base, size_t more)
{
	struct diff_row *to = &d->items[base], *from = &d->items[more];

	d->failed = !diff_row_add(d, to, from, 0) || d->failed;
	to->op = both_names(d, to->op, from->op);
	from->merged = (uint32_t)base + 1;
}

/* Merges a row of the new side into a row of the base. */
static void join(struct diff_rows *d, size_t base, size_t other, const char *by,
		 enum diff_change change)
{
	struct diff_row *to = &d->items[base], *from = &d->items[other];

	d->failed = !diff_row_add(d, to, from, 1) || d->failed;
	if (from->line_number) {
		to->file = from->file;
		to->line_number = from->line_number;
	}
	if (!str_eq(to->op, from->op))
		to->new_op = both_names(d, to->new_op, from->op);
	to->matched_by = by;
	if (change != CHANGE_NONE)
		to->change = change;
	from->merged = (uint32_t)base + 1;
}

static bool is_among(const char *const *words, size_t count, const char *text, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (len == strlen(words[i]) && memcmp(text, words[i], len) == 0)
			return true;
	return false;
}

/* Whether a word is a hash ("8220ad2c" or longer): a compiler makes it from the code, and each version of the code
 * has another. */
static bool is_hash(struct str word)
{
	size_t digits = 0, others = 0, turns = 0;

	for (size_t i = 0; i < word.len; i++) {
		bool digit = isdigit((unsigned char)word.ptr[i]);

		digits += digit;
		others += !isxdigit((unsigned char)word.ptr[i]);
		turns += i && digit != !!isdigit((unsigned char)word.ptr[i - 1]);
	}
	return digits && ((!others && word.len >= 3) || (word.len >= 10 && turns >= 5));
}

/* Appends the letters of a word; nothing when the word names an architecture or, between < and >, a type. */
static size_t add_word(char *to, struct str word, bool argument)
{
	static const char *const architectures[] = { "volta",	  "turing",  "ampere", "hopper",
						     "ada",	  "maxwell", "pascal", "kepler",
						     "blackwell", "sm",	     "gfx" };
	static const char *const types[] = { "float",	 "double", "half",  "bfloat", "int",
					     "uint",	 "long",   "short", "char",   "bool",
					     "true",	 "false",  "const", "void",   "signed",
					     "unsigned", "nv",	   "std" };
	size_t len = 0;

	if (is_hash(word))
		return 0;
	for (size_t i = 0; i < word.len; i++)
		if (isalpha((unsigned char)word.ptr[i]))
			to[len++] = (char)tolower((unsigned char)word.ptr[i]);
	if (is_among(architectures, ARRAY_COUNT(architectures), to, len) ||
	    (argument && is_among(types, ARRAY_COUNT(types), to, len)))
		return 0;
	return len;
}

/* The name without suffixes that writers of folded stacks add: "f_[k]" for the kernel, "_[j]" for a just-in-time
 * compiler. */
static struct str plain_name(struct str name)
{
	static const char *const marks[] = { "_[k]", "_[j]", "_[i]", "_[w]" };

	for (size_t i = 0; i < ARRAY_COUNT(marks); i++)
		if (str_ends(name, str_from(marks[i])))
			return str_first(name, name.len - strlen(marks[i]));
	return name;
}

/* Normalises a name, "volta_sgemm_128x64_tn<float, 4>" → "sgemmxtn": letters without numbers, hashes, architectures,
 * template types and lists of arguments. */
static struct str normal_name(struct arena *arena, struct str name)
{
	char *text = arena_push(arena, name.len + 1);
	size_t len = 0, word = 0, angles = 0, rounds = 0;

	if (!text)
		return STR("");
	name = plain_name(name);
	for (size_t i = 0; i <= name.len; i++) {
		char c = i < name.len ? name.ptr[i] : '_';

		if (isalnum((unsigned char)c))
			continue;
		if (!rounds && i > word)
			len += add_word(text + len, str_make(name.ptr + word, i - word),
					angles > 0);
		word = i + 1;
		if (c == '<')
			angles++;
		else if (c == '>' && angles)
			angles--;
		else if (c == '(')
			rounds++;
		else if (c == ')' && rounds)
			rounds--;
	}
	return str_make(text, len);
}

/* Joins rows with the same text, if exactly one row of each side has it. */
static ow_status join_by_text(struct diff_rows *d, struct str *texts, const char *by,
			      enum diff_change change, struct ow_error *err)
{
	struct map map;
	bool good = true;

	map_init(&map, d->mem);
	for (size_t i = 0; good && i < d->count; i++)
		if (texts[i].len && (is_left(&d->items[i], 0) || is_left(&d->items[i], 1)))
			good = map_add(&map, str_hash(texts[i]), (uint32_t)i + 1);
	for (size_t i = 0; good && i < d->count; i++) {
		size_t found[2] = { 0, 0 }, count[2] = { 0, 0 };

		if (!texts[i].len || !is_left(&d->items[i], 0))
			continue;
		for (struct map_iter it = map_find(&map, str_hash(texts[i])); it.value;
		     it = map_next(&map, it)) {
			const struct diff_row *row = &d->items[it.value - 1];
			unsigned side = row->on[1] && !row->on[0];

			if (row->class != d->items[i].class || row->rank != d->items[i].rank ||
			    !is_left(row, side) || !str_eq(texts[it.value - 1], texts[i]))
				continue;
			found[side] = it.value - 1;
			count[side]++;
		}
		if (count[0] == 1 && count[1] == 1)
			join(d, found[0], found[1], by, change);
	}
	map_release(&map);
	return good ? OW_OK : error_no_memory(err);
}

static ow_status join_equal_ops(struct diff_rows *d, struct ow_error *err)
{
	struct str *texts = ARENA_ARRAY(&d->arena, struct str, d->count + 1);

	d->normal = ARENA_ARRAY(&d->arena, struct str, d->count + 1);
	if (!texts || !d->normal)
		return error_no_memory(err);
	for (size_t i = 0; i < d->count; i++) {
		texts[i] = d->items[i].op;
		if (d->items[i].on[0] != d->items[i].on[1])
			d->normal[i] = normal_name(&d->arena, d->items[i].op);
	}
	return join_by_text(d, texts, "op", CHANGE_NONE, err);
}

struct votes {
	struct vote {
		uint32_t base, other;
		uint32_t count;
		/* sequence number of the vote, to keep the order in which votes were found */
		uint32_t place;
		enum diff_change change;
	} * items;
	size_t count, cap;
	struct map map;
	uint32_t *places[2]; /* for each row: how often it occurs in the sequence of its side */
};

static bool add_vote(struct diff_rows *d, struct votes *v, uint32_t base, uint32_t other,
		     enum diff_change change)
{
	uint64_t hash = map_hash_u64(base, other);
	struct vote *grown;

	if (d->items[base].class != d->items[other].class || !is_left(&d->items[base], 0) ||
	    !is_left(&d->items[other], 1))
		return true;
	for (struct map_iter it = map_find(&v->map, hash); it.value; it = map_next(&v->map, it))
		if (v->items[it.value - 1].base == base && v->items[it.value - 1].other == other) {
			v->items[it.value - 1].count++;
			return true;
		}
	grown = arena_grow(&d->arena, v->items, v->count, &v->cap, sizeof(*grown));
	if (!grown)
		return false;
	v->items = grown;
	v->items[v->count] = (struct vote){ base, other, 1, (uint32_t)v->count, change };
	return map_add(&v->map, hash, (uint32_t)++v->count);
}

/* Makes the sequences of rows of one class, after the joins by name. Host and device run concurrently, so only the
 * order within a class is the same in every run. A row that repeats, such as an operator with two kernels, is one
 * place.
 */
static void set_order(struct diff_rows *d, enum phase_class class)
{
	for (unsigned side = 0; side < 2; side++) {
		size_t run = side ? d->runs[0] : 0, count = 0;
		const struct diff_run *r = &d->all[run];

		for (size_t i = 0; i < r->sequence_count; i++) {
			uint32_t row = d->row_of[run][r->sequence[i] - 1];

			row = d->items[row].merged ? d->items[row].merged - 1 : row;
			if (d->items[row].class == class &&
			    (!count || d->order[side][count - 1] != row))
				d->order[side][count++] = row;
		}
		d->order_count[side] = count;
	}
}

static bool make_order(struct diff_rows *d)
{
	for (unsigned side = 0; side < 2; side++) {
		const struct diff_run *r = &d->all[side ? d->runs[0] : 0];

		if (!d->order[side])
			d->order[side] = ARENA_ARRAY(&d->arena, uint32_t, r->sequence_count + 1);
		if (!d->order[side])
			return false;
	}
	return true;
}

/* Whether each side has rows of a class that the other side lacks; else the order has nothing to join. */
static bool are_some_left(const struct diff_rows *d, enum phase_class class)
{
	bool left[2] = { false, false };

	for (size_t i = 0; i < d->count; i++)
		for (unsigned side = 0; side < 2 && d->items[i].class == class; side++)
			left[side] = left[side] || is_left(&d->items[i], side);
	return left[0] && left[1];
}

/* Whether the sequences agree at these places and continue together: the next places agree again, or the sequences
 * end, or both have rows of their own. */
static bool is_agreement(const struct diff_rows *d, size_t a, size_t b)
{
	uint32_t x, y;

	if (d->order[0][a] != d->order[1][b])
		return false;
	if (a + 1 >= d->order_count[0] || b + 1 >= d->order_count[1])
		return true;
	x = d->order[0][a + 1];
	y = d->order[1][b + 1];
	return x == y || (is_left(&d->items[x], 0) && is_left(&d->items[y], 1));
}

/* Finds how many places each sequence has to skip until they agree again or both end; false when that is too far. */
static bool find_agreement(const struct diff_rows *d, size_t a, size_t b, size_t *da, size_t *db)
{
	size_t n = d->order_count[0], m = d->order_count[1];

	for (size_t sum = 1; sum < LOOK_AHEAD; sum++)
		for (size_t i = 0; i <= sum; i++) {
			size_t k = sum - i;

			if ((a + i < n && b + k < m && is_agreement(d, a + i, b + k)) ||
			    (a + i == n && b + k == m)) {
				*da = i;
				*db = k;
				return true;
			}
		}
	return false;
}

/* Rows that only one side has, between two places of agreement. */
struct gap {
	uint32_t rows[LOOK_AHEAD];
	size_t count;
};

static void read_gap(const struct diff_rows *d, unsigned side, size_t from, size_t len,
		     struct gap *gap)
{
	gap->count = 0;
	for (size_t i = 0; i < len && gap->count < LOOK_AHEAD; i++) {
		uint32_t row = d->order[side][from + i];

		if (is_left(&d->items[row], side))
			gap->rows[gap->count++] = row;
	}
}

static void drop_from(struct gap *gap, size_t at)
{
	gap->count--;
	memmove(gap->rows + at, gap->rows + at + 1, (gap->count - at) * sizeof(*gap->rows));
}

/* Votes for rows of a gap that have the same normalised name on both sides, and removes them from the gap. */
static bool vote_names(struct diff_rows *d, struct votes *v, struct gap *base, struct gap *other)
{
	for (size_t i = 0; i < base->count;) {
		struct str name = d->normal[base->rows[i]];
		size_t k = 0;

		while (k < other->count && !(name.len && str_eq(name, d->normal[other->rows[k]])))
			k++;
		if (k == other->count) {
			i++;
			continue;
		}
		if (!add_vote(d, v, base->rows[i], other->rows[k], CHANGE_RENAMED))
			return false;
		drop_from(base, i);
		drop_from(other, k);
	}
	return true;
}

/* Unmatched items between two matches count as renamed if both sides have equally many, as split or fused if one side has a single item. */
static bool vote_gap(struct diff_rows *d, struct votes *v, size_t a, size_t da, size_t b, size_t db)
{
	struct gap base, other;

	if (!da || !db)
		return true;
	read_gap(d, 0, a, da, &base);
	read_gap(d, 1, b, db, &other);
	if (!vote_names(d, v, &base, &other))
		return false;
	for (size_t i = 0; base.count == other.count && i < base.count; i++)
		if (!add_vote(d, v, base.rows[i], other.rows[i], CHANGE_RENAMED))
			return false;
	for (size_t i = 0; base.count == 1 && other.count > 1 && i < other.count; i++)
		if (!add_vote(d, v, base.rows[0], other.rows[i], CHANGE_SPLIT))
			return false;
	for (size_t i = 0; other.count == 1 && base.count > 1 && i < base.count; i++)
		if (!add_vote(d, v, base.rows[i], other.rows[0], CHANGE_FUSED))
			return false;
	return true;
}

static bool collect_votes(struct diff_rows *d, struct votes *v)
{
	size_t n = d->order_count[0], m = d->order_count[1];
	size_t a = 0, b = 0, da, db;

	for (unsigned side = 0; side < 2; side++)
		for (size_t i = 0; i < d->order_count[side]; i++)
			v->places[side][d->order[side][i]]++;
	while (a < n && b < m) {
		if (d->order[0][a] == d->order[1][b]) {
			a++;
			b++;
		} else if (find_agreement(d, a, b, &da, &db)) {
			if (!vote_gap(d, v, a, da, b, db))
				return false;
			a += da;
			b += db;
		} else {
			a++;
			b++;
		}
	}
	return true;
}

static int by_count(const void *x, const void *y)
{
	const struct vote *a = x, *b = y;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return (a->place > b->place) - (a->place < b->place);
}

static int by_place(const void *x, const void *y)
{
	const struct vote *a = x, *b = y;

	return (a->place > b->place) - (a->place < b->place);
}

static bool is_sure(const struct votes *v, const struct vote *vote)
{
	return vote->count >= SURE * v->places[0][vote->base] &&
	       vote->count >= SURE * v->places[1][vote->other];
}

static void join_renamed(struct diff_rows *d, const struct votes *v)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct vote *vote = &v->items[i];

		if (vote->change == CHANGE_RENAMED && is_sure(v, vote) &&
		    is_left(&d->items[vote->base], 0) && is_left(&d->items[vote->other], 1))
			join(d, vote->base, vote->other,
			     str_eq(d->normal[vote->base], d->normal[vote->other])
				     ? "normalised name"
				     : "order of the step",
			     CHANGE_RENAMED);
	}
}

/* Joins rows by their votes. The parts of a split row follow each other, and are named in that order. A row that got
 * only one part is renamed. */
static void join_parts(struct diff_rows *d, const struct votes *v)
{
	if (v->count)
		qsort(v->items, v->count, sizeof(*v->items), by_place);
	for (size_t i = 0; i < v->count; i++) {
		const struct vote *vote = &v->items[i];
		struct diff_row *base = &d->items[vote->base], *other = &d->items[vote->other];
		struct diff_row *whole = other->merged ? &d->items[other->merged - 1] : NULL;

		if (!is_sure(v, vote) || vote->change == CHANGE_RENAMED)
			continue;
		if (is_left(base, 0) && is_left(other, 1)) {
			join(d, vote->base, vote->other, "order of the step", CHANGE_RENAMED);
			base->parts_by = vote->change;
		} else if (vote->change == CHANGE_SPLIT && is_left(other, 1) &&
			   base->parts_by == CHANGE_SPLIT) {
			join(d, vote->base, vote->other, "order of the step", CHANGE_SPLIT);
		} else if (vote->change == CHANGE_FUSED && is_left(base, 0) && whole &&
			   whole->parts_by == CHANGE_FUSED) {
			join_fused(d, other->merged - 1, vote->base);
			whole->change = CHANGE_FUSED;
		}
	}
}

static ow_status find_votes(struct diff_rows *d, struct votes *v, struct ow_error *err)
{
	bool good = true;

	*v = (struct votes){ 0 };
	if (!d->runs[0] || !d->runs[1] || !d->all[0].sequence_count ||
	    !d->all[d->runs[0]].sequence_count)
		return OW_OK;
	v->places[0] = ARENA_ARRAY(&d->arena, uint32_t, d->count + 1);
	v->places[1] = ARENA_ARRAY(&d->arena, uint32_t, d->count + 1);
	if (!v->places[0] || !v->places[1] || !make_order(d))
		return error_no_memory(err);
	map_init(&v->map, d->mem);
	for (unsigned c = 0; good && c < CLASS_COUNT; c++)
		if (are_some_left(d, (enum phase_class)c)) {
			set_order(d, (enum phase_class)c);
			good = collect_votes(d, v);
		}
	map_release(&v->map);
	if (!good)
		return error_no_memory(err);
	if (v->count)
		qsort(v->items, v->count, sizeof(*v->items), by_count);
	return OW_OK;
}

/* Matches rows by name, by order, by normalised name, then by order again. The order comes before normalised names,
 * because several kernels may have the same one; the second time, the new matches are further places of agreement. */
ow_status diff_rows_match(struct diff_rows *d, struct ow_error *err)
{
	struct votes votes;

	OW_TRY(join_equal_ops(d, err));
	OW_TRY(find_votes(d, &votes, err));
	join_renamed(d, &votes);
	OW_TRY(join_by_text(d, d->normal, "normalised name", CHANGE_RENAMED, err));
	OW_TRY(find_votes(d, &votes, err));
	join_renamed(d, &votes);
	join_parts(d, &votes);
	if (d->failed)
		return error_no_memory(err);
	diff_rows_explain(d);
	return OW_OK;
}
