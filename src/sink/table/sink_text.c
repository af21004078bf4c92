/*
 * sink_text.c: any result as a table for people: aligned columns, trees indented. On a terminal the table is fitted to
 * the width: names in a tree omit the part that their parent shows, titles take two lines, long names are shortened in
 * the middle, and finally columns are left out. In a pipe names stay whole, because users search for them. Rows are
 * formatted twice (first to measure), so that only the widths are held in memory. sink_tfprof.c writes tfprof's own
 * output. Trees of numbers that go into a pipe or a file often have millions of rows. A second code path writes the
 * same text faster: no width, no colour, no text columns; folded chains stay folded; neighbours often share their
 * values, so a cell is formatted only when a value changes.
 */
#include "sink/sink.h"

#include "base/demangle/demangle.h"
#include "base/vec.h"
#include "base/writer.h"
#include "table/tree/tree_columns.h"

#define TEXT_GAP 2    /* blanks between two columns */
#define TEXT_INDENT 2 /* blanks for each level of a tree */
/* Deeper rows are not indented further: a chain of ops would need gigabytes of blanks. */
#define TEXT_LEVELS_MAX 100
#define TEXT_MIN 10 /* a text column is never narrower than this */
/* in a pipe, a text longer than this does not widen its column; the rest of its row moves right */
#define PIPE_WIDE 160
#define NAME_LONG 60	/* if the caller asks for short names, longer kernel names are shortened */
#define CHAIN_MARK "↳ " /* marks the only child of a row; as wide as TEXT_INDENT */
#define LEFT_OUT_MIN 60 /* the line that lists left-out columns may be this wide on any terminal */
#define ELLIPSIS "…"	/* one character wide */

#define STYLE_BOLD "\033[1m"
#define STYLE_DIM "\033[2m"
#define STYLE_OFF "\033[0m"

/* Parts of an entry of layout.levels: the row has exactly one child; the row is an only child; its level. */
#define PARENT_OF_ONE 0x80000000u
#define CHAINED 0x40000000u
#define LEVEL 0x3fffffffu

struct layout {
	struct writer w;
	const struct table *r;
	const struct sink_options *options;
	struct buf cell; /* the cell being measured or written */
	/* for each depth: the last row at that depth, which gives the parents of the current row */
	uint32_t *path;
	size_t path_cap;
	/* indexes in the table of the columns that have something to show */
	uint32_t columns[TABLE_COLUMNS_MAX];
	uint32_t column_count;
	/* for each row, on a terminal: the levels by which it is indented; else NULL, and the depth counts */
	uint32_t *levels;
	/* the column that is indented, an index of `columns` like all indexes below */
	uint32_t name_column;
	uint32_t shown; /* number of columns that fit */
	bool tall;	/* column titles take two lines */
	size_t widths[TABLE_COLUMNS_MAX];
	size_t least[TABLE_COLUMNS_MAX]; /* least width to which a column may be narrowed */
};

static const struct table_column *column_of(const struct layout *t, uint32_t column)
{
	return &t->r->columns[t->columns[column]];
}

static bool is_text(const struct table_column *c)
{
	return c->type == TYPE_TEXT;
}

static const char *title_of(const struct table_column *c)
{
	return c->title ? c->title : c->name;
}

static void add_number(struct layout *t, const struct table_column *c, uint32_t row)
{
	char text[HUMAN_SIZE];
	size_t len;

	if (c->type == TYPE_REAL)
		len = human_real(text, c->reals[row], human_unit_of(c->unit),
				 t->options->full_numbers);
	else
		len = human_int(text, c->ints[row], human_unit_of(c->unit),
				t->options->full_numbers);
	buf_add(&t->cell, text, len);
}

