/*
 * profile_int.h: declarations shared by import_profile.c (the file and its nodes) and profile_exec.c (the steps of a
 * node).
 */
#ifndef IMPORT_PROFILE_INT_H
#define IMPORT_PROFILE_INT_H

#include "import/tensorflow/tf_message.h"
#include "import/tensorflow/tf_read.h"

struct tf_code;

#define PROFILE_TRACKS 32 /* cached (device, kind) pairs */
#define PROFILE_STEPS 64  /* cached step numbers; a power of two */

/* A reference to a node by its id, which is resolved when all nodes are known. */
struct late_port {
	op_id op;
	int32_t port;
	int64_t id;
};

struct known_id {
	int64_t id;
	op_id op;
};

struct known_track {
	struct str device;
	track_id track;
	uint8_t kind;
	int64_t total_us;
};

struct profile {
	struct tf_read r;
	struct tf_code *code;
	struct model *m;
	struct known_track tracks[PROFILE_TRACKS];
	size_t track_count;
	struct {
		int64_t number;
		step_id id;
	} steps[PROFILE_STEPS];
	uint32_t *step_row; /* for each step: the op_step row that had it last */
	size_t step_cap;

	struct known_id *ids; /* ids of all nodes, in file order */
	size_t id_count, id_cap;
	int64_t *input_ids; /* parallel to op_input, from input_base on */
	size_t input_cap;
	uint32_t input_base;
	struct late_port *ports;
	size_t port_count, port_cap;
	struct map op_steps; /* (op, step) pairs of earlier sources; made when first needed */
	bool op_steps_ready;
	uint64_t reserve_at;
	uint32_t op_base, op_step_base; /* rows from these indexes on belong to this source */
	uint32_t prefaulted_ops, prefaulted_steps, prefaulted_events,
		prefaulted_memory; /* see tf_prefault_rows */

	bool has_trace;
	uint64_t nodes, duplicates, duplicate_offset, dangling, bad_times, repeated_steps;
	uint64_t execs, with_exec, with_trace;
	int64_t float_ops, run_count;
	struct tf_tally types, canonical, cpu_us, accelerator_us;
	fact_id step_list;
};

/* A node while it is read, with the indexes at which its rows begin. */
struct profile_node {
	op_id op; /* the node's row, new or of an earlier source; nil: a duplicate */
	bool known, late;
	struct str text;
	uint64_t offset; /* offset of its record */
	str_id name, type, canonical, host, data_format;
	strset_id types;
	shape_id shape;
	int64_t float_ops;
	uint64_t code_offset;
	uint32_t size;
	bool has_code;
	uint32_t inputs, outputs, op_steps, events, memories, allocs;
	size_t ports;
};

/* Reads an entry of a map from number to number. */
static inline enum pb_problem profile_pair(struct str bytes, int64_t *key, int64_t *value)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	*key = *value = 0;
	while (pb_next(&msg, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			*key = (int64_t)f.value;
		else if (f.tag == PB_TAG(2, PB_VARINT))
			*value = (int64_t)f.value;
	return msg.problem;
}

/* Reads an entry of a map from number to message. */
static inline enum pb_problem profile_entry(struct str bytes, int64_t *key, struct str *value)
{
	struct pb msg = pb_over(bytes.ptr, bytes.len);
	struct pb_field f;

	*key = 0;
	*value = STR("");
	while (pb_next(&msg, &f))
		if (f.tag == PB_TAG(1, PB_VARINT))
			*key = (int64_t)f.value;
		else if (f.tag == PB_TAG(2, PB_BYTES))
			*value = pb_str(&f);
	return msg.problem;
}

/* The step with that number, with a cache. */
step_id profile_step(struct profile *p, int64_t number);
/* Reads an entry of execs: an ExecProfile by step. Not inlined: that would make a load about 4 % slower. */
enum pb_problem profile_read_exec(struct profile *p, struct profile_node *n, struct str entry);

#endif
