/*
 * sink_flamegraph.c: the sink `flamegraph`: the displayed tree of the scope, graph or code view as one self-contained SVG, the root on top, the
 * width of a box its total; or the frames of a comparison, as wide as in the new runs, red where they take more and blue where less. The boxes
 * before layout are in flame_cells.c; here are the style sheet, the script and the drawing. Zoom, search and labels that follow the window need the script; the picture and its tooltips do
 * not. The script reads the place of each box once; a zoom only rewrites what is visible. Boxes that are too narrow to be seen are left
 * out and counted, so the picture bounds the size of the file.
 */
#include "sink/stacks/flame_cells.h"

#include "sink/sink.h"

#include "sink/tree_out.h"
#include "base/writer.h"

#include <math.h>

/* Geometry that both the C code and the script need; the text is monospaced. */
#define FLAME_WIDTH 1180.0 /* width of all boxes in pixels, if the script does not run */

#define FLAME_MARGIN 10 /* blank space left and right of the boxes */

#define FLAME_ROW 17 /* height of one level in pixels */

#define FLAME_TOP 92 /* y of the first level */

#define FLAME_CHAR_WIDTH 6.63 /* width of a character of the 11 px font */

#define FLAME_PAD 3 /* space between the edge of a box and its label */

#define FLAME_THIN 3 /* boxes narrower than this have no outline */

/* Parses the words of the option style. Unknown words are ignored here, because other readers of the option use
 * them. */
static unsigned flame_style_parse(const char *words)
{
	static const struct str_flag known[] = { { "flame", FLAME_UP },
						 { "inverted", FLAME_INVERTED },
						 { "left-heavy", FLAME_LEFT_HEAVY } };

	return str_flags(words, known, ARRAY_COUNT(known));
}

static const char flamegraph_style[] =
	"svg{background:#fff}\n"
	"text{font:11px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1d1d1f}\n"
	"#title{font:600 16px system-ui,'DejaVu Sans',sans-serif}\n"
	".note{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#55585e}\n"
	".button{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1a5fb4;cursor:pointer}\n"
	".button:hover{text-decoration:underline}\n"
	".f{cursor:pointer}\n"
	".f text{pointer-events:none}\n"
	".f rect{stroke:#fff;stroke-width:.6;rx:1.5px}\n"
	".thin rect{stroke:none}\n"
	".f:hover rect{stroke:#1d1d1f;stroke-width:1.2}\n"
	".past{opacity:.55}\n"
	".found rect{fill:#e64fc8}\n"
	".off{display:none}\n";

