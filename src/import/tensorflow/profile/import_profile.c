/*
 * import_profile.c: reads ProfileProto, the file profile_N that TensorFlow's ProfileContext writes: graph, steps and
 * code in one. These files are large, so they are read in one pass, and rows are added as their fields come. Code
 * traces are copied, not decoded (tf_code.h). Memory per output is not read. Rows of a node are added before it is
 * known whether the node is wanted (its name may come late, or exist already), and removed if not. Nodes name their
 * inputs by id, and ids are arbitrary numbers: they are resolved to ops after the last node.
 */
#include "import/tensorflow/profile/profile_int.h"

#include "import/importer.h"
#include "base/vec.h"
#include "import/tensorflow/tf_message.h"
#include "import/tensorflow/code/tf_code.h"
#include "import/tensorflow/tf_phases.h"
#include "import/tensorflow/tf_read.h"
#include "import/tensorflow/shapes/tf_shape.h"

static enum pb_problem add_dims(struct profile *p, struct tf_dim_list *dims,
				const struct pb_field *f)
{
	struct pb_values values = pb_values(f, PB_VARINT);
	uint64_t value;

	while (pb_value(&values, &value))
		tf_dims_push(dims, p->r.b, (int64_t)value);
	return values.problem;
}

static enum pb_problem read_input(struct profile *p, struct str msg)
{
	uint32_t at = p->m->op_input.count - p->input_base;
	int64_t index, id;
	enum pb_problem problem = profile_pair(msg, &index, &id);

	if (!vec_reserve(p->m->mem, p->input_ids, p->input_cap, (size_t)at + 1)) {
		builder_no_memory(p->r.b);
		return problem;
	}
	p->input_ids[at] = id;
	builder_add_op_input(p->r.b,
			     &(struct op_input_row){ .index = (int32_t)index, .shown_port = -1 });
	return problem;
}

static enum pb_problem read_port(struct profile *p, struct str msg)
{
	int64_t id, port;
	enum pb_problem problem = profile_pair(msg, &id, &port);

	if (!vec_reserve(p->m->mem, p->ports, p->port_cap, p->port_count + 1)) {
		builder_no_memory(p->r.b);
		return problem;
	}
	p->ports[p->port_count++] =
		(struct late_port){ (op_id){ p->m->op.count }, (int32_t)port, id };
	return problem;
}

static enum pb_problem read_output(struct profile *p, struct str msg)
{
	struct tf_dim_list dims;
	enum pb_problem problem;
	struct pb_field f;
	struct str value;
	struct pb tuple;
	int64_t index;

	tf_dims_begin(&dims);
	problem = profile_entry(msg, &index, &value);
	tuple = pb_over(value.ptr, value.len);
	while (!problem && pb_next(&tuple, &f))
		if (f.tag >> 3 == 1)
			problem = add_dims(p, &dims, &f);
	builder_add_op_output(p->r.b,
			      &(struct op_output_row){ .index = (int32_t)index,
						       .shape = tf_dims_end(&dims, p->r.b) });
	return problem ? problem : tuple.problem;
}

/* Reads the only attribute that is needed now; the others can be read from the record later. */
static enum pb_problem read_attr(struct profile *p, struct profile_node *n,
				 const struct pb_field *entry)
{
	struct pb r = pb_message(entry), value = pb_over("", 0);
	struct pb_field f, last = { 0 };
	struct str key = { 0 };

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(1, PB_BYTES)) {
			key = pb_str(&f);
			if (!str_eq(key, STR("data_format")))
				return PB_OK;
		} else if (f.tag == PB_TAG(2, PB_BYTES)) {
			value = pb_message(&f);
		}
	if (r.problem || !key.ptr)
		return r.problem;
	while (pb_next(&value, &f))
		if (pb_number(&f) <= TF_ATTR_CASES)
			last = f;
	if (last.tag == PB_TAG(2, PB_BYTES))
		n->data_format = tf_word(&p->r, pb_str(&last));
	return value.problem;
}

static void read_code(struct profile *p, struct profile_node *n, struct str bytes)
{
	if (!n->has_code)
		n->code_offset = p->m->code.len;
	n->has_code = true;
	tf_code_copy(p->code, bytes);
}

