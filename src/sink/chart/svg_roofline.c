/*
 * svg_roofline.c: the chart of the view roofline, called by sink_svg.c: float operations per second over operations per byte, both logarithmic,
 * under the roof of the device's memory and arithmetic. The area of a point is its share of the time; its tooltip has the numbers. The first
 * points have their names beside them, or connected by a line, where these touch no other name, point or roof.
 */
#include "sink/chart/svg.h"

#include <math.h>

#define WIDTH 960
#define HEIGHT 600
#define LEFT 90.0
#define RIGHT 930.0
#define TOP 60.0
#define BOTTOM 530.0
#define POINTS_MAX 1000
#define LABELS 8
#define LABEL_HEIGHT 12.0
#define LETTER 5.6 /* approximate width of one letter in a label */
#define NAME_COLUMNS 44

/* The position of a name in the chart. */
struct label {
	double x, y, width;
};

struct chart {
	struct writer *w;
	const struct table *r;
	const struct table_column *x, *y, *time, *percent, *name, *type, *bound, *efficiency;
	double low_x, high_x, low_y, high_y; /* limits of the axes, as powers of ten */
	double peak_y, peak_bandwidth;
	struct label labels[LABELS];
	unsigned label_count;
	struct roof {
		/* the roof: from (x1, y1) up along the memory bandwidth to (x2, y2), then level to the right side */
		double x1, y1, x2, y2;
		bool memory, level;
	} roof;
};

/* Writes a value that is counted in billions: 918 TFLOP/s. */
static void put_giga(struct writer *w, double value, const char *unit)
{
	char text[HUMAN_SIZE];
	size_t digits;

	human_real(text, value * 1e9, HUMAN_UNIT_BYTES, false);
	digits = strspn(text, "0123456789.");
	if (text[digits] == 'k')
		text[digits] = 'K';
	writer_printf(w, "%.*s %.*s%s", (int)digits, text, (int)strcspn(text + digits, "B"),
		      text + digits, unit);
}

/* Writes the label of an axis tick, 10^power billions: "100 G", "1 T"; beyond the known prefixes the number itself. */
static void put_tick(struct writer *w, int power)
{
	static const char names[] = " KMGTPE";
	int thousands = (power + 9) / 3;

	if (power < -9 || thousands >= (int)sizeof(names) - 1)
		writer_printf(w, "%g", pow(10, power + 9));
	else
		writer_printf(w, "%g %.1s", pow(10, (power + 9) % 3), names + thousands);
}

static double place_x(const struct chart *c, double value)
{
	return LEFT + (log10(value) - c->low_x) / (c->high_x - c->low_x) * (RIGHT - LEFT);
}

static double place_y(const struct chart *c, double value)
{
	return BOTTOM - (log10(value) - c->low_y) / (c->high_y - c->low_y) * (BOTTOM - TOP);
}

static bool has_point(const struct chart *c, uint32_t row)
{
	return svg_number(c->x, row) > 0 && svg_number(c->y, row) > 0;
}

static void widen(double *low, double *high, double value)
{
	if (!(value > 1e-30 && value < 1e30))
		return;
	*low = MIN(*low, floor(log10(value)));
	*high = MAX(*high, ceil(log10(value)));
}

static void find_range(struct chart *c)
{
	const struct table_column *peak = svg_column(c->r, "peak_gflops_per_second");
	const struct table_column *bandwidth = svg_column(c->r, "peak_gbytes_per_second");

	c->low_x = c->low_y = 30;
	c->high_x = c->high_y = -30;
	for (uint32_t i = 0; i < c->r->row_count; i++) {
		c->peak_y = MAX(c->peak_y, svg_number(peak, i));
		c->peak_bandwidth = MAX(c->peak_bandwidth, svg_number(bandwidth, i));
		if (!has_point(c, i))
			continue;
		widen(&c->low_x, &c->high_x, svg_number(c->x, i));
		widen(&c->low_y, &c->high_y, svg_number(c->y, i));
	}
	widen(&c->low_y, &c->high_y, c->peak_y);
	if (c->peak_y > 0 && c->peak_bandwidth > 0)
		widen(&c->low_x, &c->high_x, c->peak_y / c->peak_bandwidth * 3);
	if (c->low_x >= c->high_x) {
		c->low_x = -1;
		c->high_x = 3;
	}
	if (c->low_y >= c->high_y) {
		c->low_y = 0;
		c->high_y = 4;
	}
}