static const char flamegraph_script[] =
	"(function () {\n"
	"'use strict';\n"
	"var svg = document.documentElement, CHAR = 6.63, PAD = 3, THIN = 3, MARGIN = 10, total = "
	"100;\n"
	"var frames = [], zoomed = null, pattern = null;\n"
	"function id(name) { return svg.getElementById(name); }\n"
	"var up = id('boxes').hasAttribute('data-up') ? -1 : 1;\n"
	"Array.prototype.forEach.call(svg.querySelectorAll('.f'), function (g, i) {\n"
	"  var rect = g.querySelector('rect');\n"
	"  g.frame = i;\n"
	"  frames.push({ g: g, rect: rect, text: g.querySelector('text'),\n"
	"    x: parseFloat(rect.getAttribute('x')), w: parseFloat(rect.getAttribute('width')),\n"
	"    y: up * parseFloat(rect.getAttribute('y')), title: "
	"g.querySelector('title').textContent,\n"
	"    cut: parseInt(g.getAttribute('data-cut') || '0', 10) });\n"
	"});\n"
	"var ends = id('boxes').hasAttribute('data-ends');\n"
	"function name(f) { return f.title.split('\\n')[0]; }\n"
	"function label(f, width) {\n"
	"  var room = Math.floor((width - 2 * PAD) / CHAR), text = name(f).slice(f.cut);\n"
	"  if (room < 3) return '';\n"
	"  if (text.length <= room) return text;\n"
	"  return ends ? '\\u2026' + text.slice(1 - room) : text.slice(0, room - 1) + '\\u2026';\n"
	"}\n"
	"function place(f, x, w, pixels) {\n"
	"  var text = label(f, w * pixels / 100);\n"
	"  f.g.classList.toggle('thin', w * pixels / 100 < THIN);\n"
	"  f.rect.setAttribute('x', x + '%');\n"
	"  f.rect.setAttribute('width', w + '%');\n"
	"  if (!f.text && text) {\n"
	"    f.text = document.createElementNS('http://www.w3.org/2000/svg', 'text');\n"
	"    f.text.setAttribute('dx', PAD);\n"
	"    f.text.setAttribute('y', up * f.y + 12);\n"
	"    f.g.appendChild(f.text);\n"
	"  }\n"
	"  if (f.text) {\n"
	"    f.text.setAttribute('x', x + '%');\n"
	"    f.text.textContent = text;\n"
	"  }\n"
	"}\n"
	"function draw() {\n"
	"  var pixels = Math.max((svg.clientWidth || window.innerWidth) - 2 * MARGIN, 100);\n"
	"  var z = zoomed || { x: 0, w: total, y: -1e9 };\n"
	"  id('boxes').setAttribute('width', pixels);\n"
	"  frames.forEach(function (f) {\n"
	"    var past = f.y < z.y && f.x <= z.x + 1e-7 && f.x + f.w >= z.x + z.w - 1e-7;\n"
	"    var inside = f.y >= z.y && f.x >= z.x - 1e-7 && f.x + f.w <= z.x + z.w + 1e-7;\n"
	"    var w = f.w * total / z.w;\n"
	"    f.g.classList.toggle('off', !past && (!inside || w * pixels / 100 < 0.1));\n"
	"    f.g.classList.toggle('past', past);\n"
	"    if (past) place(f, 0, total, pixels);\n"
	"    else if (inside) place(f, (f.x - z.x) * total / z.w, w, pixels);\n"
	"  });\n"
	"  id('reset').classList.toggle('off', !zoomed);\n"
	"}\n"
	"function show(text) { id('detail').textContent = text; }\n"
	"function find(expression) {\n"
	"  var end = -1, sum = 0, hits = 0, path = expression.indexOf('/') >= 0;\n"
	"  try { pattern = expression ? new RegExp(expression, 'i') : null; }\n"
	"  catch (e) { pattern = new RegExp(expression.replace(/[^\\w\\s]/g, '\\\\$&'), 'i'); }\n"
	"  frames.forEach(function (f) {\n"
	/* the whole name is searched only if the pattern has a path: else everything below a found scope would match */
	"    var hit = !!pattern && pattern.test(path ? name(f) : name(f).slice(f.cut));\n"
	"    f.g.classList.toggle('found', hit);\n"
	"    if (!hit) return;\n"
	"    hits++;\n"
	/* boxes are in pre-order, so a box inside a found one starts before that one's end */
	"    if (f.x >= end - 1e-7) { sum += f.w; end = f.x + f.w; }\n"
	"  });\n"
	"  show(pattern ? hits + ' boxes match, ' + sum.toFixed(1) + '% of the total' : '');\n"
	"  id('clear').classList.toggle('off', !pattern);\n"
	"}\n"
	"function ask() {\n"
	"  var answer = window.prompt('Names that match (regular expression):', pattern ? "
	"pattern.source : '');\n"
	"  if (answer !== null) find(answer);\n"
	"}\n"
	"function zoom(f) { zoomed = f && f.w < total - 1e-7 ? f : null; draw(); }\n"
	"function frame(event) {\n"
	"  var g = event.target.closest && event.target.closest('.f');\n"
	"  return g ? frames[g.frame] : null;\n"
	"}\n"
	"svg.addEventListener('click', function (event) {\n"
	"  var f = frame(event);\n"
	"  if (f) zoom(f);\n"
	"  else if (event.target.id === 'reset') zoom(null);\n"
	"  else if (event.target.id === 'search') ask();\n"
	"  else if (event.target.id === 'clear') find('');\n"
	"});\n"
	"svg.addEventListener('mouseover', function (event) {\n"
	"  var f = frame(event);\n"
	"  if (f) show(f.title.replace(/\\n/g, ' \\u00b7 '));\n"
	"});\n"
	"window.addEventListener('keydown', function (event) {\n"
	"  if (event.key === '/' || (event.key === 'f' && (event.ctrlKey || event.metaKey))) {\n"
	"    event.preventDefault();\n"
	"    ask();\n"
	"  } else if (event.key === 'Escape') {\n"
	"    find('');\n"
	"    zoom(null);\n"
	"  }\n"
	"});\n"
	"window.addEventListener('resize', draw);\n"
	"svg.setAttribute('width', '100%');\n"
	"svg.removeAttribute('viewBox');\n"
	"id('search').classList.remove('off');\n"
	"draw();\n"
	"})();\n";

#define NARROW (0.1 / FLAME_WIDTH) /* boxes below this share of the whole width are not drawn */
#define LEVELS_MAX 1000

enum kind {
	KIND_ROOT,
	KIND_SCOPE,
	KIND_ACCELERATOR,
	KIND_HOST,
	KIND_NOT_RUN,
	KIND_OWN_CODE,
	KIND_LIBRARY,
	KIND_GRADIENT,
	KIND_COUNT
};