/* The indentation of a row. In a tree that is too deep for the column, half of the column is kept for the name. */
static size_t indent_of(const struct layout *t, uint32_t row, uint32_t column, struct str text,
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

/* Updates `path`; called for every row in order, before its cells. */
static void enter_row(struct layout *t, uint32_t row)
{
	uint32_t depth = t->r->depth ? t->r->depth[row] : 0;
	size_t known = t->path_cap;

	if (!t->r->depth)
		return;
	if (!vec_reserve(t->w.mem, t->path, t->path_cap, (size_t)depth + 1)) {
		writer_fail(&t->w, error_no_memory(t->w.err));
		return;
	}
	for (; known < t->path_cap; known++)
		t->path[known] = row;
	t->path[depth] = row;
}

/* The part of a name that is shown on a terminal: "a/b/c" below "a/b" is "c", because the tree shows the rest. */
static struct str own_part(const struct layout *t, uint32_t row, uint32_t column)
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

static uint32_t deepest(const struct table *r)
{
	uint32_t depth = 0;

	for (uint32_t row = 0; row < r->row_count; row++)
		depth = MAX(depth, r->depth[row]);
	return depth;
}

static bool is_shortened(const struct layout *t, uint32_t row)
{
	return own_part(t, row, t->name_column).len < column_of(t, t->name_column)->texts[row].len;
}

/* Marks rows that are an only child, except those whose shown name omits the parent's. */
static void find_chains(struct layout *t, uint32_t *levels)
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

/* Computes `levels` for a tree that is too deep to be indented: rows of a call chain without branches are not
 * indented further, but marked with CHAIN_MARK. */
static void set_levels(struct layout *t)
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

static void add_text(struct layout *t, uint32_t row, uint32_t column)
{
	if (t->levels && column == t->name_column && t->levels[row] & CHAINED)
		buf_puts(&t->cell, CHAIN_MARK);
	if (t->options->short_names && own_part(t, row, column).len > NAME_LONG) {
		struct buf name;

		buf_init(&name, t->w.mem);
		kernel_short_name(own_part(t, row, column), &name);
		human_printable(&t->cell, buf_str(&name));
		t->cell.failed |= name.failed;
		buf_release(&name);
		return;
	}
	human_printable(&t->cell, own_part(t, row, column));
}

/* The text of a cell, without its indentation. */
static struct str cell_text(struct layout *t, uint32_t row, uint32_t column)
{
	const struct table_column *c = column_of(t, column);

	buf_clear(&t->cell);
	if (c->known && !c->known[row])
		buf_add_char(&t->cell, '-');
	else if (c->type == TYPE_TEXT)
		add_text(t, row, column);
	else if (c->type == TYPE_NUMBER)
		buf_add_str(&t->cell, c->texts[row]);
	else if (c->type == TYPE_BOOL)
		buf_puts(&t->cell, c->ints[row] ? "yes" : "no");
	else
		add_number(t, c, row);
	if (t->cell.failed)
		writer_fail(&t->w, error_no_memory(t->w.err));
	return buf_str(&t->cell);
}

static size_t total_width(const struct layout *t)
{
	size_t total = t->shown ? (t->shown - 1) * (size_t)TEXT_GAP : 0;

	for (uint32_t c = 0; c < t->shown; c++)
		total += t->widths[c];
	return total;
}

/* Splits a title into two lines, at the blank that makes the wider line narrowest; the first line is empty when
 * there is no blank. */
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

static void measure_rows(struct layout *t)
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

/* Measures the columns. Titles take one line if that fits, else two. */
static void measure(struct layout *t)
{
	size_t rows[TABLE_COLUMNS_MAX];

	measure_rows(t);
	memcpy(rows, t->widths, sizeof(rows));
	for (uint32_t c = 0; c < t->column_count; c++)
		t->widths[c] = MAX(rows[c], utf8_width(str_from(title_of(column_of(t, c)))));
	for (uint32_t c = 0; !t->options->width && c < t->column_count; c++)
		if (is_text(column_of(t, c)))
			t->widths[c] = MIN(t->widths[c], (size_t)PIPE_WIDE);
	if (!t->options->width || total_width(t) <= t->options->width)
		return;
	t->tall = true;
	for (uint32_t c = 0; c < t->column_count; c++) {
		struct str first, second;

		split_title(str_from(title_of(column_of(t, c))), &first, &second);
		t->widths[c] = MAX(rows[c], MAX(utf8_width(first), utf8_width(second)));
	}
}

/* Sets the least width of each column: numbers are not narrowed; names keep a good part of the line. */
static void set_least(struct layout *t)
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

/* The width of the table when every column wider than `level` is cut to `level`, as far as its least width allows. */
static size_t width_at(const struct layout *t, size_t level)
{
	size_t total = total_width(t);

	for (uint32_t c = 0; c < t->shown; c++)
		total -= t->widths[c] - MIN(t->widths[c], MAX(level, t->least[c]));
	return total;
}

/* The largest level at which the table fits, by bisection; 0 when it never fits. */
static size_t fitting_level(const struct layout *t, size_t width)
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

static bool is_nothing(const struct layout *t, const struct table_column *c)
{
	if (c->type != TYPE_INT && c->type != TYPE_REAL)
		return false;
	for (uint32_t row = 0; row < t->r->row_count; row++) {
		bool known = !c->known || c->known[row];

		if (known && (c->type == TYPE_INT ? c->ints[row] != 0 : c->reals[row] != 0))
			return false;
	}
	return true;
}

static void swap_columns(struct layout *t, uint32_t a, uint32_t b)
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

/* Moves columns of zeros to the right, where they are left out first. */
static void demote_zeros(struct layout *t)
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

/* Leaves out the last column, or the one before it if the last holds the names, without which rows say nothing. */
static void leave_out(struct layout *t)
{
	if (t->shown - 1 == t->name_column) {
		swap_columns(t, t->shown - 1, t->shown - 2);
		t->name_column--;
	}
	t->shown--;
}

/* Fits the table to the width: shortens text columns, the widest first; if that is not enough, leaves out columns
 * from the right. */
static void fit(struct layout *t)
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

static void style(struct layout *t, const char *code)
{
	if (t->options->colour)
		writer_puts(&t->w, code);
}

/* Writes a text shortened in the middle. The end of a name says more than its start, so the end gets the larger
 * part. Returns the width taken. */
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

static void put_cell(struct layout *t, uint32_t column, struct str text, size_t indent)
{
	bool last = column + 1 == t->shown;
	size_t width = t->widths[column], taken;

	if (!is_text(column_of(t, column))) {
		taken = utf8_width(text);
		writer_repeat(&t->w, ' ', width > taken ? width - taken : 0);
		writer_str(&t->w, text);
	} else {
		writer_repeat(&t->w, ' ', indent);
		taken = indent +
			put_shortened(&t->w, text,
				      t->options->width ? width - MIN(indent, width) : SIZE_MAX);
		if (!last && taken < width)
			writer_repeat(&t->w, ' ', width - taken);
	}
	writer_repeat(&t->w, ' ', last ? 0 : TEXT_GAP);
}

static bool title_is_tall(const struct layout *t, uint32_t column, struct str *first,
			  struct str *second)
{
	struct str title = str_from(title_of(column_of(t, column)));

	*first = STR("");
	*second = title;
	if (t->tall && utf8_width(title) > t->widths[column])
		split_title(title, first, second);
	return first->len > 0;
}

static void put_header_line(struct layout *t, bool second_line)
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

static void put_header(struct layout *t)
{
	bool tall = false;
	struct str first, second;

	for (uint32_t c = 0; c < t->shown; c++)
		tall |= title_is_tall(t, c, &first, &second);
	if (tall)
		put_header_line(t, false);
	put_header_line(t, true);
}

/* Whether a cell is printed in a faint colour: unknown values and zeros. */
static bool is_faint(const struct table_column *c, uint32_t row)
{
	if (c->known && !c->known[row])
		return true;
	return c->type == TYPE_REAL  ? c->reals[row] == 0
	       : c->type == TYPE_INT ? !c->ints[row]
				     : false;
}

static void put_row(struct layout *t, uint32_t row)
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

static void put_left_out(struct layout *t)
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

static void put_line(struct layout *t, const char *code, const char *text)
{
	buf_clear(&t->cell);
	human_printable(&t->cell, str_from(text));
	style(t, code);
	writer_str(&t->w, buf_str(&t->cell));
	style(t, STYLE_OFF);
	writer_char(&t->w, '\n');
}

/* Writes the footer, which may have several lines. */
static void put_footer(struct layout *t)
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

static bool has_values(const struct table *r, const struct table_column *c)
{
	for (uint32_t row = 0; row < r->row_count; row++)
		if ((!c->known || c->known[row]) && (c->type != TYPE_TEXT || c->texts[row].len))
			return true;
	return !r->row_count;
}

/* Chooses the columns to show: those for programs and those without a single value are left out. */
static void choose_columns(struct layout *t)
{
	const struct table *r = t->r;

	for (uint32_t c = 0; c < r->column_count; c++)
		if (!r->columns[c].for_programs &&
		    (!c || t->options->all_columns || has_values(r, &r->columns[c])))
			t->columns[t->column_count++] = c;
	t->shown = t->column_count;
	while (t->name_column < t->column_count && !is_text(column_of(t, t->name_column)))
		t->name_column++;
}

#define TITLE "name"
#define TAIL_BYTES (TREE_COLUMNS_MAX * (HUMAN_SIZE + TEXT_GAP) + 1 + WRITER_SLACK)

/* One line of output: a node, or one of the lines that are folded into the node. */
struct tree_line {
	struct str name;
	uint32_t depth, own_row, total_row;
	bool accounted;
};

/* The formatted text of a value. */
struct tree_cell {
	int64_t value;
	enum column_unit unit;
	bool real;
	size_t len; /* 0: no text yet */
	char text[HUMAN_SIZE];
};

struct tree_text {
	struct writer w;
	const struct tree *tree;
	const struct sink_options *options;
	struct tree_columns columns;
	size_t name_width, widths[TREE_COLUMNS_MAX];
	size_t longest; /* width of the widest label */
	bool *plain;	/* for each label of a folded tree: it can be written without changes */
	size_t narrow;	/* width of a column that has room for all numbers up to HUMAN_NARROW_MAX */
	struct buf printable;  /* replacement for a name that cannot be written unchanged */
	struct tree_line last; /* the line whose values were formatted last */
	bool any;	       /* `last` is set */
	char *tail;	       /* formatted cells of `last`, and the line feed */
	size_t tail_len;
	/* for each metric: the text of zero, and the text of the last other value */
	struct tree_cell cells[METRIC_COUNT][2];
};

static bool text_tree_can(const struct table *result, const struct sink_options *options)
{
	const struct tree *tree = result->tree;

	return tree && !result->column_count && tree->kind != TREE_OP && tree->node_count &&
	       !tree->weight_name.ptr && !tree_has_texts(tree) && !result->footer &&
	       !options->width && !options->colour;
}

static struct tree_line line_of(const struct tree_node *node)
{
	return (struct tree_line){ .name = node->name,
				   .depth = node->depth,
				   .own_row = node->own_row,
				   .total_row = node->total_row,
				   .accounted = node->accounted };
}

/* The i-th line that is folded into a node; `labels` come from tree_chain. */
static struct tree_line chain_line(const struct tree_text *t, const struct tree_node *node,
				   const uint32_t *labels, uint32_t i)
{
	const struct code_node *code = &t->tree->code_nodes[node->code];
	struct tree_line line = line_of(node);

	line.name = t->tree->labels[labels[i]];
	line.depth += i + 1;
	line.own_row = i + 1 < code->chain_count ? 0 : tree_code_row(code);
	return line;
}

static struct str printable(struct tree_text *t, struct str name)
{
	if (OW_LIKELY(utf8_plain_prefix(name) == name.len))
		return name;
	buf_clear(&t->printable);
	human_printable(&t->printable, name);
	if (t->printable.failed)
		writer_fail(&t->w, error_no_memory(t->w.err));
	return buf_str(&t->printable);
}

static size_t tree_indent_of(uint32_t depth)
{
	return (size_t)MIN(depth, TEXT_LEVELS_MAX) * TEXT_INDENT;
}

static bool same_values(const struct tree_text *t, const struct tree_line *line)
{
	return t->any && t->last.own_row == line->own_row && t->last.total_row == line->total_row &&
	       t->last.accounted == line->accounted;
}

/* The value of a column in a line; false when it is unknown. */
static bool value_of(const struct tree_text *t, const struct tree_column *c,
		     const struct tree_line *line, int64_t *value)
{
	const struct tree_node node = { .own_row = line->own_row, .total_row = line->total_row };

	if (c->value == TREE_TOTAL)
		*value = tree_total(t->tree, &node, c->metric);
	else
		*value = tree_own(t->tree, &node, c->metric);
	return c->value == TREE_TOTAL || line->accounted;
}

static size_t format(const struct tree_text *t, const struct tree_column *c, int64_t value,
		     char *to)
{
	if (c->real)
		return human_real(to, (double)value / 1000.0, human_unit_of(c->unit),
				  t->options->full_numbers);
	return human_int(to, c->unit == UNIT_MICROS ? value / 1000 : value, human_unit_of(c->unit),
			 t->options->full_numbers);
}

static size_t tree_name_width(struct tree_text *t, struct str name)
{
	return utf8_width(printable(t, name));
}

static void measure_values(struct tree_text *t, const struct tree_line *line)
{
	if (same_values(t, line))
		return;
	t->last = *line;
	t->any = true;
	for (uint32_t i = 0; i < t->columns.count; i++) {
		const struct tree_column *c = &t->columns.list[i];
		char text[HUMAN_SIZE];
		int64_t value = 0;
		size_t width = 1; /* width of "-", the text of an unknown value */

		if (value_of(t, c, line, &value)) {
			if (t->widths[i] >= t->narrow && value >= 0 && value <= HUMAN_NARROW_MAX)
				continue;
			width = format(t, c, value, text);
		}
		t->widths[i] = MAX(t->widths[i], width);
	}
}

/* Updates the widths by one line. Most lines of a tree with chains are far too short to change a width, so a rough
 * bound is tested first. */
static void measure_line(struct tree_text *t, const struct tree_line *line)
{
	size_t indent = tree_indent_of(line->depth);

	if (!t->longest || indent + t->longest > t->name_width)
		t->name_width = MAX(t->name_width, indent + tree_name_width(t, line->name));
	measure_values(t, line);
}

/* Updates the widths by a chain. Most chains are far too short to change a width, so a rough bound is tested first. */
static void measure_chain(struct tree_text *t, const struct tree_node *node)
{
	const struct code_node *code = &t->tree->code_nodes[node->code];
	bool wide = tree_indent_of(node->depth + node->chain) + t->longest > t->name_width;
	uint32_t labels[CODE_CHAIN_MAX] = { 0 };

	if (wide)
		tree_chain(t->tree, code, labels);
	for (uint32_t i = wide ? 0 : node->chain - 1u; i < node->chain; i++) {
		struct tree_line line = chain_line(t, node, labels, i);

		if (wide)
			measure_line(t, &line);
		else
			measure_values(t, &line);
	}
}

/* Finds the widest label of a tree with chains. */
static void measure_labels(struct tree_text *t)
{
	for (uint32_t i = 0; t->plain && i < t->tree->label_count; i++) {
		struct str label = t->tree->labels[i];

		t->plain[i] = utf8_plain_prefix(label) == label.len;
		t->longest = MAX(t->longest, tree_name_width(t, label));
	}
}

/* Chooses the columns: those without a single value are left out, for example own values when nothing is accounted. */
static void choose_tree_columns(struct tree_text *t)
{
	bool own = t->options->all_columns;
	uint32_t count = 0;

	for (uint32_t i = 0; !own && i < t->tree->node_count; i++)
		own = t->tree->nodes[i].accounted;
	tree_columns(t->tree, &t->columns);
	for (uint32_t i = 0; i < t->columns.count; i++)
		if (own || t->columns.list[i].value != TREE_OWN)
			t->columns.list[count++] = t->columns.list[i];
	t->columns.count = count;
}

static void measure_tree(struct tree_text *t)
{
	t->narrow = t->options->full_numbers ? SIZE_MAX : HUMAN_NARROW;
	t->name_width = strlen(TITLE);
	for (uint32_t i = 0; i < t->columns.count; i++)
		t->widths[i] = strlen(t->columns.list[i].title);
	measure_labels(t);
	for (uint32_t i = 0; i < t->tree->node_count; i++) {
		const struct tree_node *node = &t->tree->nodes[i];
		struct tree_line line = line_of(node);

		tree_fetch_ahead(t->tree, i);
		measure_line(t, &line);
		if (node->chain)
			measure_chain(t, node);
	}
	t->name_width = MIN(t->name_width, (size_t)PIPE_WIDE);
	t->any = false;
}

static void add_cell(struct tree_text *t, uint32_t column, const char *text, size_t len)
{
	size_t blanks = TEXT_GAP + t->widths[column] - MIN(len, t->widths[column]);

	memset(t->tail + t->tail_len, ' ', blanks);
	memcpy(t->tail + t->tail_len + blanks, text, len);
	t->tail_len += blanks + len;
}

/* The text of a value, reused if possible: the value of a line's only op is also the total of the line and of its
 * callers. */
static const struct tree_cell *cell_of(struct tree_text *t, const struct tree_column *c,
				       int64_t value)
{
	struct tree_cell *cell = &t->cells[c->metric][value != 0];

	if (cell->len && cell->value == value && cell->unit == c->unit && cell->real == c->real)
		return cell;
	cell->value = value;
	cell->unit = c->unit;
	cell->real = c->real;
	cell->len = format(t, c, value, cell->text);
	return cell;
}

static void set_tail(struct tree_text *t, const struct tree_line *line)
{
	if (same_values(t, line))
		return;
	t->last = *line;
	t->any = true;
	t->tail_len = 0;
	for (uint32_t i = 0; i < t->columns.count; i++) {
		const struct tree_cell *cell;
		int64_t value = 0;

		if (!value_of(t, &t->columns.list[i], line, &value)) {
			add_cell(t, i, "-", 1);
			continue;
		}
		cell = cell_of(t, &t->columns.list[i], value);
		add_cell(t, i, cell->text, cell->len);
	}
	t->tail[t->tail_len++] = '\n';
}

/* Writes blanks in steps of WRITER_SLACK bytes, which is faster than writing the exact number. */
static void put_blanks(char *to, size_t len)
{
	for (size_t i = 0; i < len; i += WRITER_SLACK)
		memset(to + i, ' ', WRITER_SLACK);
}

static void put_padded(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i += WRITER_SLACK)
		memcpy(to + i, from + i, WRITER_SLACK);
}

