/*
 * text_tree.c: see text_tree.h. Two passes over the nodes, one to measure and one to write; chains of folded
 * trees stay folded. Neighbours often share their values, so cells are formatted when values change only.
 */
#include "sink/text_tree.h"

#include "sink/human.h"
#include "sink/writer.h"

#include "model/tree_columns.h"

#define TITLE "name"
#define TAIL_BYTES (TREE_COLUMNS_MAX * (HUMAN_BYTES + TEXT_GAP) + 1 + WRITER_SLACK)

/* A line: a node, or one of the lines that are folded into it. */
struct line {
	struct str name;
	uint32_t depth, own_row, total_row;
	bool accounted;
};

/* The text of a value. */
struct cell {
	int64_t value;
	enum result_unit unit;
	bool real;
	size_t len; /* 0: there is none yet */
	char text[HUMAN_BYTES];
};

struct rows {
	struct writer w;
	const struct tree *tree;
	const struct sink_options *options;
	struct tree_columns columns;
	size_t name_width, widths[TREE_COLUMNS_MAX];
	size_t longest; /* width of the widest label */
	bool *plain;	/* by label: it can be written as it is; of a folded tree */
	size_t narrow; /* a column as wide as this has room for all numbers up to HUMAN_NARROW_MAX */
	struct buf printable; /* a name that cannot be written as it is */
	struct line last;     /* whose values were looked at last */
	bool any;	      /* there was one */
	char *tail;	      /* its cells, and the line feed */
	size_t tail_len;
	struct cell cells[METRIC_COUNT][2]; /* zero, and the last other value */
};

bool text_tree_can(const struct result *result, const struct sink_options *options)
{
	const struct tree *tree = result->tree;

	return tree && !result->column_count && tree->kind != TREE_OP && tree->node_count &&
	       !tree->weight_name.ptr && !tree_has_texts(tree) && !result->footer &&
	       !options->width && !options->colour;
}

/* ---- lines ---- */

static struct line line_of(const struct tree_node *node)
{
	return (struct line){ .name = node->name,
			      .depth = node->depth,
			      .own_row = node->own_row,
			      .total_row = node->total_row,
			      .accounted = node->accounted };
}

/* The i-th line that is folded into a node; labels are from tree_chain. */
static struct line chain_line(const struct rows *t, const struct tree_node *node,
			      const uint32_t *labels, uint32_t i)
{
	const struct code_node *code = &t->tree->code_nodes[node->code];
	struct line line = line_of(node);

	line.name = t->tree->labels[labels[i]];
	line.depth += i + 1;
	line.own_row = i + 1 < code->chain_count ? 0 : tree_code_row(code);
	return line;
}

static struct str printable(struct rows *t, struct str name)
{
	if (OW_LIKELY(utf8_plain_prefix(name) == name.len))
		return name;
	buf_clear(&t->printable);
	human_printable(&t->printable, name);
	if (t->printable.failed)
		writer_fail(&t->w, error_no_memory(t->w.err));
	return buf_str(&t->printable);
}

static size_t indent_of(uint32_t depth)
{
	return (size_t)MIN(depth, TEXT_LEVELS_MAX) * TEXT_INDENT;
}

static bool same_values(const struct rows *t, const struct line *line)
{
	return t->any && t->last.own_row == line->own_row && t->last.total_row == line->total_row &&
	       t->last.accounted == line->accounted;
}

/* What a column shows of a line; false when that is unknown. */
static bool value_of(const struct rows *t, const struct tree_column *c, const struct line *line,
		     int64_t *value)
{
	const struct tree_node node = { .own_row = line->own_row, .total_row = line->total_row };

	if (c->value == TREE_TOTAL)
		*value = tree_total(t->tree, &node, c->metric);
	else
		*value = tree_own(t->tree, &node, c->metric);
	return c->value == TREE_TOTAL || line->accounted;
}

static size_t format(const struct rows *t, const struct tree_column *c, int64_t value, char *to)
{
	if (c->real)
		return human_real(to, (double)value / 1000.0, c->unit, t->options->full_numbers);
	return human_int(to, c->unit == RESULT_MICROS ? value / 1000 : value, c->unit,
			 t->options->full_numbers);
}

/* ---- measuring ---- */

static size_t name_width(struct rows *t, struct str name)
{
	return utf8_width(printable(t, name));
}

static void measure_values(struct rows *t, const struct line *line)
{
	if (same_values(t, line))
		return;
	t->last = *line;
	t->any = true;
	for (uint32_t i = 0; i < t->columns.count; i++) {
		const struct tree_column *c = &t->columns.list[i];
		char text[HUMAN_BYTES];
		int64_t value = 0;
		size_t width = 1; /* of "-" */

		if (value_of(t, c, line, &value)) {
			if (t->widths[i] >= t->narrow && value >= 0 && value <= HUMAN_NARROW_MAX)
				continue;
			width = format(t, c, value, text);
		}
		t->widths[i] = MAX(t->widths[i], width);
	}
}

