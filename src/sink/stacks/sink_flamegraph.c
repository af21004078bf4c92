/*
 * sink_flamegraph.c: the displayed tree of the scope, graph or code view as a flame graph: one
 * self-contained SVG, the root on top, the width of a box its total. Zoom and search need the script
 * inside (flamegraph_parts.c), the picture and its tooltips do not. Boxes too narrow to be seen are
 * left out and counted, so the size of the file is bounded by the picture and not by the profile.
 */
#include "sink/flame_cells.h"
#include "sink/flamegraph_parts.h"
#include "sink/tree_out.h"
#include "sink/writer.h"

#define NARROW (0.1 / FLAME_WIDTH) /* as a part of the whole */
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

static const struct {
	const char *label; /* in the legend */
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

struct box {
	double x, width; /* parts of the whole; width < NARROW: not drawn */
	double cursor;	 /* where the next child starts */
	double scale;	 /* width of a child per unit of its total */
};

struct flame {
	struct writer w;
	const struct tree *tree;
	const struct sink_options *options;
	struct tree_measure measure;
	unsigned style;
	struct flame_cells cells;
	struct box *boxes; /* per cell */
	double whole;	   /* what the full width stands for */
	uint32_t drawn, narrow, deep, levels;
	bool present[KIND_COUNT];
};

/* ---- layout ---- */

static bool is_drawn(const struct flame *f, uint32_t cell)
{
	return f->boxes[cell].width >= NARROW && f->cells.items[cell].depth < LEVELS_MAX;
}

/* Children that add up to more than their parent share its width. */
static double child_scale(double width, int64_t total, int64_t child_sum)
{
	double whole = (double)MAX(total, child_sum);

	return whole > 0 ? width / whole : 0;
}

static void lay_out(struct flame *f, const int64_t *child_sums)
{
	const struct flame_cell *cells = f->cells.items;

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

/* Sums of children, for the layout only. */
static ow_status lay_out_cells(struct flame *f, struct mem *mem, struct error *err)
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

/* ---- kinds ---- */

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
	const struct tree_node *n = &f->tree->nodes[f->cells.items[cell].node];

	if (!cell)
		return KIND_ROOT;
	if (f->tree->kind == TREE_CODE)
		return code_kind(f, n);
	return n->op.v ? op_kind(f, n) : KIND_SCOPE;
}

/* The same name has the same shade in every graph. */
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
			f->narrow++; /* nothing is lost without those of no width at all */
		}
	}
}

/* ---- text ---- */

static void put_human(struct flame *f, double value)
{
	char text[HUMAN_BYTES];

	human_real(text, value, f->measure.unit, false);
	writer_puts(&f->w, text);
}

/* The first line of a tooltip is the name alone, which the script relies on. */
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

/* Length in UTF-16 units, in which the script counts. */
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
	} else if (f->tree->kind == TREE_GRAPH) { /* whole paths: their ends tell more */
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

/* With FLAME_UP the root is at the bottom. */
static double box_y(const struct flame *f, uint32_t cell)
{
	uint32_t depth = f->cells.items[cell].depth;

	return FLAME_TOP +
	       (double)(f->style & FLAME_UP ? f->levels - 1 - depth : depth) * FLAME_ROW;
}

static void put_box(struct flame *f, uint32_t cell)
{
	const struct tree_node *n = &f->tree->nodes[f->cells.items[cell].node];
	const struct box *box = &f->boxes[cell];
	struct str name = cell ? n->name : STR("all");
	size_t prefix = cell && !(f->style & FLAME_INVERTED) ? tree_out_prefix(f->tree, n) : 0;
	double y = box_y(f, cell);

	writer_puts(&f->w, box->width * FLAME_WIDTH < FLAME_THIN ? "<g class=\"f thin\""
								 : "<g class=\"f\"");
	if (prefix)
		writer_printf(&f->w, " data-cut=\"%zu\"", utf16_len(str_first(name, prefix)));
	writer_char(&f->w, '>');
	put_tooltip(f, cell);
	writer_printf(&f->w,
		      "<rect class=\"k%d%u\" x=\"%.5f%%\" y=\"%.0f\" width=\"%.5f%%\" "
		      "height=\"%d\"/>",
		      (int)kind_of(f, cell), shade_of(str_skip(name, prefix)), 100 * box->x, y,
		      100 * box->width, FLAME_ROW - 1);
	put_label(f, box->x, box->width, y, str_skip(name, prefix));
	writer_puts(&f->w, "</g>\n");
}

/* ---- the document ---- */

static void put_style(struct flame *f)
{
	writer_puts(&f->w, "<style>\n");
	writer_puts(&f->w, flamegraph_style);
	for (unsigned k = 0; k < KIND_COUNT; k++)
		for (unsigned s = 0; s < SHADES; s++)
			if (f->present[k])
				writer_printf(&f->w, ".k%u%u{fill:%s}\n", k, s, kinds[k].shades[s]);
	writer_puts(&f->w, "</style>\n");
}

static void put_title_text(struct flame *f)
{
	if (f->options->title)
		writer_xml(&f->w, str_from(f->options->title));
	else
		writer_printf(&f->w, "%s view: ",
			      f->tree->kind == TREE_SCOPE   ? "scope"
			      : f->tree->kind == TREE_GRAPH ? "graph"
							    : "code");
	if (!f->options->title)
		writer_xml(&f->w, f->measure.title);
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

/* Shown by the script; without it there is nothing to press. */
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
	put_summary(f);
	put_legend(f);
	put_buttons(f);
}

static ow_status draw(struct flame *f, const struct out *out, struct mem *mem, struct error *err)
{
	OW_TRY(lay_out_cells(f, mem, err));
	count_boxes(f);
	writer_init(&f->w, mem, out, err);
	put_head(f);
	writer_printf(&f->w, "<svg id=\"boxes\" x=\"%d\" width=\"%.0f\"%s%s>\n", FLAME_MARGIN,
		      FLAME_WIDTH, f->tree->kind == TREE_GRAPH ? " data-ends=\"1\"" : "",
		      f->style & FLAME_UP ? " data-up=\"1\"" : "");
	for (uint32_t i = 0; i < f->cells.count && f->w.status == OW_OK; i++)
		if (is_drawn(f, i))
			put_box(f, i);
	writer_puts(&f->w, "</svg>\n<script><![CDATA[\n");
	writer_puts(&f->w, flamegraph_script);
	writer_puts(&f->w, "]]></script>\n</svg>\n");
	return writer_finish(&f->w);
}

static ow_status flamegraph_write(struct result *result, const struct sink_options *options,
				  const struct out *out, struct error *err)
{
	struct flame f = { .tree = result->tree,
			   .options = options,
			   .style = flame_style_parse(options->style) };
	size_t size;
	ow_status status;

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
	.accepts = SINK_TREE_SCOPE | SINK_TREE_GRAPH | SINK_TREE_CODE,
	.write = flamegraph_write,
};
