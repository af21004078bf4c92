/*
 * path_table.c: the critical path of a step as a table, piece by piece or summed by op, line, kind or rank. Called by
 * the library for `opwatch path`, and by what_if.c for the new path. The pieces sum to the step exactly.
 */
#include "base/map.h"
#include "replay/session.h"

enum {
	COLUMN_EVENT,
	COLUMN_OP,
	COLUMN_LINE,
	COLUMN_RANK,
	COLUMN_TRACK,
	COLUMN_KIND,
	COLUMN_TS,
	COLUMN_DUR,
	COLUMN_SHARE,
	COLUMN_COUNT
};

void path_columns(struct table *out)
{
	static const char *const sentences[] = {
		"id of the event, as in SQL; null for time between events",
		"name of the operator, kernel or call",
		"line of code that ran or launched the work, when known",
		"rank that recorded the work, when known",
		"thread or stream that the work ran on",
		"kind of the piece: operator, kernel, copy, gap, wait, …",
		"start of this part of the path, counted from the first event (ns)",
		"time of the row on the path",
		"share of the row in the step, 0 to 1",
		"number of pieces of the path in this row",
	};

	table_add_column(out, "event", "event", TYPE_INT, UNIT_NONE);
	table_add_column(out, "op", "op", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "line", "line", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(out, "track", "track", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "kind", "kind", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "ts_ns", "begin", TYPE_INT, UNIT_NONE);
	table_add_column(out, "dur_ns", "on the path", TYPE_INT, UNIT_NS);
	table_add_column(out, "share", "share", TYPE_REAL, UNIT_NONE);
	table_add_column(out, "count", "pieces", TYPE_INT, UNIT_COUNT);
	table_document(out, sentences, ARRAY_COUNT(sentences));
	out->columns[COLUMN_EVENT].for_programs = true;
	out->columns[COLUMN_TS].for_programs = true;
	out->columns[COLUMN_SHARE].for_programs = true;
}

/* The op, line, kind or rank that a row stands for, and its sum. */
struct group {
	struct path_piece piece;
	int64_t ts_ns;
	uint32_t count;
	char line[200];
};

static struct str piece_name(const struct session *s, const struct path_piece *piece)
{
	if (piece->kind == NODE_UNEXPLAINED)
		return STR("unexplained");
	return node_name(s, piece->node);
}

static void add_row(const struct session *s, const struct group *group, int64_t step_ns,
		    const char *by, struct table *out)
{
	const struct model *m = s->g.m;
	const struct path_piece *piece = &group->piece;
	uint32_t row = table_add_row(out, 0);
	track_id track = node_track(&s->g, piece->node);
	int32_t rank = m->source.count ? m->source.rank[m->track.source[track.v].v] : -1;
	bool all = !by;

	if (all && s->g.event[piece->node] && piece->kind != NODE_UNEXPLAINED)
		table_set_int(out, row, COLUMN_EVENT, s->g.event[piece->node]);
	else
		table_set_unknown(out, row, COLUMN_EVENT);
	table_set_known_text(out, row, COLUMN_OP,
			     all || strcmp(by, "op") == 0 ? piece_name(s, piece)
							  : (struct str){ 0 });
	table_set_known_text(out, row, COLUMN_LINE,
			     all || strcmp(by, "line") == 0 ? str_from(group->line)
							    : (struct str){ 0 });
	if (rank >= 0 && (all || strcmp(by, "rank") == 0))
		table_set_int(out, row, COLUMN_RANK, rank);
	else
		table_set_unknown(out, row, COLUMN_RANK);
	table_set_known_text(out, row, COLUMN_TRACK,
			     all ? model_str(m, m->track.name[track.v]) : (struct str){ 0 });
	table_set_known_text(out, row, COLUMN_KIND,
			     all || strcmp(by, "op") == 0 || strcmp(by, "kind") == 0
				     ? str_from(node_kind_names[piece->kind])
				     : (struct str){ 0 });
	if (all)
		table_set_int(out, row, COLUMN_TS, group->ts_ns);
	else
		table_set_unknown(out, row, COLUMN_TS);
	table_set_int(out, row, COLUMN_DUR, piece->dur_ns);
	table_set_real(out, row, COLUMN_SHARE,
		       step_ns > 0 ? (double)piece->dur_ns / (double)step_ns : 0);
	table_set_int(out, row, COLUMN_COUNT, group->count);
}

static bool same_group(const struct session *s, const struct group *a, const struct group *b,
		       const char *by)
{
	const struct model *m = s->g.m;

	if (strcmp(by, "kind") == 0)
		return a->piece.kind == b->piece.kind;
	if (strcmp(by, "line") == 0)
		return strcmp(a->line, b->line) == 0;
	if (strcmp(by, "rank") == 0)
		return m->track.source[node_track(&s->g, a->piece.node).v].v ==
		       m->track.source[node_track(&s->g, b->piece.node).v].v;
	return a->piece.kind == b->piece.kind &&
	       str_eq(piece_name(s, &a->piece), piece_name(s, &b->piece));
}

static int by_size(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->piece.dur_ns != y->piece.dur_ns)
		return x->piece.dur_ns > y->piece.dur_ns ? -1 : 1;
	return (x->piece.node > y->piece.node) - (x->piece.node < y->piece.node);
}

