/*
 * sentence.c: writes the first line of a comparison (diff_int.h): by how much the new runs differ, the cell with the
 * largest part of that, its line, and the reason: another precision, other shapes, another kernel, more calls. Called
 * by diff.c.
 */
#include "diff/diff_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define WORTH 0.2      /* a part below this share of the difference is not named */
#define NAME_BYTES 80u /* limit of names in bytes */
#define SHAPE_BYTES 60u
#define FACTOR_LEAST 10 /* from this ratio on, the ratio is printed instead of a percentage */

struct line {
	char *to;
	size_t size, len;
};

static void put(struct line *line, const char *format, ...) OW_PRINTF(2, 3);

static void put(struct line *line, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->to + line->len, line->size - line->len, format, args);
	va_end(args);
	if (len > 0)
		line->len = MIN(line->len + (size_t)len, line->size - 1);
}

/* Cuts a text to `most` bytes, without splitting a character. */
static struct str some(struct str text, size_t most)
{
	if (text.len <= most)
		return text;
	while (most && ((unsigned char)text.ptr[most] & 0xc0) == 0x80)
		most--;
	return str_first(text, most);
}

static double change_ns(const struct diff_row *row)
{
	return row->mean[1] - row->mean[0];
}

static const struct diff_row *largest(const struct comparison *c)
{
	const struct diff_row *first = NULL;

	for (size_t i = 0; i < c->rows.count; i++) {
		const struct diff_row *row = &c->rows.items[i];

		if (!row->merged && (!first || fabs(change_ns(row)) > fabs(change_ns(first))))
			first = row;
	}
	return first;
}

/* The precision of the first argument that has one, in a list such as ["c10::Half", "float"]; NULL when unknown. */
static const char *precision(struct str types)
{
	static const struct {
		const char *type, *name;
	} known[] = { { "double", "fp64" }, { "float", "fp32" },	 { "c10::Half", "fp16" },
		      { "Half", "fp16" },   { "c10::BFloat16", "bf16" }, { "BFloat16", "bf16" } };
	struct str word;

	while (str_split(&types, '"', &word)) {
		if (str_has(word, STR("Float8")))
			return "fp8";
		for (size_t i = 0; i < ARRAY_COUNT(known); i++)
			if (str_eq(word, str_from(known[i].type)))
				return known[i].name;
	}
	return NULL;
}

/* Writes a count per step, which is a mean and may have a fraction: "12", "0.75", "22528". */
static void put_count(struct line *line, double count)
{
	if (fabs(count - round(count)) < 0.005 || count >= 1000)
		put(line, "%.0f", count);
	else
		put(line, "%.3g", count);
}

static void put_counts(struct line *line, const struct diff_row *row)
{
	put(line, ", which now runs ");
	put_count(line, row->count[1]);
	put(line, " times instead of ");
	put_count(line, row->count[0]);
}

static void put_durations(struct line *line, const struct diff_row *row)
{
	char text[2][HUMAN_SIZE];

	for (unsigned side = 0; side < 2; side++)
		human_int(text[side], llround(row->mean[side]), HUMAN_UNIT_NS, false);
	put(line, ", which now takes %s instead of %s", text[1], text[0]);
}

/* Writes the reason of a change: ", which now runs in fp32 instead of fp16". */
static void put_reason(struct line *line, const struct comparison *c, const struct diff_row *row)
{
	bool changed = row->arguments_changed;
	const char *before = changed ? precision(row->types[0]) : NULL,
		   *now = changed ? precision(row->types[1]) : NULL;
	enum diff_change change = diff_change_of(row);

	if (change == CHANGE_NEW || change == CHANGE_GONE)
		put(line, ", which is %s", change == CHANGE_NEW ? "new" : "gone");
	else if (change == CHANGE_SPLIT || change == CHANGE_FUSED)
		put(line, ", which %s now %.*s", change == CHANGE_FUSED ? "are" : "is",
		    STR_ARG(some(row->new_op, NAME_BYTES)));
	else if (before && now && strcmp(before, now) != 0)
		put(line, ", which now runs in %s instead of %s", now, before);
	else if (changed && row->shapes[0].len && row->shapes[1].len &&
		 !str_eq(row->shapes[0], row->shapes[1]))
		put(line, ", whose shapes are now %.*s instead of %.*s",
		    STR_ARG(some(row->shapes[1], SHAPE_BYTES)),
		    STR_ARG(some(row->shapes[0], SHAPE_BYTES)));
	else if (change == CHANGE_COUNT)
		put_counts(line, row);
	else if (row->new_op.len)
		put(line, ", which is now %.*s", STR_ARG(some(row->new_op, NAME_BYTES)));
	else if (row->part[0].len && row->part[1].len && !str_eq(row->part[0], row->part[1]))
		put(line, ", which now runs %.*s", STR_ARG(some(row->part[1], NAME_BYTES)));
	else if (diff_unit(c) == UNIT_NS && row->mean[0] > 0 && row->mean[1] > 0)
		put_durations(line, row);
}