/* Finds the op of a node. If earlier sources have added ops, the op must be known before the runs are read; else
 * this waits for the end of the node, when the prefetched slots are in the cache. */
static void find_op(struct profile *p, struct profile_node *n)
{
	uint32_t strings = p->m->strings.count;
	op_id op = { 0 };

	n->name = tf_text(&p->r, n->text);
	if (p->m->strings.count == strings) /* a new text cannot be the name of an op */
		op = builder_find_op(p->r.b, n->name);
	n->known = op.v != 0;
	n->op = op.v ? op : (op_id){ p->m->op.count };
	if (op.v >= p->op_base)
		n->op.v = 0;
	n->late = n->known && p->m->op_step.count != n->op_steps;
}

static void read_name(struct profile *p, struct profile_node *n, struct str name)
{
	n->text = name;
	if (p->op_base > 1) {
		find_op(p, n);
		return;
	}
	tf_prefetch(&p->m->strings.map, str_hash(name));
}

static enum pb_problem read_field(struct profile *p, struct profile_node *n,
				  const struct pb_field *f, struct tf_dim_list *dims)
{
	switch (f->tag) {
	case PB_TAG(1, PB_BYTES):
		read_name(p, n, pb_str(f));
		return PB_OK;
	case PB_TAG(2, PB_BYTES):
		return read_input(p, pb_str(f));
	case PB_TAG(4, PB_BYTES):
	case PB_TAG(4, PB_VARINT):
		return add_dims(p, dims, f);
	case PB_TAG(5, PB_BYTES):
		n->types = tf_set_add(&p->r, n->types, tf_word(&p->r, pb_str(f)));
		return PB_OK;
	case PB_TAG(6, PB_BYTES):
		n->canonical = tf_word(&p->r, pb_str(f));
		return PB_OK;
	case PB_TAG(7, PB_BYTES):
		n->host = tf_word(&p->r, pb_str(f));
		return PB_OK;
	case PB_TAG(8, PB_VARINT):
		n->float_ops = (int64_t)f->value;
		return PB_OK;
	case PB_TAG(9, PB_BYTES):
		n->type = tf_word(&p->r, pb_str(f));
		return PB_OK;
	case PB_TAG(10, PB_BYTES):
		read_code(p, n, pb_str(f));
		return PB_OK;
	case PB_TAG(11, PB_BYTES):
		return read_attr(p, n, f);
	case PB_TAG(12, PB_BYTES):
		return profile_read_exec(p, n, pb_str(f));
	case PB_TAG(14, PB_BYTES):
		return read_port(p, pb_str(f));
	case PB_TAG(15, PB_BYTES):
		return read_output(p, pb_str(f));
	default:
		return PB_OK;
	}
}

static void read_node_fields(struct profile *p, struct profile_node *n, struct pb *r)
{
	struct tf_dim_list dims;
	struct pb_field f;

	tf_dims_begin(&dims);
	while (pb_next(r, &f)) {
		enum pb_problem problem = read_field(p, n, &f, &dims);

		if (OW_UNLIKELY(problem)) {
			r->at = f.ptr;
			pb_fail(r, problem);
		}
	}
	n->shape = tf_dims_end(&dims, p->r.b);
}

static void drop_rows(struct profile *p, const struct profile_node *n)
{
	struct model *m = p->m;

	m->op_input.count = n->inputs;
	m->op_output.count = n->outputs;
	m->op_step.count = n->op_steps;
	m->event.count = n->events;
	m->memory.count = n->memories;
	m->alloc.count = n->allocs;
	p->port_count = n->ports;
	if (n->has_code)
		m->code.len = n->code_offset;
}

static void ask_ahead(struct profile *p)
{
	const struct model *m = p->m;

	if (OW_UNLIKELY(m->op.count >= p->prefaulted_ops))
		tf_prefault_rows(m, TABLE_op, &p->prefaulted_ops);
	if (OW_UNLIKELY(m->op_step.count >= p->prefaulted_steps))
		tf_prefault_rows(m, TABLE_op_step, &p->prefaulted_steps);
	if (OW_UNLIKELY(m->event.count >= p->prefaulted_events))
		tf_prefault_rows(m, TABLE_event, &p->prefaulted_events);
	if (OW_UNLIKELY(m->memory.count >= p->prefaulted_memory))
		tf_prefault_rows(m, TABLE_memory, &p->prefaulted_memory);
}

