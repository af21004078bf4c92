/*
 * import_graphdef.c: reads GraphDef, binary or text: the nodes of a TensorFlow graph become ops, edges and static
 * shapes. It also reads the graphs in meta graphs, saved models and event files (tf_graph.h). Function bodies of the
 * library and all attributes but three are skipped; their offsets are kept, and tf_library.c and tf_node.c read them on
 * demand.
 */
#include "import/importer.h"
#include "base/vec.h"
#include "import/tensorflow/graph/tf_graph.h"
#include "import/tensorflow/tf_message.h"
#include "import/tensorflow/tf_read.h"
#include "import/tensorflow/shapes/tf_shape.h"

/* A record larger than this (a Const with its data) is read field by field instead of as a whole; an attribute
 * larger than this cannot be one that is needed. */
#define WHOLE_RECORD ((uint64_t)1 << 20)
#define QUADRATIC_INPUTS 24

/* Look-ahead for the names of the next nodes. Looking up a name takes three steps, each of which reads memory that
 * is not in the cache: slot, entry, text. So each step is prefetched for a node further ahead. */
#define AHEAD 16      /* number of nodes, a power of two */
#define AHEAD_STEP 4  /* nodes between one step and the next */
#define AHEAD_NAMES 4 /* names per node: its own and its first inputs */

/* A node that was scanned ahead of reading it. */
struct ahead_node {
	uint64_t offset; /* offset of its record */
	unsigned count;
	uint64_t hash[AHEAD_NAMES];
	uint32_t found[AHEAD_NAMES]; /* for each name: an interned text with the same hash, or 0 */
};

struct ahead {
	uint64_t next; /* offset of the next record to scan */
	unsigned at;
	struct ahead_node nodes[AHEAD];
};

struct graph {
	struct tf_read r;
	struct tf_tally types, devices;
	struct tf_shape_memory shapes;
	struct ahead ahead;
	uint32_t input_base;
	uint64_t nodes, inputs, control_inputs, functions, duplicates, bad_ports;
	uint64_t repeated; /* nodes that an earlier input also has, with the same type */
	uint32_t first_op; /* first op of this graph */
	uint64_t bad_port_offset, duplicate_offset;
	int64_t producer;
	bool has_producer;
	bool nested; /* the file may contain several graphs */
	bool count_only;
	bool first_graph;
	uint64_t reserve_at;
	uint32_t prefaulted; /* see tf_prefault_rows */
	uint64_t begin;	     /* offset at which the message begins */
	uint64_t unknown;    /* number of nodes that are not ops of the model, when only counting */
};

/* The node being read. Its edges and outputs are in the model's tables already. */
struct node {
	str_id name, type, device, data_format;
	shape_id shape;
	uint32_t input_first, output_first;
	uint64_t inputs, control_inputs;
	const struct ahead_node *ahead; /* its names from the look-ahead, or NULL */
	unsigned names;			/* number of names that were read */
	bool is_new;			/* the name is new, so no op can have it */
};

/* Interns the next name of a node: its own or that of an input. */
static str_id node_text(struct graph *g, struct node *n, struct str text)
{
	const struct ahead_node *ahead = n->ahead;
	const struct strings *s = &g->r.b->m->strings;
	unsigned at = n->names++;

	if (!ahead || at >= ahead->count)
		return tf_text(&g->r, text);
	if (str_eq(s->text[ahead->found[at]], text))
		return (str_id){ ahead->found[at] };
	return tf_text_hashed(&g->r, text, ahead->hash[at]);
}

/* Splits "name", "name:1" or "^name"; the port is cut off first, then one ^. */
static struct str input_name(struct str text, struct str *port, bool *control)
{
	size_t colon = str_find_char(text, ':');

	*port = (struct str){ 0 };
	if (colon != STR_NONE) {
		*port = str_skip(text, colon + 1);
		text = str_first(text, colon);
	}
	*control = text.len && text.ptr[0] == '^';
	return *control ? str_skip(text, 1) : text;
}