static void put_difference(struct line *line, const struct comparison *c)
{
	const struct diff_run *run = &c->runs[0];
	const char *what = run->known ? "per step" : "in all";
	double ratio = c->step_ns[0] ? (double)c->step_ns[1] / (double)c->step_ns[0] : 0;
	char delta[HUMAN_SIZE], share[64] = "";

	human_int(delta, llabs(c->delta_ns), diff_human_unit(c), false);
	if (ratio >= FACTOR_LEAST) /* large percentages are hard to read */
		snprintf(share, sizeof(share), " (%.*f times the base)", ratio < 100 ? 1 : 0,
			 ratio);
	else if (c->step_ns[0])
		snprintf(share, sizeof(share), " (%.1f %%)",
			 100.0 * (double)llabs(c->delta_ns) / (double)c->step_ns[0]);
	if (!c->delta_ns)
		put(line, "both have the same %s %s", diff_unit(c) == UNIT_NS ? "time" : "sum",
		    what);
	else if (diff_unit(c) != UNIT_NS)
		put(line, "new has %s %s%.*s%s %s", delta,
		    str_eq(run->unit, STR("samples")) && !str_eq(run->metric, STR("samples"))
			    ? "samples of "
			    : "",
		    STR_ARG(some(run->metric, NAME_BYTES)), share,
		    c->delta_ns > 0 ? "more" : "less");
	else
		put(line, "new is %s%s %s %s", delta, share, c->delta_ns > 0 ? "slower" : "faster",
		    what);
}

/* Writes what the sides contain if they cannot be compared: "base has times, new has samples of cycles: …". */
static void put_kinds(struct line *line, const struct comparison *c)
{
	const struct diff_run *first = &c->runs[0], *other = first;

	for (size_t i = 1; i < c->base + c->other && other == first; i++)
		if (!str_eq(c->runs[i].unit, first->unit))
			other = &c->runs[i];
	for (unsigned side = 0; side < 2; side++) {
		const struct diff_run *run = side ? other : first;

		put(line, "%s", side ? ", another run has " : "base has ");
		if (run->metric.len)
			put(line, "%.*s in %.*s", STR_ARG(some(run->metric, NAME_BYTES)),
			    STR_ARG(some(run->unit.len ? run->unit : STR("ns"), NAME_BYTES)));
		else
			put(line, "times of events");
	}
	put(line, ": their difference has no meaning");
}

/* Writes "; 9.8ms of it is ". If a part is larger than the whole, because other parts became shorter: "; 9.8ms more
 * in ". */
static void put_part(struct line *line, const struct comparison *c, double own)
{
	char part[HUMAN_SIZE];

	human_int(part, llround(fabs(own)), diff_human_unit(c), false);
	if ((own > 0) == (c->delta_ns > 0) && fabs(own) <= (double)llabs(c->delta_ns) + 0.5)
		put(line, "; %s %s ", part, diff_unit(c) == UNIT_NS ? "of it is" : "of them in");
	else
		put(line, "; %s %s in ", part, own > 0 ? "more" : "less");
}

/* "; a typical run is 3.20ms slower: a few runs decide the mean". The conclusion is about all runs, and a few cold ones of the other side can
 * turn the means round. */
static void put_typical(struct line *line, const struct comparison *c)
{
	double shift = c->robust.estimate;
	char text[HUMAN_SIZE];

	if (!c->conclusion ||
	    (strcmp(c->conclusion, "slower") != 0 && strcmp(c->conclusion, "faster") != 0) ||
	    (shift > 0) == (c->delta_ns > 0))
		return;
	human_int(text, llround(fabs(shift)), diff_human_unit(c), false);
	put(line, "; a typical run %s %s %s: a few runs decide the mean",
	    diff_unit(c) == UNIT_NS ? "is" : "has", text,
	    diff_unit(c) != UNIT_NS ? (shift > 0 ? "more" : "less") : c->conclusion);
}

/* The cell with the largest part of the difference. */
static void put_largest(struct line *line, const struct comparison *c)
{
	const struct diff_row *row = largest(c);
	double own;

	own = row ? change_ns(row) : 0;
	if (!c->delta_ns ||
	    fmax(fabs(own), (double)llabs(c->unexplained_ns)) < WORTH * (double)llabs(c->delta_ns))
		return;
	if (!row || (double)llabs(c->unexplained_ns) > fabs(own)) {
		put_part(line, c, (double)c->unexplained_ns);
		put(line, "time in which nothing was recorded");
		return;
	}
	put_part(line, c, own);
	put(line, "%.*s (%s)", STR_ARG(some(row->op, NAME_BYTES)), phase_class_names[row->class]);
	if (row->line.len)
		put(line, " in %.*s", STR_ARG(some(row->line, NAME_BYTES)));
	put_reason(line, c, row);
}

void diff_write_sentence(const struct comparison *c, char *to, size_t size)
{
	struct line line = { to, size, 0 };

	if (c->mixed) {
		put_kinds(&line, c);
		return;
	}
	put_difference(&line, c);
	put_largest(&line, c);
	put_typical(&line, c);
}