#define SHADES 4

/* Colours from no difference to the largest one; black text is readable on all of them. */
static const char *const diff_reds[] = { "#e6e6e6", "#fde0d6", "#fcc5b3", "#fba78f",
					 "#f9866b", "#f4664a", "#ea4a2f" };
static const char *const diff_blues[] = { "#e6e6e6", "#dbe8f6", "#bed7ee", "#9dc4e4",
					  "#7bafd9", "#5c9acd", "#4187c0" };

static const struct {
	const char *label; /* text in the legend */
	const char *shades[SHADES];
} kinds[KIND_COUNT] = {
	[KIND_ROOT] = { NULL, { "#d9dce1", "#d9dce1", "#d9dce1", "#d9dce1" } },
	[KIND_SCOPE] = { "name scope", { "#b9cdec", "#adc5ea", "#c5d6f0", "#a3bde5" } },
	[KIND_ACCELERATOR] = { "op on an accelerator",
			       { "#97d7a3", "#86cf95", "#a8dfb2", "#79c68a" } },
	[KIND_HOST] = { "op on the host", { "#f7b267", "#f4a24d", "#f9c08a", "#f0953a" } },
	[KIND_NOT_RUN] = { "op without a run", { "#d6d0c8", "#cdc6bc", "#ded9d2", "#c4bcb0" } },
	[KIND_OWN_CODE] = { "your code", { "#f7b267", "#f4a24d", "#f9c08a", "#f0953a" } },
	[KIND_LIBRARY] = { "library code", { "#b9cdec", "#adc5ea", "#c5d6f0", "#a3bde5" } },
	[KIND_GRADIENT] = { "gradient", { "#d3b8ea", "#c9a9e6", "#dcc6ef", "#be9ae0" } },
};

/* Indexes of the columns in the frames table of a comparison (src/diff/frames.c). */
enum {
	DIFF_NAME,
	DIFF_KIND,
	DIFF_BASE,
	DIFF_NEW,
	DIFF_BASE_SELF,
	DIFF_NEW_SELF,
	DIFF_CHANGE,
	DIFF_NEW_NAME,
	DIFF_COLUMNS
};

#define DIFF_SHADES 6

struct box {
	double x, width; /* position and width as shares of the whole; width < NARROW: not drawn */
	double cursor;	 /* position at which the next child starts */
	double scale;	 /* width of a child for each unit of its total */
};

struct flame {
	struct writer w;
	const struct tree *tree; /* NULL: the flame graph shows a comparison */
	/* frames of the comparison; flame_cell.node is a row of this table */
	const struct table *diff;
	const struct table_column *of[DIFF_COLUMNS];
	int64_t most; /* the largest difference of a frame below the root */
	uint32_t gone;
	int64_t gone_ns; /* time of the outermost frames that only the base has */
	const struct sink_options *options;
	struct tree_measure measure;
	unsigned style;
	struct flame_cells cells;
	struct box *boxes; /* one entry for each cell */
	double whole;	   /* the value that the full width stands for */
	uint32_t drawn, narrow, deep, levels;
	bool present[KIND_COUNT];
};

static bool is_drawn(const struct flame *f, uint32_t cell)
{
	return f->boxes[cell].width >= NARROW && f->cells.items[cell].depth < LEVELS_MAX;
}

/* Width per unit of the children's totals. Children that add up to more than their parent share the parent's width. */
static double child_scale(double width, int64_t total, int64_t child_sum)
{
	double whole = (double)MAX(total, child_sum);

	return whole > 0 ? width / whole : 0;
}

static void lay_out(struct flame *f, const int64_t *child_sums)
{
	const struct flame_cell *cells = f->cells.items;

	if (!cells)
		return;
	f->whole = (double)MAX(cells[0].total, child_sums[0]);
	f->boxes[0] = (struct box){ .width = f->whole > 0 ? 1 : 0,
				    .scale = f->whole > 0 ? 1 / f->whole : 0 };
	for (uint32_t i = 1; i < f->cells.count; i++) {
		struct box *parent = &f->boxes[cells[i].parent], *box = &f->boxes[i];

		box->x = box->cursor = parent->cursor;
		box->width = (double)cells[i].total * parent->scale;
		box->scale = child_scale(box->width, cells[i].total, child_sums[i]);
		parent->cursor += box->width;
	}
}