static void add_input(struct graph *g, struct node *n, struct str text)
{
	struct builder *b = g->r.b;
	struct str port_text;
	bool control;
	struct str name = input_name(text, &port_text, &control);
	int64_t port = 0;

	if (port_text.ptr &&
	    (!str_to_i64(port_text, &port) || port < INT32_MIN || port > INT32_MAX)) {
		port = 0;
		if (!g->bad_ports++)
			g->bad_port_offset = g->r.record;
	}
	builder_add_op_input(b, &(struct op_input_row){
					.name = node_text(g, n, name),
					.index = (int32_t)(b->m->op_input.count - n->input_first),
					.port = control ? -1 : (int32_t)port,
					.shown_port = (int32_t)port });
	n->inputs++;
	n->control_inputs += control;
}

static void copy_ports_hashed(struct builder *b, uint32_t first, uint32_t end)
{
	struct op_input_table *t = &b->m->op_input;
	struct map last;

	map_init(&last, b->m->mem);
	for (uint32_t i = end; i-- > first;) {
		uint64_t hash = map_hash_u64(t->name[i].v, 7);
		struct map_iter it = map_find(&last, hash);

		while (it.value && t->name[it.value].v != t->name[i].v)
			it = map_next(&last, it);
		if (it.value)
			t->shown_port[i] = t->shown_port[it.value];
		else if (!map_add(&last, hash, i)) {
			builder_no_memory(b);
			break;
		}
	}
	map_release(&last);
}

/* Sets the same port for all edges from one producer, that of the last input: tfprof keeps one port for each
 * producer. */
static void share_ports(struct builder *b, uint32_t first)
{
	struct op_input_table *t = &b->m->op_input;
	uint32_t end = t->count;

	if (end - first < 2)
		return;
	if (end - first > QUADRATIC_INPUTS) {
		copy_ports_hashed(b, first, end);
		return;
	}
	for (uint32_t i = end - 1; i-- > first;)
		for (uint32_t j = i + 1; j < end; j++)
			if (t->name[j].v == t->name[i].v)
				t->shown_port[i] = t->shown_port[j];
}

static void add_outputs(struct graph *g, struct node *n, struct str message)
{
	struct pb list = pb_over(message.ptr, message.len);
	struct builder *b = g->r.b;
	struct pb_field f;

	/* if an attribute is given twice the last one counts */
	b->m->op_output.count = n->output_first;
	while (pb_next(&list, &f)) {
		if (f.tag != PB_TAG(7, PB_BYTES))
			continue;
		builder_add_op_output(
			b, &(struct op_output_row){
				   .index = (int32_t)(b->m->op_output.count - n->output_first),
				   .shape = tf_shape_recall(&g->shapes, b, pb_str(&f),
							    tf_shape_static) });
	}
}

enum attr { ATTR_OTHER, ATTR_SHAPE, ATTR_OUTPUT_SHAPES, ATTR_DATA_FORMAT };

static enum attr attr_of(struct str key)
{
	if (str_eq(key, STR("shape")))
		return ATTR_SHAPE;
	if (str_eq(key, STR("_output_shapes")))
		return ATTR_OUTPUT_SHAPES;
	if (str_eq(key, STR("data_format")))
		return ATTR_DATA_FORMAT;
	return ATTR_OTHER;
}

/* Reads one entry of the map of attributes; the value is a oneof, whose last member counts. */
static enum pb_problem add_attr(struct graph *g, struct node *n, struct str message)
{
	struct pb entry = pb_over(message.ptr, message.len);
	struct str key = { 0 }, value = { 0 };
	struct pb_field f, last = { 0 };
	struct pb r;

