/*
 * mean_inputs.c: edges of the graph, which TensorFlow 1 writes among the arguments of each run of an op:
 * input0, input1 … The first run of each op is read; ops of which a graph is known keep that.
 */
#include "import/mean_int.h"

#define INPUTS_MAX 100000

/* "input12" → 12, else -1. */
static int64_t input_index(struct str key)
{
	int64_t index;

	if (!str_starts(key, STR("input")) || !str_to_i64(str_skip(key, 5), &index))
		return -1;
	return index >= 0 && index < INPUTS_MAX ? index : -1;
}

/* "^a" is a control edge, "a:1" the second output of a. */
static void add_input(struct meaning *x, int64_t index, struct json_value value)
{
	struct op_input_row row = { .index = (int32_t)index };
	struct str name = model_str(x->m, mean_string(x, value));
	size_t colon = str_rfind_char(name, ':');
	int64_t port;

	if (name.len && name.ptr[0] == '^') {
		row.port = -1;
		name = str_skip(name, 1);
	} else if (colon != STR_NONE && str_to_i64(str_skip(name, colon + 1), &port) && port >= 0 &&
		   port <= INT32_MAX) {
		row.port = (int32_t)port;
		name = str_first(name, colon);
	}
	row.shown_port = row.port;
	row.name = builder_str(x->b, name);
	builder_add_op_input(x->b, &row);
}

static void take_inputs(struct meaning *x, uint32_t event, struct str args, void *arg)
{
	uint32_t op = x->m->event.op[event].v, first = x->m->op_input.count;
	struct json_reader r = json_over(args);
	struct json_value value;
	struct str key;

	(void)arg;
	while (json_next_member(&r, &key, &value)) {
		int64_t index = input_index(key);

		if (index >= 0 && value.kind == JSON_STRING)
			add_input(x, index, value);
	}
	if (x->m->op_input.count == first)
		return;
	x->m->op.input_first[op] = first;
	x->m->op.input_count[op] = x->m->op_input.count - first;
}

ow_status mean_tf_inputs(struct meaning *x)
{
	uint8_t *seen = ARENA_ARRAY(&x->scratch, uint8_t, x->m->op.count);
	struct mean_rows rows = { 0 };
	ow_status status = seen ? OW_OK : mean_no_memory(x);

	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		const struct mean_track *track = mean_track(x, t);

		for (uint32_t e = track->first; mean_on_host(x, t) && e < track->last; e++) {
			uint32_t op = x->m->event.op[e].v;

			if (!op || seen[op] || x->m->op.input_count[op])
				continue;
			seen[op] = 1;
			status = mean_rows_add(x, &rows, e);
			if (status != OW_OK)
				break;
		}
	}
	if (status == OW_OK)
		status = mean_read_args(x, &rows, take_inputs, NULL);
	mean_rows_release(x, &rows);
	return status;
}
