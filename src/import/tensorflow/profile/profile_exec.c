/*
 * profile_exec.c: reads the steps of a node of a ProfileProto: times per device, memory and allocations
 * (profile_int.h). import_profile.c calls it for each entry of a node's execs.
 */
#include "import/tensorflow/profile/profile_int.h"

#include "base/vec.h"
#include "import/tensorflow/tf_phases.h"

static struct known_track *track_of(struct profile *p, struct str device, uint8_t kind)
{
	struct known_track *t = p->tracks;
	str_id name;

	for (size_t i = 0; i < p->track_count; i++)
		if (t[i].kind == kind && str_eq(t[i].device, device))
			return &t[i];
	name = tf_word(&p->r, device);
	/* If there are more devices than entries, the rest share the last entry. */
	t = &p->tracks[p->track_count < PROFILE_TRACKS ? p->track_count++ : PROFILE_TRACKS - 1];
	if (t->total_us)
		tf_tally_add(t->kind == TRACK_DEVICE ? &p->cpu_us : &p->accelerator_us,
			     builder_str(p->r.b, t->device), t->total_us);
	*t = (struct known_track){
		.device = model_str(p->m, name),
		.kind = kind,
		.track = builder_track(p->r.b,
				       &(struct track_row){ .name = name,
							    .device = builder_device(
								    p->r.b, model_str(p->m, name)),
							    .kind = kind,
							    .source = p->r.b->source }),
	};
	return t;
}

/* Reads a Tuple: a start and a duration. False when it does not have two numbers. */
static bool read_time(struct str bytes, int64_t *start, int64_t *dur)
{
	struct pb tuple = pb_over(bytes.ptr, bytes.len);
	size_t count = 0;
	struct pb_field f;

	while (pb_next(&tuple, &f)) {
		struct pb_values values = pb_values(&f, PB_VARINT);
		uint64_t value;

		if (f.tag >> 3 != 1)
			continue;
		for (; pb_value(&values, &value); count++)
			if (count == 0)
				*start = (int64_t)value;
			else if (count == 1)
				*dur = (int64_t)value;
		if (values.problem)
			return false;
	}
	return !tuple.problem && count >= 2;
}

/* Reads an entry of accelerator_execs or cpu_execs; adds the sum of durations to *total_us. */
static enum pb_problem read_times(struct profile *p, const struct op_step_row *row,
				  struct str bytes, uint8_t kind, int64_t *total_us)
{
	struct pb entry = pb_over(bytes.ptr, bytes.len), times = pb_over("", 0);
	struct str device = STR("");
	struct known_track *track;
	struct pb_field f;

	while (pb_next(&entry, &f))
		if (f.tag == PB_TAG(1, PB_BYTES))
			device = pb_str(&f);
		else if (f.tag == PB_TAG(2, PB_BYTES))
			times = pb_message(&f);
	if (entry.problem)
		return entry.problem;
	track = track_of(p, device, kind);
	while (pb_next(&times, &f)) {
		int64_t start = 0, dur = 0;

		if (f.tag != PB_TAG(1, PB_BYTES))
			continue;
		if (!read_time(pb_str(&f), &start, &dur)) {
			p->bad_times++;
			continue;
		}
		track->total_us = wrap_add(track->total_us, dur);
		*total_us = wrap_add(*total_us, dur);
		builder_add_event(p->r.b, &(struct event_row){ .ts_ns = us_to_ns(start),
							       .dur_ns = us_to_ns(dur),
							       .op = row->op,
							       .track = track->track,
							       .step = row->step });
	}
	return times.problem;
}

static enum pb_problem read_memory(struct profile *p, uint32_t op_step, struct str bytes)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct memory_row row = { .op_step = op_step };
	struct pb_field f;

	while (pb_next(&msg, &f)) {
		int64_t value = (int64_t)f.value;

		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			row.ts_ns = us_to_ns(value);
			break;
		case PB_TAG(2, PB_VARINT):
			row.host_temp = value;
			break;
		case PB_TAG(3, PB_VARINT):
			row.host_persistent = value;
			break;
		case PB_TAG(4, PB_VARINT):
			row.accelerator_temp = value;
			break;
		case PB_TAG(5, PB_VARINT):
			row.accelerator_persistent = value;
			break;
		case PB_TAG(6, PB_VARINT):
			row.requested = value;
			break;
		case PB_TAG(7, PB_VARINT):
			row.peak = value;
			break;
		case PB_TAG(8, PB_VARINT):
			row.residual = value;
			break;
		case PB_TAG(9, PB_VARINT):
			row.output = value;
			break;
		case PB_TAG(10, PB_VARINT):
			row.in_use = value;
			break;
		default:
			break;
		}
	}
	builder_add_memory(p->r.b, &row);
	return msg.problem;
}