/* Computes the sums of children, for the layout only, and the position of each box. */
static ow_status lay_out_cells(struct flame *f, struct mem *mem, struct ow_error *err)
{
	size_t size = (f->cells.count + 1) * sizeof(int64_t);
	int64_t *sums = mem_zalloc(mem, size);

	if (!sums)
		return error_no_memory(err);
	for (uint32_t i = 1; i < f->cells.count; i++) {
		int64_t *sum = &sums[f->cells.items[i].parent];

		if (__builtin_add_overflow(*sum, f->cells.items[i].total, sum))
			*sum = INT64_MAX;
	}
	lay_out(f, sums);
	mem_free(mem, sums, size);
	return OW_OK;
}

static enum kind op_kind(const struct flame *f, const struct tree_node *node)
{
	struct str device = model_str(f->tree->model, f->tree->model->op.device[node->op.v]);

	if (tree_own(f->tree, node, METRIC_ACCELERATOR_MICROS) > 0 || str_has(device, STR("gpu")) ||
	    str_has(device, STR("tpu")) || str_has(device, STR("sycl")))
		return KIND_ACCELERATOR;
	return tree_own(f->tree, node, METRIC_MICROS) > 0 || device.len ? KIND_HOST : KIND_NOT_RUN;
}

static bool is_library(struct str file)
{
	return str_has(file, STR("-packages/")) || str_has(file, STR("/lib/python")) ||
	       str_has(file, STR("/tensorflow/python/")) || str_starts(file, STR("<"));
}

static enum kind code_kind(const struct flame *f, const struct tree_node *node)
{
	const struct code_node *code;

	if (node->code >= f->tree->code_node_count)
		return KIND_OWN_CODE;
	code = &f->tree->code_nodes[node->code];
	if (code->gradient)
		return KIND_GRADIENT;
	return is_library(model_str(f->tree->model, f->tree->model->frame.file[code->frame.v]))
		       ? KIND_LIBRARY
		       : KIND_OWN_CODE;
}

static enum kind kind_of(const struct flame *f, uint32_t cell)
{
	const struct tree_node *n;

	if (!cell || f->diff)
		return KIND_ROOT;
	n = &f->tree->nodes[f->cells.items[cell].node];
	if (f->tree->kind == TREE_CODE)
		return code_kind(f, n);
	return n->op.v ? op_kind(f, n) : KIND_SCOPE;
}

/* The shade of a name, by a hash: the same name has the same shade in every graph. */
static unsigned shade_of(struct str name)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ (unsigned char)name.ptr[i]) * 16777619u;
	return (hash >> 13) % SHADES;
}

static void count_boxes(struct flame *f)
{
	for (uint32_t i = 0; i < f->cells.count; i++) {
		if (is_drawn(f, i)) {
			f->drawn++;
			f->levels = MAX(f->levels, f->cells.items[i].depth + 1);
			f->present[kind_of(f, i)] = true;
		} else if (f->boxes[i].width >= NARROW) {
			f->deep++;
		} else if (f->boxes[i].width > 0) {
			/* boxes of zero width are not counted, because nothing is lost without them */
			f->narrow++;
		}
	}
}

static void put_human(struct flame *f, double value)
{
	char text[HUMAN_SIZE];

	human_real(text, value, human_unit_of(f->measure.unit), false);
	writer_puts(&f->w, text);
}

/* Writes the first line of a tooltip: the name alone, which the script relies on. */
static void put_name(struct flame *f, struct str name)
{
	struct str piece;

	for (bool first = true; str_split(&name, '\n', &piece); first = false) {
		writer_puts(&f->w, first ? "" : " ");
		writer_xml(&f->w, piece);
	}
}

static void put_op_facts(struct flame *f, op_id op)
{
	const struct model *m = f->tree->model;
	struct str type = model_str(m, m->op.type[op.v]), device = model_str(m, m->op.device[op.v]);

	if (!op.v)
		return;
	writer_char(&f->w, '\n');
	writer_xml(&f->w, type);
	if (device.len) {
		writer_puts(&f->w, " on ");
		writer_xml(&f->w, device);
	}
}

static int64_t diff_value(const struct flame *f, uint32_t cell, unsigned column)
{
	return f->of[column]->ints[f->cells.items[cell].node];
}

static struct str diff_text(const struct flame *f, uint32_t cell, unsigned column)
{
	return f->of[column]->texts[f->cells.items[cell].node];
}

static struct str cell_name(const struct flame *f, uint32_t cell)
{
	if (f->diff)
		return diff_text(f, cell, DIFF_NAME);
	return cell ? f->tree->nodes[f->cells.items[cell].node].name : STR("all");
}

