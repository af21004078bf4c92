/* tf_record.c: see tf_record.h. */
#include "import/tf_record.h"

static void add_alloc(struct tf_records *s, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	void *allocs = s->allocs;
	struct alloc_row row = { 0 };
	struct pb_field f;

	while (pb_next(&msg, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			row.ts_ns = us_to_ns((int64_t)f.value);
		else if (f.tag == PB_TAG(2, PB_VARINT))
			row.size = (int64_t)f.value;
	if (!mem_grow(s->r->b->m->mem, &allocs, &s->alloc_cap, s->alloc_count + 1,
		      sizeof(*s->allocs))) {
		builder_no_memory(s->r->b);
		return;
	}
	s->allocs = allocs;
	s->allocs[s->alloc_count++] = row;
}

static bool is_gpu_allocator(struct tf_records *s, struct str name)
{
	if (!tf_same(s->allocator, name)) {
		s->allocator = model_str(s->r->b->m, tf_word(s->r, name));
		s->allocator_is_gpu = str_has(name, STR("GPU"));
	}
	return s->allocator_is_gpu;
}

/* AllocatorMemoryUsed */
static enum pb_problem add_allocator(struct tf_records *s, struct tf_record *rec, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	size_t first = s->alloc_count;
	int64_t total = 0, peak = 0, live = 0, in_use = 0; /* of several the last one counts */
	bool gpu = false;
	struct pb_field f;

	if (pb_take(&msg, PB_TAG(1, PB_BYTES), &f))
		gpu = is_gpu_allocator(s, pb_str(&f));
	if (pb_take(&msg, PB_TAG(2, PB_VARINT), &f))
		total = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(3, PB_VARINT), &f))
		peak = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(4, PB_VARINT), &f))
		live = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(5, PB_VARINT), &f))
		in_use = (int64_t)f.value;
	while (pb_next(&msg, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			gpu = is_gpu_allocator(s, pb_str(&f));
			break;
		case PB_TAG(2, PB_VARINT):
			total = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_VARINT):
			peak = (int64_t)f.value;
			break;
		case PB_TAG(4, PB_VARINT):
			live = (int64_t)f.value;
			break;
		case PB_TAG(5, PB_VARINT):
			in_use = (int64_t)f.value;
			break;
		case PB_TAG(6, PB_BYTES):
			add_alloc(s, pb_str(&f));
			break;
		default:
			break;
		}
	rec->total = wrap_add(rec->total, total);
	rec->peak = wrap_add(rec->peak, peak);
	rec->live = wrap_add(rec->live, live);
	if (gpu) {
		rec->gpu_allocators++;
		rec->in_use = MAX(rec->in_use, in_use);
	} else {
		s->alloc_count = first; /* only the GPU's are accounted */
	}
	return msg.problem;
}

/* AllocationDescription */
static enum pb_problem read_allocation(struct tf_records *s, struct tensor_row *row,
				       struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	if (pb_take(&msg, PB_TAG(1, PB_VARINT), &f))
		row->requested = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(2, PB_VARINT), &f))
		row->allocated = (int64_t)f.value;
	if (pb_take(&msg, PB_TAG(3, PB_BYTES), &f))
		row->allocator = tf_word(s->r, pb_str(&f));
	if (pb_take(&msg, PB_TAG(6, PB_VARINT), &f))
		row->address = f.value;
	while (pb_next(&msg, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			row->requested = (int64_t)f.value;
			break;
		case PB_TAG(2, PB_VARINT):
			row->allocated = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_BYTES):
			row->allocator = tf_word(s->r, pb_str(&f));
			break;
		case PB_TAG(6, PB_VARINT):
			row->address = f.value;
			break;
		default:
			break;
		}
	return msg.problem;
}

