/*
 * svg_memory.c: the chart of the view memory_time, called by sink_svg.c: a panel per heap, with the memory in use as an area, the memory that the
 * allocator held as a line above it, and the peak with what was in use then. Points have tooltips.
 */
#include "sink/chart/svg.h"

#define WIDTH 1200
#define LEFT 90
#define RIGHT 20
#define TOP 60
#define PANEL 220 /* height of one panel with its labels */
#define PLOT 140
#define NAME_MAX_BYTES 120
#define PANELS_MAX 64
#define NAME_COLUMNS 40
#define ALIVE_COLUMNS 150

struct chart {
	struct writer *w;
	const struct table *r;
	const struct table_column *device, *allocator, *rank, *ts, *in_use, *reserved, *peak,
		*alive;
	int64_t from_ns, to_ns;
	uint32_t panels;
};

static const char style[] =
	"<style>text{font:12px sans-serif;fill:#333}.title{font-size:18px;font-weight:bold}"
	".name{font-weight:bold}.axis{stroke:#999;fill:none}.use{fill:#8fb8e8;stroke:#3f77b8}"
	".held{fill:none;stroke:#c77d1e;stroke-dasharray:4 3}.peak{fill:#c0392b}"
	".at{stroke:#c0392b;stroke-dasharray:2 3}.hit{fill:transparent}.hit:hover{fill:#00000018}"
	"</style>\n";

static void find_columns(struct chart *c)
{
	c->device = svg_column(c->r, "device");
	c->allocator = svg_column(c->r, "allocator");
	c->rank = svg_column(c->r, "rank");
	c->ts = svg_column(c->r, "ts_ns");
	c->in_use = svg_column(c->r, "in_use_bytes");
	c->reserved = svg_column(c->r, "reserved_bytes");
	c->peak = svg_column(c->r, "peak");
	c->alive = svg_column(c->r, "alive");
}

static int64_t int_at(uint32_t row, const struct table_column *column)
{
	return column->ints[row];
}

static bool is_known(uint32_t row, const struct table_column *column)
{
	return !column->known || column->known[row];
}

static bool same_heap(const struct chart *c, uint32_t a, uint32_t b)
{
	return str_eq(svg_text(c->device, a), svg_text(c->device, b)) &&
	       str_eq(svg_text(c->allocator, a), svg_text(c->allocator, b)) &&
	       int_at(a, c->rank) == int_at(b, c->rank);
}

static uint32_t end_of_heap(const struct chart *c, uint32_t first)
{
	uint32_t end = first + 1;

	/* times start again where the next heap of the same name begins */
	while (end < c->r->row_count && same_heap(c, first, end) &&
	       int_at(end, c->ts) > int_at(end - 1, c->ts))
		end++;
	return end;
}

static void measure(struct chart *c)
{
	c->from_ns = INT64_MAX;
	c->to_ns = INT64_MIN;
	for (uint32_t i = 0; i < c->r->row_count; i++) {
		c->from_ns = MIN(c->from_ns, int_at(i, c->ts));
		c->to_ns = MAX(c->to_ns, int_at(i, c->ts));
	}
	for (uint32_t i = 0; i < c->r->row_count && c->panels < PANELS_MAX; i = end_of_heap(c, i))
		c->panels++;
}

static double x_of(const struct chart *c, int64_t ts)
{
	double whole = (double)c->to_ns - (double)c->from_ns;

	return LEFT +
	       (whole > 0 ? ((double)ts - (double)c->from_ns) / whole : 0) * (WIDTH - LEFT - RIGHT);
}

/* Converts a time to the time since the first row, because clocks start anywhere, some in 1970. */
static int64_t since_start(const struct chart *c, int64_t ts)
{
	return (int64_t)((uint64_t)ts - (uint64_t)c->from_ns);
}

static double y_of(double base, int64_t bytes, double most)
{
	return base - (most > 0 ? MAX((double)bytes, 0) / most : 0) * PLOT;
}

static void put_bytes(struct writer *w, int64_t bytes)
{
	char text[HUMAN_SIZE];

	human_int(text, bytes, HUMAN_UNIT_BYTES, false);
	writer_puts(w, text);
}

