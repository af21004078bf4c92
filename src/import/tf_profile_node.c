/*
 * tf_profile_node.c: one node of a ProfileProto: its fields become rows as they come, code traces are
 * copied and not decoded. What refers to other nodes waits for tf_profile_refs.c.
 */
#include "import/tf_profile.h"

#include "import/tf_shape_proto.h"

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
	void *ids = p->input_ids;
	int64_t index, id;
	enum pb_problem problem = profile_pair(msg, &index, &id);

	if (!mem_grow(p->m->mem, &ids, &p->input_cap, (size_t)at + 1, sizeof(*p->input_ids))) {
		builder_no_memory(p->r.b);
		return problem;
	}
	p->input_ids = ids;
	p->input_ids[at] = id;
	builder_add_op_input(p->r.b,
			     &(struct op_input_row){ .index = (int32_t)index, .shown_port = -1 });
	return problem;
}

static enum pb_problem read_port(struct profile *p, struct str msg)
{
	void *ports = p->ports;
	int64_t id, port;
	enum pb_problem problem = profile_pair(msg, &id, &port);

	if (!mem_grow(p->m->mem, &ports, &p->port_cap, p->port_count + 1, sizeof(*p->ports))) {
		builder_no_memory(p->r.b);
		return problem;
	}
	p->ports = ports;
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

/* The only attribute that is wanted now; the others can be read from the record. */
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

/* Looks the op up. While other sources have put in ops before this must be known before the runs are
 * read; else it waits for the end of the node, when the prefetched slots have come in. */
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

	if (OW_UNLIKELY(m->op.count >= p->asked_ops))
		tf_ask_ahead(m, TABLE_op, &p->asked_ops);
	if (OW_UNLIKELY(m->op_step.count >= p->asked_steps))
		tf_ask_ahead(m, TABLE_op_step, &p->asked_steps);
	if (OW_UNLIKELY(m->event.count >= p->asked_events))
		tf_ask_ahead(m, TABLE_event, &p->asked_events);
	if (OW_UNLIKELY(m->memory.count >= p->asked_memory))
		tf_ask_ahead(m, TABLE_memory, &p->asked_memory);
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

/* Swaps whole rows with their ids, for a sort that nearly always finds them in order. */
static int by_index(const void *a, const void *b)
{
	const struct op_input_row *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

/* Maps come in any order; the views want inputs by index. Of an index given twice the last counts,
 * but as nobody writes such files the first is as good. */
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
	/* Only index and id differ yet: the id travels in two other fields. */
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
	if (op.v) /* as stored, even if that is nothing */
		m->op.types[op.v] = n->types;
}

/* An op of an earlier source gets the steps, and what it did not know of itself. */
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
	void *ids = p->ids;

	if (!mem_grow(p->m->mem, &ids, &p->id_cap, p->id_count + 1, sizeof(*p->ids))) {
		builder_no_memory(p->r.b);
		return;
	}
	p->ids = ids;
	p->ids[p->id_count++] = (struct known_id){ id, op };
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

/* An entry of nodes: ProfileNode by id. */
void profile_read_node(struct profile *p, struct str bytes, uint64_t offset)
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
