/*
 * import_cpuprofile.c: the importer of V8's .cpuprofile, which Chrome's DevTools, node --cpu-prof and the inspector
 * protocol write: a tree of calls, as a list of nodes or (older) as nested nodes, and the node in which each sample was
 * taken. A sample lasts until the next one. Without a list of samples the hit counts of the nodes are used. It also
 * reads .heapprofile of the sampling heap profiler (node --heap-prof): the same tree with the bytes that each call
 * holds.
 */
#include "import/importer.h"

#include "base/vec.h"
#include "import/common/model_text.h"
#include "import/stacks/v8_profile.h"

enum level_kind { LEVEL_NODES, LEVEL_NODE, LEVEL_CHILDREN };

struct level {
	uint8_t kind;
	uint32_t node; /* 1 + index of the node; 0 = none */
};

struct v8_node {
	int64_t id, hits, bytes, parent_id;
	str_id function, url;
	int64_t line;
	uint32_t parent; /* 1 + index of the node */
	stack_id stack;
	bool has_parent_id, done;
};

struct v8_edge {
	uint32_t parent; /* 1 + index of the node */
	int64_t child;	 /* id of the child */
};

struct v8_profile {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct buf text;
	struct json_pull *p;
	struct v8_node *nodes;
	size_t node_count, node_cap;
	struct v8_edge *edges;
	size_t edge_count, edge_cap;
	struct level *levels;
	size_t level_count, level_cap;
	uint32_t *path; /* nodes up to a root, while stacks are made */
	size_t path_cap;
	struct map by_id;
	int64_t *samples; /* node ids of the samples */
	size_t sample_count, sample_cap;
	int64_t *times; /* differences between samples, or timestamps, in microseconds */
	size_t time_count, time_cap;
	bool timestamps, nested, call_frames, heap, truncated;
	int64_t start_us, end_us;
	bool has_start, has_end;
	uint64_t truncated_at, unknown, backwards, unequal, idle;
	bool pieces;	 /* the profile comes in pieces, in the arguments of trace events */
	unsigned inside; /* nesting depth of objects around the profile in these arguments */
	int64_t base_ns; /* added to all times */
};

static int sniff_cpuprofile(const struct sniff *sniff)
{
	struct str head = sniff->head;

	if (str_starts(head, STR("\xef\xbb\xbf")))
		head = str_skip(head, 3);
	head = str_trim(head);
	if (!str_starts(head, STR("{")) || str_has(head, STR("\"traceEvents\"")))
		return 0;
	if (str_has(head, STR("\"callFrame\"")) && str_has(head, STR("\"nodes\"")))
		return 95;
	if (str_has(head, STR("\"head\"")) && str_has(head, STR("\"functionName\"")) &&
	    str_has(head, STR("\"children\"")))
		return 90;
	return 0;
}

static void cut_here(struct v8_profile *c)
{
	if (!c->truncated)
		c->truncated_at = c->p->offset;
	c->truncated = true;
}

static ow_status push_level(struct v8_profile *c, enum level_kind kind, uint32_t node)
{
	if (!vec_push(c->mem, c->levels, c->level_count, c->level_cap,
		      (struct level){ (uint8_t)kind, node }))
		return import_no_memory(c->ctx);
	return OW_OK;
}

static ow_status new_node(struct v8_profile *c, uint32_t parent)
{
	if (c->node_count >= UINT32_MAX - 1 ||
	    !vec_push(c->mem, c->nodes, c->node_count, c->node_cap,
		      (struct v8_node){ .id = INT64_MIN, .line = -1, .parent = parent }))
		return import_no_memory(c->ctx);
	return push_level(c, LEVEL_NODE, (uint32_t)c->node_count);
}

static ow_status add_edge(struct v8_profile *c, uint32_t parent)
{
	int64_t child;

	if (json_decimal(c->p->text, 0, &child) != JSON_EXACT)
		return OW_OK;
	if (!vec_push(c->mem, c->edges, c->edge_count, c->edge_cap,
		      (struct v8_edge){ parent, child }))
		return import_no_memory(c->ctx);
	return OW_OK;
}

