/*
 * sink_folded.c: the sink `folded`: the displayed tree of the scope, graph or code view as folded stacks, one line
 * "frame;frame;frame value" per node, which flame graph tools read. The value is the part of the node's total that no
 * displayed child has, so the lines add up to the totals whatever was filtered out. The root does not become a frame.
 */
#include "sink/sink.h"

#include "base/vec.h"
#include "sink/tree_out.h"
#include "base/writer.h"

#define SAMPLE_FRAMES_MAX 2048 /* deeper nodes are added to their ancestor at this depth */

struct line {
	size_t start, len; /* position of the stack in `text` */
	int64_t value;
};

struct folding {
	const struct tree *tree;
	struct mem *mem;
	struct buf text;
	struct line *lines;
	size_t count, cap;
	uint32_t path[SAMPLE_FRAMES_MAX + 1];
};

/* Appends a frame's name without line feeds, which would end the line. Names from some sources still contain ';'. */
static void add_frame(struct buf *to, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		buf_add_char(to, c == ';' ? ':' : c == '\n' || c == '\r' ? ' ' : c);
	}
}

static bool add_line(struct folding *f, uint32_t node, int64_t value)
{
	uint32_t depth = f->tree->nodes[node].depth;
	size_t start = f->text.len;

	for (uint32_t d = 1; d <= depth; d++) {
		if (d > 1)
			buf_add_char(&f->text, ';');
		add_frame(&f->text, f->tree->nodes[f->path[d]].name);
	}
	if (f->text.failed || !vec_push(f->mem, f->lines, f->count, f->cap,
					(struct line){ start, f->text.len - start, value }))
		return false;
	return true;
}

static int by_stack(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	const char *text = arg;
	int order = memcmp(text + x->start, text + y->start, MIN(x->len, y->len));

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static bool collect_lines(struct folding *f, const int64_t *child_sums)
{
	for (uint32_t i = 1; i < f->tree->node_count; i++) {
		const struct tree_node *node = &f->tree->nodes[i];
		int64_t total = tree_out_total(f->tree, node, METRIC_WEIGHT);
		int64_t own =
			node->depth < SAMPLE_FRAMES_MAX ? total - MIN(total, child_sums[i]) : total;

		if (node->depth > SAMPLE_FRAMES_MAX)
			continue;
		f->path[node->depth] = i;
		if (own > 0 && !add_line(f, i, own))
			return false;
	}
	if (f->count > 1)
		qsort_r(f->lines, f->count, sizeof(*f->lines), by_stack, f->text.ptr);
	return true;
}

static ow_status folded_samples_write(struct table *result, const struct out *out,
				      struct ow_error *err)
{
	struct folding f = { .tree = result->tree, .mem = result->mem };
	int64_t *child_sums;
	struct writer w;
	bool ok;

	OW_TRY(tree_out_child_sums(f.tree, METRIC_WEIGHT, f.mem, &child_sums, err));
	buf_init(&f.text, f.mem);
	ok = collect_lines(&f, child_sums);
	tree_out_release(f.tree, f.mem, child_sums);
	writer_init(&w, f.mem, out, err);
	if (!ok)
		writer_fail(&w, error_no_memory(err));
	for (size_t i = 0; i < f.count && w.status == OW_OK; i++) {
		writer_utf8(&w, str_make(f.text.ptr + f.lines[i].start, f.lines[i].len));
		writer_char(&w, ' ');
		writer_int(&w, f.lines[i].value);
		writer_char(&w, '\n');
	}
	mem_free(f.mem, f.lines, f.cap * sizeof(*f.lines));
	buf_release(&f.text);
	return writer_finish(&w);
}

/* Deeper nodes are added to their ancestor at this depth: lines grow with the depth, so a chain of a hundred thousand nodes would
 * need gigabytes. */
#define FRAMES_MAX 500

struct folded {
	struct writer w;
	const struct tree *tree;
	struct tree_measure measure;
	int64_t *child_sums;
	uint32_t path[FRAMES_MAX + 1]; /* nodes from the root to the current one */
	uint64_t deeper;
};

/* Writes a frame's name. ';' separates frames and a line feed separates stacks, so both are replaced, like other
 * control characters. */
static void put_frame(struct writer *w, struct str name)
{
	size_t run = 0;

	if (!name.len)
		writer_puts(w, "(empty)");
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (c >= 0x20 && c != ';' && c != 0x7f)
			continue;
		writer_utf8(w, str_make(name.ptr + run, i - run));
		writer_char(w, c == ';' ? ':' : ' ');
		run = i + 1;
	}
	writer_utf8(w, str_skip(name, run));
}

static int64_t value_of(const struct folded *f, uint32_t node)
{
	int64_t total = tree_out_total(f->tree, &f->tree->nodes[node], f->measure.metric);

	if (f->tree->nodes[node].depth >= FRAMES_MAX)
		return total;
	return total - MIN(total, f->child_sums[node]);
}

static void put_stack(struct folded *f, uint32_t node)
{
	int64_t value = value_of(f, node);
	uint32_t depth = f->tree->nodes[node].depth;

	if (value <= 0)
		return;
	for (uint32_t d = 1; d <= depth; d++) {
		const struct tree_node *frame = &f->tree->nodes[f->path[d]];

		writer_puts(&f->w, d > 1 ? ";" : "");
		put_frame(&f->w, str_skip(frame->name, tree_out_prefix(f->tree, frame)));
	}
	writer_char(&f->w, ' ');
	if (f->measure.unit == UNIT_NS)
		writer_micros(&f->w, value);
	else
		writer_int(&f->w, value);
	writer_char(&f->w, '\n');
}

static void report_deeper(const struct folded *f, const struct sink_options *options)
{
	char line[128];
	int len;

	if (!f->deeper || !options->message)
		return;
	len = snprintf(line, sizeof(line),
		       "%" PRIu64 " nodes deeper than %d frames are added to their ancestor there",
		       f->deeper, FRAMES_MAX);
	options->message(options->message_arg, str_make(line, (size_t)len));
}

static ow_status folded_write(struct table *result, const struct sink_options *options,
			      const struct out *out, struct ow_error *err)
{
	struct folded f = { .tree = result->tree };

	if (!f.tree || f.tree->kind == TREE_OP)
		return error_set(err, OW_E_USAGE,
				 "folded stacks need the scope, graph or code view");
	OW_TRY(tree_out_measure(f.tree, options, &f.measure, err));
	if (f.tree->weight_name.ptr)
		return folded_samples_write(result, out, err);
	OW_TRY(tree_out_child_sums(f.tree, f.measure.metric, result->mem, &f.child_sums, err));
	writer_init(&f.w, result->mem, out, err);
	for (uint32_t i = 1; i < f.tree->node_count && f.w.status == OW_OK; i++) {
		uint32_t depth = f.tree->nodes[i].depth;

		if (depth > FRAMES_MAX) {
			f.deeper++;
			continue;
		}
		f.path[depth] = i;
		put_stack(&f, i);
	}
	tree_out_release(f.tree, result->mem, f.child_sums);
	report_deeper(&f, options);
	return writer_finish(&f.w);
}

const struct sink sink_folded = {
	.name = "folded",
	.summary = "folded stacks: frame;frame value",
	.extension = "folded",
	.accepts = SINK_TREE_SCOPE | SINK_TREE_GRAPH | SINK_TREE_CODE,
	.write = folded_write,
};