/* Writes a change: "1.2ms → 3.4ms, 2.2ms more (183.3%)". */
static void put_change(struct flame *f, int64_t base, int64_t now)
{
	double delta = (double)now - (double)base;

	put_human(f, (double)base);
	writer_puts(&f->w, " → ");
	put_human(f, (double)now);
	if (now == base)
		return;
	writer_puts(&f->w, ", ");
	put_human(f, delta < 0 ? -delta : delta);
	writer_puts(&f->w, delta < 0 ? " less" : " more");
	if (base > 0)
		writer_printf(&f->w, " (%+.1f%%)", 100 * delta / (double)base);
}

static void put_diff_tooltip(struct flame *f, uint32_t cell)
{
	struct str change = diff_text(f, cell, DIFF_CHANGE),
		   new_name = diff_text(f, cell, DIFF_NEW_NAME);
	int64_t base = diff_value(f, cell, DIFF_BASE), now = diff_value(f, cell, DIFF_NEW);
	int64_t base_self = diff_value(f, cell, DIFF_BASE_SELF),
		new_self = diff_value(f, cell, DIFF_NEW_SELF);

	writer_puts(&f->w, "<title>");
	put_name(f, cell_name(f, cell));
	writer_char(&f->w, '\n');
	put_change(f, base, now);
	if ((base_self || new_self) && (base_self != base || new_self != now)) {
		writer_puts(&f->w, "\nitself ");
		put_change(f, base_self, new_self);
	}
	if (change.len) {
		writer_char(&f->w, '\n');
		writer_xml(&f->w, change);
	}
	if (new_name.len) {
		writer_puts(&f->w, ", now ");
		put_name(f, new_name);
	}
	writer_puts(&f->w, "</title>");
}

static void put_tooltip(struct flame *f, uint32_t cell)
{
	const struct tree_node *n = &f->tree->nodes[f->cells.items[cell].node];
	int64_t total = f->cells.items[cell].total, own = f->cells.items[cell].own;

	writer_puts(&f->w, "<title>");
	put_name(f, cell ? n->name : STR("all"));
	writer_char(&f->w, '\n');
	put_human(f, (double)total);
	writer_printf(&f->w, " (%.2f%%)", f->whole > 0 ? 100 * (double)total / f->whole : 0.0);
	if (own && own != total) {
		writer_puts(&f->w, ", itself ");
		put_human(f, (double)own);
	}
	if (f->tree->kind != TREE_CODE && cell)
		put_op_facts(f, n->op);
	writer_puts(&f->w, "</title>");
}

/* Length of a text in UTF-16 units, because the script counts in these. */
static size_t utf16_len(struct str s)
{
	size_t len = 0;

	while (s.len) {
		uint32_t code = 0;

		s = str_skip(s, utf8_decode(s, &code));
		len += code > 0xffff ? 2 : 1;
	}
	return len;
}

static void put_shortened(struct flame *f, struct str label, size_t columns)
{
	if (utf8_width(label) <= columns) {
		put_name(f, label);
	} else if (f->tree &&
		   f->tree->kind == TREE_GRAPH) { /* names are whole paths: the end says more */
		writer_puts(&f->w, "…");
		put_name(f, human_fit_end(label, columns - 1));
	} else {
		put_name(f, utf8_fit(label, columns - 1));
		writer_puts(&f->w, "…");
	}
}

static void put_label(struct flame *f, double x, double width, double y, struct str label)
{
	double room = (width * FLAME_WIDTH - 2 * FLAME_PAD) / FLAME_CHAR_WIDTH;

	if (room < 3)
		return;
	writer_printf(&f->w, "<text x=\"%.5f%%\" dx=\"%d\" y=\"%.0f\">", 100 * x, FLAME_PAD,
		      y + 12);
	put_shortened(f, label, (size_t)room);
	writer_puts(&f->w, "</text>");
}

/* The y of a box; with FLAME_UP the root is at the bottom. */
static double box_y(const struct flame *f, uint32_t cell)
{
	uint32_t depth = f->cells.items[cell].depth;

	return FLAME_TOP +
	       (double)(f->style & FLAME_UP ? f->levels - 1 - depth : depth) * FLAME_ROW;
}

/* The shade of a difference, by its share of the largest difference: 0 = (almost) none, else 1 to DIFF_SHADES, the
 * darker the larger. */
static unsigned diff_shade(const struct flame *f, int64_t delta)
{
	double part = f->most > 0 ? fabs((double)delta) / (double)f->most : 0;

	return part < 0.01 ? 0 : (unsigned)MIN(ceil(part * DIFF_SHADES), (double)DIFF_SHADES);
}

static void put_class(struct flame *f, uint32_t cell, struct str name)
{
	int64_t delta;

	if (!f->diff) {
		writer_printf(&f->w, "k%d%u", (int)kind_of(f, cell), shade_of(name));
		return;
	}
	delta = wrap_sub(diff_value(f, cell, DIFF_NEW), diff_value(f, cell, DIFF_BASE));
	writer_printf(&f->w, "%s%u", delta > 0 ? "more" : "less", diff_shade(f, delta));
}

