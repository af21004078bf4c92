/*
 * sink_text.c: any result as a table for people: aligned columns, fitted to the terminal's width by
 * shortening long names in the middle, trees indented. Rows are formatted twice (once to measure), so
 * that nothing but the widths is held. What tfprof prints is in sink_tfprof.c.
 */
#include "sink/human.h"
#include "sink/writer.h"

#define GAP 2	     /* blanks between columns */
#define TEXT_MIN 10  /* a text column is not made narrower */
#define INDENT 2     /* per level of a tree */
#define ELLIPSIS "…" /* takes one column */

#define STYLE_BOLD "\033[1m"
#define STYLE_DIM "\033[2m"
#define STYLE_OFF "\033[0m"

struct table {
	struct writer w;
	const struct result *r;
	const struct sink_options *options;
	struct buf cell;      /* the cell being measured or written */
	uint32_t name_column; /* the one that is indented */
	uint32_t shown;	      /* columns that fit */
	size_t widths[RESULT_COLUMNS_MAX];
};

static bool is_text(const struct result_column *c)
{
	return c->type == RESULT_TEXT;
}

static const char *title_of(const struct result_column *c)
{
	return c->title ? c->title : c->name;
}

/* Control characters could drive the terminal; they and invalid bytes show as U+FFFD. */
static void add_printable(struct buf *to, struct str s)
{
	while (s.len) {
		uint32_t code = 0;
		size_t used = utf8_decode(s, &code);

		if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffd)
			buf_puts(to, "\xef\xbf\xbd");
		else
			buf_add(to, s.ptr, used);
		s = str_skip(s, used);
	}
}

static void add_number(struct table *t, const struct result_column *c, uint32_t row)
{
	char text[HUMAN_BYTES];
	size_t len;

	if (c->type == RESULT_REAL)
		len = human_real(text, c->reals[row], c->unit, t->options->full_numbers);
	else
		len = human_int(text, c->ints[row], c->unit, t->options->full_numbers);
	buf_add(&t->cell, text, len);
}

/* Deep trees keep half of the column for the name. */
static size_t indent_of(const struct table *t, uint32_t row, uint32_t column, size_t width)
{
	size_t indent;

	if (!t->r->depth || column != t->name_column)
		return 0;
	indent = (size_t)t->r->depth[row] * INDENT;
	return MIN(indent, width / 2);
}

/* The text of a cell, without its indentation. */
static struct str cell_text(struct table *t, uint32_t row, uint32_t column)
{
	const struct result_column *c = &t->r->columns[column];

	buf_clear(&t->cell);
	if (c->known && !c->known[row])
		buf_add_char(&t->cell, '-');
	else if (c->type == RESULT_TEXT)
		add_printable(&t->cell, c->texts[row]);
	else if (c->type == RESULT_BOOL)
		buf_puts(&t->cell, c->ints[row] ? "yes" : "no");
	else
		add_number(t, c, row);
	if (t->cell.failed)
		writer_fail(&t->w, error_no_memory(t->w.err));
	return buf_str(&t->cell);
}

/* ---- widths ---- */

static size_t total_width(const struct table *t)
{
	size_t total = t->shown ? (t->shown - 1) * (size_t)GAP : 0;

	for (uint32_t c = 0; c < t->shown; c++)
		total += t->widths[c];
	return total;
}

static void measure(struct table *t)
{
	for (uint32_t c = 0; c < t->r->column_count; c++)
		t->widths[c] = utf8_width(str_from(title_of(&t->r->columns[c])));
	for (uint32_t row = 0; row < t->r->row_count && t->w.status == OW_OK; row++)
		for (uint32_t c = 0; c < t->r->column_count; c++) {
			size_t width =
				utf8_width(cell_text(t, row, c)) + indent_of(t, row, c, SIZE_MAX);

			t->widths[c] = MAX(t->widths[c], width);
		}
}

/* Cuts every text column that is wider than `level` to it. */
static size_t width_at(const struct table *t, size_t level)
{
	size_t total = total_width(t);

	for (uint32_t c = 0; c < t->shown; c++)
		if (is_text(&t->r->columns[c]) && t->widths[c] > level)
			total -= t->widths[c] - level;
	return total;
}

