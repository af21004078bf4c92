/*
 * sink_text.c: any result as a table for people: aligned columns, trees indented. On a terminal it is
 * fitted to the width: names in a tree leave out what their parent says, titles take two lines, long
 * names are shortened in the middle, and at last columns are left out; in a pipe names stay whole, to
 * be searched for. Rows are formatted twice (once to measure), so that nothing but the widths is held.
 * Trees of numbers that go into a pipe are written by text_tree.c, what tfprof prints by sink_tfprof.c.
 */
#include "sink/human.h"
#include "sink/text_tree.h"
#include "sink/writer.h"

#define TEXT_MIN 10	/* a text column is not made narrower */
#define CHAIN_MARK "↳ " /* as wide as TEXT_INDENT */
#define LEFT_OUT_MIN 60 /* the line about columns that do not fit may be as long as this */
#define ELLIPSIS "…"	/* takes one column */

#define STYLE_BOLD "\033[1m"
#define STYLE_DIM "\033[2m"
#define STYLE_OFF "\033[0m"

/* What set_levels finds out about a row. */
#define PARENT_OF_ONE 0x80000000u
#define CHAINED 0x40000000u
#define LEVEL 0x3fffffffu

struct table {
	struct writer w;
	const struct result *r;
	const struct sink_options *options;
	struct buf cell; /* the cell being measured or written */
	uint32_t *path;	 /* per depth: the last row there, so the parents of the current one */
	size_t path_cap;
	uint32_t columns[RESULT_COLUMNS_MAX]; /* those with something to show: numbers in r */
	uint32_t column_count;
	uint32_t
		*levels; /* on a terminal, per row: how far it is indented; else as deep as it is */
	uint32_t name_column; /* the one that is indented; an index of columns, as all below */
	uint32_t shown;	      /* columns that fit */
	bool tall;	      /* titles take two lines */
	size_t widths[RESULT_COLUMNS_MAX];
	size_t least[RESULT_COLUMNS_MAX]; /* how far a column may be narrowed */
};

static const struct result_column *column_of(const struct table *t, uint32_t column)
{
	return &t->r->columns[t->columns[column]];
}

static bool is_text(const struct result_column *c)
{
	return c->type == RESULT_TEXT;
}

