/*
 * match.c: which cells of two groups of runs are the same thing (diff.h). Equal op and line come first; then the same op at another line; then
 * the place in the order of the step; then names that differ in digits, architecture or types only. The rest is new or gone. Called by diff.c.
 */
#include "diff/diff.h"

#include "base/map.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define LOOK_AHEAD 48u
#define NAMES_MOST 200u /* with this many bytes of joined names no more are added */
#define SURE 0.6	/* of the places of a row must say the same */

/* ---- rows ---- */

static uint64_t text_hash(enum phase_class class, int32_t rank, struct str op, struct str line)
{
	return map_hash_u64(map_hash_u64(str_hash(op), str_hash(line)),
			    (uint64_t) class << 32 | (uint32_t)rank);
}

static struct diff_row *find_row(struct diff_rows *d, const struct map *map,
				 const struct diff_cell *cell)
{
	uint64_t hash = text_hash(cell->class, cell->rank, cell->op, cell->line);

	for (struct map_iter it = map_find(map, hash); it.value; it = map_next(map, it)) {
		struct diff_row *row = &d->items[it.value - 1];

		if (row->class == cell->class && row->rank == cell->rank &&
		    str_eq(row->op, cell->op) && str_eq(row->line, cell->line))
			return row;
	}
	return NULL;
}

static struct diff_row *add_row(struct diff_rows *d, struct map *map, const struct diff_cell *cell)
{
	size_t runs = d->runs[0] + d->runs[1];
	struct diff_row *grown =
		arena_grow(&d->arena, d->items, d->count, &d->cap, sizeof(*d->items));
	double *ns = ARENA_ARRAY(&d->arena, double, runs);

	if (!grown || !ns ||
	    !map_add(map, text_hash(cell->class, cell->rank, cell->op, cell->line),
		     (uint32_t)d->count + 1))
		return NULL;
	d->items = grown;
	d->items[d->count] = (struct diff_row){ .class = cell->class,
						.rank = cell->rank,
						.op = cell->op,
						.own_op = cell->op,
						.line = cell->line,
						.file = cell->file,
						.line_number = cell->line_number,
						.ns = ns,
						.q = (double)NAN };
	return &d->items[d->count++];
}

/* Ranks are compared one by one if every run has the same ones; else the cells of all ranks are one. */
static bool has_same_ranks(const struct diff_rows *d)
{
	size_t runs = d->runs[0] + d->runs[1];

	for (size_t r = 1; r < runs; r++) {
		if (d->all[r].rank_count != d->all[0].rank_count)
			return false;
		for (size_t i = 0; i < d->all[r].rank_count; i++)
			if (d->all[r].ranks[i] != d->all[0].ranks[i])
				return false;
	}
	return true;
}

/* A cell of the new runs as it was called in the base: without the rank, at the line where it was. */
static ow_status old_cell(struct diff_rows *d, bool by_rank, int32_t shift, struct diff_cell *cell,
			  struct ow_error *err)
{
	struct str prefix, suffix;
	char *text;
	size_t size;

	if (!by_rank)
		cell->rank = -1;
	if (!shift || !diff_line_split(cell, &prefix, &suffix))
		return OW_OK;
	size = prefix.len + suffix.len + 16;
	text = arena_push(&d->arena, size);
	if (!text)
		return error_no_memory(err);
	snprintf(text, size, "%.*s%d%.*s", STR_ARG(prefix), (int)(cell->line_number - shift),
		 STR_ARG(suffix));
	cell->line = str_from(text);
	return OW_OK;
}

static ow_status add_cells(struct diff_rows *d, struct map *map, size_t run, struct ow_error *err)
{
	const struct diff_run *from = &d->all[run];
	bool by_rank = has_same_ranks(d);
	unsigned side = run >= d->runs[0];
	double steps = from->steps ? (double)from->steps : 1;

	d->row_of[run] = ARENA_ARRAY(&d->arena, uint32_t, from->cell_count + 1);
	if (!d->row_of[run])
		return error_no_memory(err);
	for (size_t i = 0; i < from->cell_count; i++) {
		struct diff_cell own = from->cells[i], *cell = &own;
		struct diff_row *row;

		int32_t shift = d->shifts[run] ? d->shifts[run][i] : 0;

		OW_TRY(old_cell(d, by_rank, shift, cell, err));
		row = find_row(d, map, cell);
		if (!row)
			row = add_row(d, map, cell);
		if (!row)
			return error_no_memory(err);
		d->row_of[run][i] = (uint32_t)(row - d->items);
		row->ns[run] += (double)cell->ns / steps;
		row->count[side] += (double)cell->count / steps / (double)d->runs[side];
		row->on[side] = true;
		row->counts_unknown = row->counts_unknown || from->counts_unknown;
		row->moved = row->moved || shift;
		if (side && cell->line_number) {
			row->file = cell->file;
			row->line_number = cell->line_number;
		}
		if (!row->shapes[side].len)
			row->shapes[side] = cell->shapes;
		if (!row->types[side].len)
			row->types[side] = cell->types;
		if (cell->part.len && (double)cell->ns / steps > row->part_ns[side]) {
			row->part_ns[side] = (double)cell->ns / steps;
			row->part[side] = cell->part;
		}
	}
	return OW_OK;
}