static uint64_t group_hash(const struct session *s, const struct group *g, const char *by)
{
	struct str text = piece_name(s, &g->piece);

	if (strcmp(by, "line") == 0)
		text = str_from(g->line);
	else if (strcmp(by, "op") != 0)
		return 1;
	return str_hash(text);
}

/* Sums the pieces into groups, with a hash table (open addressing). */
static ow_status add_up(const struct session *s, struct group *groups, uint32_t count,
			const char *by, struct arena *scratch, uint32_t *found,
			struct ow_error *err)
{
	size_t slots = 64;
	uint32_t *table;

	while (slots < 2 * (size_t)count)
		slots *= 2;
	table = ARENA_ARRAY(scratch, uint32_t, slots);
	if (!table)
		return error_no_memory(err);
	*found = 0;
	for (uint32_t i = 0; i < count; i++) {
		size_t at = group_hash(s, &groups[i], by) & (slots - 1);

		while (table[at] && !same_group(s, &groups[table[at] - 1], &groups[i], by))
			at = (at + 1) & (slots - 1);
		if (!table[at]) {
			groups[*found] = groups[i];
			table[at] = ++*found;
			continue;
		}
		groups[table[at] - 1].piece.dur_ns += groups[i].piece.dur_ns;
		groups[table[at] - 1].count++;
	}
	qsort(groups, *found, sizeof(*groups), by_size);
	return OW_OK;
}

static void make_group(const struct session *s, const struct path_piece *piece, int64_t *ts,
		       struct group *out)
{
	out->piece = *piece;
	out->count = 1;
	out->ts_ns = *ts;
	*out->line = '\0';
	*ts += piece->dur_ns;
	if (piece->kind != NODE_UNEXPLAINED)
		node_line(s, piece->node, out->line, sizeof(out->line));
}

ow_status path_rows(const struct session *s, const struct critical_path *path, uint32_t step,
		    const char *by, struct table *out, struct ow_error *err)
{
	int64_t ts = s->base.step_begin_ns[step];
	struct group *groups, one;
	struct arena scratch;
	uint32_t count = path->count;
	ow_status status = OW_OK;

	/* rows are added one by one, without an array, because paths may have millions of pieces */
	for (uint32_t i = 0; !by && i < count; i++) {
		make_group(s, &path->items[i], &ts, &one);
		add_row(s, &one, path->step_ns, by, out);
	}
	if (!by)
		return OW_OK;
	arena_init(&scratch, s->g.m->mem);
	groups = ARENA_ARRAY(&scratch, struct group, (size_t)count + 1);
	if (!groups)
		status = error_no_memory(err);
	for (uint32_t i = 0; status == OW_OK && i < count; i++)
		make_group(s, &path->items[i], &ts, &groups[i]);
	if (status == OW_OK)
		status = add_up(s, groups, count, by, &scratch, &count, err);
	for (uint32_t i = 0; status == OW_OK && i < count; i++)
		add_row(s, &groups[i], path->step_ns, by, out);
	arena_release(&scratch);
	return status;
}