static struct profile_node begin_node(struct profile *p)
{
	const struct model *m = p->m;

	ask_ahead(p);
	return (struct profile_node){ .op = { m->op.count },
				      .inputs = m->op_input.count,
				      .outputs = m->op_output.count,
				      .op_steps = m->op_step.count,
				      .events = m->event.count,
				      .memories = m->memory.count,
				      .allocs = m->alloc.count,
				      .ports = p->port_count };
}

/* Compares inputs by index, for a sort that nearly always finds them in order. */
static int by_index(const void *a, const void *b)
{
	const struct op_input_row *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

/* Sorts the inputs of a node by index, because maps have any order. If an index is given twice the last one should
 * count, but no known program writes such files, so the first is used. */
static void sort_inputs(struct profile *p, const struct profile_node *n)
{
	struct op_input_table *t = &p->m->op_input;
	uint32_t count = t->count - n->inputs;
	struct op_input_row *rows;
	int64_t *ids;
	bool sorted = true;

	for (uint32_t i = 1; i < count && sorted; i++)
		sorted = t->index[n->inputs + i - 1] < t->index[n->inputs + i];
	if (OW_LIKELY(sorted))
		return;
	ids = p->input_ids + (n->inputs - p->input_base);
	rows = mem_alloc(p->m->mem, count * sizeof(*rows));
	if (!rows) {
		builder_no_memory(p->r.b);
		return;
	}
	/* Only index and id are set so far: the id is stored in two other fields while sorting. */
	for (uint32_t i = 0; i < count; i++)
		rows[i] = (struct op_input_row){ .index = t->index[n->inputs + i],
						 .src = { (uint32_t)((uint64_t)ids[i] >> 32) },
						 .name = { (uint32_t)ids[i] } };
	qsort(rows, count, sizeof(*rows), by_index);
	for (uint32_t i = 0; i < count; i++) {
		t->index[n->inputs + i] = rows[i].index;
		ids[i] = (int64_t)((uint64_t)rows[i].src.v << 32 | rows[i].name.v);
	}
	mem_free(p->m->mem, rows, count * sizeof(*rows));
}

static void add_op(struct profile *p, const struct profile_node *n)
{
	struct model *m = p->m;
	uint64_t code_size = n->has_code ? m->code.len - n->code_offset : 0;
	op_id op;

	sort_inputs(p, n);
	op = builder_new_op(p->r.b,
			    &(struct op_row){ .name = n->name,
					      .type = n->type,
					      .types = n->types,
					      .device = n->canonical,
					      .flags = n->has_code ? OP_HAS_CODE : 0,
					      .float_ops = n->float_ops,
					      .shape = n->shape,
					      .input_first = n->inputs,
					      .input_count = m->op_input.count - n->inputs,
					      .output_first = n->outputs,
					      .output_count = m->op_output.count - n->outputs,
					      .host_device = n->host,
					      .data_format = n->data_format,
					      .code_offset = code_size ? n->code_offset : 0,
					      .code_size = (uint32_t)code_size,
					      .source = p->r.b->source,
					      .record_offset = n->offset,
					      .record_size = n->size });
	if (op.v) /* stored even if it is empty */
		m->op.types[op.v] = n->types;
}

/* Adds the steps to an op of an earlier source, and properties that the op did not have yet. */
static void merge_op(struct profile *p, const struct profile_node *n)
{
	struct model *m = p->m;
	uint32_t at = n->op.v, count;

	m->op_input.count = n->inputs;
	m->op_output.count = n->outputs;
	p->port_count = n->ports;
	for (uint32_t i = 0; i < m->strset.item_count[n->types.v]; i++)
		m->op.types[at] =
			tf_set_add(&p->r, m->op.types[at], model_strset(m, n->types, &count)[i]);
	if (!m->op.device[at].v) {
		m->op.device[at] = n->canonical;
		BUILDER_SET(p->r.b, op, host_device, n->op, n->host);
	}
	if (!m->op.float_ops[at])
		m->op.float_ops[at] = n->float_ops;
	if (!m->op.shape[at].v)
		m->op.shape[at] = n->shape;
	if (!n->has_code)
		return;
	if (m->op.flags[at] & OP_HAS_CODE) {
		m->code.len = n->code_offset;
		return;
	}
	m->op.flags[at] |= OP_HAS_CODE;
	BUILDER_SET(p->r.b, op, code_offset, n->op, n->code_offset);
	BUILDER_SET(p->r.b, op, code_size, n->op, (uint32_t)(m->code.len - n->code_offset));
}

static void remember_id(struct profile *p, int64_t id, op_id op)
{
	if (!vec_push(p->m->mem, p->ids, p->id_count, p->id_cap, (struct known_id){ id, op }))
		builder_no_memory(p->r.b);
}

static void count_node(struct profile *p, const struct profile_node *n)
{
	uint32_t execs = p->m->op_step.count - n->op_steps;

	p->nodes++;
	p->execs += execs;
	p->with_exec += execs != 0;
	p->with_trace += n->has_code;
	p->float_ops = wrap_add(p->float_ops, n->float_ops);
	for (uint32_t i = n->op_steps; i < p->m->op_step.count; i++)
		p->run_count = wrap_add(p->run_count, p->m->op_step.run_count[i]);
	tf_tally_add(&p->types, n->type, 1);
	if (n->canonical.v)
		tf_tally_add(&p->canonical, n->canonical, 1);
}

static void add_node(struct profile *p, const struct profile_node *n, int64_t id)
{
	op_id op = n->op;

	count_node(p, n);
	if (!n->known) {
		add_op(p, n);
	} else if (op.v && !n->late) {
		merge_op(p, n);
	} else {
		op = builder_find_op(p->r.b, n->name);
		drop_rows(p, n);
		if (!p->duplicates++)
			p->duplicate_offset = n->offset;
	}
	remember_id(p, id, op);
}

/* Reads an entry of the map of nodes: a ProfileNode by id. */
static void profile_read_node(struct profile *p, struct str bytes, uint64_t offset)
{
	const uint8_t *start = (const uint8_t *)bytes.ptr;
	struct profile_node n = begin_node(p);
	enum pb_problem problem;
	struct str value;
	struct pb r;
	int64_t id;

	p->r.record = offset;
	problem = profile_entry(bytes, &id, &value);
	if (problem) {
		tf_damaged_at(&p->r, offset, &(struct pb){ start, start, problem }, start);
		return;
	}
	n.size = (uint32_t)value.len;
	n.offset = offset + (n.size ? (uint64_t)(value.ptr - bytes.ptr) : 0);
	r = pb_over(value.ptr, value.len);
	read_node_fields(p, &n, &r);
	if (r.problem) {
		drop_rows(p, &n);
		tf_damaged_at(&p->r, offset, &r, start);
		return;
	}
	if (p->op_base == 1 || !n.text.ptr)
		find_op(p, &n);
	if (p->r.b->status == OW_OK)
		add_node(p, &n, id);
}

/* Maps ids to ops: an array if ids are small, as nearly always, else a hash table. */
struct id_table {
	uint32_t *dense;
	size_t size;
	struct map map;
	const struct known_id *ids;
};

static bool make_id_table(struct profile *p, struct id_table *t)
{
	int64_t max = 0;
	bool dense = true;

	*t = (struct id_table){ .ids = p->ids };
	map_init(&t->map, p->m->mem);
	for (size_t i = 0; i < p->id_count; i++) {
		dense &= p->ids[i].id >= 0;
		max = MAX(max, p->ids[i].id);
	}
	if (dense && (uint64_t)max < p->id_count * 4 + 1024) {
		t->size = (size_t)max + 1;
		t->dense = mem_zalloc(p->m->mem, t->size * sizeof(*t->dense));
		for (size_t i = 0; t->dense && i < p->id_count; i++)
			t->dense[p->ids[i].id] = p->ids[i].op.v;
		return t->dense != NULL;
	}
	for (size_t i = 0; i < p->id_count; i++)
		if (!map_add(&t->map, map_hash_u64((uint64_t)p->ids[i].id, 10), (uint32_t)i + 1))
			return false;
	return true;
}

static op_id op_of_id(const struct id_table *t, int64_t id)
{
	if (t->dense)
		return (op_id){ id >= 0 && (uint64_t)id < t->size ? t->dense[id] : 0 };
	for (struct map_iter it = map_find(&t->map, map_hash_u64((uint64_t)id, 10)); it.value;
	     it = map_next(&t->map, it))
		if (t->ids[it.value - 1].id == id)
			return t->ids[it.value - 1].op;
	return (op_id){ 0 };
}

/* Resolves the ids of edges to ops; edges to missing nodes are dropped. */
static void resolve_inputs(struct profile *p, const struct id_table *table)
{
	struct op_input_table *t = &p->m->op_input;
	struct model *m = p->m;
	uint32_t to = p->input_base;

	for (uint32_t op = p->op_base; op < m->op.count; op++) {
		uint32_t first = m->op.input_first[op], end = first + m->op.input_count[op];

		m->op.input_first[op] = to;
		for (uint32_t i = first; i < end; i++) {
			op_id src = op_of_id(table, p->input_ids[i - p->input_base]);

			if (!src.v) {
				p->dangling++;
				continue;
			}
			t->src[to] = src;
			t->name[to] = m->op.name[src.v];
			t->index[to] = t->index[i];
			t->port[to] = t->port[i];
			t->shown_port[to] = t->shown_port[i];
			to++;
		}
		m->op.input_count[op] = to - m->op.input_first[op];
	}
	t->count = to;
}

static void set_port(struct model *m, uint32_t op, op_id src, int32_t port)
{
	uint32_t first = m->op.input_first[op], end = first + m->op.input_count[op];

	for (uint32_t i = first; i < end; i++)
		if (m->op_input.src[i].v == src.v)
			m->op_input.port[i] = m->op_input.shown_port[i] = port;
}

/* Like set_ports, for an op with so many inputs and ports that searching for each would take too long. */
static void set_many_ports(struct profile *p, const struct id_table *table, size_t first,
			   size_t end)
{
	struct model *m = p->m;
	uint32_t op = p->ports[first].op.v;
	uint32_t input = m->op.input_first[op], input_end = input + m->op.input_count[op];
	struct map ports;

	map_init(&ports, m->mem);
	for (size_t i = first; i < end; i++)
		if (!map_add(&ports, map_hash_u64(op_of_id(table, p->ports[i].id).v, 11),
			     (uint32_t)i + 1))
			builder_no_memory(p->r.b);
	for (; input < input_end; input++) {
		uint32_t src = m->op_input.src[input].v;
		struct map_iter it = map_find(&ports, map_hash_u64(src, 11));

		while (it.value && op_of_id(table, p->ports[it.value - 1].id).v != src)
			it = map_next(&ports, it);
		if (it.value)
			m->op_input.port[input] = m->op_input.shown_port[input] =
				p->ports[it.value - 1].port;
	}
	map_release(&ports);
}

static void resolve_ports(struct profile *p, const struct id_table *table)
{
	for (size_t i = 0, end; i < p->port_count; i = end) {
		uint32_t op = p->ports[i].op.v;

		for (end = i; end < p->port_count && p->ports[end].op.v == op; end++)
			p->dangling += !op_of_id(table, p->ports[end].id).v;
		if ((end - i) * p->m->op.input_count[op] > 4096) {
			set_many_ports(p, table, i, end);
			continue;
		}
		for (size_t k = i; k < end; k++)
			set_port(p->m, op, op_of_id(table, p->ports[k].id), p->ports[k].port);
	}
}

/* Resolves all ids, after the last node. References to missing nodes are dropped and counted. */
static void profile_resolve(struct profile *p)
{
	struct id_table table;

	if (p->r.b->status != OW_OK)
		return;
	if (make_id_table(p, &table)) {
		resolve_inputs(p, &table);
		resolve_ports(p, &table);
	} else {
		builder_no_memory(p->r.b);
	}
	mem_free(p->m->mem, table.dense, table.size * sizeof(*table.dense));
	map_release(&table.map);
}

static void add_step(struct profile *p, int64_t number)
{
	profile_step(p, number);
	fact_int(p->r.b, p->step_list, NULL, number);
}

static void read_steps(struct profile *p, const struct pb_stream_field *f)
{
	struct pb_field field = { .tag = f->tag, .value = f->size };
	struct pb_values values;
	uint64_t value;

	field.ptr = pb_stream_bytes(&p->r.stream, f);
	if (!field.ptr)
		return;
	values = pb_values(&field, PB_VARINT);
	while (pb_value(&values, &value))
		add_step(p, (int64_t)value);
	if (values.problem) {
		struct pb r = { values.at, values.at, values.problem };

		tf_damaged(&p->r, f, &r, field.ptr);
	}
}

/* After the first part was read, reserves room for the rest in the tables. */
static void reserve_tables(struct profile *p)
{
	static const enum table_id tables[] = { TABLE_op,      TABLE_op_input, TABLE_op_output,
						TABLE_op_step, TABLE_event,    TABLE_memory };

	if (p->op_base == 1)
		for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
			tf_reserve(&p->r, tables[i], 0, p->r.stream.at, p->r.ctx->in->size);
}

/* Reads a field that is not completely in the window, or is not a node. */
static bool read_other(struct profile *p, const struct pb_stream_field *f)
{
	const uint8_t *bytes;

	switch (f->tag) {
	case PB_TAG(1, PB_BYTES):
		bytes = pb_stream_bytes(&p->r.stream, f);
		if (bytes)
			profile_read_node(p, str_make(bytes, (size_t)f->size), f->offset);
		break;
	case PB_TAG(2, PB_VARINT):
		p->has_trace = f->value != 0;
		break;
	case PB_TAG(3, PB_VARINT):
		add_step(p, (int64_t)f->value);
		break;
	case PB_TAG(3, PB_BYTES):
		read_steps(p, f);
		break;
	case PB_TAG(4, PB_BYTES):
		tf_code_read_string(p->code, &p->r, f);
		break;
	default: /* miss_accelerator_stream: the original does not restore it either */
		break;
	}
	if (tf_time_to_reserve(&p->reserve_at, p->r.stream.at))
		reserve_tables(p);
	return true;
}

/* Reads nodes that are completely in the window; stops at anything else. */
static void read_nodes(struct profile *p, struct pb_bulk *bulk)
{
	struct pb_field f;
	uint64_t offset;

	for (;;) {
		const uint8_t *before = bulk->pb.at;

		if (!pb_bulk_next(bulk, &f, &offset))
			return;
		if (f.tag != PB_TAG(1, PB_BYTES)) {
			bulk->pb.at = before;
			return;
		}
		profile_read_node(p, pb_str(&f), offset);
	}
}

static void read_fields(struct profile *p)
{
	struct pb_stream_field f;
	struct pb_bulk bulk;

	do {
		bulk = pb_bulk(&p->r.stream);
		read_nodes(p, &bulk);
		pb_bulk_end(&p->r.stream, &bulk);
	} while (tf_next(&p->r, &f) && read_other(p, &f));
}

static void add_notes(struct profile *p)
{
	struct builder *b = p->r.b;

	if (p->duplicates)
		builder_note_many(
			b, NOTE_DROPPED, p->duplicate_offset, p->duplicates,
			"nodes of the profile were skipped because another node has the same name");
	if (p->dangling)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, p->dangling,
				  "references to nodes that are not in the profile were dropped");
	if (p->bad_times)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, p->bad_times,
				  "times were skipped because they lack a start or a duration");
	if (p->repeated_steps)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, p->repeated_steps,
				  "steps appear twice for a node; the first is used");
}