static void set_means(struct diff_rows *d)
{
	for (size_t i = 0; i < d->count; i++) {
		struct diff_row *row = &d->items[i];

		row->mean[0] = stat_mean(row->ns, d->runs[0]);
		row->mean[1] = stat_mean(row->ns + d->runs[0], d->runs[1]);
		if (row->on[0] && row->on[1])
			row->matched_by = row->moved	  ? "op and moved line"
					  : row->line.len ? "op and line"
							  : "op";
	}
}

ow_status diff_rows_make(struct diff_rows *d, struct mem *mem, const struct diff_run *runs,
			 size_t base, size_t other, struct ow_error *err)
{
	struct map map;
	ow_status status = OW_OK;

	*d = (struct diff_rows){ .mem = mem, .runs = { base, other }, .all = runs };
	arena_init(&d->arena, mem);
	d->row_of = ARENA_ARRAY(&d->arena, uint32_t *, base + other);
	if (!d->row_of)
		return error_no_memory(err);
	OW_TRY(diff_lines_align(d, err));
	map_init(&map, mem);
	for (size_t r = 0; status == OW_OK && r < base + other; r++)
		status = add_cells(d, &map, r, err);
	map_release(&map);
	if (status == OW_OK)
		set_means(d);
	return status;
}

void diff_rows_release(struct diff_rows *d)
{
	arena_release(&d->arena);
}

/* ---- joining ---- */

static bool is_left(const struct diff_row *row, unsigned side)
{
	return !row->merged && row->on[side] && !row->on[!side];
}

/* "a + b"; more than a few are cut. Without memory the first one. */
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

/* Another row of the base that became part of the same thing. */
static void join_fused(struct diff_rows *d, size_t base, size_t more)
{
	struct diff_row *to = &d->items[base], *from = &d->items[more];

	for (size_t r = 0; r < d->runs[0]; r++)
		to->ns[r] += from->ns[r];
	to->mean[0] += from->mean[0];
	to->count[0] += from->count[0];
	if (from->part_ns[0] > to->part_ns[0]) {
		to->part_ns[0] = from->part_ns[0];
		to->part[0] = from->part[0];
	}
	to->op = both_names(d, to->op, from->op);
	from->merged = (uint32_t)base + 1;
}

/* The new side's row becomes part of the base's. */
static void join(struct diff_rows *d, size_t base, size_t other, const char *by,
		 enum diff_change change)
{
	struct diff_row *to = &d->items[base], *from = &d->items[other];

	for (size_t r = d->runs[0]; r < d->runs[0] + d->runs[1]; r++)
		to->ns[r] += from->ns[r];
	to->mean[1] += from->mean[1];
	to->count[1] += from->count[1];
	to->on[1] = true;
	if (from->part_ns[1] > to->part_ns[1]) {
		to->part_ns[1] = from->part_ns[1];
		to->part[1] = from->part[1];
	}
	if (!to->shapes[1].len)
		to->shapes[1] = from->shapes[1];
	if (!to->types[1].len)
		to->types[1] = from->types[1];
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

/* ---- names ---- */

static bool is_among(const char *const *words, size_t count, const char *text, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (len == strlen(words[i]) && memcmp(text, words[i], len) == 0)
			return true;
	return false;
}

/* "8220ad2c" or a longer mixture of letters and digits: made by a compiler from the code, other for each version of it. */
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

/* The letters of a word; none when it names an architecture or, between < and >, a type. */
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

/* Without what writers of folded stacks add: "f_[k]" of the kernel, "_[j]" of a compiler at run time. */
static struct str plain_name(struct str name)
{
	static const char *const marks[] = { "_[k]", "_[j]", "_[i]", "_[w]" };

