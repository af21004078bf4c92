/*
 * tf_node_stats.c: decodes NodeExecStats (tf_node_stats.h). TensorFlow writes the fields of each message in the order
 * of their numbers, so each message is first read in that order (pb_take, which is fast); the loop after it reads the
 * remaining fields, in any order. If a field occurs twice the last one counts, as in protobuf. Messages are passed as
 * `struct str`, which is passed in registers. A `struct pb` passed by value costs 3 % of a load.
 */
#include "import/tensorflow/run/tf_node_stats.h"
#include "base/vec.h"

void tf_node_reader_release(struct tf_node_reader *s)
{
	mem_free(s->mem, s->outputs, s->output_cap * sizeof(*s->outputs));
	mem_free(s->mem, s->allocators, s->allocator_cap * sizeof(*s->allocators));
	mem_free(s->mem, s->allocs, s->alloc_cap * sizeof(*s->allocs));
}

static void add_alloc(struct tf_node_reader *s, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct tf_alloc alloc = { 0 };
	struct pb_field f;

	while (pb_next(&msg, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			alloc.ts_us = (int64_t)f.value;
		else if (f.tag == PB_TAG(2, PB_VARINT))
			alloc.size = (int64_t)f.value;
	if (!vec_push(s->mem, s->allocs, s->alloc_count, s->alloc_cap, alloc))
		s->no_memory = true;
}

static enum pb_problem read_allocator(struct tf_node_reader *s, struct tf_allocator *a,
				      struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	*a = (struct tf_allocator){ .alloc_first = s->alloc_count };
	if (pb_take(&msg, PB_TAG(1, PB_BYTES), &f))
		a->name = pb_str(&f);
	if (pb_take(&msg, PB_TAG(2, PB_VARINT), &f))
		a->total = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(3, PB_VARINT), &f))
		a->peak = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(4, PB_VARINT), &f))
		a->live = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(5, PB_VARINT), &f))
		a->in_use = (int64_t)f.value;
	while (pb_next(&msg, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			a->name = pb_str(&f);
			break;
		case PB_TAG(2, PB_VARINT):
			a->total = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_VARINT):
			a->peak = (int64_t)f.value;
			break;
		case PB_TAG(4, PB_VARINT):
			a->live = (int64_t)f.value;
			break;
		case PB_TAG(5, PB_VARINT):
			a->in_use = (int64_t)f.value;
			break;
		case PB_TAG(6, PB_BYTES):
			add_alloc(s, pb_str(&f));
			break;
		default:
			break;
		}
	a->alloc_count = s->alloc_count - a->alloc_first;
	return msg.problem;
}

static enum pb_problem add_allocator(struct tf_node_reader *s, struct str bytes)
{
	if (!vec_reserve(s->mem, s->allocators, s->allocator_cap, s->allocator_count + 1)) {
		s->no_memory = true;
		return PB_OK;
	}
	return read_allocator(s, &s->allocators[s->allocator_count++], bytes);
}

static enum pb_problem read_memory_stats(struct tf_node_stats *rec, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	while (pb_next(&msg, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			rec->temp = (int64_t)f.value;
		else if (f.tag == PB_TAG(3, PB_VARINT))
			rec->persistent = (int64_t)f.value;
	return msg.problem;
}

/* Decodes AllocationDescription. */
static enum pb_problem read_allocation(struct tf_output *out, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	if (pb_take(&msg, PB_TAG(1, PB_VARINT), &f))
		out->requested = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(2, PB_VARINT), &f))
		out->allocated = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(3, PB_BYTES), &f))
		out->allocator = pb_str(&f);
	if (pb_take(&msg, PB_TAG(6, PB_VARINT), &f))
		out->address = f.value;
	while (pb_next(&msg, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			out->requested = (int64_t)f.value;
			break;
		case PB_TAG(2, PB_VARINT):
			out->allocated = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_BYTES):
			out->allocator = pb_str(&f);
			break;
		case PB_TAG(6, PB_VARINT):
			out->address = f.value;
			break;
		default:
			break;
		}
	return msg.problem;
}

