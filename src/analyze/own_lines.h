/*
 * own_lines.h: which frames are the user's own code, for the lines view; and that view for sampled stacks.
 */
#ifndef ANALYZE_OWN_LINES_H
#define ANALYZE_OWN_LINES_H

#include "analyze/view.h"

bool line_is_library(struct str file);
/* own[stack] = the innermost frame of the user's, or the innermost of all. NULL without memory. */
uint32_t *line_own_frames(const struct model *m, struct arena *scratch);

/* "file:12 function", as far as these are known. */
void own_line_name(const struct model *m, uint32_t frame, char *to, size_t size);

ow_status sample_lines_run(struct model *m, const struct view_options *options, struct result *out,
			   struct error *err);

#endif