static const char *title_of(const struct result_column *c)
{
	return c->title ? c->title : c->name;
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

/* In a tree that is too deep for the column, half of it is kept for the name. */
static size_t indent_of(const struct table *t, uint32_t row, uint32_t column, struct str text,
			size_t width)
{
	size_t indent;

	if (!t->r->depth || column != t->name_column)
		return 0;
	indent = (size_t)MIN(t->levels ? t->levels[row] & LEVEL : t->r->depth[row],
			     TEXT_LEVELS_MAX) *
		 TEXT_INDENT;
	if (indent <= width / 2)
		return indent;
	return MIN(indent, width - MIN(utf8_width(text), width - width / 2));
}

/* Told every row in order, before its cells. */
static void enter_row(struct table *t, uint32_t row)
{
	uint32_t depth = t->r->depth ? t->r->depth[row] : 0;
	size_t known = t->path_cap;

	if (!t->r->depth)
		return;
	if (!mem_grow(t->w.mem, (void **)&t->path, &t->path_cap, (size_t)depth + 1,
		      sizeof(*t->path))) {
		writer_fail(&t->w, error_no_memory(t->w.err));
		return;
	}
	for (; known < t->path_cap; known++)
		t->path[known] = row;
	t->path[depth] = row;
}

/* On a terminal "a/b/c" below "a/b" is "c": the tree shows the rest. */
static struct str own_part(const struct table *t, uint32_t row, uint32_t column)
{
	struct str name = column_of(t, column)->texts[row], parent;
	uint32_t depth = t->r->depth ? t->r->depth[row] : 0;

	if (!depth || !t->options->width || column != t->name_column || depth >= t->path_cap)
		return name;
	parent = column_of(t, column)->texts[t->path[depth - 1]];
	if (!parent.len || name.len <= parent.len + 1 || !str_starts(name, parent) ||
	    name.ptr[parent.len] != '/')
		return name;
	return str_skip(name, parent.len + 1);
}

static uint32_t deepest(const struct result *r)
{
	uint32_t depth = 0;

	for (uint32_t row = 0; row < r->row_count; row++)
		depth = MAX(depth, r->depth[row]);
	return depth;
}

static bool is_shortened(const struct table *t, uint32_t row)
{
	return own_part(t, row, t->name_column).len < column_of(t, t->name_column)->texts[row].len;
}

/* Marks the rows that are an only child, unless the name leaves out the parent's. */
static void find_chains(struct table *t, uint32_t *levels)
{
	for (uint32_t row = 0; row < t->r->row_count && t->w.status == OW_OK; row++) {
		enter_row(t, row);
		if (t->r->depth[row] && t->w.status == OW_OK)
			levels[t->path[t->r->depth[row] - 1]]++;
	}
	for (uint32_t row = t->r->row_count; row-- > 0;)
		levels[row] = levels[row] == 1 ? PARENT_OF_ONE : 0;
	for (uint32_t row = 1; row < t->r->row_count; row++)
		if (levels[row - 1] & PARENT_OF_ONE && t->r->depth[row] > 1)
			levels[row] |= CHAINED;
}

/* A tree that is too deep to be indented: call chains without branches do not wander to the right but
 * stand below their beginning, with a mark. */
static void set_levels(struct table *t)
{
	uint32_t rows = t->r->row_count, *levels;

	if (!t->r->depth || !t->options->width || t->name_column == t->column_count ||
	    deepest(t->r) <= t->options->width / TEXT_INDENT / 3)
		return;
	levels = mem_zalloc(t->w.mem, rows * sizeof(*levels));
	if (!levels) {
		writer_fail(&t->w, error_no_memory(t->w.err));
		return;
	}
	find_chains(t, levels);
	for (uint32_t row = 0; row < rows && t->w.status == OW_OK; row++) {
		uint32_t depth = t->r->depth[row], parent;

		enter_row(t, row);
		if (!depth)
			continue;
		if (is_shortened(t, row))
			levels[row] &= ~CHAINED;
		parent = levels[t->path[depth - 1]] & LEVEL;
		levels[row] |= levels[row] & CHAINED ? parent : MIN(parent + 1, LEVEL);
	}
	t->levels = levels;
}

static void add_text(struct table *t, uint32_t row, uint32_t column)
{
	if (t->levels && column == t->name_column && t->levels[row] & CHAINED)
		buf_puts(&t->cell, CHAIN_MARK);
	human_printable(&t->cell, own_part(t, row, column));
}

/* The text of a cell, without its indentation. */
static struct str cell_text(struct table *t, uint32_t row, uint32_t column)
{
	const struct result_column *c = column_of(t, column);

	buf_clear(&t->cell);
	if (c->known && !c->known[row])
		buf_add_char(&t->cell, '-');
	else if (c->type == RESULT_TEXT)
		add_text(t, row, column);
	else if (c->type == RESULT_NUMBER)
		buf_add_str(&t->cell, c->texts[row]);
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
	size_t total = t->shown ? (t->shown - 1) * (size_t)TEXT_GAP : 0;

	for (uint32_t c = 0; c < t->shown; c++)
		total += t->widths[c];
	return total;
}

/* The two lines of a title, cut at the blank that makes the wider one narrowest; the first is empty
 * when there is none. */
static void split_title(struct str title, struct str *first, struct str *second)
{
	size_t best = utf8_width(title);

	*first = STR("");
	*second = title;
	for (size_t i = 0; i < title.len; i++) {
		struct str before = str_first(title, i), after = str_skip(title, i + 1);
		size_t wider;

		if (title.ptr[i] != ' ')
			continue;
		wider = MAX(utf8_width(before), utf8_width(after));
		if (wider >= best)
			continue;
		best = wider;
		*first = before;
		*second = after;
	}
}

static void measure_rows(struct table *t)
{
	for (uint32_t row = 0; row < t->r->row_count && t->w.status == OW_OK; row++) {
		enter_row(t, row);
		for (uint32_t c = 0; c < t->column_count; c++) {
			struct str text = cell_text(t, row, c);
			size_t indent = indent_of(t, row, c, text, SIZE_MAX);

			t->widths[c] = MAX(t->widths[c], utf8_width(text) + indent);
		}
	}
}

/* Titles take one line when that fits, else two. */
static void measure(struct table *t)
{
	size_t rows[RESULT_COLUMNS_MAX];

	measure_rows(t);
	memcpy(rows, t->widths, sizeof(rows));
	for (uint32_t c = 0; c < t->column_count; c++)
		t->widths[c] = MAX(rows[c], utf8_width(str_from(title_of(column_of(t, c)))));
	if (!t->options->width || total_width(t) <= t->options->width)
		return;
	t->tall = true;
	for (uint32_t c = 0; c < t->column_count; c++) {
		struct str first, second;

		split_title(str_from(title_of(column_of(t, c))), &first, &second);
		t->widths[c] = MAX(rows[c], MAX(utf8_width(first), utf8_width(second)));
	}
}

/* A column of numbers is not narrowed; names keep a good part of the line. */
static void set_least(struct table *t)
{
	for (uint32_t c = 0; c < t->column_count; c++) {
		size_t least = t->widths[c];

		if (is_text(column_of(t, c)) && !column_of(t, c)->fixed)
			least = c == t->name_column
					? MAX((size_t)t->options->width * 2 / 5, (size_t)TEXT_MIN)
					: TEXT_MIN;
		t->least[c] = MIN(t->widths[c], least);
	}
}

/* How wide the table is when every column wider than `level` is cut to it, as far as it may be. */
static size_t width_at(const struct table *t, size_t level)
{
	size_t total = total_width(t);

	for (uint32_t c = 0; c < t->shown; c++)
		total -= t->widths[c] - MIN(t->widths[c], MAX(level, t->least[c]));
	return total;
}

/* The widest level at which the table fits, by bisection; 0 when none does. */
static size_t fitting_level(const struct table *t, size_t width)
{
	size_t low = 0, high = width;

	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (width_at(t, middle) <= width)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static bool is_nothing(const struct table *t, const struct result_column *c)
{
	if (c->type != RESULT_INT && c->type != RESULT_REAL)
		return false;
	for (uint32_t row = 0; row < t->r->row_count; row++) {
		bool known = !c->known || c->known[row];

		if (known && (c->type == RESULT_INT ? c->ints[row] != 0 : c->reals[row] != 0))
			return false;
	}
	return true;
}

static void swap_columns(struct table *t, uint32_t a, uint32_t b)
{
	uint32_t column = t->columns[a];
	size_t width = t->widths[a], least = t->least[a];

	t->columns[a] = t->columns[b];
	t->widths[a] = t->widths[b];
	t->least[a] = t->least[b];
	t->columns[b] = column;
	t->widths[b] = width;
	t->least[b] = least;
}

/* Columns of zeros go to the right, where they are left out first. */
static void demote_zeros(struct table *t)
{
	uint32_t place = t->name_column + 1;

	for (uint32_t c = place; c < t->column_count; c++) {
		if (is_nothing(t, column_of(t, c)))
			continue;
		for (uint32_t k = c; k > place; k--)
			swap_columns(t, k, k - 1);
		place++;
	}
}

/* Leaves out the last column; rows without a name mean nothing, so the one before it where that is last. */
static void leave_out(struct table *t)
{
	if (t->shown - 1 == t->name_column) {
		swap_columns(t, t->shown - 1, t->shown - 2);
		t->name_column--;
	}
	t->shown--;
}

/* Shortens text columns, the widest first; when that is not enough, leaves out columns from the
 * right. */
static void fit(struct table *t)
{
	size_t width = t->options->width, level;

	if (!width || total_width(t) <= width)
		return;
	set_least(t);
	if (width_at(t, 0) > width)
		demote_zeros(t);
	while (t->shown > 1 && width_at(t, 0) > width)
		leave_out(t);
	level = fitting_level(t, width);
	for (uint32_t c = 0; c < t->shown; c++)
		t->widths[c] = MIN(t->widths[c], MAX(level, t->least[c]));
}

/* ---- rows ---- */

static void style(struct table *t, const char *code)
{
	if (t->options->colour)
		writer_puts(&t->w, code);
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
	tail = human_fit_end(s, width - 1 - utf8_width(head));
	writer_str(w, head);
	writer_puts(w, ELLIPSIS);
	writer_str(w, tail);
	return utf8_width(head) + 1 + utf8_width(tail);
}

static void put_cell(struct table *t, uint32_t column, struct str text, size_t indent)
{
	bool last = column + 1 == t->shown;
	size_t width = t->widths[column], taken;

	if (!is_text(column_of(t, column))) {
		taken = utf8_width(text);
		writer_repeat(&t->w, ' ', width > taken ? width - taken : 0);
		writer_str(&t->w, text);
	} else {
		writer_repeat(&t->w, ' ', indent);
		taken = indent + put_shortened(&t->w, text, width - MIN(indent, width));
		if (!last && taken < width)
			writer_repeat(&t->w, ' ', width - taken);
	}
	writer_repeat(&t->w, ' ', last ? 0 : TEXT_GAP);
}

static bool title_is_tall(const struct table *t, uint32_t column, struct str *first,
			  struct str *second)
{
	struct str title = str_from(title_of(column_of(t, column)));

	*first = STR("");
	*second = title;
	if (t->tall && utf8_width(title) > t->widths[column])
		split_title(title, first, second);
	return first->len > 0;
}

static void put_header_line(struct table *t, bool second_line)
{
	style(t, STYLE_BOLD);
	for (uint32_t c = 0; c < t->shown; c++) {
		struct str first, second;

		(void)title_is_tall(t, c, &first, &second);
		put_cell(t, c, second_line ? second : first, 0);
	}
	style(t, STYLE_OFF);
	writer_char(&t->w, '\n');
}

static void put_header(struct table *t)
{
	bool tall = false;
	struct str first, second;

	for (uint32_t c = 0; c < t->shown; c++)
		tall |= title_is_tall(t, c, &first, &second);
	if (tall)
		put_header_line(t, false);
	put_header_line(t, true);
}

/* What is unknown or nothing should not catch the eye. */
static bool is_faint(const struct result_column *c, uint32_t row)
{
	if (c->known && !c->known[row])
		return true;
	return c->type == RESULT_REAL  ? c->reals[row] == 0
	       : c->type == RESULT_INT ? !c->ints[row]
				       : false;
}

static void put_row(struct table *t, uint32_t row)
{
	enter_row(t, row);
	for (uint32_t c = 0; c < t->shown; c++) {
		bool faint = is_faint(column_of(t, c), row);
		struct str text = cell_text(t, row, c);

		if (faint)
			style(t, STYLE_DIM);
		put_cell(t, c, text, indent_of(t, row, c, text, t->widths[c]));
		if (faint)
			style(t, STYLE_OFF);
	}
	writer_char(&t->w, '\n');
}

static void put_left_out(struct table *t)
{
	uint32_t left = t->column_count - t->shown;

	if (!left)
		return;
	buf_clear(&t->cell);
	buf_printf(&t->cell, "%u more column%s in a wider terminal:", left, left == 1 ? "" : "s");
	for (uint32_t c = t->shown; c < t->column_count; c++) {
		const char *title = title_of(column_of(t, c));

		if (t->cell.len + strlen(title) + 4 > MAX(t->options->width, LEFT_OUT_MIN)) {
			buf_puts(&t->cell, ", …");
			break;
		}
		buf_printf(&t->cell, "%s %s", c > t->shown ? "," : "", title);
	}
	style(t, STYLE_DIM);
	writer_str(&t->w, buf_str(&t->cell));
	style(t, STYLE_OFF);
	writer_char(&t->w, '\n');
}

static void put_line(struct table *t, const char *code, const char *text)
{
	buf_clear(&t->cell);
	human_printable(&t->cell, str_from(text));
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
		human_printable(&t->cell, line);
		writer_str(&t->w, buf_str(&t->cell));
		writer_char(&t->w, '\n');
	}
}

static bool has_values(const struct result *r, const struct result_column *c)
{
	for (uint32_t row = 0; row < r->row_count; row++)
		if ((!c->known || c->known[row]) && (c->type != RESULT_TEXT || c->texts[row].len))
			return true;
	return !r->row_count;
}

/* Columns for programs and columns without a single value are left out. */
static void choose_columns(struct table *t)
{
	const struct result *r = t->r;

	for (uint32_t c = 0; c < r->column_count; c++)
		if (!r->columns[c].for_programs &&
		    (!c || t->options->all_columns || has_values(r, &r->columns[c])))
			t->columns[t->column_count++] = c;
	t->shown = t->column_count;
	while (t->name_column < t->column_count && !is_text(column_of(t, t->name_column)))
		t->name_column++;
}

static ow_status text_write(struct result *result, const struct sink_options *options,
			    const struct out *out, struct error *err)
{
	struct table t = { .r = result, .options = options };

	if (text_tree_can(result, options))
		return text_tree_write(result, options, out, err);
	writer_init(&t.w, result->mem, out, err);
	buf_init(&t.cell, result->mem);
	choose_columns(&t);
	set_levels(&t);
	measure(&t);
	fit(&t);
	if (options->title)
		put_line(&t, STYLE_BOLD, options->title);
	if (t.column_count && result->row_count)
		put_header(&t);
	for (uint32_t row = 0; row < result->row_count && t.w.status == OW_OK; row++)
		put_row(&t, row);
	if (!result->row_count)
		put_line(&t, STYLE_DIM, "(nothing to show)");
	else
		put_left_out(&t);
	put_footer(&t);
	buf_release(&t.cell);
	if (t.levels)
		mem_free(result->mem, t.levels, result->row_count * sizeof(*t.levels));
	if (t.path)
		mem_free(result->mem, t.path, t.path_cap * sizeof(*t.path));
	return writer_finish(&t.w);
}

const struct sink sink_text = {
	.name = "text",
	.summary = "a table for people, fitted to the terminal",
	.extension = "txt",
	.accepts = SINK_RESULT | SINK_TREES,
	.folded = true,
	.direct = text_tree_can,
	.write = text_write,
};