/* Decodes TensorDescription. */
static enum pb_problem read_tensor(struct tf_output *out, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	enum pb_problem problem = PB_OK;
	struct pb_field f;

	if (pb_take(&msg, PB_TAG(1, PB_VARINT), &f))
		out->dtype = (int32_t)(uint32_t)f.value;
	if (pb_take(&msg, PB_TAG(2, PB_BYTES), &f))
		out->shape = pb_str(&f);
	if (pb_take(&msg, PB_TAG(4, PB_BYTES), &f))
		problem = read_allocation(out, pb_str(&f));
	while (!problem && pb_next(&msg, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			out->dtype = (int32_t)(uint32_t)f.value;
			break;
		case PB_TAG(2, PB_BYTES):
			out->shape = pb_str(&f);
			break;
		case PB_TAG(4, PB_BYTES):
			problem = read_allocation(out, pb_str(&f));
			break;
		default:
			break;
		}
	return problem ? problem : msg.problem;
}

static enum pb_problem add_output(struct tf_node_reader *s, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	enum pb_problem problem = PB_OK;
	struct tf_output *out;
	struct pb_field f;

	if (!vec_reserve(s->mem, s->outputs, s->output_cap, s->output_count + 1)) {
		s->no_memory = true;
		return PB_OK;
	}
	out = &s->outputs[s->output_count++];
	*out = (struct tf_output){ 0 };
	if (pb_take(&msg, PB_TAG(1, PB_VARINT), &f))
		out->slot = (int32_t)(uint32_t)f.value;
	if (pb_take(&msg, PB_TAG(3, PB_BYTES), &f)) {
		out->description = pb_str(&f);
		problem = read_tensor(out, pb_str(&f));
	}
	while (!problem && pb_next(&msg, &f))
		if (f.tag == PB_TAG(1, PB_VARINT)) {
			out->slot = (int32_t)(uint32_t)f.value;
		} else if (f.tag == PB_TAG(3, PB_BYTES)) {
			out->description = pb_str(&f);
			problem = read_tensor(out, pb_str(&f));
		}
	return problem ? problem : msg.problem;
}

/* Reads the fields up to thread_id in the order of their numbers, as far as they are in that order. */
static void read_in_order(struct tf_node_reader *s, struct tf_node_stats *rec, struct pb *r)
{
	enum pb_problem problem = PB_OK;
	struct pb_field f;

	if (pb_take(r, PB_TAG(1, PB_BYTES), &f))
		rec->name = pb_str(&f);
	if (pb_take(r, PB_TAG(2, PB_VARINT), &f))
		rec->start_us = (int64_t)f.value;
	pb_take(r, PB_TAG(3, PB_VARINT), &f); /* op_start_rel_micros */
	if (pb_take(r, PB_TAG(4, PB_VARINT), &f))
		rec->op_end_us = (int64_t)f.value;
	if (pb_take(r, PB_TAG(5, PB_VARINT), &f))
		rec->all_end_us = (int64_t)f.value;
	while (!problem && pb_take(r, PB_TAG(6, PB_BYTES), &f))
		problem = add_allocator(s, pb_str(&f));
	while (!problem && pb_take(r, PB_TAG(7, PB_BYTES), &f))
		problem = add_output(s, pb_str(&f));
	if (OW_UNLIKELY(problem)) {
		r->at = f.ptr;
		pb_fail(r, problem);
		return;
	}
	if (pb_take(r, PB_TAG(8, PB_BYTES), &f))
		rec->label = pb_str(&f);
	pb_take(r, PB_TAG(9, PB_VARINT), &f);  /* scheduled_micros */
	pb_take(r, PB_TAG(10, PB_VARINT), &f); /* thread_id */
}

void tf_node_stats_decode(struct tf_node_reader *s, struct str bytes, uint64_t offset,
			  struct tf_node_stats *rec, struct pb *r)
{
	enum pb_problem problem = PB_OK;
	struct pb_field f;

	/* Cleared one by one: compilers clear a struct of this size with an instruction that starts slowly. */
	rec->name = rec->label = STR("");
	rec->start_us = rec->op_end_us = rec->all_end_us = 0;
	rec->temp = rec->persistent = 0;
	rec->offset = offset;
	rec->size = (uint32_t)bytes.len;
	*r = pb_over(bytes.ptr, bytes.len);
	s->output_count = s->allocator_count = s->alloc_count = 0;
	read_in_order(s, rec, r);
	while (pb_next(r, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			rec->name = pb_str(&f);
			break;
		case PB_TAG(2, PB_VARINT):
			rec->start_us = (int64_t)f.value;
			break;
		case PB_TAG(4, PB_VARINT):
			rec->op_end_us = (int64_t)f.value;
			break;
		case PB_TAG(5, PB_VARINT):
			rec->all_end_us = (int64_t)f.value;
			break;
		case PB_TAG(6, PB_BYTES):
			problem = add_allocator(s, pb_str(&f));
			break;
		case PB_TAG(7, PB_BYTES):
			problem = add_output(s, pb_str(&f));
			break;
		case PB_TAG(8, PB_BYTES):
			rec->label = pb_str(&f);
			break;
		case PB_TAG(12, PB_BYTES):
			problem = read_memory_stats(rec, pb_str(&f));
			break;
		default:
			break;
		}
		if (OW_UNLIKELY(problem)) {
			r->at = f.ptr;
			pb_fail(r, problem);
		}
	}
}

void tf_node_stats_begin(struct tf_node_reader *s, struct pb_stream *stream)
{
	s->stream = stream;
	s->bulk = pb_bulk(stream);
}

/* The bytes of the next record. The stream reads a record that is not completely in the window. */
static inline bool next_record(struct tf_node_reader *s, struct str *bytes, uint64_t *offset)
{
	struct pb_stream_field edge;
	struct pb_field f;

	for (;;) {
		const uint8_t *whole = NULL;

		while (pb_bulk_next(&s->bulk, &f, offset))
			if (OW_LIKELY(f.tag == PB_TAG(2, PB_BYTES))) {
				*bytes = pb_str(&f);
				return true;
			}
		pb_bulk_end(s->stream, &s->bulk);
		if (!pb_stream_next(s->stream, &edge))
			return false;
		if (edge.tag == PB_TAG(2, PB_BYTES))
			whole = pb_stream_bytes(s->stream, &edge);
		s->bulk = pb_bulk(s->stream);
		if (whole) {
			*bytes = str_make(whole, (size_t)edge.size);
			*offset = edge.offset;
			return true;
		}
	}
}

bool tf_node_stats_next(struct tf_node_reader *s, struct tf_node_stats *rec)
{
	struct str bytes;
	uint64_t offset;
	struct pb r;

	while (next_record(s, &bytes, &offset)) {
		tf_node_stats_decode(s, bytes, offset, rec, &r);
		if (OW_LIKELY(!r.problem))
			return true;
		s->damaged++;
		pb_stream_damage(s->stream, &(struct pb_stream_field){ .offset = offset }, &r,
				 (const uint8_t *)bytes.ptr);
	}
	return false;
}

bool tf_device_stats_name(struct pb_stream *s, const struct pb_stream_field *f, struct str *name)
{
	struct pb_stream_field part;
	const uint8_t *bytes = NULL;

	if (!pb_stream_enter(s, f))
		return false;
	while (pb_stream_next(s, &part))
		if (part.tag == PB_TAG(1, PB_BYTES)) {
			bytes = pb_stream_bytes(s, &part);
			break;
		}
	*name = bytes ? str_make(bytes, (size_t)part.size) : STR("");
	pb_stream_leave(s);
	return true;
}
