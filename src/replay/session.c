/*
 * session.c: opens a replay (session.h): the graph, the base replay, the unexplained share, and the error of
 * predictions across steps. It also gives names and lines of nodes for tables. It refuses where a prediction would be a
 * guess.
 */
#include "replay/session.h"

#include "analyze/samples/samples.h"

static ow_status check(struct session *s, struct ow_error *err)
{
	struct replay_accuracy accuracy = { -1, -1 };
	struct arena scratch;
	ow_status status;

	arena_init(&scratch, s->g.m->mem);
	status = unexplained_share(&s->base, &s->unexplained, err);
	if (status == OW_OK && s->unexplained > UNEXPLAINED_MOST)
		snprintf(s->g.refused, sizeof(s->g.refused),
			 "in %.0f %% of a step the cause of waiting was not recorded",
			 s->unexplained * 100);
	if (status == OW_OK)
		status = replay_check(&s->g, &s->changed, &s->trial, &scratch, &accuracy, err);
	s->replay_error = accuracy.step;
	if (status == OW_OK && !*s->g.refused && s->replay_error > REPLAY_ERROR_MOST)
		snprintf(s->g.refused, sizeof(s->g.refused),
			 "the replay of a step misses other steps by %.0f %%: what they wait for "
			 "was not "
			 "recorded",
			 s->replay_error * 100);
	s->start_error = accuracy.start;
	arena_release(&scratch);
	return status;
}

ow_status session_open(struct model *m, const struct event_filter *filter,
		       const struct graph_extent *extent, struct session *s, struct ow_error *err)
{
	memset(s, 0, sizeof(*s));
	s->replay_error = s->start_error = -1;
	arena_init(&s->arena, m->mem);
	OW_TRY(graph_make(m, filter, extent, &s->g, err));
	if (m->stack.count > 1 || m->frame.count > 1) {
		s->own_line = line_own_frames(m, &s->arena);
		if (!s->own_line)
			return error_no_memory(err);
	}
	if (*s->g.refused)
		return OW_OK;
	OW_TRY(replay_make(&s->g, &s->arena, &s->base, err));
	replay_fit(&s->g, &s->base);
	OW_TRY(replay_make(&s->g, &s->arena, &s->trial, err));
	OW_TRY(scenario_make(&s->g, &s->arena, &s->changed, err));
	return check(s, err);
}

void session_extras(const struct session *s, bool known, struct table *out)
{
	if (known && s->replay_error >= 0)
		table_add_extra(out, "replay_error", "%.6f", s->replay_error);
	else
		table_add_extra(out, "replay_error", "null");
	if (known && s->start_error >= 0)
		table_add_extra(out, "kernel_start_error", "%.6f", s->start_error);
	else
		table_add_extra(out, "kernel_start_error", "null");
	if (known) {
		table_add_extra(out, "steps_replayed", "%u", s->g.replayed_count);
		table_add_extra(out, "steps_steady", "%u", s->g.steady_count);
		return;
	}
	table_add_extra(out, "steps_replayed", "null");
	table_add_extra(out, "steps_steady", "null");
}

void session_close(struct session *s)
{
	graph_release(&s->g);
	arena_release(&s->arena);
}

void event_line(const struct session *s, uint32_t event, char *to, size_t size)
{
	const struct model *m = s->g.m;
	uint32_t stack = event ? COLUMN_GET(m->event.stack, event).v : 0;

	*to = '\0';
	if (!stack && event)
		stack = COLUMN_GET(m->op.stack, m->event.op[event].v).v;
	if (s->own_line && stack && s->own_line[stack])
		own_line_name(m, s->own_line[stack], to, size);
}

/* Writes the line of code of a node; device work has the line of the call that launched it. */
void node_line(const struct session *s, uint32_t node, char *to, size_t size)
{
	const struct graph *g = &s->g;

	event_line(s, g->event[node], to, size);
	if (!*to && g->launch[node])
		event_line(s, g->event[g->launch[node] - 1], to, size);
}

struct str node_name(const struct session *s, uint32_t node)
{
	const struct model *m = s->g.m;
	uint32_t op = node_op(&s->g, node).v;
	struct str type = model_str(m, m->op.type[op]);
	struct str function = model_str(m, COLUMN_GET(m->event.name, s->g.event[node]));

	if (!op && s->g.event[node] && function.len) /* Python code between operators */
		return function;
	if (!op || m->op.flags[op] & OP_STEP_MARK)
		return STR("code between operators");
	if (m->op.flags[op] & OP_SHORT_TYPE && type.len)
		return type;
	return model_str(m, m->op.name[op]);
}

track_id node_track(const struct graph *g, uint32_t node)
{
	return g->lane_count ? lane_of_node(g, node)->track : (track_id){ 0 };
}