static void put_text(struct chart *c, double x, double y, const char *attributes, struct str text)
{
	writer_printf(c->w, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
	writer_xml(c->w, text);
	writer_puts(c->w, "</text>\n");
}

static void put_name(struct chart *c, uint32_t row, double y)
{
	struct writer *w = c->w;

	writer_printf(w, "<text class=\"name\" x=\"%d\" y=\"%.1f\">", LEFT, y);
	writer_xml(w, utf8_fit(svg_text(c->device, row), NAME_MAX_BYTES));
	if (is_known(row, c->allocator)) {
		writer_puts(w, ", ");
		writer_xml(w, utf8_fit(svg_text(c->allocator, row), NAME_MAX_BYTES));
	}
	if (is_known(row, c->rank)) {
		writer_puts(w, ", rank ");
		writer_int(w, int_at(row, c->rank));
	}
	writer_puts(w, "</text>\n");
}

/* Draws a step function: each part is equally high over its whole width. */
static void put_line(struct chart *c, uint32_t first, uint32_t end,
		     const struct table_column *column, double base, double most)
{
	for (uint32_t i = first; i < end; i++) {
		double y = y_of(base, int_at(i, column), most);
		double next =
			i + 1 < end ? x_of(c, int_at(i + 1, c->ts)) : x_of(c, int_at(i, c->ts)) + 4;

		writer_printf(c->w, "%s%.1f %.1fH%.1f", i == first ? "M" : "L",
			      x_of(c, int_at(i, c->ts)), y, next);
	}
}

static void put_areas(struct chart *c, uint32_t first, uint32_t end, double base, double most)
{
	struct writer *w = c->w;

	writer_puts(w, "<path class=\"use\" d=\"");
	put_line(c, first, end, c->in_use, base, most);
	writer_printf(w, "V%.1fH%.1fZ\"/>\n", base, x_of(c, int_at(first, c->ts)));
	if (!is_known(first, c->reserved))
		return;
	writer_puts(w, "<path class=\"held\" d=\"");
	put_line(c, first, end, c->reserved, base, most);
	writer_puts(w, "\"/>\n");
}

static void put_tooltips(struct chart *c, uint32_t first, uint32_t end, double base)
{
	struct writer *w = c->w;

	for (uint32_t i = first; i < end && w->status == OW_OK; i++) {
		double x = x_of(c, int_at(i, c->ts));
		double next = i + 1 < end ? x_of(c, int_at(i + 1, c->ts)) : x + 4;
		char time[HUMAN_SIZE];

		human_int(time, since_start(c, int_at(i, c->ts)), HUMAN_UNIT_NS, false);
		writer_printf(w,
			      "<rect class=\"hit\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			      "height=\"%d\"><title>%s: ",
			      x, base - PLOT, MAX(next - x, 0.1), PLOT, time);
		put_bytes(w, int_at(i, c->in_use));
		writer_puts(w, " in use");
		if (is_known(i, c->reserved)) {
			writer_puts(w, ", ");
			put_bytes(w, int_at(i, c->reserved));
			writer_puts(w, " held");
		}
		writer_puts(w, "</title></rect>\n");
	}
}

/* Shortens a path to its last parts: "…/cs336_basics/model.py:39:forward". */
static struct str short_path(struct str name)
{
	size_t slash = str_rfind_char(name, '/');

	if (slash == STR_NONE || utf8_width(name) <= NAME_COLUMNS)
		return name;
	slash = slash ? str_rfind_char(str_first(name, slash), '/') : STR_NONE;
	return slash == STR_NONE ? name : str_skip(name, slash);
}

/* Writes "name (123), name (45)" with human-readable sizes; stops when there is no more room. */
static void put_alive(struct writer *w, struct str alive)
{
	size_t used = 0;

	while (alive.len) {
		size_t end = str_find(alive, STR("), "));
		struct str item = str_first(alive, end == STR_NONE ? alive.len : end + 1), name;
		size_t open = str_rfind_char(item, '(');
		int64_t bytes;

		alive = str_skip(alive, MIN(item.len + 2, alive.len));
		if (open == STR_NONE || !open ||
		    !str_to_i64(str_make(item.ptr + open + 1, item.len - open - 2), &bytes))
			continue;
		name = short_path(str_first(item, open - 1));
		if (used && used + utf8_width(name) > ALIVE_COLUMNS) {
			writer_puts(w, ", …");
			return;
		}
		writer_puts(w, used ? ", " : "");
		writer_puts(w, name.len + 1 < open ? "…" : "");
		writer_xml(w, utf8_fit(name, ALIVE_COLUMNS));
		writer_char(w, ' ');
		put_bytes(w, bytes);
		used += utf8_width(name) + 10;
	}
}

static void put_peak(struct chart *c, uint32_t row, double base, double most)
{
	struct writer *w = c->w;
	double x = x_of(c, int_at(row, c->ts)), y = y_of(base, int_at(row, c->in_use), most);
	struct str alive = svg_text(c->alive, row);

	writer_printf(w,
		      "<line class=\"at\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
		      "<circle class=\"peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
		      x, y, x, base, x, y);
	writer_printf(w, "<text x=\"%d\" y=\"%.1f\">peak ", LEFT, base + 32);
	put_bytes(w, int_at(row, c->in_use));
	if (alive.len) {
		writer_puts(w, ": ");
		put_alive(w, alive);
		writer_puts(w, "<title>");
		writer_xml(w, alive);
		writer_puts(w, "</title>");
	}
	writer_puts(w, "</text>\n");
}

static void put_axes(struct chart *c, double base, double most)
{
	char text[HUMAN_SIZE];

	writer_printf(c->w, "<path class=\"axis\" d=\"M%d %.1fV%.1fH%d\"/>\n", LEFT, base - PLOT,
		      base, WIDTH - RIGHT);
	human_real(text, most, HUMAN_UNIT_BYTES, false);
	put_text(c, LEFT - 8, base - PLOT + 10, " text-anchor=\"end\"", str_from(text));
	put_text(c, LEFT - 8, base, " text-anchor=\"end\"", STR("0"));
	put_text(c, LEFT, base + 16, "", STR("0"));
	human_int(text, since_start(c, c->to_ns), HUMAN_UNIT_NS, false);
	put_text(c, WIDTH - RIGHT, base + 16, " text-anchor=\"end\"", str_from(text));
}

static void put_panel(struct chart *c, uint32_t first, uint32_t end, uint32_t number)
{
	double base = TOP + (double)number * PANEL + 20 + PLOT, most = 0;

	for (uint32_t i = first; i < end; i++) {
		most = MAX(most, (double)int_at(i, c->in_use));
		if (is_known(i, c->reserved))
			most = MAX(most, (double)int_at(i, c->reserved));
	}
	put_name(c, first, base - PLOT - 8);
	put_areas(c, first, end, base, most);
	put_axes(c, base, most);
	for (uint32_t i = first; i < end; i++)
		if (int_at(i, c->peak))
			put_peak(c, i, base, most);
	put_tooltips(c, first, end, base);
}

void svg_memory(struct writer *w, const struct table *result, const struct sink_options *options)
{
	const char *title = options->title ? options->title : "Memory over time";
	struct chart c = { .w = w, .r = result };
	uint32_t row = 0;

	find_columns(&c);
	measure(&c);
	svg_begin(w, WIDTH, TOP + MAX(c.panels, 1u) * PANEL, title);
	writer_puts(w, style);
	put_text(&c, 20, 30, " class=\"title\"", str_from(title));
	if (c.panels)
		put_text(&c, WIDTH - RIGHT, 30, " text-anchor=\"end\"",
			 STR("area: in use; dashed: held by the allocator; dot: the peak"));
	if (!c.panels)
		put_text(&c, 20, 60, "", STR("the inputs have no data about memory"));
	for (uint32_t i = 0; i < c.panels; i++) {
		uint32_t end = end_of_heap(&c, row);

		put_panel(&c, row, end, i);
		row = end;
	}
	svg_end(w);
}
