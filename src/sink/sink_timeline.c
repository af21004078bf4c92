/*
 * sink_timeline.c: Chrome-trace timelines as tfprof writes them, byte for byte: the displayed tree of
 * the scope and code views with one row per depth, and one step of the graph view with its devices
 * (timeline_graph.c). Written as a stream; which file, one file per step, and a word about large
 * files are the caller's affair.
 */
#include "sink/timeline_int.h"

void timeline_next(struct timeline *t)
{
	if (t->any)
		writer_char(&t->w, ',');
	t->any = true;
}

void timeline_stdout(struct timeline *t, struct str line)
{
	if (t->options->stdout_line)
		t->options->stdout_line(t->options->stdout_arg, line);
}

void timeline_process(struct timeline *t, int64_t pid, const char *before, struct str name,
		      const char *after)
{
	timeline_next(t);
	writer_puts(&t->w, "{\"args\":{\"name\":\"");
	writer_puts(&t->w, before);
	writer_json_ascii(&t->w, name);
	writer_puts(&t->w, after);
	writer_puts(&t->w, "\"},\"name\":\"process_name\",\"ph\":\"M\",\"pid\":");
	writer_int(&t->w, pid);
	writer_char(&t->w, '}');
}

static void put_time(struct timeline *t, int64_t time)
{
	if (t->in_micros)
		writer_int(&t->w, time);
	else
		writer_micros(&t->w, time);
}

void timeline_region(struct timeline *t, int64_t start, int64_t dur, int64_t pid, int64_t tid,
		     struct str name, bool with_op)
{
	timeline_next(t);
	writer_puts(&t->w, "{\"args\":{\"name\":\"");
	writer_json_ascii(&t->w, name);
	if (with_op) {
		writer_puts(&t->w, "\",\"op\":\"");
		writer_json_ascii(&t->w, name);
	}
	writer_puts(&t->w, "\"},\"cat\":\"Op\",\"dur\":");
	put_time(t, dur);
	writer_puts(&t->w, ",\"name\":\"");
	writer_json_ascii(&t->w, name);
	writer_puts(&t->w, "\",\"ph\":\"X\",\"pid\":");
	writer_int(&t->w, pid);
	writer_puts(&t->w, ",\"tid\":");
	writer_int(&t->w, tid);
	writer_puts(&t->w, ",\"ts\":");
	put_time(t, start);
	writer_char(&t->w, '}');
}

/* ---- scope and code ---- */

static void put_depth(struct timeline *t, uint32_t depth)
{
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32, depth);
	timeline_process(t, depth, "Scope:", str_from(number), "");
}

/* `next` holds, per node, where its next child starts. A subtree without time is left out whole. The
 * original stops when children take longer than their parent; here they reach beyond it. */
static void put_tree(struct timeline *t, int64_t *next)
{
	const struct tree_node *nodes = t->tree->nodes;
	uint32_t depths = 0, skip_below = UINT32_MAX;

	for (uint32_t i = 0; i < t->tree->node_count && t->w.status == OW_OK; i++) {
		int64_t total = tree_total_stored(t->tree, &nodes[i], METRIC_MICROS), start = 0;

		if (nodes[i].depth > skip_below)
			continue;
		skip_below = i && total <= 0 ? nodes[i].depth : UINT32_MAX;
		if (skip_below != UINT32_MAX)
			continue;
		if (i) {
			start = next[nodes[i].parent];
			next[nodes[i].parent] = wrap_add(start, total);
		}
		next[i] = start;
		if (nodes[i].depth == depths)
			put_depth(t, depths++);
		timeline_region(t, start, total, nodes[i].depth, 0, nodes[i].name, true);
	}
}

static ow_status tree_timeline(struct timeline *t)
{
	size_t size = ((size_t)t->tree->node_count + 1) * sizeof(int64_t);
	int64_t *next = mem_alloc(t->mem, size);

	if (!next)
		return error_no_memory(t->err);
	t->in_micros = t->tree->in_micros;
	put_tree(t, next);
	mem_free(t->mem, next, size);
	return OW_OK;
}

/* ---- entry ---- */

static ow_status check(const struct tree *tree, struct error *err)
{
	if (!tree || tree->kind == TREE_OP)
		return error_set(err, OW_E_USAGE,
				 "%s view doesn't support timeline yet. Consider graph/scope/code "
				 "view.",
				 tree ? "op" : "this");
	if (tree->kind == TREE_GRAPH && tree->step < 0)
		return error_set(err, OW_E_USAGE,
				 "a timeline of the graph view shows one step: choose it");
	return OW_OK;
}

static ow_status timeline_write(struct result *result, const struct sink_options *options,
				const struct out *out, struct error *err)
{
	struct timeline t = {
		.mem = result->mem, .tree = result->tree, .options = options, .err = err
	};

	OW_TRY(check(t.tree, err));
	writer_init(&t.w, result->mem, out, err);
	writer_puts(&t.w, "{\"traceEvents\":[");
	writer_fail(&t.w, t.tree->kind == TREE_GRAPH ? timeline_graph(&t) : tree_timeline(&t));
	writer_puts(&t.w, "]}\n");
	return writer_finish(&t.w);
}

const struct sink sink_timeline = {
	.name = "timeline",
	.summary = "a Chrome trace, as tfprof writes it",
	.extension = "json",
	.accepts = SINK_TREE_SCOPE | SINK_TREE_GRAPH | SINK_TREE_CODE,
	.events = true,
	.write = timeline_write,
};