static void add_top_nodes(struct profile *p)
{
	const struct op_step_table *t = &p->m->op_step;
	struct tf_top top = { .want = 5 };

	for (uint32_t i = p->op_step_base, end; i < t->count; i = end) {
		op_id op = t->op[i];
		int64_t sum = 0;

		for (end = i; end < t->count && t->op[end].v == op.v; end++)
			sum = wrap_add(sum, wrap_add(t->cpu_ns[end], t->accelerator_ns[end]));
		tf_top_add(&top, p->m, p->m->op.name[op.v], sum / 1000);
	}
	tf_top_list(&top, p->r.b, (fact_id){ 0 }, "top5_node_us");
}

static void add_facts(struct profile *p)
{
	struct builder *b = p->r.b;
	fact_id top = { 0 };

	if (b->status != OW_OK)
		return;
	for (size_t i = 0; i < p->track_count; i++)
		tf_tally_add(p->tracks[i].kind == TRACK_DEVICE ? &p->cpu_us : &p->accelerator_us,
			     builder_str(b, p->tracks[i].device), p->tracks[i].total_us);
	fact_int(b, top, "nodes", (int64_t)p->nodes);
	fact_int(b, top, "distinct_ops", (int64_t)tf_tally_count(&p->types));
	fact_int(b, top, "exec_profiles", (int64_t)p->execs);
	fact_int(b, top, "nodes_with_exec", (int64_t)p->with_exec);
	fact_int(b, top, "nodes_with_trace", (int64_t)p->with_trace);
	fact_int(b, top, "id_to_string", (int64_t)tf_code_strings(p->code));
	fact_bool(b, top, "has_trace", p->has_trace);
	fact_int(b, top, "sum_float_ops", p->float_ops);
	fact_int(b, top, "sum_run_count", p->run_count);
	tf_tally_object(&p->canonical, top, "canonical_devices", 100);
	tf_tally_object(&p->cpu_us, top, "cpu_exec_us", 5);
	tf_tally_object(&p->accelerator_us, top, "accelerator_exec_us", 5);
	tf_tally_list(&p->types, top, "top5_ops", 5);
	add_top_nodes(p);
}

