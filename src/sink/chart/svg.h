/*
 * svg.h: what the charts of the sink svg share. There is one function per view that has a chart, in the table of sink_svg.c. A chart is drawn from
 * the table alone; columns are found by name.
 */
#ifndef SINK_SVG_H
#define SINK_SVG_H

#include "base/writer.h"
#include "sink/sink.h"

/* The table's column with this name, or NULL. */
const struct table_column *svg_column(const struct table *result, const char *name);
/* The number in a row of the column; 0 when it is unknown. */
double svg_number(const struct table_column *column, uint32_t row);
struct str svg_text(const struct table_column *column, uint32_t row);

/* svg_begin writes the head of an SVG file, svg_end its last line. Sizes are in pixels. */
void svg_begin(struct writer *w, unsigned width, unsigned height, const char *title);
void svg_end(struct writer *w);

void svg_roofline(struct writer *w, const struct table *result, const struct sink_options *options);

void svg_memory(struct writer *w, const struct table *result, const struct sink_options *options);

#endif