/* Reads a member of a node, or of the call location in it. */
static ow_status node_member(struct v8_profile *c, uint32_t number)
{
	struct v8_node *node = &c->nodes[number - 1];
	struct json_pull *p = c->p;

	if (json_key_is(p->text, "functionName")) {
		node->function = json_text_value(p, c->b, &c->text);
	} else if (json_key_is(p->text, "url")) {
		node->url = json_text_value(p, c->b, &c->text);
	} else if (json_key_is(p->text, "lineNumber")) {
		(void)json_text_number(p, 0, &node->line);
	} else if (json_key_is(p->text, "id")) {
		(void)json_text_number(p, 0, &node->id);
	} else if (json_key_is(p->text, "hitCount")) {
		(void)json_text_number(p, 0, &node->hits);
	} else if (json_key_is(p->text, "selfSize")) {
		c->heap |= json_text_number(p, 0, &node->bytes);
	} else if (json_key_is(p->text, "parent")) {
		node->has_parent_id = json_text_number(p, 0, &node->parent_id);
	} else if (json_key_is(p->text, "callFrame")) {
		c->call_frames = true;
		if (json_pull_next(p) == TOKEN_OBJECT)
			return push_level(c, LEVEL_NODE, number);
	} else if (json_key_is(p->text, "children")) {
		if (json_pull_next(p) == TOKEN_ARRAY)
			return push_level(c, LEVEL_CHILDREN, number);
	} else if (!json_pull_skip(p)) {
		cut_here(c);
	}
	return c->b->status;
}

/* Handles one token inside the nodes. */
static ow_status node_token(struct v8_profile *c, enum json_token token)
{
	struct level level = c->levels[c->level_count - 1];

	switch (token) {
	case TOKEN_CLOSE:
		c->level_count--;
		return OW_OK;
	case TOKEN_KEY:
		return node_member(c, level.node);
	case TOKEN_OBJECT:
		return new_node(c, level.kind == LEVEL_CHILDREN ? level.node : 0);
	case TOKEN_NUMBER:
		return level.kind == LEVEL_CHILDREN ? add_edge(c, level.node) : OW_OK;
	case TOKEN_ARRAY:
		if (!json_pull_skip(c->p))
			cut_here(c);
		return OW_OK;
	case TOKEN_DAMAGE:
	case TOKEN_END:
		cut_here(c);
		return OW_OK;
	default:
		return OW_OK;
	}
}

/* Reads the list of nodes, or the root node that contains the others. */
static ow_status read_nodes(struct v8_profile *c)
{
	enum json_token token = json_pull_next(c->p);

	if (token == TOKEN_ARRAY)
		OW_TRY(push_level(c, LEVEL_NODES, 0));
	else if (token == TOKEN_OBJECT)
		OW_TRY(new_node(c, 0));
	while (c->level_count && !c->truncated)
		OW_TRY(node_token(c, json_pull_next(c->p)));
	return c->b->status;
}

static ow_status read_times(struct v8_profile *c)
{
	enum json_token token = json_pull_next(c->p);

	if (token != TOKEN_ARRAY)
		return OW_OK;
	while ((token = json_pull_next(c->p)) == TOKEN_NUMBER) {
		int64_t number = 0;

		(void)json_decimal(c->p->text, 0, &number);
		if (!vec_push(c->mem, c->times, c->time_count, c->time_cap, number))
			return builder_no_memory(c->b);
	}
	if (token != TOKEN_CLOSE)
		cut_here(c);
	return OW_OK;
}

/* Reads the node ids of samples. Samples of heap profiles are objects; they repeat the nodes, and some refer to
 * nodes that no longer exist. */
static ow_status read_samples(struct v8_profile *c)
{
	enum json_token token = json_pull_next(c->p);

	if (token != TOKEN_ARRAY)
		return OW_OK;
	while (!c->truncated && (token = json_pull_next(c->p)) != TOKEN_CLOSE) {
		int64_t number = INT64_MIN;

		if (token == TOKEN_OBJECT && json_pull_skip(c->p))
			continue;
		if (token != TOKEN_NUMBER) {
			cut_here(c);
			break;
		}
		(void)json_decimal(c->p->text, 0, &number);
		if (!vec_push(c->mem, c->samples, c->sample_count, c->sample_cap, number))
			return builder_no_memory(c->b);
	}
	return OW_OK;
}

static ow_status read_member(struct v8_profile *c)
{
	struct json_pull *p = c->p;

	if (c->pieces && (json_key_is(p->text, "data") || json_key_is(p->text, "cpuProfile"))) {
		if (json_pull_next(p) == TOKEN_OBJECT)
			c->inside++;
		return OW_OK;
	}
	if (json_key_is(p->text, "nodes"))
		return read_nodes(c);
	if (json_key_is(p->text, "head")) {
		c->nested = true;
		return read_nodes(c);
	}
	if (json_key_is(p->text, "samples"))
		return read_samples(c);
	if (json_key_is(p->text, "timeDeltas"))
		return read_times(c);
	if (json_key_is(p->text, "timestamps")) {
		c->timestamps = true;
		return read_times(c);
	}
	if (json_key_is(p->text, "startTime")) { /* in the old format, in seconds: see times_of */
		c->has_start = json_text_number(p, 0, &c->start_us);
	} else if (json_key_is(p->text, "endTime")) {
		c->has_end = json_text_number(p, 0, &c->end_us);
	} else if (!json_pull_skip(p)) {
		cut_here(c);
	}
	return c->b->status;
}

