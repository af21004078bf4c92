/*
 * import_profile.c: ProfileProto, the file profile_N that TensorFlow's ProfileContext writes: graph,
 * steps and code in one. These files are large, so they are read in one pass, rows appended as their
 * fields come. This file walks the message and tells about it; see tf_profile.h for the rest.
 */
#include "import/importer.h"
#include "import/tf_profile.h"
#include "import/tf_text.h"

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

/* Once a little was read, the tables get room for the rest in one go. */
static void reserve_tables(struct profile *p)
{
	static const enum table_id tables[] = { TABLE_op,      TABLE_op_input, TABLE_op_output,
						TABLE_op_step, TABLE_event,    TABLE_memory };

	if (p->op_base == 1)
		for (size_t i = 0; i < ARRAY_COUNT(tables); i++)
			tf_reserve(&p->r, tables[i], 0, p->r.stream.at, p->r.ctx->in->size);
}

/* A field that is not whole in the window, or no node. */
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

/* Nodes that are whole in the window; stops before anything else. */
static void read_nodes(struct profile *p, struct tf_bulk *bulk)
{
	struct pb_field f;
	uint64_t offset;

	for (;;) {
		const uint8_t *before = bulk->pb.at;

		if (!tf_bulk_next(bulk, &f, &offset))
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
	struct tf_bulk bulk;

	do {
		bulk = tf_bulk(&p->r);
		read_nodes(p, &bulk);
	} while (tf_bulk_end(&p->r, &bulk) && tf_next(&p->r, &f) && read_other(p, &f));
}

static void add_notes(struct profile *p)
{
	struct builder *b = p->r.b;

	if (p->duplicates)
		builder_note_many(
			b, NOTE_DROPPED, p->duplicate_offset, p->duplicates,
			"nodes of the profile with a name that was there already were left "
			"out");
	if (p->dangling)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, p->dangling,
				  "references to nodes that are not in the profile were dropped");
	if (p->bad_times)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, p->bad_times,
				  "times without a start and a duration were left out");
	if (p->repeated_steps)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, p->repeated_steps,
				  "steps given twice for a node: the first counts");
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
	struct profile p;
	ow_status status;

	fact_text(ctx->b, (fact_id){ 0 }, "kind", STR("ProfileProto"));
	if (!ctx->options->strict_proto) /* tfprof takes the binary form only */
		OW_TRY(tf_text_convert(ctx, TF_PROFILE));
	OW_TRY(begin_profile(&p, ctx));
	read_fields(&p);
	profile_resolve(&p);
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