static void put_box(struct flame *f, uint32_t cell)
{
	const struct box *box = &f->boxes[cell];
	struct str name = cell_name(f, cell);
	size_t prefix =
		cell && f->tree && !(f->style & FLAME_INVERTED)
			? tree_out_prefix(f->tree, &f->tree->nodes[f->cells.items[cell].node])
			: 0;
	double y = box_y(f, cell);

	writer_puts(&f->w, box->width * FLAME_WIDTH < FLAME_THIN ? "<g class=\"f thin\""
								 : "<g class=\"f\"");
	if (prefix)
		writer_printf(&f->w, " data-cut=\"%zu\"", utf16_len(str_first(name, prefix)));
	writer_char(&f->w, '>');
	if (f->diff)
		put_diff_tooltip(f, cell);
	else
		put_tooltip(f, cell);
	writer_puts(&f->w, "<rect class=\"");
	put_class(f, cell, str_skip(name, prefix));
	writer_printf(&f->w, "\" x=\"%.5f%%\" y=\"%.0f\" width=\"%.5f%%\" height=\"%d\"/>",
		      100 * box->x, y, 100 * box->width, FLAME_ROW - 1);
	put_label(f, box->x, box->width, y, str_skip(name, prefix));
	writer_puts(&f->w, "</g>\n");
}

static void put_style(struct flame *f)
{
	writer_puts(&f->w, "<style>\n");
	writer_puts(&f->w, flamegraph_style);
	for (unsigned s = 0; s <= DIFF_SHADES && f->diff; s++)
		writer_printf(&f->w, ".more%u{fill:%s}\n.less%u{fill:%s}\n", s, diff_reds[s], s,
			      diff_blues[s]);
	for (unsigned k = 0; k < KIND_COUNT && !f->diff; k++)
		for (unsigned s = 0; s < SHADES; s++)
			if (f->present[k])
				writer_printf(&f->w, ".k%u%u{fill:%s}\n", k, s, kinds[k].shades[s]);
	writer_puts(&f->w, "</style>\n");
}

static void put_title_text(struct flame *f)
{
	if (f->options->title)
		writer_xml(&f->w, str_from(f->options->title));
	else if (f->diff)
		writer_puts(&f->w, "Differential flame graph: as wide as in the new runs");
	else
		writer_printf(&f->w, "%s view: ",
			      f->tree->kind == TREE_SCOPE   ? "scope"
			      : f->tree->kind == TREE_GRAPH ? "graph"
							    : "code");
	if (!f->options->title && f->tree)
		writer_xml(&f->w, f->measure.title);
}

/* Writes what the picture compares and what it cannot show: frames that exist only in the base have no width. */
static void put_diff_summary(struct flame *f)
{
	writer_puts(&f->w, "<text class=\"note\" x=\"10\" y=\"43\">");
	if (f->drawn)
		put_change(f, diff_value(f, 0, DIFF_BASE), diff_value(f, 0, DIFF_NEW));
	else
		writer_puts(&f->w, "nothing to draw: the new runs have no time in any frame");
	writer_printf(&f->w, " · %u boxes", f->drawn);
	if (f->narrow && f->drawn)
		writer_printf(&f->w, ", %u narrower than 0.1 px left out", f->narrow);
	if (f->deep)
		writer_printf(&f->w, ", %u deeper than %d levels left out", f->deep, LEVELS_MAX);
	if (f->gone) {
		writer_printf(&f->w, " · %u frames are gone and have no width (", f->gone);
		put_human(f, (double)f->gone_ns);
		writer_puts(&f->w, " in base)");
	}
	writer_puts(&f->w, "</text>\n");
}

static void put_diff_legend(struct flame *f)
{
	static const struct {
		const char *class, *text;
		double x;
	} items[] = { { "more4", "more than in base", 10 },
		      { "less4", "less", 160 },
		      { "more0", "the same", 220 } };

	for (size_t i = 0; i < ARRAY_COUNT(items); i++)
		writer_printf(&f->w,
			      "<rect class=\"%s\" x=\"%.0f\" y=\"53\" width=\"12\" height=\"12\" "
			      "rx=\"2\"/><text class=\"note\" x=\"%.0f\" y=\"63\">%s</text>\n",
			      items[i].class, items[i].x, items[i].x + 17, items[i].text);
	writer_puts(&f->w, "<text class=\"note\" x=\"310\" y=\"63\">the darker, the nearer to the "
			   "largest difference of a frame: ");
	put_human(f, (double)f->most);
	writer_puts(&f->w, "</text>\n");
}