static ow_status read_top(struct v8_profile *c)
{
	enum json_token token;

	if (json_pull_next(c->p) != TOKEN_OBJECT)
		return error_at(c->ctx->err, OW_E_FORMAT, c->p->offset,
				"%s: not a V8 profile, which is a JSON object", c->ctx->in->name);
	while (!c->truncated) {
		token = json_pull_next(c->p);
		if (token == TOKEN_KEY)
			OW_TRY(read_member(c));
		else if (token != TOKEN_CLOSE)
			cut_here(c);
		else if (!c->inside--)
			break;
	}
	c->inside = 0;
	return c->b->status;
}

static uint32_t find_node(const struct v8_profile *c, int64_t id)
{
	uint64_t hash = map_hash_u64((uint64_t)id, 7);

	for (struct map_iter it = map_find(&c->by_id, hash); it.value; it = map_next(&c->by_id, it))
		if (c->nodes[it.value - 1].id == id)
			return it.value;
	return 0;
}

static ow_status join_nodes(struct v8_profile *c)
{
	for (size_t i = 0; i < c->node_count; i++)
		if (!find_node(c, c->nodes[i].id) &&
		    !map_add(&c->by_id, map_hash_u64((uint64_t)c->nodes[i].id, 7), (uint32_t)i + 1))
			return import_no_memory(c->ctx);
	for (size_t i = 0; i < c->edge_count; i++) {
		uint32_t child = find_node(c, c->edges[i].child);

		if (child && !c->nodes[child - 1].parent)
			c->nodes[child - 1].parent = c->edges[i].parent;
	}
	for (size_t i = 0; i < c->node_count; i++)
		if (!c->nodes[i].parent && c->nodes[i].has_parent_id)
			c->nodes[i].parent = find_node(c, c->nodes[i].parent_id);
	return OW_OK;
}

static stack_id stack_of_call(struct v8_profile *c, stack_id caller, const struct v8_node *node)
{
	struct str name = model_str(c->b->m, node->function);
	struct frame_row row = { .function = node->function, .file = node->url };
	int64_t first =
		c->nested && !c->call_frames ? 0 : 1; /* the newer format counts lines from 0 */

	if (str_eq(name, STR("(root)")))
		return caller;
	if (!name.len)
		row.function = builder_cstr(c->b, "(anonymous)");
	if (node->line >= 0 && node->line < INT32_MAX && model_str(c->b->m, node->url).len)
		row.line = (int32_t)(node->line + first);
	return builder_stack(c->b, caller, builder_frame(c->b, &row));
}

/* Makes the stack of a node: goes up to a node whose stack is known, then down again. */
static ow_status make_stack(struct v8_profile *c, uint32_t number)
{
	size_t len = 0;

	for (; number && !c->nodes[number - 1].done; number = c->nodes[number - 1].parent) {
		if (!vec_push(c->mem, c->path, len, c->path_cap, number))
			return import_no_memory(c->ctx);
		c->nodes[number - 1].done = true;
	}
	while (len) {
		struct v8_node *node = &c->nodes[c->path[--len] - 1];
		stack_id caller = { 0 };

		if (node->parent)
			caller = c->nodes[node->parent - 1].stack;
		node->stack = stack_of_call(c, caller, node);
	}
	return c->b->status;
}

/* Converts differences to times; the old format has times already. */
static void times_of(struct v8_profile *c)
{
	int64_t at = c->start_us, before = INT64_MIN;

	for (size_t i = 0; i < c->time_count; i++) {
		at = c->timestamps ? c->times[i] : wrap_add(at, c->times[i]);
		if (at < before) {
			c->backwards++;
			at = before;
		}
		c->times[i] = before = at;
	}
	if (c->timestamps) /* the end is in seconds of another clock */
		c->has_end = false;
}

/* How long sample i lasted, in nanoseconds. The last one lasts until the end, or as long as the one before: V8 often writes the time of the
 * last sample as the end. */