	while (pb_next(&entry, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			key = pb_str(&f);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			value = pb_str(&f);
		if (f.tag == PB_TAG(1, PB_BYTES) && attr_of(key) == ATTR_OTHER)
			return PB_OK;
	}
	if (entry.problem || !key.ptr || !value.ptr)
		return entry.problem;
	r = pb_over(value.ptr, value.len);
	while (pb_next(&r, &f))
		if (pb_number(&f) <= TF_ATTR_CASES) /* unknown fields are not values */
			last = f;
	if (r.problem)
		return r.problem;
	switch (attr_of(key)) {
	case ATTR_SHAPE:
		if (last.tag == PB_TAG(7, PB_BYTES))
			n->shape = tf_shape_static(g->r.b, pb_str(&last));
		break;
	case ATTR_OUTPUT_SHAPES:
		if (last.tag == PB_TAG(1, PB_BYTES))
			add_outputs(g, n, pb_str(&last));
		break;
	case ATTR_DATA_FORMAT:
		if (last.tag == PB_TAG(2, PB_BYTES))
			n->data_format = tf_word(&g->r, pb_str(&last));
		break;
	case ATTR_OTHER:
		break;
	}
	return PB_OK;
}

static void add_name(struct graph *g, struct node *n, struct str name)
{
	uint32_t strings = g->r.b->m->strings.count;

	n->name = node_text(g, n, name);
	/* A new text cannot be the name of an op. */
	n->is_new = g->r.b->m->strings.count != strings;
}

static enum pb_problem add_field(struct graph *g, struct node *n, const struct pb_field *f)
{
	switch (f->tag) {
	case PB_TAG(1, PB_BYTES):
		add_name(g, n, pb_str(f));
		break;
	case PB_TAG(2, PB_BYTES):
		n->type = tf_word(&g->r, pb_str(f));
		break;
	case PB_TAG(3, PB_BYTES):
		add_input(g, n, pb_str(f));
		break;
	case PB_TAG(4, PB_BYTES):
		n->device = tf_word(&g->r, pb_str(f));
		break;
	case PB_TAG(5, PB_BYTES):
		return add_attr(g, n, pb_str(f));
	default:
		break;
	}
	return PB_OK;
}

static void drop_rows(struct model *m, const struct node *n)
{
	m->op_input.count = n->input_first;
	m->op_output.count = n->output_first;
}

static void add_node(struct graph *g, const struct node *n, uint64_t offset, uint64_t size)
{
	struct builder *b = g->r.b;
	struct model *m = b->m;

	g->nodes++;
	g->inputs += n->inputs;
	g->control_inputs += n->control_inputs;
	tf_tally_add(&g->types, n->type, 1);
	tf_tally_add(&g->devices, n->device, 1);
	if (g->count_only) {
		drop_rows(m, n);
		g->unknown += !builder_find_op(b, n->name).v;
		return;
	}
	if (!n->is_new && builder_find_op(b, n->name).v) {
		uint32_t known = builder_find_op(b, n->name).v;

		drop_rows(m, n);
		if (!g->nested && known < g->first_op && m->op.type[known].v == n->type.v)
			g->repeated++;
		else if (!g->duplicates++)
			g->duplicate_offset = offset;
		return;
	}
	share_ports(b, n->input_first);
	if (OW_UNLIKELY(m->op.count >= g->prefaulted))
		tf_prefault_rows(m, TABLE_op, &g->prefaulted);
	builder_new_op(
		b, &(struct op_row){ .name = n->name,
				     .type = n->type,
				     .types = tf_set_add(&g->r, (strset_id){ 0 }, n->type),
				     .shape = n->shape,
				     .input_first = n->input_first,
				     .input_count = m->op_input.count - n->input_first,
				     .output_first = n->output_first,
				     .output_count = m->op_output.count - n->output_first,
				     .data_format = n->data_format,
				     .source = b->source,
				     .record_offset = offset,
				     .record_size = (uint32_t)MIN(size, (uint64_t)UINT32_MAX) });
}

/* Reads a record that is completely in memory. */
static bool read_whole_node(struct graph *g, struct node *n, struct str bytes, uint64_t offset)
{
	struct pb record = pb_over(bytes.ptr, bytes.len);
	enum pb_problem problem;
	struct pb_field field;

	g->r.record = offset;
	while (pb_next(&record, &field)) {
		problem = add_field(g, n, &field);
		if (OW_UNLIKELY(problem != PB_OK)) {
			record.at = field.ptr;
			pb_fail(&record, problem);
		}
	}
	if (OW_LIKELY(!record.problem))
		return true;
	tf_damaged_at(&g->r, offset, &record, (const uint8_t *)bytes.ptr);
	return false;
}

/* Reads a large record field by field, only the small fields. */
static bool read_large_node(struct graph *g, struct node *n, const struct pb_stream_field *f)
{
	struct pb_stream_field part;
	bool whole = !f->cut;

	if (!pb_stream_enter(&g->r.stream, f))
		return false;
	while (tf_next(&g->r, &part)) {
		const uint8_t *bytes;
		struct pb_field field;

		if ((part.tag & 7) != PB_BYTES || part.cut || part.size > WHOLE_RECORD)
			continue;
		bytes = pb_stream_bytes(&g->r.stream, &part);
		if (!bytes)
			break;
		field = (struct pb_field){ .tag = part.tag, .value = part.size, .ptr = bytes };
		if (add_field(g, n, &field) != PB_OK) {
			struct pb broken = { bytes, bytes, PB_TRUNCATED };

			tf_damaged(&g->r, &part, &broken, bytes);
			whole = false;
		}
	}
	pb_stream_leave(&g->r.stream);
	return whole;
}

static struct node begin_node(const struct graph *g)
{
	const struct model *m = g->r.b->m;