static void put_summary(struct flame *f)
{
	writer_puts(&f->w, "<text class=\"note\" x=\"10\" y=\"43\">");
	if (f->drawn) {
		writer_xml(&f->w, f->measure.title);
		writer_char(&f->w, ' ');
		put_human(f, f->whole);
	} else {
		writer_puts(&f->w, "nothing to draw: no ");
		writer_xml(&f->w, f->measure.title);
		writer_puts(&f->w, " in this profile");
	}
	if (f->tree->weight_name.ptr)
		writer_puts(&f->w, f->style & FLAME_INVERTED ? " · from leaves to callers" : "");
	else if (f->tree->step >= 0)
		writer_printf(&f->w, " · step %" PRId64, f->tree->step);
	else
		writer_puts(&f->w, " · average of all steps");
	writer_printf(&f->w, " · %u boxes", f->drawn);
	if (f->narrow && f->drawn)
		writer_printf(&f->w, ", %u narrower than 0.1 px left out", f->narrow);
	if (f->deep)
		writer_printf(&f->w, ", %u deeper than %d levels left out", f->deep, LEVELS_MAX);
	writer_puts(&f->w, "</text>\n");
}

static void put_legend(struct flame *f)
{
	double x = 10;

	for (unsigned k = 0; k < KIND_COUNT; k++) {
		if (!f->present[k] || !kinds[k].label)
			continue;
		writer_printf(&f->w,
			      "<rect class=\"k%u1\" x=\"%.0f\" y=\"53\" width=\"12\" height=\"12\" "
			      "rx=\"2\"/><text class=\"note\" x=\"%.0f\" y=\"63\">%s</text>\n",
			      k, x, x + 17, kinds[k].label);
		x += 17 + 6.6 * (double)strlen(kinds[k].label) + 14;
	}
}

/* Writes the buttons, which stay hidden until the script shows them. */
static void put_buttons(struct flame *f)
{
	writer_puts(&f->w, "<text id=\"search\" class=\"button off\" x=\"99%\" y=\"24\" "
			   "text-anchor=\"end\">Search (/)</text>\n"
			   "<text id=\"reset\" class=\"button off\" x=\"99%\" y=\"43\" "
			   "text-anchor=\"end\">Reset zoom (Esc)</text>\n"
			   "<text id=\"clear\" class=\"button off\" x=\"99%\" y=\"63\" "
			   "text-anchor=\"end\">Clear search</text>\n"
			   "<text id=\"detail\" class=\"note\" x=\"10\" y=\"83\"></text>\n");
}

static void put_head(struct flame *f)
{
	unsigned height = FLAME_TOP + (f->levels + 1) * FLAME_ROW;
	double width = FLAME_WIDTH + 2 * FLAME_MARGIN;

	writer_printf(&f->w,
		      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%.0f\" "
		      "height=\"%u\" viewBox=\"0 0 %.0f %u\">\n",
		      width, height, width, height);
	put_style(f);
	writer_puts(&f->w, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
			   "<text id=\"title\" x=\"10\" y=\"24\">");
	put_title_text(f);
	writer_puts(&f->w, "</text>\n");
	if (f->diff) {
		put_diff_summary(f);
		put_diff_legend(f);
	} else {
		put_summary(f);
		put_legend(f);
	}
	put_buttons(f);
}

static ow_status draw(struct flame *f, const struct out *out, struct mem *mem, struct ow_error *err)
{
	OW_TRY(lay_out_cells(f, mem, err));
	count_boxes(f);
	writer_init(&f->w, mem, out, err);
	put_head(f);
	writer_printf(&f->w, "<svg id=\"boxes\" x=\"%d\" width=\"%.0f\"%s%s>\n", FLAME_MARGIN,
		      FLAME_WIDTH, f->tree && f->tree->kind == TREE_GRAPH ? " data-ends=\"1\"" : "",
		      f->style & FLAME_UP ? " data-up=\"1\"" : "");
	for (uint32_t i = 0; i < f->cells.count && f->w.status == OW_OK; i++)
		if (is_drawn(f, i))
			put_box(f, i);
	writer_puts(&f->w, "</svg>\n<script><![CDATA[\n");
	writer_puts(&f->w, flamegraph_script);
	writer_puts(&f->w, "]]></script>\n</svg>\n");
	return writer_finish(&f->w);
}

