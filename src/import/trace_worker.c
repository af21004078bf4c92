/*
 * trace_worker.c: the rows of one worker of the trace importer: room for them, and giving it back. What goes
 * into them is decided in trace_rows.c and trace_points.c.
 */
#include "import/trace_int.h"

ow_status trace_worker_init(struct trace_worker *w, struct mem *mem, const struct input *in,
			    enum json_path path)
{
	memset(w, 0, sizeof(*w));
	w->mem = mem;
	json_scan_init(&w->scan, in, &w->err);
	w->scan.path = path;
	trace_dict_init(&w->dict);
	trace_tracks_init(&w->tracks, mem);
	return OW_OK;
}

/* The last two are made when the first slice has such a value. */
static const struct {
	size_t offset, size;
	bool rare;
} columns[] = {
#define COLUMN(name, rare)                                                                         \
	{                                                                                          \
		offsetof(struct trace_slices, name), sizeof(*((struct trace_slices *)0)->name),    \
			rare                                                                       \
	}
	COLUMN(ts, false),	   COLUMN(dur, false),	COLUMN(args_offset, false),
	COLUMN(args_size, false),  COLUMN(name, false), COLUMN(category, false),
	COLUMN(track, false),	   COLUMN(ph, false),	COLUMN(label, true),
	COLUMN(correlation, true),
#undef COLUMN
};

static void **column_of(struct trace_slices *s, size_t column)
{
	return (void **)(void *)((char *)s + columns[column].offset);
}

static void free_slices(struct trace_worker *w)
{
	for (size_t c = 0; c < ARRAY_COUNT(columns); c++) {
		void **column = column_of(&w->slices, c);

		mem_free(w->mem, *column, w->slices.cap * columns[c].size);
		*column = NULL;
	}
}

void trace_worker_drop_points(struct trace_worker *w)
{
	mem_free(w->mem, w->points, w->point_cap * sizeof(*w->points));
	w->points = NULL;
	w->point_count = w->point_cap = 0;
	mem_free(w->mem, w->counters, w->counter_cap * sizeof(*w->counters));
	w->counters = NULL;
	w->counter_count = w->counter_cap = 0;
}

void trace_worker_drop_rows(struct trace_worker *w)
{
	free_slices(w);
	w->slices.count = w->slices.cap = 0;
	trace_worker_drop_points(w);
}

void trace_worker_release(struct trace_worker *w)
{
	if (!w->mem)
		return;
	trace_worker_drop_rows(w);
	mem_free(w->mem, w->metas, w->meta_cap * sizeof(*w->metas));
	mem_free(w->mem, w->marks, w->mark_cap * sizeof(*w->marks));
	mem_free(w->mem, w->elements, w->element_cap * sizeof(*w->elements));
	mem_free(w->mem, w->changes, w->change_cap * sizeof(*w->changes));
	mem_free(w->mem, w->strings, w->dict.count * sizeof(*w->strings));
	mem_free(w->mem, w->locals, w->dict.count * sizeof(*w->locals));
	mem_free(w->mem, w->track_map, w->tracks.count * sizeof(*w->track_map));
	trace_dict_release(&w->dict, w->mem);
	trace_tracks_release(&w->tracks, w->mem);
	json_scan_release(&w->scan);
}

struct trace_counts trace_worker_counts(const struct trace_worker *w)
{
	return (struct trace_counts){ .slices = w->slices.count,
				      .points = w->point_count,
				      .counters = w->counter_count,
				      .metas = w->meta_count,
				      .marks = w->mark_count,
				      .elements = w->element_count,
				      .changes = w->change_count,
				      .strings = w->dict.count };
}

void trace_fail(struct trace_worker *w)
{
	if (w->status == OW_OK)
		w->status = error_no_memory(&w->err);
}

/* ---- room for rows ---- */

/* All columns or none: a growth that fails half-way is undone. */
static bool grow_slices(struct trace_worker *w, size_t cap)
{
	struct trace_slices *s = &w->slices;
	size_t c;

	if (cap > UINT32_MAX)
		return false;
	for (c = 0; c < ARRAY_COUNT(columns); c++) {
		void **column = column_of(s, c);
		void *grown;

		if (!*column && columns[c].rare)
			continue;
		grown = mem_realloc(w->mem, *column, s->cap * columns[c].size,
				    cap * columns[c].size);
		if (!grown)
			break;
		*column = grown;
	}
	if (c == ARRAY_COUNT(columns)) {
		s->cap = cap;
		return true;
	}
	while (c--) {
		void **column = column_of(s, c);

		if (!*column)
			continue;
		if (s->cap) {
			*column = mem_realloc(w->mem, *column, cap * columns[c].size,
					      s->cap * columns[c].size);
			OW_ASSERT(*column);
			continue;
		}
		mem_free(w->mem, *column, cap * columns[c].size);
		*column = NULL;
	}
	return false;
}

void trace_worker_trim(struct trace_worker *w)
{
	struct trace_slices *s = &w->slices;
	size_t size = w->point_count * sizeof(*w->points);
	void *points;

	if (s->count && grow_slices(w, s->count)) /* it does not grow, and so does not fail */
		for (size_t c = 0; c < ARRAY_COUNT(columns); c++)
			mem_trim(*column_of(s, c), s->count * columns[c].size);
	points = mem_realloc(w->mem, w->points, w->point_cap * sizeof(*w->points), size);
	if (!points)
		return;
	w->points = points;
	w->point_cap = w->point_count;
	mem_trim(points, size);
}

bool trace_reserve_slices(struct trace_worker *w, size_t more)
{
	return w->slices.cap - w->slices.count >= more || grow_slices(w, w->slices.count + more);
}

bool trace_make_room(struct trace_worker *w)
{
	struct trace_slices *s = &w->slices;
	size_t cap = s->cap < 1024 ? 1024 : s->cap + s->cap / 4;

	if (grow_slices(w, cap) || grow_slices(w, s->count + 1024))
		return true;
	trace_fail(w);
	return false;
}

bool trace_add_mark(struct trace_worker *w, const struct trace_mark *mark)
{
	struct trace_mark *row = TRACE_NEW_ROW(w, marks, mark_count, mark_cap);

	if (row)
		*row = *mark;
	return row != NULL;
}

bool trace_add_slice(struct trace *t, unsigned worker, const struct trace_point *p, int64_t dur,
		     uint32_t lane)
{
	struct trace_worker *w = &t->workers[worker];
	struct trace_slices *s = &w->slices;

	if (!trace_slice_room(w))
		return false;
	s->ts[s->count] = p->ts;
	s->dur[s->count] = dur;
	s->name[s->count] = p->name;
	s->category[s->count] = p->category;
	s->track[s->count] = lane;
	s->args_offset[s->count] = p->args_offset;
	s->args_size[s->count] = p->args_size;
	if (s->label)
		s->label[s->count] = 0;
	if (s->correlation)
		s->correlation[s->count] = 0;
	s->ph[s->count++] = p->ph;
	t->lanes[lane].count++;
	return true;
}