static int64_t weight_of(const struct v8_profile *c, size_t i, size_t count)
{
	int64_t span = 0, ns;

	if (i + 1 < count)
		span = wrap_add(c->times[i + 1], -c->times[i]);
	else if (c->has_end && c->end_us > c->times[i])
		span = wrap_add(c->end_us, -c->times[i]);
	else if (i)
		span = wrap_add(c->times[i], -c->times[i - 1]);
	return __builtin_mul_overflow(MAX(span, 0), 1000, &ns) ? INT64_MAX : ns;
}

static int64_t to_ns(const struct v8_profile *c, int64_t us)
{
	int64_t ns;

	if (__builtin_mul_overflow(us, 1000, &ns) || __builtin_add_overflow(ns, c->base_ns, &ns))
		return TIME_UNKNOWN;
	return ns;
}

/* Whether a node is the idle node, whose samples are waiting, not work. */
static bool is_idle(const struct v8_profile *c, uint32_t node)
{
	return str_eq(model_str(c->b->m, c->nodes[node - 1].function), STR("(idle)"));
}

static void add_sample(struct v8_profile *c, uint32_t node, int64_t ts_ns, int64_t weight,
		       metric_id metric, track_id track)
{
	builder_add_sample(c->b, &(struct sample_row){ .ts_ns = ts_ns,
						       .weight = weight,
						       .metric = metric,
						       .stack = c->nodes[node - 1].stack,
						       .track = track });
}

static ow_status add_timed(struct v8_profile *c, track_id track)
{
	metric_id metric = builder_metric(c->b, STR("time"), STR("ns"));
	size_t count = MIN(c->sample_count, c->time_count);

	OW_TRY(c->b->status);
	c->b->m->metric.is_default[metric.v] = 1;
	times_of(c);
	/* one more time than samples: when the last sample ended */
	if (c->time_count == c->sample_count + 1) {
		c->end_us = c->times[count];
		c->has_end = true;
	} else {
		c->unequal = c->sample_count != c->time_count;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t node = find_node(c, c->samples[i]);

		if (!node)
			c->unknown++;
		else if (is_idle(c, node))
			c->idle++;
		else
			add_sample(c, node, to_ns(c, c->times[i]), weight_of(c, i, count), metric,
				   track);
	}
	return c->b->status;
}

static ow_status add_hits(struct v8_profile *c, track_id track)
{
	metric_id metric = builder_metric(c->b, STR("samples"), STR("count"));

	OW_TRY(c->b->status);
	c->b->m->metric.is_default[metric.v] = 1;
	for (size_t i = 0; i < c->node_count; i++)
		if (c->nodes[i].hits > 0 && is_idle(c, (uint32_t)i + 1))
			c->idle += (uint64_t)c->nodes[i].hits;
		else if (c->nodes[i].hits > 0)
			add_sample(c, (uint32_t)i + 1, TIME_UNKNOWN, c->nodes[i].hits, metric,
				   track);
	return c->b->status;
}

/* Adds the bytes that calls hold. */
static ow_status add_held(struct v8_profile *c, track_id track)
{
	metric_id bytes = builder_metric(c->b, STR("bytes"), STR("bytes"));

	OW_TRY(c->b->status);
	c->b->m->metric.is_default[bytes.v] = 1;
	for (size_t i = 0; i < c->node_count; i++)
		if (c->nodes[i].bytes > 0)
			add_sample(c, (uint32_t)i + 1, TIME_UNKNOWN, c->nodes[i].bytes, bytes,
				   track);
	return c->b->status;
}

static void add_notes_and_facts(struct v8_profile *c)
{
	struct builder *b = c->b;

	if (c->truncated)
		builder_note(b, NOTE_TRUNCATED, c->truncated_at,
			     "the document ends or is damaged here; what comes before is used");
	if (c->unknown)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, c->unknown,
				  "samples in nodes that the profile does not have are left out");
	if (c->backwards) /* V8 writes decreasing times when two threads take samples */
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, c->backwards,
				  "samples that are earlier than the sample before get its time");
	if (c->unequal)
		builder_note(b, NOTE_DAMAGED, OW_NO_OFFSET,
			     "there are %zu samples but %zu times: those without a partner are "
			     "left out",
			     c->sample_count, c->time_count);
	if (c->idle)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, c->idle,
				  "samples of a thread that waited, (idle), are left out");
	if (c->pieces)
		return;
	fact_text(b, (fact_id){ 0 }, "kind", c->heap ? STR("heapprofile") : STR("cpuprofile"));
	fact_int(b, (fact_id){ 0 }, "nodes", (int64_t)c->node_count);
	fact_int(b, (fact_id){ 0 }, "samples", (int64_t)c->sample_count);
}