static enum pb_problem read_alloc(struct profile *p, uint32_t op_step, struct str bytes)
{
	int64_t micros, size;
	enum pb_problem problem = profile_pair(bytes, &micros, &size);

	builder_add_alloc(
		p->r.b,
		&(struct alloc_row){ .op_step = op_step, .ts_ns = us_to_ns(micros), .size = size });
	return problem;
}

step_id profile_step(struct profile *p, int64_t number)
{
	size_t at = (size_t)number & (PROFILE_STEPS - 1);

	if (!p->steps[at].id.v || p->steps[at].number != number) {
		p->steps[at].number = number;
		p->steps[at].id = builder_step(p->r.b, number);
	}
	return p->steps[at].id;
}

/* Whether this is the node's first entry for the step. */
static bool first_of_step(struct profile *p, const struct profile_node *n, step_id step)
{
	bool first;

	if (!vec_reserve_zero(p->m->mem, p->step_row, p->step_cap, (size_t)step.v + 1)) {
		builder_no_memory(p->r.b);
		return false;
	}
	first = p->step_row[step.v] < n->op_steps;
	p->step_row[step.v] = p->m->op_step.count;
	p->repeated_steps += !first;
	return first;
}

/* Whether an earlier source has the op in that step. */
static bool has_step(struct profile *p, op_id op, step_id step)
{
	uint64_t hash = map_hash_u64((uint64_t)op.v << 32 | step.v, 9);
	struct op_step_table *t = &p->m->op_step;

	if (!p->op_steps_ready) {
		p->op_steps_ready = true;
		for (uint32_t i = 1; i < p->op_step_base; i++)
			if (!map_add(&p->op_steps,
				     map_hash_u64((uint64_t)t->op[i].v << 32 | t->step[i].v, 9), i))
				builder_no_memory(p->r.b);
	}
	for (struct map_iter it = map_find(&p->op_steps, hash); it.value;
	     it = map_next(&p->op_steps, it))
		if (t->op[it.value].v == op.v && t->step[it.value].v == step.v)
			return true;
	return false;
}

enum pb_problem profile_read_exec(struct profile *p, struct profile_node *n, struct str entry)
{
	struct op_step_row row = { .op = n->op };
	uint32_t at = p->m->op_step.count;
	int64_t step, accelerator_us = 0, cpu_us = 0;
	enum pb_problem problem;
	struct pb_field f;
	struct str value;
	struct pb exec;

	problem = profile_entry(entry, &step, &value);
	if (problem)
		return problem;
	if (!n->op.v)
		return PB_OK;
	row.step = profile_step(p, step);
	if (!first_of_step(p, n, row.step) || (n->known && has_step(p, n->op, row.step)))
		return PB_OK;
	exec = pb_over(value.ptr, value.len);
	while (!problem && pb_next(&exec, &f))
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			row.run_count = (int64_t)f.value;
			break;
		case PB_TAG(2, PB_VARINT):
			row.first_start_ns = us_to_ns((int64_t)f.value);
			break;
		case PB_TAG(3, PB_VARINT):
			row.latest_end_ns = us_to_ns((int64_t)f.value);
			break;
		case PB_TAG(4, PB_BYTES):
			problem =
				read_times(p, &row, pb_str(&f), TRACK_ACCELERATOR, &accelerator_us);
			break;
		case PB_TAG(5, PB_BYTES):
			problem = read_times(p, &row, pb_str(&f), TRACK_DEVICE, &cpu_us);
			break;
		case PB_TAG(7, PB_BYTES):
			problem = read_memory(p, at, pb_str(&f));
			break;
		case PB_TAG(11, PB_BYTES):
			problem = read_alloc(p, at, pb_str(&f));
			break;
		default:
			break;
		}
	row.accelerator_ns = us_to_ns(accelerator_us);
	row.cpu_ns = us_to_ns(cpu_us);
	builder_add_op_step(p->r.b, &row);
	return problem ? problem : exec.problem;
}