/* TensorDescription */
static enum pb_problem read_tensor(struct tf_records *s, struct tensor_row *row, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	enum pb_problem problem = PB_OK;
	struct pb_field f;

	if (pb_take(&msg, PB_TAG(1, PB_VARINT), &f))
		row->dtype = tf_int32(f.value);
	if (pb_take(&msg, PB_TAG(2, PB_BYTES), &f))
		row->shape = tf_shape_recall(&s->shapes, s->r->b, pb_str(&f), tf_shape_real);
	if (pb_take(&msg, PB_TAG(4, PB_BYTES), &f))
		problem = read_allocation(s, row, pb_str(&f));
	while (!problem && pb_next(&msg, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			row->dtype = tf_int32(f.value);
			break;
		case PB_TAG(2, PB_BYTES):
			row->shape =
				tf_shape_recall(&s->shapes, s->r->b, pb_str(&f), tf_shape_real);
			break;
		case PB_TAG(4, PB_BYTES):
			problem = read_allocation(s, row, pb_str(&f));
			break;
		default:
			break;
		}
	return problem ? problem : msg.problem;
}

static void keep_tensor(struct tf_records *s, const struct tensor_row *row)
{
	void *tensors = s->tensors;

	if (!mem_grow(s->r->b->m->mem, &tensors, &s->tensor_cap, s->tensor_count + 1,
		      sizeof(*s->tensors))) {
		builder_no_memory(s->r->b);
		return;
	}
	s->tensors = tensors;
	s->tensors[s->tensor_count++] = *row;
}

/* NodeOutput */
static enum pb_problem add_output(struct tf_records *s, struct tf_record *rec, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	enum pb_problem problem = PB_OK;
	struct tensor_row row = { 0 };
	struct pb_field f;

	if (pb_take(&msg, PB_TAG(1, PB_VARINT), &f))
		row.slot = tf_int32(f.value);
	if (pb_take(&msg, PB_TAG(3, PB_BYTES), &f))
		problem = read_tensor(s, &row, pb_str(&f));
	while (!problem && pb_next(&msg, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			row.slot = tf_int32(f.value);
		else if (f.tag == PB_TAG(3, PB_BYTES))
			problem = read_tensor(s, &row, pb_str(&f));
	/* Without an allocation both are zero, and zero is what it adds. */
	rec->output = wrap_add(rec->output, MAX(row.allocated, row.requested));
	if (s->count_tensors)
		s->tensor_count++;
	else
		keep_tensor(s, &row);
	return problem ? problem : msg.problem;
}

static enum pb_problem read_memory_stats(struct tf_record *rec, struct str bytes)
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

/* The fields of a record in their usual order, as far as they are. */
static void read_usual(struct tf_records *s, struct tf_record *rec, struct pb *r)
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
		problem = add_allocator(s, rec, pb_str(&f));
	while (!problem && pb_take(r, PB_TAG(7, PB_BYTES), &f))
		problem = add_output(s, rec, pb_str(&f));
	if (OW_UNLIKELY(problem)) {
		r->at = f.ptr;
		pb_fail(r, problem);
		return;
	}
	pb_take(r, PB_TAG(8, PB_BYTES), &f);   /* timeline_label */
	pb_take(r, PB_TAG(9, PB_VARINT), &f);  /* scheduled_micros */
	pb_take(r, PB_TAG(10, PB_VARINT), &f); /* thread_id */
}

void tf_record_read(struct tf_records *s, struct tf_record *rec, struct pb *r)
{
	enum pb_problem problem = PB_OK;
	struct pb_field f;

	s->tensor_count = s->alloc_count = 0;
	read_usual(s, rec, r);
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
			problem = add_allocator(s, rec, pb_str(&f));
			break;
		case PB_TAG(7, PB_BYTES):
			problem = add_output(s, rec, pb_str(&f));
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

void tf_records_release(struct tf_records *s)
{
	struct mem *mem = s->r->b->m->mem;

	mem_free(mem, s->tensors, s->tensor_cap * sizeof(*s->tensors));
	mem_free(mem, s->allocs, s->alloc_cap * sizeof(*s->allocs));
}