/* The widest level at which the table fits, by bisection; TEXT_MIN when none does. */
static size_t fitting_level(const struct table *t, size_t width)
{
	size_t low = TEXT_MIN, high = MAX(width, (size_t)TEXT_MIN);

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (width_at(t, middle) <= width)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* Shortens text columns, the widest first; when that is not enough, leaves out columns from the
 * right. */
static void fit(struct table *t)
{
	size_t width = t->options->width, level;

	if (!width || total_width(t) <= width)
		return;
	while (t->shown > 1 && width_at(t, TEXT_MIN) > width)
		t->shown--;
	level = fitting_level(t, width);
	for (uint32_t c = 0; c < t->shown; c++)
		if (is_text(&t->r->columns[c]))
			t->widths[c] = MIN(t->widths[c], level);
}

/* ---- rows ---- */

static void style(struct table *t, const char *code)
{
	if (t->options->colour)
		writer_puts(&t->w, code);
}

/* The end of a text that takes at most `columns`. */
static struct str fit_end(struct str s, size_t columns)
{
	size_t width = utf8_width(s);

	while (s.len && width > columns) {
		uint32_t code;
		size_t used = utf8_decode(s, &code);

		width -= utf8_width(str_first(s, used));
		s = str_skip(s, used);
	}
	return s;
}

/* The end of a name tells more than its start: it gets the larger part. Returns columns taken. */
static size_t put_shortened(struct writer *w, struct str s, size_t width)
{
	size_t room = utf8_width(s);
	struct str head, tail;

	if (room <= width) {
		writer_str(w, s);
		return room;
	}
	if (!width)
		return 0;
	head = utf8_fit(s, (width - 1) * 2 / 5);
	tail = fit_end(s, width - 1 - utf8_width(head));
	writer_str(w, head);
	writer_puts(w, ELLIPSIS);
	writer_str(w, tail);
	return utf8_width(head) + 1 + utf8_width(tail);
}

static void put_cell(struct table *t, uint32_t column, struct str text, size_t indent)
{
	bool last = column + 1 == t->shown;
	size_t width = t->widths[column], taken;

	if (!is_text(&t->r->columns[column])) {
		taken = utf8_width(text);
		writer_repeat(&t->w, ' ', width > taken ? width - taken : 0);
		writer_str(&t->w, text);
	} else {
		writer_repeat(&t->w, ' ', indent);
		taken = indent + put_shortened(&t->w, text, width - MIN(indent, width));
		if (!last && taken < width)
			writer_repeat(&t->w, ' ', width - taken);
	}
	writer_repeat(&t->w, ' ', last ? 0 : GAP);
}

static void put_header(struct table *t)
{
	style(t, STYLE_BOLD);
	for (uint32_t c = 0; c < t->shown; c++)
		put_cell(t, c, str_from(title_of(&t->r->columns[c])), 0);
	style(t, STYLE_OFF);
	writer_char(&t->w, '\n');
}

static void put_row(struct table *t, uint32_t row)
{
	for (uint32_t c = 0; c < t->shown; c++) {
		const struct result_column *column = &t->r->columns[c];
		bool faint = column->known && !column->known[row];

		if (faint)
			style(t, STYLE_DIM);
		put_cell(t, c, cell_text(t, row, c), indent_of(t, row, c, t->widths[c]));
		if (faint)
			style(t, STYLE_OFF);
	}
	writer_char(&t->w, '\n');
}

static void put_left_out(struct table *t)
{
	if (t->shown == t->r->column_count)
		return;
	style(t, STYLE_DIM);
	writer_printf(&t->w, "%u more columns in a wider terminal:", t->r->column_count - t->shown);
	for (uint32_t c = t->shown; c < t->r->column_count; c++) {
		writer_puts(&t->w, c > t->shown ? ", " : " ");
		writer_puts(&t->w, title_of(&t->r->columns[c]));
	}
	style(t, STYLE_OFF);
	writer_char(&t->w, '\n');
}

static void put_line(struct table *t, const char *code, const char *text)
{
	buf_clear(&t->cell);
	add_printable(&t->cell, str_from(text));
	style(t, code);
	writer_str(&t->w, buf_str(&t->cell));
	style(t, STYLE_OFF);
	writer_char(&t->w, '\n');
}

/* A footer may have several lines. */
static void put_footer(struct table *t)
{
	struct str rest = str_from(t->r->footer), line;

	if (!t->r->footer)
		return;
	writer_char(&t->w, '\n');
	while (str_split(&rest, '\n', &line)) {
		buf_clear(&t->cell);
		add_printable(&t->cell, line);
		writer_str(&t->w, buf_str(&t->cell));
		writer_char(&t->w, '\n');
	}
}

static void find_name_column(struct table *t)
{
	while (t->name_column < t->r->column_count && !is_text(&t->r->columns[t->name_column]))
		t->name_column++;
}

static ow_status text_write(struct result *result, const struct sink_options *options,
			    const struct out *out, struct error *err)
{
	struct table t = { .r = result, .options = options, .shown = result->column_count };

	writer_init(&t.w, result->mem, out, err);
	buf_init(&t.cell, result->mem);
	find_name_column(&t);
	measure(&t);
	fit(&t);
	if (options->title)
		put_line(&t, STYLE_BOLD, options->title);
	if (result->column_count)
		put_header(&t);
	for (uint32_t row = 0; row < result->row_count && t.w.status == OW_OK; row++)
		put_row(&t, row);
	if (!result->row_count)
		put_line(&t, STYLE_DIM, "(nothing to show)");
	put_left_out(&t);
	put_footer(&t);
	buf_release(&t.cell);
	return writer_finish(&t.w);
}

const struct sink sink_text = {
	.name = "text",
	.summary = "a table for people, fitted to the terminal",
	.extension = "txt",
	.accepts = SINK_RESULT | SINK_TREES,
	.write = text_write,
};
