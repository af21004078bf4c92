/*
 * samples.h: which samples a view looks at. A profile may have measured several things; they are never
 * added up, so every view takes those of one metric: the one that the user names, else the default of
 * the source. Metrics of the same name and unit of several inputs are one.
 */
#ifndef ANALYZE_SAMPLES_H
#define ANALYZE_SAMPLES_H

#include "analyze/view.h"

struct sample_choice {
	const struct model *m;
	struct event_filter filter;
	str_id name, unit;
	enum result_unit shown_as;
	uint8_t *wanted; /* per metric */
	bool unfiltered; /* then it is all that counts */
};

/* Whether samples say more about code than the ops do: they were asked for, or no op has a stack. */
static inline bool samples_tell_code(const struct model *m, const struct view_options *options)
{
	return m->sample.count > 1 &&
	       (options->metric || (!m->op.stack && !m->event.stack && !m->op.code_size));
}

/* Whether there is nothing else: no op ran. */
static inline bool samples_only(const struct model *m)
{
	return m->sample.count > 1 && m->op.count <= 1;
}

/* The metric that the options ask for; refused with a list of those that exist. */
ow_status samples_choose(const struct model *m, const struct view_options *options,
			 struct arena *scratch, struct sample_choice *out, struct error *err);

/* Whether a sample lies in the part that was asked for. */
static inline bool sample_inside(const struct event_filter *f, const struct model *m, uint32_t row)
{
	const struct sample_table *s = &m->sample;

	if (!filter_track(f, m, s->track[row]) || !filter_step(f, COLUMN_GET(s->step, row)))
		return false;
	return !filter_has_time(f) || (s->ts_ns[row] != TIME_UNKNOWN &&
				       s->ts_ns[row] >= f->from_ns && s->ts_ns[row] < f->to_ns);
}

static inline bool sample_counts(const struct sample_choice *c, uint32_t row)
{
	return c->wanted[c->m->sample.metric[row].v] &&
	       (c->unfiltered || sample_inside(&c->filter, c->m, row));
}

/* Inputs that are left out because they measure something else, as a sentence; NULL when there are none, or the user chose
 * what to see. */
ow_status samples_left_out(const struct sample_choice *c, const struct view_options *options,
			   struct arena *scratch, char **text, struct error *err);
/* The same as the footer of a table. */
ow_status samples_add_footer(const struct sample_choice *c, const struct view_options *options,
			     struct result *out, struct error *err);

/* Weight of each stack by itself, of all samples that count. NULL without memory. */
int64_t *samples_by_stack(const struct sample_choice *c, struct arena *scratch);

/* What a frame is called without its line: the function, else its file and line, its module or nothing.
 * The text is the model's, or was made in the arena; ptr NULL without memory. */
struct str sample_frame_name(const struct model *m, frame_id frame, struct arena *arena);

/* Part of all, in percent; 0 of nothing. */
static inline double samples_percent(int64_t part, int64_t all)
{
	return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* The columns self, self_percent, total and total_percent, and their values in a row: `first` is that of self. */
void samples_add_cost_columns(struct result *out, enum result_unit unit);
void samples_set_cost(struct result *out, uint32_t row, uint32_t first, int64_t self, int64_t total,
		      int64_t all);

/* How a unit of the model is shown. */
enum result_unit sample_unit(struct str unit);

#endif