static void draw_axes(const struct chart *c)
{
	for (int p = (int)c->low_x; p <= (int)c->high_x; p++) {
		double x = place_x(c, pow(10, p));

		writer_printf(c->w,
			      "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#e2e5ea\"/><text x=\"%.1f\" "
			      "y=\"%.1f\" text-anchor=\"middle\" fill=\"#555\">%g</text>\n",
			      x, TOP, BOTTOM, x, BOTTOM + 18, pow(10, p));
	}
	for (int p = (int)c->low_y; p <= (int)c->high_y; p++) {
		double y = place_y(c, pow(10, p));

		writer_printf(c->w,
			      "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#e2e5ea\"/><text x=\"%.1f\" "
			      "y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">",
			      LEFT, y, RIGHT, LEFT - 6, y + 4);
		put_tick(c->w, p);
		writer_puts(c->w, "</text>\n");
	}
	writer_printf(c->w,
		      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">float operations per "
		      "byte</text>\n",
		      (LEFT + RIGHT) / 2, BOTTOM + 42);
	writer_printf(c->w,
		      "<text transform=\"translate(24 %.1f) rotate(-90)\" "
		      "text-anchor=\"middle\">FLOP/s</text>\n",
		      (TOP + BOTTOM) / 2);
}

/* Draws the roof: it rises with the memory bandwidth up to the arithmetic limit. */
static void draw_roof(struct chart *c)
{
	double first = pow(10, c->low_x), last = pow(10, c->high_x), bottom = pow(10, c->low_y);
	double ridge = c->peak_bandwidth > 0 ? c->peak_y / c->peak_bandwidth : first;

	if (c->peak_y <= 0)
		return;
	ridge = MIN(MAX(ridge, first), last);
	if (c->peak_bandwidth > 0) {
		double y = MAX(first * c->peak_bandwidth, bottom);

		c->roof = (struct roof){
			.x1 = place_x(c, y / c->peak_bandwidth),
			.y1 = place_y(c, y),
			.x2 = place_x(c, ridge),
			.y2 = place_y(c, MIN(ridge * c->peak_bandwidth, c->peak_y)),
			.memory = true,
		};
		writer_printf(c->w,
			      "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#c0392b\" "
			      "stroke-width=\"2\"/>\n",
			      c->roof.x1, c->roof.y1, c->roof.x2, c->roof.y2);
	}
	c->roof.level = true;
	c->roof.x2 = place_x(c, ridge);
	c->roof.y2 = place_y(c, c->peak_y);
	writer_printf(c->w,
		      "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#c0392b\" stroke-width=\"2\"/>\n"
		      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"#c0392b\">",
		      place_x(c, ridge), place_y(c, c->peak_y), RIGHT, RIGHT,
		      place_y(c, c->peak_y) - 6);
	put_giga(c->w, c->peak_y, "FLOP/s");
	if (c->peak_bandwidth > 0) {
		writer_puts(c->w, ", ");
		put_giga(c->w, c->peak_bandwidth, "B/s");
	}
	writer_puts(c->w, "</text>\n");
}

/* Cuts off the beginning of a long name, because the end says most. */
static struct str short_name(struct str name)
{
	return utf8_width(name) > NAME_COLUMNS ? human_fit_end(name, NAME_COLUMNS - 1) : name;
}

static double point_radius(const struct chart *c, uint32_t row)
{
	return 3 + sqrt(MAX(svg_number(c->percent, row), 0)) * 2;
}

/* The height of a label: from ASCENT above its base line to DESCENT below it. */
#define ASCENT 9.0
#define DESCENT 3.0
#define ROOF_TEXT 20.0 /* height of the text with the roof's numbers, above the roof */

static bool touches_roof(const struct chart *c, const struct label *l)
{
	const struct roof *r = &c->roof;
	double left = MAX(l->x, r->x1), right = MIN(l->x + l->width, r->x2), slope;

	if (r->level && l->x + l->width > r->x2 && l->y + DESCENT > r->y2 - ROOF_TEXT &&
	    l->y - ASCENT < r->y2 + 2)
		return true;
	if (!r->memory || left >= right || r->x2 <= r->x1)
		return false;
	slope = (r->y2 - r->y1) / (r->x2 - r->x1); /* negative, because y grows downwards */
	return r->y1 + slope * (right - r->x1) < l->y + DESCENT &&
	       r->y1 + slope * (left - r->x1) > l->y - ASCENT;
}

static bool touches_point(const struct chart *c, const struct label *l, uint32_t row)
{
	double x = place_x(c, svg_number(c->x, row)), y = place_y(c, svg_number(c->y, row));
	double radius = point_radius(c, row);

	return x + radius > l->x && x - radius < l->x + l->width && y + radius > l->y - ASCENT &&
	       y - radius < l->y + DESCENT;
}

static bool is_free(const struct chart *c, const struct label *l)
{
	uint32_t seen = 0;

	if (l->x < LEFT || l->x + l->width > RIGHT || l->y - ASCENT < TOP || l->y > BOTTOM ||
	    touches_roof(c, l))
		return false;
	for (unsigned i = 0; i < c->label_count; i++) {
		const struct label *other = &c->labels[i];

		if (fabs(other->y - l->y) < LABEL_HEIGHT && l->x < other->x + other->width &&
		    other->x < l->x + l->width)
			return false;
	}
	for (uint32_t i = 0; i < c->r->row_count && seen < POINTS_MAX; i++) {
		if (!has_point(c, i))
			continue;
		seen++;
		if (touches_point(c, l, i))
			return false;
	}
	return true;
}

