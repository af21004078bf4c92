/*
 * folded_samples.c: see folded_samples.h. Whole numbers in the unit of the metric, lines in byte order of
 * their stacks: exactly what the stackcollapse scripts write, so that results can be compared and other
 * tools read them.
 */
#include "sink/folded_samples.h"

#include "sink/tree_out.h"
#include "sink/writer.h"

#define FRAMES_MAX 2048 /* deeper nodes count as their ancestor there */

struct line {
	size_t start, len; /* of the stack, in text */
	int64_t value;
};

struct folding {
	const struct tree *tree;
	struct mem *mem;
	struct buf text;
	struct line *lines;
	size_t count, cap;
	uint32_t path[FRAMES_MAX + 1];
};

/* Line feeds would tear a line apart; ';' was dealt with where the name was made, unless it is a name of
 * a source that allows it. */
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
	void *lines = f->lines;

	for (uint32_t d = 1; d <= depth; d++) {
		if (d > 1)
			buf_add_char(&f->text, ';');
		add_frame(&f->text, f->tree->nodes[f->path[d]].name);
	}
	if (f->text.failed || !mem_grow(f->mem, &lines, &f->cap, f->count + 1, sizeof(*f->lines)))
		return false;
	f->lines = lines;
	f->lines[f->count++] = (struct line){ start, f->text.len - start, value };
	return true;
}

static int by_stack(const void *a, const void *b, void *arg)
{
	const struct line *x = a, *y = b;
	const char *text = arg;
	int order = memcmp(text + x->start, text + y->start, MIN(x->len, y->len));

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static bool collect(struct folding *f, const int64_t *child_sums)
{
	for (uint32_t i = 1; i < f->tree->node_count; i++) {
		const struct tree_node *node = &f->tree->nodes[i];
		int64_t total = tree_out_total(f->tree, node, METRIC_WEIGHT);
		int64_t own = node->depth < FRAMES_MAX ? total - MIN(total, child_sums[i]) : total;

		if (node->depth > FRAMES_MAX)
			continue;
		f->path[node->depth] = i;
		if (own > 0 && !add_line(f, i, own))
			return false;
	}
	if (f->count > 1)
		qsort_r(f->lines, f->count, sizeof(*f->lines), by_stack, f->text.ptr);
	return true;
}

ow_status folded_samples_write(struct result *result, const struct out *out, struct error *err)
{
	struct folding f = { .tree = result->tree, .mem = result->mem };
	int64_t *child_sums;
	struct writer w;
	bool ok;

	OW_TRY(tree_out_child_sums(f.tree, METRIC_WEIGHT, f.mem, &child_sums, err));
	buf_init(&f.text, f.mem);
	ok = collect(&f, child_sums);
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
