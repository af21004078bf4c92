/*
 * sink_folded.c: the displayed tree of the scope, graph or code view as folded stacks: one line
 * "frame;frame;frame value" per node, which flame graph tools and differs read. The value is what the
 * node does not hand on to a displayed child: its own, and what is hidden below it, so that the lines
 * add up to the totals whatever was filtered out. The root has no frame.
 */
#include "sink/folded_samples.h"
#include "sink/tree_out.h"
#include "sink/writer.h"

/* Deeper nodes count as their ancestor at this depth: the size of a line grows with the depth, so a
 * chain of a hundred thousand nodes would need gigabytes. */
#define FRAMES_MAX 500

struct folded {
	struct writer w;
	const struct tree *tree;
	struct tree_measure measure;
	int64_t *child_sums;
	uint32_t path[FRAMES_MAX + 1]; /* nodes from the root to the current one */
	uint64_t deeper;
};

/* ';' separates frames and a line feed stacks; other control characters only do harm. */
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
	if (f->measure.unit == RESULT_NS)
		writer_micros(&f->w, value);
	else
		writer_int(&f->w, value);
	writer_char(&f->w, '\n');
}

static void tell_deeper(const struct folded *f, const struct sink_options *options)
{
	char line[128];
	int len;

	if (!f->deeper || !options->message)
		return;
	len = snprintf(line, sizeof(line),
		       "%" PRIu64 " nodes deeper than %d frames count as their ancestor there",
		       f->deeper, FRAMES_MAX);
	options->message(options->message_arg, str_make(line, (size_t)len));
}

static ow_status folded_write(struct result *result, const struct sink_options *options,
			      const struct out *out, struct error *err)
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
	tell_deeper(&f, options);
	return writer_finish(&f.w);
}

const struct sink sink_folded = {
	.name = "folded",
	.summary = "folded stacks: frame;frame value",
	.extension = "folded",
	.accepts = SINK_TREE_SCOPE | SINK_TREE_GRAPH | SINK_TREE_CODE,
	.write = folded_write,
};