/* Most lines of a tree with chains are too far to the left to be looked at closely. */
static void measure_line(struct rows *t, const struct line *line)
{
	size_t indent = indent_of(line->depth);

	if (!t->longest || indent + t->longest > t->name_width)
		t->name_width = MAX(t->name_width, indent + name_width(t, line->name));
	measure_values(t, line);
}

/* Most chains end too far to the left to be looked at closely. */
static void measure_chain(struct rows *t, const struct tree_node *node)
{
	const struct code_node *code = &t->tree->code_nodes[node->code];
	bool wide = indent_of(node->depth + node->chain) + t->longest > t->name_width;
	uint32_t labels[CODE_CHAIN_MAX] = { 0 };

	if (wide)
		tree_chain(t->tree, code, labels);
	for (uint32_t i = wide ? 0 : node->chain - 1u; i < node->chain; i++) {
		struct line line = chain_line(t, node, labels, i);

		if (wide)
			measure_line(t, &line);
		else
			measure_values(t, &line);
	}
}

/* The widest label of a tree with chains. */
static void measure_labels(struct rows *t)
{
	for (uint32_t i = 0; t->plain && i < t->tree->label_count; i++) {
		struct str label = t->tree->labels[i];

		t->plain[i] = utf8_plain_prefix(label) == label.len;
		t->longest = MAX(t->longest, name_width(t, label));
	}
}

/* Columns without a single value are left out: own values when nothing is accounted. */
static void choose_columns(struct rows *t)
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

static void measure(struct rows *t)
{
	t->narrow = t->options->full_numbers ? SIZE_MAX : HUMAN_NARROW;
	t->name_width = strlen(TITLE);
	for (uint32_t i = 0; i < t->columns.count; i++)
		t->widths[i] = strlen(t->columns.list[i].title);
	measure_labels(t);
	for (uint32_t i = 0; i < t->tree->node_count; i++) {
		const struct tree_node *node = &t->tree->nodes[i];
		struct line line = line_of(node);

		tree_fetch_ahead(t->tree, i);
		measure_line(t, &line);
		if (node->chain)
			measure_chain(t, node);
	}
	t->any = false;
}

/* ---- writing ---- */

static void add_cell(struct rows *t, uint32_t column, const char *text, size_t len)
{
	size_t blanks = TEXT_GAP + t->widths[column] - MIN(len, t->widths[column]);

	memset(t->tail + t->tail_len, ' ', blanks);
	memcpy(t->tail + t->tail_len + blanks, text, len);
	t->tail_len += blanks + len;
}

/* What a line's only op took is also the line's total, and that of its callers. */
static const struct cell *cell_of(struct rows *t, const struct tree_column *c, int64_t value)
{
	struct cell *cell = &t->cells[c->metric][value != 0];

	if (cell->len && cell->value == value && cell->unit == c->unit && cell->real == c->real)
		return cell;
	cell->value = value;
	cell->unit = c->unit;
	cell->real = c->real;
	cell->len = format(t, c, value, cell->text);
	return cell;
}

static void set_tail(struct rows *t, const struct line *line)
{
	if (same_values(t, line))
		return;
	t->last = *line;
	t->any = true;
	t->tail_len = 0;
	for (uint32_t i = 0; i < t->columns.count; i++) {
		const struct cell *cell;
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

/* In steps of WRITER_SLACK bytes, which is faster than to be exact. */
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

/* `plain`: the name has been seen to need no change. */
static void write_line(struct rows *t, const struct line *line, bool plain)
{
	struct str name = plain ? line->name : printable(t, line->name);
	size_t indent = indent_of(line->depth), width = name.len, head;
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

static void write_header(struct rows *t)
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

static void write_lines(struct rows *t)
{
	const struct tree *tree = t->tree;
	uint32_t labels[CODE_CHAIN_MAX];

	for (uint32_t i = 0; i < tree->node_count && t->w.status == OW_OK; i++) {
		const struct tree_node *node = &tree->nodes[i];
		const struct code_node *code = node->chain ? &tree->code_nodes[node->code] : NULL;
		struct line line = line_of(node);

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

ow_status text_tree_write(struct result *result, const struct sink_options *options,
			  const struct out *out, struct error *err)
{
	struct rows t = { .tree = result->tree, .options = options };

	writer_init(&t.w, result->mem, out, err);
	buf_init(&t.printable, result->mem);
	t.tail = mem_zalloc(result->mem, TAIL_BYTES);
	if (t.tree->folded)
		t.plain = mem_zalloc(result->mem, t.tree->label_count * sizeof(*t.plain));
	if (!t.tail || (t.tree->folded && !t.plain))
		writer_fail(&t.w, error_no_memory(err));
	choose_columns(&t);
	if (t.w.status == OW_OK)
		measure(&t);
	if (t.w.status == OW_OK) {
		if (options->title) {
			writer_str(&t.w, printable(&t, str_from(options->title)));
			writer_char(&t.w, '\n');
		}
		write_header(&t);
		write_lines(&t);
	}
	mem_free(result->mem, t.plain, result->tree->label_count * sizeof(*t.plain));
	mem_free(result->mem, t.tail, TAIL_BYTES);
	buf_release(&t.printable);
	return writer_finish(&t.w);
}
