/*
 * overview.h: what the parts of `opwatch FILE…` share: cmd_overview.c, and overview_samples.c for sampled profiles. Private to these two.
 */
#ifndef CLI_OVERVIEW_H
#define CLI_OVERVIEW_H

#include "cli/command.h"

#define TOP_ROWS 5 /* number of rows of each list */

struct overview {
	struct args *args;
	ow_profile *profile;
	FILE *to;
	ow_result *types; /* result of the op view: all types, the costliest first */
	ow_result *work;  /* result of the view work */
	uint32_t width;
	uint32_t source_count;
	bool colour;
	bool steps_known;
	bool is_live;		  /* the first file is a recording of a running program */
	bool apart;		  /* outliers and one-off runs are shown separately */
	int64_t typical_step;	  /* steady step nearest to the median of several; -1 = none */
	uint32_t jobs, ranks;	  /* number of jobs and ranks of the inputs, as far as known */
	struct ow_error *failure; /* error of the first part that could not be shown */
};

/* Prints the heading "TEXT, remark" of a part of the screen. */
void overview_heading(const struct overview *o, const char *text, const char *remark);
/* Runs a view with the options that it accepts; NULL on failure. */
ow_result *overview_view(const struct overview *o, const char *name,
			 const struct ow_view_options *options);
/* Copies the options that choose a part of the recording. */
void overview_part(const struct overview *o, struct ow_view_options *options);
double overview_real(const ow_result *r, uint32_t row, const char *column);
struct str overview_text(const ow_result *r, uint32_t row, const char *column);
/* Prints one row of a short table; `mostly` is a second name or empty. */
void overview_row(const struct overview *o, const char *value, double share, struct str name,
		  size_t name_width, struct str mostly);

/* overview_samples.c: prints the summary of a sampled profile; nothing for others. */
void overview_print_samples(const struct overview *o);

#endif