/* candidate positions: rows above and below the point, each to the right and to the left */
#define TRIES 24

/* Finds a position for a name: beside the point, else as near above or below as there is room; false when there is
 * none. */
static bool place_label(struct chart *c, double x, double y, double radius, struct str name)
{
	struct label l = { .width = LETTER * (double)(utf8_width(name) + 1) };

	for (int step = 0; step < TRIES; step++) {
		int rows = step / 2 % 2 ? (step / 2 + 1) / 2 : -(step / 2) / 2;

		l.x = step % 2 ? x - radius - 4 - l.width : x + radius + 4;
		l.y = y + 4 + rows * LABEL_HEIGHT;
		if (is_free(c, &l)) {
			c->labels[c->label_count++] = l;
			return true;
		}
	}
	return false;
}

/* Draws a line from a point to its name, if the name is not right beside the point. */
static void draw_leader(const struct chart *c, double x, double y, const struct label *l)
{
	double middle = l->y - 4;

	if (fabs(middle - y) >= LABEL_HEIGHT)
		writer_printf(c->w,
			      "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#999\" "
			      "stroke-width=\"0.5\"/>\n",
			      x, y, l->x > x ? l->x - 1 : l->x + l->width + 1, middle);
}

static void draw_label(struct chart *c, uint32_t row)
{
	double x = place_x(c, svg_number(c->x, row)), y = place_y(c, svg_number(c->y, row));
	double radius = point_radius(c, row);
	struct str whole = svg_text(c->name, row), name = short_name(whole);

	if (c->label_count == LABELS || !place_label(c, x, y, radius, name))
		return;
	draw_leader(c, x, y, &c->labels[c->label_count - 1]);
	writer_printf(c->w, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\">%s",
		      c->labels[c->label_count - 1].x, c->labels[c->label_count - 1].y,
		      name.len < whole.len ? "…" : "");
	writer_xml(c->w, name);
	writer_puts(c->w, "</text>\n");
}

static void draw_point(const struct chart *c, uint32_t row)
{
	double x = place_x(c, svg_number(c->x, row)), y = place_y(c, svg_number(c->y, row));
	double share = svg_number(c->percent, row);
	bool memory = str_eq(svg_text(c->bound, row), STR("memory"));

	writer_printf(c->w,
		      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" fill-opacity=\"0.6\" "
		      "stroke=\"#333\" stroke-width=\"0.5\"><title>",
		      x, y, point_radius(c, row), memory ? "#2f6fb0" : "#e08e2b");
	writer_xml(c->w, svg_text(c->name, row));
	writer_puts(c->w, " (");
	writer_xml(c->w, svg_text(c->type, row));
	writer_printf(c->w, ")\n%.3g ms, %.3g %% of the time\n", svg_number(c->time, row) / 1e6,
		      share);
	put_giga(c->w, svg_number(c->y, row), "FLOP/s");
	writer_printf(c->w, " at %.4g FLOP/byte", svg_number(c->x, row));
	if (svg_number(c->efficiency, row) > 0)
		writer_printf(c->w, "\n%.3g %% of what is possible",
			      svg_number(c->efficiency, row));
	writer_puts(c->w, "</title></circle>\n");
}

void svg_roofline(struct writer *w, const struct table *result, const struct sink_options *options)
{
	struct chart c = { .w = w,
			   .r = result,
			   .x = svg_column(result, "intensity"),
			   .y = svg_column(result, "gflops_per_second"),
			   .time = svg_column(result, "time_ns"),
			   .percent = svg_column(result, "percent"),
			   .name = svg_column(result, "name"),
			   .type = svg_column(result, "type"),
			   .bound = svg_column(result, "bound_by"),
			   .efficiency = svg_column(result, "efficiency_percent") };
	const char *title = options->title && *options->title ? options->title : "Roofline";
	uint32_t drawn = 0;

	find_range(&c);
	svg_begin(w, WIDTH, HEIGHT, title);
	writer_printf(w, "<text x=\"%.1f\" y=\"30\" font-size=\"18\">", LEFT);
	writer_xml(w, str_from(title));
	writer_puts(w, "</text>\n");
	draw_axes(&c);
	draw_roof(&c);
	for (uint32_t i = 0; i < result->row_count && drawn < POINTS_MAX; i++)
		if (has_point(&c, i) && w->status == OW_OK) {
			draw_point(&c, i);
			drawn++;
		}
	for (uint32_t i = 0; i < result->row_count && c.label_count < LABELS; i++)
		if (has_point(&c, i) && w->status == OW_OK)
			draw_label(&c, i);
	writer_printf(w,
		      "<text x=\"%.1f\" y=\"%u\" font-size=\"11\" fill=\"#555\">%u operations; "
		      "area: share "
		      "of time; orange: bound by compute, blue: by memory%s</text>\n",
		      LEFT, HEIGHT - 10, drawn,
		      c.peak_y > 0 ? "" : "; the device's peaks are not known (--peak)");
	svg_end(w);
}
