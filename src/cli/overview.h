/*
 * overview.h: parts of the screen that `opwatch FILE…` shows (cmd_overview.c): what was found (overview_found.c) and what
 * costs most (overview_tops.c). Parts print to o->to and leave out what the profile does not have.
 */
#ifndef CLI_OVERVIEW_H
#define CLI_OVERVIEW_H

#include "cli/command.h"

struct overview {
	struct args *args;
	ow_profile *profile;
	FILE *to;
	ow_result *types; /* the op view: every type, the costliest first */
	ow_result *work;  /* what takes the time */
	uint32_t width;
	uint32_t source_count;
	bool colour;
	struct ow_error *failure; /* the first thing that could not be shown */
};

/* What the profile does not have is left out; what cannot be read is remembered. */
bool overview_worked(const struct overview *o, ow_status status, const struct ow_error *err);
void overview_heading(const struct overview *o, const char *text, const char *remark);

/* NULL when there is no such thing here. */
ow_result *overview_view(const struct overview *o, const char *name,
			 const struct ow_view_options *options);
ow_result *overview_plain(const struct overview *o, const char *name);
/* Every type of op, the largest of a metric first. */
ow_result *overview_types(const struct overview *o, const char *metric);
/* The step, rank and part of the time that were asked for, and no other option. */
void overview_part(const struct overview *o, struct ow_view_options *options);

double overview_real(const ow_result *r, uint32_t row, const char *column);
struct str overview_text(const ow_result *r, uint32_t row, const char *column);
/* Of what is positive; 0 without a result. */
double overview_sum(const ow_result *r, const char *name);

void overview_print_sources(struct overview *o);
void overview_print_counts(const struct overview *o);
void overview_print_steps(const struct overview *o);
void overview_print_devices(const struct overview *o);

/* False when nothing was timed. */
bool overview_print_top_types(const struct overview *o);
void overview_print_top_scopes(const struct overview *o);
void overview_print_top_lines(const struct overview *o);
void overview_print_sampled(const struct overview *o);
void overview_print_static_top(const struct overview *o, const char *metric, const char *title);

#endif