static ow_status add_all(struct v8_profile *c, track_id track)
{
	OW_TRY(join_nodes(c));
	for (size_t i = 0; i < c->node_count; i++)
		OW_TRY(make_stack(c, (uint32_t)i + 1));
	if (c->heap)
		return add_held(c, track);
	return c->sample_count && c->time_count ? add_timed(c, track) : add_hits(c, track);
}

static ow_status read_profile(struct v8_profile *c)
{
	struct builder *b = c->b;
	uint32_t before = b->m->sample.count;
	track_id track;

	OW_TRY(read_top(c));
	OW_TRY(c->p->window.status);
	track = builder_track(b, &(struct track_row){ .name = builder_cstr(b, "JavaScript"),
						      .kind = TRACK_HOST,
						      .source = b->source });
	OW_TRY(b->status);
	OW_TRY(add_all(c, track));
	if (b->m->sample.count == before)
		return error_at(
			c->ctx->err, OW_E_FORMAT, c->truncated ? c->truncated_at : OW_NO_OFFSET,
			c->idle ? "%s: all samples of this V8 profile come from an idle thread"
				: "%s: this V8 profile has no samples; check that the "
				  "recording ran",
			c->ctx->in->name);
	add_notes_and_facts(c);
	return b->status;
}

static bool init(struct v8_profile *c, struct import_ctx *ctx)
{
	*c = (struct v8_profile){ .ctx = ctx, .b = ctx->b, .mem = ctx->b->m->mem };
	c->p = mem_alloc(c->mem, sizeof(*c->p));
	buf_init(&c->text, c->mem);
	map_init(&c->by_id, c->mem);
	return c->p != NULL;
}

static void release(struct v8_profile *c)
{
	mem_free(c->mem, c->p, sizeof(*c->p));
	buf_release(&c->text);
	map_release(&c->by_id);
	mem_free(c->mem, c->nodes, c->node_cap * sizeof(*c->nodes));
	mem_free(c->mem, c->edges, c->edge_cap * sizeof(*c->edges));
	mem_free(c->mem, c->levels, c->level_cap * sizeof(*c->levels));
	mem_free(c->mem, c->path, c->path_cap * sizeof(*c->path));
	mem_free(c->mem, c->samples, c->sample_cap * sizeof(*c->samples));
	mem_free(c->mem, c->times, c->time_cap * sizeof(*c->times));
}

static ow_status load_cpuprofile(struct import_ctx *ctx)
{
	struct v8_profile c;
	ow_status status;

	if (!init(&c, ctx)) {
		release(&c);
		return import_no_memory(ctx);
	}
	json_pull_init(c.p, ctx->in, ctx->err);
	status = read_profile(&c);
	json_pull_release(c.p);
	release(&c);
	return status;
}

struct v8_profile *v8_profile_new(struct import_ctx *ctx)
{
	struct v8_profile *c = mem_alloc(ctx->b->m->mem, sizeof(*c));

	if (!c)
		return NULL;
	if (!init(c, ctx)) {
		v8_profile_free(c);
		return NULL;
	}
	c->pieces = true;
	return c;
}

void v8_profile_free(struct v8_profile *c)
{
	struct mem *mem = c ? c->mem : NULL;

	if (!c)
		return;
	release(c);
	mem_free(mem, c, sizeof(*c));
}

ow_status v8_profile_take(struct v8_profile *c, struct str args)
{
	struct input in;
	ow_status status;

	OW_TRY(input_from_memory(&in, c->mem, c->ctx->in->name, args.ptr, args.len, c->ctx->err));
	json_pull_init(c->p, &in, c->ctx->err);
	c->level_count = 0;
	status = read_top(c);
	json_pull_release(c->p);
	input_close(&in);
	return status;
}

ow_status v8_profile_finish(struct v8_profile *c, track_id track, int64_t base_ns)
{
	c->base_ns = base_ns;
	if (!c->sample_count || !c->time_count)
		return OW_OK; /* the profile had just begun, and has no samples */
	OW_TRY(add_all(c, track));
	add_notes_and_facts(c);
	return c->b->status;
}

const struct importer import_cpuprofile = {
	.name = "cpuprofile",
	.summary = "V8's CPU and heap profiles: Chrome's DevTools, node --cpu-prof, --heap-prof",
	.extensions = "*.cpuprofile, *.heapprofile",
	.role = ROLE_TRACE,
	.sniff = sniff_cpuprofile,
	.load = load_cpuprofile,
};