	for (size_t i = 0; i < ARRAY_COUNT(marks); i++)
		if (str_ends(name, str_from(marks[i])))
			return str_first(name, name.len - strlen(marks[i]));
	return name;
}

/* "volta_sgemm_128x64_tn<float, 4>" → "sgemmxtn": letters without numbers, hashes, architectures, types of templates and lists of arguments. */
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

/* Joins rows with the same text, if exactly one of each side has it. */
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

/* ---- by the order of a step ---- */

struct votes {
	struct vote {
		uint32_t base, other;
		uint32_t count;
		enum diff_change change;
	} * items;
	size_t count, cap;
	struct map map;
	uint32_t *places[2]; /* per row: how often it is in the sequence of its side */
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
	v->items[v->count++] = (struct vote){ base, other, 1, change };
	return map_add(&v->map, hash, (uint32_t)v->count);
}

/* The row that stands at a place of the sequence of the base's first run (0) or of the new runs' first one. */
static uint32_t row_at(const struct diff_rows *d, size_t run, size_t place)
{
	return d->order[run != 0][place];
}

/* The sequences as rows, after the joins by name. */
static bool set_order(struct diff_rows *d)
{
	for (unsigned side = 0; side < 2; side++) {
		size_t run = side ? d->runs[0] : 0;
		const struct diff_run *r = &d->all[run];

		d->order[side] = ARENA_ARRAY(&d->arena, uint32_t, r->sequence_count + 1);
		if (!d->order[side])
			return false;
		for (size_t i = 0; i < r->sequence_count; i++) {
			uint32_t row = d->row_of[run][r->sequence[i] - 1];

			d->order[side][i] = d->items[row].merged ? d->items[row].merged - 1 : row;
		}
	}
	return true;
}

/* Whether each side has rows that the other does not have: else the order has nothing to join. */
static bool are_some_left(const struct diff_rows *d)
{
	bool left[2] = { false, false };

	for (size_t i = 0; i < d->count; i++)
		for (unsigned side = 0; side < 2; side++)
			left[side] = left[side] || is_left(&d->items[i], side);
	return left[0] && left[1];
}

/* Whether the sides agree at these places and go on together: at the next ones they agree again, end, or both have something of their own. */
static bool is_agreement(const struct diff_rows *d, size_t a, size_t b)
{
	size_t other = d->runs[0], n = d->all[0].sequence_count, m = d->all[other].sequence_count;
	uint32_t x, y;

	if (row_at(d, 0, a) != row_at(d, other, b))
		return false;
	if (a + 1 >= n || b + 1 >= m)
		return true;
	x = row_at(d, 0, a + 1);
	y = row_at(d, other, b + 1);
	return x == y || (is_left(&d->items[x], 0) && is_left(&d->items[y], 1));
}

/* How far both have to go on until they agree again; false when that is too far. */
static bool find_agreement(const struct diff_rows *d, size_t a, size_t b, size_t *da, size_t *db)
{
	size_t n = d->all[0].sequence_count, m = d->all[d->runs[0]].sequence_count;

	for (size_t sum = 1; sum < LOOK_AHEAD; sum++)
		for (size_t i = 0; i <= sum; i++) {
			size_t k = sum - i;

			if (a + i < n && b + k < m && is_agreement(d, a + i, b + k)) {
				*da = i;
				*db = k;
				return true;
			}
		}
	return false;
}

/* Rows of one class that only one side has, in a gap of its sequence. */
struct gap {
	uint32_t rows[LOOK_AHEAD];
	size_t count;
};

static void read_gap(const struct diff_rows *d, unsigned side, size_t from, size_t len,
		     enum phase_class class, struct gap *gap)
{
	gap->count = 0;
	for (size_t i = 0; i < len && gap->count < LOOK_AHEAD; i++) {
		uint32_t row = d->order[side][from + i];

		if (d->items[row].class == class && is_left(&d->items[row], side))
			gap->rows[gap->count++] = row;
	}
}

static void drop_from(struct gap *gap, size_t at)
{
	gap->count--;
	memmove(gap->rows + at, gap->rows + at + 1, (gap->count - at) * sizeof(*gap->rows));
}

/* Takes what has the same normalised name on both sides out of the gap. */
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

	for (unsigned c = 0; da && db && c < CLASS_COUNT; c++) {
		read_gap(d, 0, a, da, (enum phase_class)c, &base);
		read_gap(d, 1, b, db, (enum phase_class)c, &other);
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
	}
	return true;
}

static bool collect_votes(struct diff_rows *d, struct votes *v)
{
	size_t n = d->all[0].sequence_count, m = d->all[d->runs[0]].sequence_count;
	size_t a = 0, b = 0, da, db;

	for (size_t i = 0; i < n; i++)
		v->places[0][row_at(d, 0, i)]++;
	for (size_t i = 0; i < m; i++)
		v->places[1][row_at(d, d->runs[0], i)]++;
	while (a < n && b < m) {
		if (row_at(d, 0, a) == row_at(d, d->runs[0], b)) {
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
	return a->base != b->base ? (a->base > b->base ? 1 : -1)
				  : (a->other > b->other) - (a->other < b->other);
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

/* Of a split row several parts follow one after the other. A row that got one part only is renamed. */
static void join_parts(struct diff_rows *d, const struct votes *v)
{
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
	bool good;

	*v = (struct votes){ 0 };
	if (!d->runs[0] || !d->runs[1] || !d->all[0].sequence_count ||
	    !d->all[d->runs[0]].sequence_count || !are_some_left(d))
		return OW_OK;
	v->places[0] = ARENA_ARRAY(&d->arena, uint32_t, d->count + 1);
	v->places[1] = ARENA_ARRAY(&d->arena, uint32_t, d->count + 1);
	if (!v->places[0] || !v->places[1] || !set_order(d))
		return error_no_memory(err);
	map_init(&v->map, d->mem);
	good = collect_votes(d, v);
	map_release(&v->map);
	if (!good)
		return error_no_memory(err);
	if (v->count)
		qsort(v->items, v->count, sizeof(*v->items), by_count);
	return OW_OK;
}

/* The order comes before normalised names, since several kernels may have the same one; then again, with what these joined as more to hold on to. */
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
	return OW_OK;
}