/* Writes a line. `plain`: the name is known to need no change. */
static void write_line(struct tree_text *t, const struct tree_line *line, bool plain)
{
	struct str name = plain ? line->name : printable(t, line->name);
	size_t indent = tree_indent_of(line->depth), width = name.len, head;
	char *to;

	if (name.ptr != line->name.ptr)
		width = utf8_width(name);
	set_tail(t, line);
	head = indent + name.len;
	if (t->columns.count)
		head += t->name_width - MIN(indent + width, t->name_width);
	to = writer_room(&t->w, head + t->tail_len);
	if (to) {
		put_blanks(to, head);
		memcpy(to + indent, name.ptr, name.len);
		put_padded(to + head, t->tail, t->tail_len);
		return;
	}
	writer_repeat(&t->w, ' ', indent);
	writer_str(&t->w, name);
	writer_repeat(&t->w, ' ', head - indent - name.len);
	writer_add(&t->w, t->tail, t->tail_len);
}

static void write_tree_header(struct tree_text *t)
{
	writer_puts(&t->w, TITLE);
	if (t->columns.count)
		writer_repeat(&t->w, ' ', t->name_width - strlen(TITLE));
	t->tail_len = 0;
	for (uint32_t i = 0; i < t->columns.count; i++)
		add_cell(t, i, t->columns.list[i].title, strlen(t->columns.list[i].title));
	writer_add(&t->w, t->tail, t->tail_len);
	writer_char(&t->w, '\n');
}