	return (struct node){ .input_first = m->op_input.count,
			      .output_first = m->op_output.count };
}

static void end_node(struct graph *g, const struct node *n, bool whole, uint64_t offset,
		     uint64_t size)
{
	if (whole && g->r.b->status == OW_OK)
		add_node(g, n, offset, size);
	else
		drop_rows(g->r.b->m, n);
}

/* Reads a node that is not completely in the window. */
static void read_node(struct graph *g, const struct pb_stream_field *f)
{
	struct node n = begin_node(g);
	const uint8_t *bytes = NULL;
	bool whole = false;

	if (f->size > WHOLE_RECORD || f->cut)
		whole = read_large_node(g, &n, f);
	else if ((bytes = pb_stream_bytes(&g->r.stream, f)))
		whole = read_whole_node(g, &n, str_make(bytes, (size_t)f->size), f->offset);
	end_node(g, &n, whole, f->offset, f->size);
}

/* Scans the names of the record at ahead.next, if it is in the window already. */
static void scan_ahead(struct graph *g)
{
	const struct window *w = &g->r.window;
	struct ahead *a = &g->ahead;
	size_t at = (size_t)(a->next - w->base), slot = a->at++ % AHEAD;
	struct pb_field f;
	struct pb r;

	a->nodes[slot].count = 0;
	a->nodes[slot].offset = 0;
	if (a->next < w->base || a->next - w->base >= w->len)
		return;
	r = pb_over(w->buf + at, w->len - at);
	if (!pb_next(&r, &f))
		return;
	a->next += (uint64_t)(r.at - (w->buf + at));
	if (f.tag != PB_TAG(1, PB_BYTES))
		return;
	a->nodes[slot].offset = w->base + (uint64_t)(f.ptr - w->buf);
	r = pb_message(&f);
	while (a->nodes[slot].count < AHEAD_NAMES && pb_next(&r, &f)) {
		struct str name = pb_str(&f), port;
		bool control;
		uint64_t hash;

		if (f.tag == PB_TAG(2, PB_BYTES))
			continue;
		if (f.tag == PB_TAG(3, PB_BYTES))
			name = input_name(name, &port, &control);
		else if (f.tag != PB_TAG(1, PB_BYTES))
			return;
		hash = str_hash(name);
		tf_prefetch(&g->r.b->m->strings.map, hash);
		a->nodes[slot].found[a->nodes[slot].count] = 0;
		a->nodes[slot].hash[a->nodes[slot].count++] = hash;
	}
}

/* Prefetches the names of the next nodes; `at` is the offset of the node after the current one. */
static void look_ahead(struct graph *g, uint64_t at)
{
	const struct strings *s = &g->r.b->m->strings;
	struct ahead *a = &g->ahead;
	struct ahead_node *entry = &a->nodes[(a->at - AHEAD_STEP) % AHEAD];
	const struct ahead_node *text = &a->nodes[(a->at - 2 * AHEAD_STEP) % AHEAD];

	for (unsigned i = 0; i < entry->count; i++) {
		entry->found[i] = map_find(&s->map, entry->hash[i]).value;
		__builtin_prefetch(&s->text[entry->found[i]]);
	}
	for (unsigned i = 0; i < text->count; i++) {
		struct str found = s->text[text->found[i]];

		__builtin_prefetch(found.ptr);
		__builtin_prefetch(found.ptr + found.len);
	}
	if (a->next < at) { /* the look-ahead fell behind at the end of the window */
		a->next = at;
		for (unsigned i = 1; i < 3 * AHEAD_STEP; i++)
			scan_ahead(g);
	}
	scan_ahead(g);
}

/* The entry of the look-ahead for the node at `offset`; NULL when the look-ahead has not come that far. */
static const struct ahead_node *ahead_of(const struct graph *g, uint64_t offset)
{
	const struct ahead_node *node = &g->ahead.nodes[(g->ahead.at - 3 * AHEAD_STEP - 1) % AHEAD];

	return node->offset == offset ? node : NULL;
}

/* Sets the ops of edges by name. Edges to later graphs are resolved by the freeze. */
static void resolve_inputs(struct graph *g)
{
	struct model *m = g->r.b->m;
	size_t size = (size_t)m->strings.count * sizeof(uint32_t);
	uint32_t *by_name;

	if (g->r.b->status != OW_OK || m->op_input.count == g->input_base)
		return;
	by_name = mem_zalloc(m->mem, size);
	if (!by_name) {
		builder_no_memory(g->r.b);
		return;
	}
	for (uint32_t i = 1; i < m->op.count; i++)
		by_name[m->op.name[i].v] = i;
	for (uint32_t i = g->input_base; i < m->op_input.count; i++)
		m->op_input.src[i].v = by_name[m->op_input.name[i].v];
	mem_free(m->mem, by_name, size);
}

static void keep_library(struct graph *g, const struct pb_stream_field *f)
{
	struct model *m = g->r.b->m;

	if (g->count_only || !g->r.ctx->options->infer)
		return;
	if (!vec_push(m->mem, m->libraries, m->library_count, m->library_cap,
		      (struct function_library){ g->r.b->source, f->offset, f->size }))
		builder_fail(g->r.b, error_no_memory(g->r.b->err));
}

static void count_functions(struct graph *g, const struct pb_stream_field *f)
{
	struct pb_stream_field part;

	if (!pb_stream_enter(&g->r.stream, f))
		return;
	while (tf_next(&g->r, &part))
		g->functions += part.tag == PB_TAG(1, PB_BYTES);
	pb_stream_leave(&g->r.stream);
}

static void read_versions(struct graph *g, const struct pb_stream_field *f)
{
	struct pb_stream_field part;

	if (!pb_stream_enter(&g->r.stream, f))
		return;
	while (tf_next(&g->r, &part))
		if (part.tag == PB_TAG(1, PB_VARINT)) {
			g->producer = tf_int32(part.value);
			g->has_producer = true;
		}
	pb_stream_leave(&g->r.stream);
}

static void note_oddities(struct graph *g)
{
	struct builder *b = g->r.b;

	if (g->repeated) /* a meta graph together with the text of its graph */
		builder_note_many(
			b, NOTE_INFO, OW_NO_OFFSET, g->repeated,
			"nodes are in an earlier input, too, with the same name and type: "
			"counted once");
	if (g->duplicates) /* versions of one graph in one file repeat its nodes */
		builder_note_many(
			b, g->nested ? NOTE_INFO : NOTE_DROPPED, g->duplicate_offset, g->duplicates,
			"nodes of the graph were skipped because another node has the same name");
	if (g->bad_ports)
		builder_note_many(b, NOTE_REPAIRED, g->bad_port_offset, g->bad_ports,
				  "inputs have a port that is not a number; port 0 is used");
}

static void add_facts(struct graph *g, fact_id parent)
{
	struct builder *b = g->r.b;

	fact_int(b, parent, "nodes", (int64_t)g->nodes);
	fact_int(b, parent, "distinct_ops", (int64_t)tf_tally_count(&g->types));
	fact_int(b, parent, "inputs", (int64_t)g->inputs);
	fact_int(b, parent, "control_inputs", (int64_t)g->control_inputs);
	fact_int(b, parent, "library_functions", (int64_t)g->functions);
	if (g->has_producer)
		fact_int(b, parent, "producer", g->producer);
	tf_tally_object(&g->devices, parent, "devices", 100);
	tf_tally_list(&g->types, parent, "top5_ops", 5);
}

static void reserve_tables(struct graph *g)
{
	static const enum table_id tables[] = { TABLE_op, TABLE_op_input, TABLE_op_output };

	for (size_t i = 0; g->first_graph && i < ARRAY_COUNT(tables); i++)
		tf_reserve(&g->r, tables[i], 0, g->r.stream.at - g->begin,
			   g->r.stream.ends[0] - g->begin);
}

/* Reads a field that is not completely in the window, or is not a node. */
static bool read_other(struct graph *g, const struct pb_stream_field *f)
{
	switch (f->tag) {
	case PB_TAG(1, PB_BYTES):
		read_node(g, f);
		break;
	case PB_TAG(2, PB_BYTES):
		keep_library(g, f);
		count_functions(g, f);
		break;
	case PB_TAG(4, PB_BYTES):
		read_versions(g, f);
		break;
	default:
		break;
	}
	if (tf_time_to_reserve(&g->reserve_at, g->r.stream.at - g->begin))
		reserve_tables(g);
	return true;
}

/* Reads nodes that are completely in the window; stops before anything else. */
static void read_nodes(struct graph *g, struct pb_bulk *bulk)
{
	struct pb_field f;
	uint64_t offset;

	for (;;) {
		const uint8_t *before = bulk->pb.at;
		struct node n;
		bool whole;

		if (!pb_bulk_next(bulk, &f, &offset))
			return;
		if (f.tag != PB_TAG(1, PB_BYTES)) {
			bulk->pb.at = before;
			return;
		}
		look_ahead(g, offset + f.value);
		n = begin_node(g);
		n.ahead = ahead_of(g, offset);
		whole = read_whole_node(g, &n, pb_str(&f), offset);
		end_node(g, &n, whole, offset, f.value);
	}
}

static ow_status read_graph(struct graph *g, struct import_ctx *ctx, uint64_t begin, uint64_t end,
			    fact_id facts)
{
	struct pb_stream_field f;
	struct pb_bulk bulk;

	tf_read_begin(&g->r, ctx, "GraphDef", begin, end);
	g->input_base = ctx->b->m->op_input.count;
	g->first_graph = ctx->b->m->op.count == 1;
	g->first_op = ctx->b->m->op.count;
	g->begin = begin;
	tf_tally_init(&g->types, ctx->b);
	tf_tally_init(&g->devices, ctx->b);
	do {
		bulk = pb_bulk(&g->r.stream);
		read_nodes(g, &bulk);
		pb_bulk_end(&g->r.stream, &bulk);
	} while (tf_next(&g->r, &f) && read_other(g, &f));
	resolve_inputs(g);
	note_oddities(g);
	add_facts(g, facts);
	tf_tally_release(&g->types);
	tf_tally_release(&g->devices);
	return tf_read_end(&g->r, g->nodes || g->functions || g->nested);
}

ow_status tf_graph_read(struct import_ctx *ctx, uint64_t begin, uint64_t end, fact_id facts,
			uint64_t *found)
{
	struct graph g = { .nested = found != NULL };
	ow_status status = read_graph(&g, ctx, begin, end, facts);

	if (found)
		*found = g.nodes;
	return status;
}

ow_status tf_graph_count(struct import_ctx *ctx, uint64_t begin, uint64_t end, fact_id facts,
			 uint64_t *unknown)
{
	struct graph g = { .nested = true, .count_only = true };
	ow_status status = read_graph(&g, ctx, begin, end, facts);

	*unknown = g.unknown;
	return status;
}

static int sniff(const struct sniff *s)
{
	return tf_sniff(s, TF_GRAPH);
}

static ow_status load(struct import_ctx *ctx)
{
	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("GraphDef"));
	OW_TRY(tf_text_convert(ctx, TF_GRAPH));
	return tf_graph_read(ctx, 0, ctx->in->size, (fact_id){ 0 }, NULL);
}

const struct importer import_graphdef = {
	.name = "graphdef",
	.summary = "TensorFlow GraphDef: ops, edges, static shapes",
	.extensions = "*.pb, *.pbtxt, graph.pbtxt",
	.role = ROLE_GRAPH,
	.defers = true,
	.sniff = sniff,
	.load = load,
};
