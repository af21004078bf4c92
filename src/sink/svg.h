/*
 * svg.h: charts of the sink svg: one function per view that has one, in sink_svg.c's table. A chart is drawn from the table alone; columns
 * are found by name.
 */
#ifndef SINK_SVG_H
#define SINK_SVG_H

#include "sink/writer.h"

/* The column of that name, or NULL. */
const struct result_column *svg_column(const struct result *result, const char *name);
/* A number of it; 0 when it is unknown. */
double svg_number(const struct result_column *column, uint32_t row);
struct str svg_text(const struct result_column *column, uint32_t row);

/* The head of a file and its last line; what is between is the caller's. Sizes are pixels. */
void svg_begin(struct writer *w, unsigned width, unsigned height, const char *title);
void svg_end(struct writer *w);

void svg_roofline(struct writer *w, const struct result *result,
		  const struct sink_options *options);

void svg_memory(struct writer *w, const struct result *result, const struct sink_options *options);

#endif