static ow_status begin_profile(struct profile *p, struct import_ctx *ctx)
{
	struct builder *b = ctx->b;

	*p = (struct profile){ .m = b->m,
			       .input_base = b->m->op_input.count,
			       .op_base = b->m->op.count,
			       .op_step_base = b->m->op_step.count };
	p->code = tf_code_new(b);
	if (!p->code)
		return builder_status(b);
	tf_tally_init(&p->types, b);
	tf_tally_init(&p->canonical, b);
	tf_tally_init(&p->cpu_us, b);
	tf_tally_init(&p->accelerator_us, b);
	map_init(&p->op_steps, b->m->mem);
	tf_time_unit(b);
	tf_read_begin(&p->r, ctx, "ProfileProto", 0, ctx->in->size);
	p->step_list = fact_list(b, (fact_id){ 0 }, "steps");
	return OW_OK;
}

static void release_profile(struct profile *p)
{
	struct mem *mem = p->m->mem;

	tf_tally_release(&p->types);
	tf_tally_release(&p->canonical);
	tf_tally_release(&p->cpu_us);
	tf_tally_release(&p->accelerator_us);
	map_release(&p->op_steps);
	mem_free(mem, p->step_row, p->step_cap * sizeof(*p->step_row));
	mem_free(mem, p->ids, p->id_cap * sizeof(*p->ids));
	mem_free(mem, p->input_ids, p->input_cap * sizeof(*p->input_ids));
	mem_free(mem, p->ports, p->port_cap * sizeof(*p->ports));
}

static int sniff(const struct sniff *s)
{
	return tf_sniff(s, TF_PROFILE);
}

static ow_status load(struct import_ctx *ctx)
{
	uint32_t first_event = ctx->b->m->event.count;
	struct profile p;
	ow_status status;

	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("ProfileProto"));
	if (!ctx->options->strict_proto) /* tfprof accepts the binary form only */
		OW_TRY(tf_text_convert(ctx, TF_PROFILE));
	OW_TRY(begin_profile(&p, ctx));
	read_fields(&p);
	profile_resolve(&p);
	if (!ctx->options->strict_proto) /* the views of tfprof do not use phases */
		tf_phases_of_steps(ctx->b, first_event);
	add_notes(&p);
	add_facts(&p);
	release_profile(&p);
	status = tf_read_end(&p.r, p.nodes > 0);
	if (status != OW_OK) {
		tf_code_free(p.code);
		return status;
	}
	ctx->b->m->has_code |= p.has_trace;
	return tf_code_defer(p.code);
}

const struct importer import_profile = {
	.name = "profile",
	.summary = "TensorFlow ProfileProto: graph, steps and code of a profiled run",
	.extensions = "profile_*",
	.role = ROLE_PROFILE,
	.sniff = sniff,
	.load = load,
};
