/*
 * sink_svg.c: the sink `svg`: the chart of a view as one self-contained SVG file, without scripts, fonts or links. The table below lists the views
 * that have a chart; svg_<view>.c draws it. Flame graphs are a sink of their own.
 */
#include "sink/chart/svg.h"

static const struct {
	const char *view;
	void (*draw)(struct writer *w, const struct table *result,
		     const struct sink_options *options);
} charts[] = {
	{ "roofline", svg_roofline },
	{ "memory_time", svg_memory },
};

const struct table_column *svg_column(const struct table *result, const char *name)
{
	for (uint32_t i = 0; i < result->column_count; i++)
		if (strcmp(result->columns[i].name, name) == 0)
			return &result->columns[i];
	return NULL;
}

double svg_number(const struct table_column *column, uint32_t row)
{
	if (!column || (column->known && !column->known[row]))
		return 0;
	switch (column->type) {
	case TYPE_INT:
	case TYPE_BOOL:
		return (double)column->ints[row];
	case TYPE_REAL:
		return column->reals[row];
	default:
		return 0;
	}
}

struct str svg_text(const struct table_column *column, uint32_t row)
{
	return column && column->type == TYPE_TEXT && (!column->known || column->known[row])
		       ? column->texts[row]
		       : STR("");
}

void svg_begin(struct writer *w, unsigned width, unsigned height, const char *title)
{
	writer_puts(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	writer_printf(w,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		      "viewBox=\"0 0 %u %u\" font-family=\"sans-serif\" font-size=\"12\">\n",
		      width, height, width, height);
	writer_puts(w, "<title>");
	writer_xml(w, str_from(title));
	writer_puts(w, "</title>\n");
	writer_printf(w, "<rect width=\"%u\" height=\"%u\" fill=\"#ffffff\"/>\n", width, height);
}

void svg_end(struct writer *w)
{
	writer_puts(w, "</svg>\n");
}

static ow_status write_svg(struct table *result, const struct sink_options *options,
			   const struct out *out, struct ow_error *err)
{
	for (size_t i = 0; i < ARRAY_COUNT(charts); i++) {
		struct writer w;

		if (strcmp(charts[i].view, result->name) != 0)
			continue;
		writer_init(&w, result->mem, out, err);
		charts[i].draw(&w, result, options);
		return writer_finish(&w);
	}
	return error_set(err, OW_E_USAGE,
			 "the view %s has no chart; --to svg draws roofline and memory_time, --to "
			 "flamegraph scope, graph and code",
			 result->name);
}

const struct sink sink_svg = {
	.name = "svg",
	.summary = "the chart of a view, one SVG file: roofline, memory",
	.extension = "svg",
	.accepts = SINK_RESULT,
	.write = write_svg,
};