static void write_lines(struct tree_text *t)
{
	const struct tree *tree = t->tree;
	uint32_t labels[CODE_CHAIN_MAX];

	for (uint32_t i = 0; i < tree->node_count && t->w.status == OW_OK; i++) {
		const struct tree_node *node = &tree->nodes[i];
		const struct code_node *code = node->chain ? &tree->code_nodes[node->code] : NULL;
		struct tree_line line = line_of(node);

		tree_fetch_ahead(tree, i);
		write_line(t, &line, code && t->plain[code->label]);
		if (!code)
			continue;
		tree_chain(tree, code, labels);
		for (uint32_t k = 0; k < node->chain; k++) {
			line = chain_line(t, node, labels, k);
			write_line(t, &line, t->plain[labels[k]]);
		}
	}
}

static ow_status text_tree_write(struct table *result, const struct sink_options *options,
				 const struct out *out, struct ow_error *err)
{
	struct tree_text t = { .tree = result->tree, .options = options };

	writer_init(&t.w, result->mem, out, err);
	buf_init(&t.printable, result->mem);
	t.tail = mem_zalloc(result->mem, TAIL_BYTES);
	if (t.tree->folded)
		t.plain = mem_zalloc(result->mem, t.tree->label_count * sizeof(*t.plain));
	if (!t.tail || (t.tree->folded && !t.plain))
		writer_fail(&t.w, error_no_memory(err));
	choose_tree_columns(&t);
	if (t.w.status == OW_OK)
		measure_tree(&t);
	if (t.w.status == OW_OK) {
		if (options->title) {
			writer_str(&t.w, printable(&t, str_from(options->title)));
			writer_char(&t.w, '\n');
		}
		write_tree_header(&t);
		write_lines(&t);
	}
	mem_free(result->mem, t.plain, result->tree->label_count * sizeof(*t.plain));
	mem_free(result->mem, t.tail, TAIL_BYTES);
	buf_release(&t.printable);
	return writer_finish(&t.w);
}

static ow_status text_write(struct table *result, const struct sink_options *options,
			    const struct out *out, struct ow_error *err)
{
	struct layout t = { .r = result, .options = options };

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