static uint32_t find_step(const struct session *s, int64_t number)
{
	if (number == TIME_UNKNOWN)
		return median_step(&s->g);
	for (uint32_t i = 0; i < s->g.step_count; i++)
		if (s->g.steps[i].used && s->g.m->step.number[s->g.steps[i].step.v] == number)
			return i;
	return UINT32_MAX;
}

/* Fills the extra values when there is no replay: every key is present, with null for unknown values. */
static void add_refusal(const char *why, struct table *out)
{
	static const char *const unknown[] = { "step", "step_ns", "unexplained_ns",
					       "inferred_edges", "part_of_ns" };

	for (size_t i = 0; i < ARRAY_COUNT(unknown); i++)
		table_add_extra(out, unknown[i], "null");
	table_add_extra_text(out, "refused", why);
}

/* Whether the path is of a step, of a recording without steps, or of a part of that. */
static void add_extent(const struct session *s, const struct graph_step *step, struct table *out)
{
	table_add_extra(out, "has_steps", "%s",
			s->g.phases.windows[step->window].known ? "true" : "false");
	if (step->part_of_ns)
		table_add_extra(out, "part_of_ns", "%lld", (long long)step->part_of_ns);
	else
		table_add_extra(out, "part_of_ns", "null");
}

static ow_status fill(const struct session *s, int64_t number, const char *by, struct table *out,
		      struct ow_error *err)
{
	uint32_t step = find_step(s, number);
	const struct graph_step *chosen = &s->g.steps[step == UINT32_MAX ? 0 : step];
	struct arena scratch;
	struct critical_path path;
	ow_status status;

	if (step == UINT32_MAX) {
		out->footer = arena_printf(&out->arena,
					   "step %lld is not among the steps that can "
					   "be replayed: 'opwatch steps' lists them",
					   (long long)number);
		add_refusal(out->footer, out);
		return out->footer ? OW_OK : error_no_memory(err);
	}
	arena_init(&scratch, s->g.m->mem);
	status = path_find(&s->base, step, &scratch, &path, err);
	if (status == OW_OK)
		status = path_rows(s, &path, step, by, out, err);
	if (status == OW_OK) {
		table_add_extra(out, "step", "%lld",
				(long long)s->g.m->step.number[chosen->step.v]);
		table_add_extra(out, "step_ns", "%lld", (long long)path.step_ns);
		table_add_extra(out, "unexplained_ns", "%lld", (long long)path.unexplained_ns);
		table_add_extra(out, "inferred_edges", "%u", s->g.inferred_count);
		add_extent(s, chosen, out);
		table_add_extra_text(out, "refused", NULL);
	}
	arena_release(&scratch);
	return status;
}

ow_status path_table(struct model *m, const struct event_filter *filter, int64_t step,
		     const char *by, struct table *out, struct ow_error *err)
{
	struct session s;
	ow_status status = session_open(
		m, filter, &(struct graph_extent){ .until = step, .part = true }, &s, err);

	path_columns(out);
	table_add_extra(out, "schema_version", "1");
	if (status == OW_OK)
		session_extras(&s, session_replays(&s), out);
	if (status == OW_OK && session_replays(&s)) {
		status = fill(&s, step, by, out, err);
	} else if (status == OW_OK) {
		add_refusal(s.g.refused, out);
		out->footer = arena_printf(&out->arena, "no critical path: %s", s.g.refused);
		status = out->footer ? OW_OK : error_no_memory(err);
	}
	session_close(&s);
	return status;
}
