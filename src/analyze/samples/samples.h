/*
 * samples.h: views of sampled stacks. A profile may have several metrics, which are never added up. So each view shows one metric: the one that
 * the user names, else the default of the source. Metrics with the same name and unit of several inputs are one. samples.c chooses, the
 * other files of this folder add up functions, lines and trees. Used by views, the verdict and api/timeline.c.
 */
#ifndef ANALYZE_SAMPLES_H
#define ANALYZE_SAMPLES_H

#include "analyze/view.h"

struct sample_choice {
	const struct model *m;
	struct event_filter filter;
	str_id name, unit;
	enum column_unit shown_as;
	uint8_t *wanted; /* one entry for each metric: whether its samples count */
	bool unfiltered; /* all samples of the metric count, but for: */
	/* Per track: a thread that mostly waits, of which only the time on a processor counts. NULL: there is none. */
	uint8_t *waits;
	uint8_t *cpu; /* one entry for each metric: whether it is processor time */
	uint32_t waiting_count;
};

/* Returns whether the code view shows samples: the user chose a metric, or no op has a stack. */
static inline bool samples_show_code(const struct model *m, const struct view_options *options)
{
	return m->sample.count > 1 &&
	       (options->metric || (!m->op.stack && !m->event.stack && !m->op.code_size));
}

/* Returns whether the model has samples and no ops. */
static inline bool samples_only(const struct model *m)
{
	return m->sample.count > 1 && m->op.count <= 1;
}

/* Chooses the metric of the options. An unknown name is an error that lists the metrics. */
ow_status samples_choose(struct model *m, const struct view_options *options, struct arena *scratch,
			 struct sample_choice *out, struct ow_error *err);

/* Returns whether a sample belongs to the selected rank, step and time. */
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
	const struct sample_table *s = &c->m->sample;
	const uint8_t *wanted = c->waits && c->waits[s->track[row].v] ? c->cpu : c->wanted;

	return wanted[s->metric[row].v] && (c->unfiltered || sample_inside(&c->filter, c->m, row));
}

/* A sentence on the threads that mostly wait, and on inputs that are left out because they measure something else; NULL when there are
 * none, or the user chose a metric. */
ow_status samples_left_out(const struct sample_choice *c, const struct view_options *options,
			   struct arena *scratch, char **text, struct ow_error *err);
/* Adds the text about left-out samples as the footer of a table. */
ow_status samples_add_footer(const struct sample_choice *c, const struct view_options *options,
			     struct table *out, struct ow_error *err);

/* Returns, for each stack, the sum of the weights of the samples that count. NULL if memory runs out. */
int64_t *samples_by_stack(const struct sample_choice *c, struct arena *scratch);

/* The name of a frame: its function, else file and line, else the module, else "[unknown]". The text belongs to the
 * model or the arena; ptr is NULL if memory runs out. */
struct str sample_frame_name(const struct model *m, frame_id frame, struct arena *arena);

/* The amount that a cost adds to the base of shares: its absolute value, because released memory counts, too, so
 * that no share exceeds 100 %. */
static inline int64_t samples_size(int64_t cost)
{
	return cost < 0 ? -MAX(cost, -INT64_MAX) : cost;
}

/* Returns `part` as a percentage of `all`; 0 if `all` is 0. */
static inline double samples_percent(int64_t part, int64_t all)
{
	return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* Add the columns self, self_percent, total and total_percent, and set their values in a row; `first` is
 * the column self. */
void samples_add_cost_columns(struct table *out, enum column_unit unit);
void samples_set_cost(struct table *out, uint32_t row, uint32_t first, int64_t self, int64_t total,
		      int64_t all);

/* Returns the column unit for a unit of the model. */
enum column_unit sample_unit(struct str unit);

/* Per group of frames (`groups`: frame → group, below `count`): the samples whose stack contains a frame of the group,
 * each once. `used` are the stacks with samples and their callers; all their frames have a group. One walk, however
 * deep the stacks are. NULL if memory runs out.
 */
int64_t *samples_totals(const struct model *m, const int64_t *self, const bool *used,
			const uint32_t *groups, size_t count, struct arena *scratch);

/* view_functions.c: sums of functions. */

/* A function is known by its name and module. Self: samples in which it is the leaf. Total: samples in which it occurs, once
 * however often it calls itself. */
struct function {
	uint32_t frame; /* one of the function's frames */
	struct str name;
	int64_t self, total;
};

struct functions {
	const struct model *m;
	struct sample_choice choice;
	struct arena *scratch;
	struct function *items; /* functions, from index 1 */
	size_t count, cap;
	struct map map;
	uint32_t *of_frame;
	int64_t all;
};

/* Adds up the samples of f->choice. The caller has set choice and scratch, and releases f in any case. */
ow_status sample_functions_make(struct functions *f, struct ow_error *err);
void sample_functions_release(struct functions *f);
/* Sorts items 1 and up by own cost or by total cost. */
void sample_functions_sort(struct functions *f, bool by_totals);

/* sample_lines.c: sums of source lines. */

/* Returns whether a file belongs to an installed package or an interpreter, not to the user. */
bool line_is_library(struct str file);
/* Returns, for each stack, the innermost frame of the user's own code, or else the innermost frame. NULL if memory
 * runs out. */
uint32_t *line_own_frames(const struct model *m, struct arena *scratch);

/* Writes "file:12 function", as far as these are known. */
void own_line_name(const struct model *m, uint32_t frame, char *to, size_t size);
/* Orders frames by file, line and function: for rows that have nothing else to be ordered by. */
int frame_cmp(const struct model *m, uint32_t a, uint32_t b);

/* Runs the view `lines` for sampled stacks. */
ow_status sample_lines_run(struct model *m, const struct view_options *options, struct table *out,
			   struct ow_error *err);

/* sample_tree.c: the tree of samples. */

/* Runs the view `code` for sampled stacks. */
ow_status sample_tree_run(struct model *m, const struct view_options *options, struct table *out,
			  struct ow_error *err);

#endif
