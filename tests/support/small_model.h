/*
 * small_model.h: builds models by hand for unit tests of rules, views and other readers: a few ops,
 * steps and runs in as many lines. Times are microseconds. Every failure ends the test program's
 * case; tests of failing allocations use the builder directly.
 */
#ifndef SUPPORT_SMALL_MODEL_H
#define SUPPORT_SMALL_MODEL_H

#include "model/builder.h"

#define CPU0 "/job:localhost/replica:0/task:0/device:cpu:0"
#define GPU0 "/job:localhost/replica:0/task:0/device:gpu:0"
#define GPU1 "/job:localhost/replica:0/task:0/device:gpu:1"

struct small_model {
	struct mem mem;
	struct ow_error err;
	struct model *m;
	struct builder b;
};

static inline void small_open(struct small_model *s)
{
	memset(s, 0, sizeof(*s));
	mem_init(&s->mem, 0);
	s->m = model_new(&s->mem, &s->err);
	assert_non_null(s->m);
	builder_init(&s->b, s->m, &s->err);
	s->m->time_unit_ns = 1000;
}

static inline void small_freeze(struct small_model *s)
{
	assert_int_equal(builder_status(&s->b), OW_OK);
	assert_int_equal(model_freeze(&s->b), OW_OK);
}

static inline void small_close(struct small_model *s)
{
	model_free(s->m);
	assert_int_equal(atomic_load(&s->mem.used), 0);
}

static inline source_id small_source(struct small_model *s, const char *path, const char *format)
{
	return builder_new_source(&s->b,
				  &(struct source_row){ .path = builder_cstr(&s->b, path),
							.format = builder_cstr(&s->b, format),
							.size = 1000,
							.packed_size = 1000,
							.rank = -1,
							.run = 1 });
}

/* Adds an op; device NULL or "" = it never ran. */
static inline op_id small_op(struct small_model *s, const char *name, const char *type,
			     const char *device)
{
	struct op_row row = { .name = builder_cstr(&s->b, name),
			      .type = builder_cstr(&s->b, type) };

	row.types = builder_strset_add(&s->b, (strset_id){ 0 }, row.type);
	if (device && *device) {
		row.device = builder_cstr(&s->b, device);
		row.types = builder_strset_add(&s->b, row.types, row.device);
	}
	return builder_new_op(&s->b, &row);
}

/* Adds one step of an op, with the events that it consists of; accelerator_us 0 = none. */
static inline void small_run(struct small_model *s, op_id op, int64_t step, int64_t start_us,
			     int64_t cpu_us, int64_t accelerator_us)
{
	struct model *m = s->m;
	struct str device = model_str(m, m->op.device[op.v]);
	step_id id = builder_step(&s->b, step);
	track_id cpu =
		builder_track(&s->b, &(struct track_row){ .name = m->op.device[op.v],
							  .device = builder_device(&s->b, device),
							  .kind = TRACK_DEVICE });

	builder_add_op_step(
		&s->b, &(struct op_step_row){
			       .op = op,
			       .step = id,
			       .run_count = 1,
			       .cpu_ns = cpu_us * 1000,
			       .accelerator_ns = accelerator_us * 1000,
			       .first_start_ns = start_us * 1000,
			       .latest_end_ns = (start_us + MAX(cpu_us, accelerator_us)) * 1000 });
	builder_add_event(&s->b, &(struct event_row){ .ts_ns = start_us * 1000,
						      .dur_ns = cpu_us * 1000,
						      .op = op,
						      .track = cpu,
						      .step = id });
	if (accelerator_us) {
		track_id stream = builder_track(
			&s->b,
			&(struct track_row){
				.name = builder_cstr(&s->b, "/device:GPU:0/stream:all"),
				.device = builder_device(&s->b, STR("/device:GPU:0/stream:all")),
				.kind = TRACK_ACCELERATOR });

		builder_add_event(&s->b, &(struct event_row){ .ts_ns = start_us * 1000,
							      .dur_ns = accelerator_us * 1000,
							      .op = op,
							      .track = stream,
							      .step = id });
	}
}

/* Calls of the program, outermost first: file, line, function; ends with a NULL file. */
struct small_frame {
	const char *file;
	int32_t line;
	const char *function;
};

static inline void small_code(struct small_model *s, op_id op, const struct small_frame *frames)
{
	stack_id stack = { 0 };

	for (; frames->file; frames++)
		stack = builder_stack(
			&s->b, stack,
			builder_frame(&s->b,
				      &(struct frame_row){
					      .file = builder_cstr(&s->b, frames->file),
					      .function = builder_cstr(&s->b, frames->function),
					      .line = frames->line }));
	BUILDER_SET(&s->b, op, stack, op, stack);
	s->m->op.flags[op.v] |= OP_HAS_CODE;
	s->m->has_code = true;
}

#endif