/* Makes boxes from the rows of a comparison, which are in pre-order with the widest child first. */
static bool copy_frames(struct flame *f, const struct table *t, uint32_t *path)
{
	for (uint32_t i = 0; i < t->row_count; i++) {
		uint32_t depth = t->depth[i];
		uint32_t parent = depth ? path[depth - 1] : 0;
		int64_t base = f->of[DIFF_BASE]->ints[i], now = f->of[DIFF_NEW]->ints[i];
		int64_t delta = wrap_sub(now, base);

		path[depth] = i;
		if (!flame_cells_add(&f->cells,
				     &(struct flame_cell){ .node = i,
							   .parent = parent,
							   .depth = depth,
							   .total = MAX(now, 0),
							   .own = f->of[DIFF_NEW_SELF]->ints[i] }))
			return false;
		if (i)
			f->most = MAX(f->most, delta < 0 ? wrap_sub(0, delta) : delta);
		if (!now && base > 0) {
			f->gone++;
			if (!i || f->of[DIFF_NEW]->ints[parent])
				f->gone_ns = flame_add(f->gone_ns, base);
		}
	}
	return true;
}

/* Finds the frames of a comparison; false when the table has none. */
static bool find_frames(struct flame *f, const struct table *t)
{
	static const char *const names[DIFF_COLUMNS] = {
		[DIFF_NAME] = "name",
		[DIFF_KIND] = "kind",
		[DIFF_BASE] = "base_ns",
		[DIFF_NEW] = "new_ns",
		[DIFF_BASE_SELF] = "base_self_ns",
		[DIFF_NEW_SELF] = "new_self_ns",
		[DIFF_CHANGE] = "change",
		[DIFF_NEW_NAME] = "new_name",
	};

	for (unsigned i = 0; i < DIFF_COLUMNS; i++) {
		uint32_t column = table_find_column(t, str_from(names[i]));

		if (column == UINT32_MAX)
			return false;
		f->of[i] = &t->columns[column];
	}
	f->diff = t;
	f->measure.unit = f->of[DIFF_NEW]->unit;
	return t->depth != NULL;
}

static ow_status write_diff(struct flame *f, struct table *t, const struct out *out,
			    struct ow_error *err)
{
	size_t depths = 1, path_size, size;
	ow_status status = OW_OK;
	uint32_t *path;

	if (!find_frames(f, t))
		return error_set(err, OW_E_USAGE,
				 "a flame graph of a comparison needs its frames: "
				 "opwatch diff --frames");
	if (f->style & FLAME_INVERTED)
		return error_set(err, OW_E_USAGE,
				 "a flame graph of a comparison cannot be inverted");
	for (uint32_t i = 0; i < t->row_count; i++)
		depths = MAX(depths, (size_t)t->depth[i] + 1);
	path_size = depths * sizeof(*path);
	path = mem_zalloc(t->mem, path_size);
	f->cells.mem = t->mem;
	if (!path || !copy_frames(f, t, path))
		status = error_no_memory(err);
	mem_free(t->mem, path, path_size);
	size = (f->cells.count + 1) * sizeof(*f->boxes);
	f->boxes = status == OW_OK ? mem_zalloc(t->mem, size) : NULL;
	if (status == OW_OK)
		status = f->boxes ? draw(f, out, t->mem, err) : error_no_memory(err);
	mem_free(t->mem, f->boxes, size);
	flame_cells_release(&f->cells);
	return status;
}

static ow_status flamegraph_write(struct table *result, const struct sink_options *options,
				  const struct out *out, struct ow_error *err)
{
	struct flame f = { .tree = result->tree,
			   .options = options,
			   .style = flame_style_parse(options->style) };
	size_t size;
	ow_status status;

	if (!f.tree && strcmp(result->name, "diff") == 0)
		return write_diff(&f, result, out, err);
	if (!f.tree || f.tree->kind == TREE_OP)
		return error_set(err, OW_E_USAGE,
				 "a flame graph needs the scope, graph or code view");
	OW_TRY(tree_out_measure(f.tree, options, &f.measure, err));
	status = flame_cells_make(&f.cells, f.tree, f.measure.metric, f.style, result->mem, err);
	size = (f.cells.count + 1) * sizeof(*f.boxes);
	f.boxes = status == OW_OK ? mem_zalloc(result->mem, size) : NULL;
	if (status == OW_OK)
		status = f.boxes ? draw(&f, out, result->mem, err) : error_no_memory(err);
	mem_free(result->mem, f.boxes, size);
	flame_cells_release(&f.cells);
	return status;
}

const struct sink sink_flamegraph = {
	.name = "flamegraph",
	.summary = "a flame graph as one self-contained SVG with zoom and search",
	.extension = "svg",
	.accepts = SINK_TREE_SCOPE | SINK_TREE_GRAPH | SINK_TREE_CODE | SINK_DIFF,
	.write = flamegraph_write,
};
