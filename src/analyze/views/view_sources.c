/*
 * view_sources.c: the view `sources`: one row per input, in the order in which inputs were loaded, with its format and what was found in it. A
 * count is unknown if the model does not say which of several inputs a row came from.
 */
#include "analyze/view.h"

enum {
	COLUMN_PATH,
	COLUMN_FORMAT,
	COLUMN_CONTAINER,
	COLUMN_BYTES,
	COLUMN_PACKED,
	COLUMN_PRODUCER,
	COLUMN_RANK,
	COLUMN_OPS,
	COLUMN_EVENTS,
	COLUMN_STEPS,
	COLUMN_NOTES,
	COLUMN_JOB,
	COLUMN_WORLD
};

struct found {
	int64_t ops, events, steps, notes;
	uint32_t last_step;
};

static void add_columns(struct table *out)
{
	table_add_column(out, "path", "file", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "format", "format", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "container", "packed with", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "bytes", "size", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "packed_bytes", "size on disk", TYPE_INT, UNIT_BYTES);
	table_add_column(out, "producer", "made by", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(out, "ops", "ops", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "events", "events", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "steps", "steps", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "notes", "notes", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "job", "job", TYPE_INT, UNIT_NONE);
	table_add_column(out, "world_size", "ranks of the job", TYPE_INT, UNIT_COUNT);
}

/* Counts distinct (source, step) pairs of events; the pair's first event represents it in the
 * map. */
static bool count_step(struct model *m, struct map *seen, uint32_t event, uint32_t source,
		       struct found *found)
{
	uint32_t step = m->event.step[event].v;
	uint64_t hash = map_hash_u64(source, step);

	if (!step || found->last_step == step || COLUMN_GET(m->step.whole, step))
		return true;
	found->last_step = step;
	for (struct map_iter it = map_find(seen, hash); it.value; it = map_next(seen, it))
		if (m->event.step[it.value].v == step &&
		    m->track.source[m->event.track[it.value].v].v == source)
			return true;
	found->steps++;
	return map_add(seen, hash, event);
}

static bool count_events(struct model *m, struct found *found)
{
	struct map seen;
	bool ok = true;

	map_init(&seen, m->mem);
	for (uint32_t i = 1; ok && i < m->event.count; i++) {
		uint32_t source = m->track.source[m->event.track[i].v].v;

		found[source].events++;
		ok = count_step(m, &seen, i, source, &found[source]);
	}
	map_release(&seen);
	return ok;
}

static int64_t count_steps(const struct model *m)
{
	int64_t count = 0;

	for (uint32_t i = 1; i < m->step.count; i++)
		count += !COLUMN_GET(m->step.whole, i);
	return count;
}

/* Returns the world size that the source reports; -1 = unknown. */
static int64_t world_size(const struct model *m, uint32_t source)
{
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (m->fact.source[i].v == source && m->fact.kind[i] == FACT_INT &&
		    str_eq(model_str(m, m->fact.key[i]), STR("world_size")))
			return m->fact.number[i];
	return -1;
}

static bool count_all(struct model *m, struct found *found)
{
	for (uint32_t i = 1; i < m->op.count; i++)
		found[COLUMN_GET(m->op.source, i).v].ops++;
	for (uint32_t i = 1; i < m->note.count; i++)
		found[m->note.source[i].v].notes++;
	if (!count_events(m, found))
		return false;
	if (m->source.count == 2) /* with one source, everything belongs to it */
		found[1] = (struct found){ .ops = (int64_t)m->op.count - 1,
					   .events = (int64_t)m->event.count - 1,
					   .steps = count_steps(m),
					   .notes = (int64_t)m->note.count - 1 };
	return true;
}

static void set_count(struct table *out, uint32_t row, uint32_t column, int64_t value, bool known)
{
	if (known)
		table_set_int(out, row, column, value);
	else
		table_set_unknown(out, row, column);
}

static void add_source(struct table *out, const struct model *m, uint32_t source,
		       const struct found *found)
{
	uint32_t row = table_add_row(out, 0);
	bool only = m->source.count == 2;

	table_set_model_text(out, row, COLUMN_PATH, model_str(m, m->source.path[source]));
	table_set_model_text(out, row, COLUMN_FORMAT, model_str(m, m->source.format[source]));
	table_set_model_text(out, row, COLUMN_CONTAINER, model_str(m, m->source.container[source]));
	table_set_int(out, row, COLUMN_BYTES, (int64_t)m->source.size[source]);
	table_set_int(out, row, COLUMN_PACKED, (int64_t)m->source.packed_size[source]);
	table_set_model_text(out, row, COLUMN_PRODUCER, model_str(m, m->source.producer[source]));
	set_count(out, row, COLUMN_RANK, m->source.rank[source], m->source.rank[source] >= 0);
	set_count(out, row, COLUMN_OPS, found[source].ops, only || m->op.source);
	set_count(out, row, COLUMN_EVENTS, found[source].events, only || !found[0].events);
	set_count(out, row, COLUMN_STEPS, found[source].steps, only || !found[0].events);
	table_set_int(out, row, COLUMN_NOTES, found[source].notes);
	set_count(out, row, COLUMN_JOB, m->source.run[source], !only && found[source].events);
	set_count(out, row, COLUMN_WORLD, world_size(m, source), world_size(m, source) > 1);
}

static ow_status run_sources_view(struct model *m, const struct view_options *options,
				  struct table *out, struct ow_error *err)
{
	size_t bytes = m->source.count * sizeof(struct found);
	struct event_filter filter;
	struct found *found;
	bool ok;

	OW_TRY(view_filter(m, options, &filter, err));
	found = mem_zalloc(m->mem, bytes);
	if (!found)
		return error_no_memory(err);
	add_columns(out);
	ok = count_all(m, found);
	for (uint32_t source = 1; ok && source < m->source.count; source++)
		if (filter_source(&filter, m, (source_id){ source }))
			add_source(out, m, source, found);
	mem_free(m->mem, found, bytes);
	if (options->limit)
		table_limit(out, options->limit);
	return ok && out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_sources = {
	.name = "sources",
	.summary = "the inputs: the format of each and what it contains",
	.uses = VIEW_USES_RANK,
	.run = run_sources_view,
};
