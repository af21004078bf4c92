/*
 * view_devices.c: the view `devices`: one row per device, with the ops placed on it, how long it was busy and how much memory its allocator
 * held. TensorFlow reports a GPU twice: as the device whose executor schedules the ops, and as .../stream:all, where they ran. Both are
 * shown. Devices whose names differ only in case are the same: ops have the canonical name, in lower case.
 *
 * Busy per step is the mean of the steady steps (steady.h), within these steps: what ran outside of steps is in the whole busy time only.
 */
#include "analyze/steps/phases.h"
#include "analyze/view.h"
#include "model/names.h"

enum {
	COLUMN_DEVICE,
	COLUMN_KIND,
	COLUMN_OPS,
	COLUMN_EVENTS,
	COLUMN_BUSY,
	COLUMN_BUSY_STEP,
	COLUMN_PEAK
};

struct item {
	struct str name;      /* name as the source spells it */
	struct str canonical; /* name in lower case */
	uint8_t kind;
	int64_t ops;
	int64_t peak; /* peak memory; 0 = unknown */
	struct busy busy;
	double steps;  /* number of steps to divide by for a mean; 0 = no steps */
	bool in_steps; /* the mean covers only work within the steps */
};

struct device_list {
	struct model *m;
	struct event_filter filter;
	struct arena scratch;
	struct map map;	    /* maps a canonical name to its item */
	struct item *items; /* items; item 0 is unused */
	uint32_t count;
	size_t cap;
	struct ow_error *err;
};

static void add_columns(struct table *out)
{
	table_add_column(out, "device", "device", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "kind", "kind", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "ops", "ops", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "events", "events", TYPE_INT, UNIT_COUNT);
	table_add_column(out, "busy_ns", "busy", TYPE_INT, UNIT_NS);
	table_add_column(out, "busy_step_ns", "busy per step", TYPE_INT, UNIT_NS);
	table_add_column(out, "peak_bytes", "peak memory", TYPE_INT, UNIT_BYTES);
}

static struct str lower(struct arena *arena, struct str name)
{
	struct str copy = arena_str(arena, name);

	for (size_t i = 0; copy.ptr && i < copy.len; i++)
		if (copy.ptr[i] >= 'A' && copy.ptr[i] <= 'Z')
			((char *)(uintptr_t)copy.ptr)[i] |= 0x20;
	return copy;
}

static bool grow_items(struct device_list *t)
{
	struct item *grown = arena_grow(&t->scratch, t->items, t->count, &t->cap, sizeof(*grown));

	if (!grown)
		return false;
	t->items = grown;
	t->count = MAX(t->count, 1u);
	return true;
}

/* Finds or adds the item of a device; 0 if memory runs out. */
static uint32_t item_of(struct device_list *t, struct str name, uint8_t kind)
{
	struct str canonical = lower(&t->scratch, name);
	uint64_t hash;

	if (!canonical.ptr)
		return 0;
	hash = str_hash(canonical);
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (str_eq(t->items[it.value].canonical, canonical))
			return it.value;
	if (!grow_items(t) || !map_add(&t->map, hash, t->count))
		return 0;
	t->items[t->count] = (struct item){ .name = name, .canonical = canonical, .kind = kind };
	return t->count++;
}

/* Returns whether events of this kind are work of a device, not repetitions or bookkeeping. */
static bool is_work(uint8_t kind)
{
	return kind != TRACK_DERIVED && kind != TRACK_SPAN && kind != TRACK_FRAMES &&
	       kind != TRACK_ASYNC;
}

/* Fills group[track] with the item of each track. */
static uint32_t *collect_devices(struct device_list *t)
{
	const struct model *m = t->m;
	uint32_t *group = ARENA_ARRAY(&t->scratch, uint32_t, m->track.count);
	uint32_t *of_device = ARENA_ARRAY(&t->scratch, uint32_t, m->device.count);

	if (!group || !of_device)
		return NULL;
	for (uint32_t i = 1; i < m->device.count; i++) {
		of_device[i] = item_of(t, model_str(m, m->device.name[i]), m->device.kind[i]);
		if (!of_device[i])
			return NULL;
	}
	group[0] = UINT32_MAX;
	for (uint32_t i = 1; i < m->track.count; i++) {
		uint32_t device = m->track.device[i].v;

		group[i] = device && is_work(m->track.kind[i]) ? of_device[device] : UINT32_MAX;
	}
	return group;
}

static bool count_ops(struct device_list *t)
{
	const struct model *m = t->m;
	str_id last = { 0 };
	uint32_t item = 0;

	for (uint32_t op = 1; op < m->op.count; op++) {
		str_id device = m->op.device[op];

		if (!device.v)
			continue;
		if (device.v != last.v)
			item = item_of(t, model_str(m, device), DEVICE_UNKNOWN);
		if (!item)
			return false;
		last = device;
		t->items[item].ops++;
	}
	return true;
}

static bool find_peaks(struct device_list *t)
{
	const struct model *m = t->m;
	str_id last = { 0 };
	uint32_t item = 0;

	for (uint32_t i = 1; m->memory.in_use && i < m->memory.count; i++) {
		str_id device = m->op.device[m->op_step.op[m->memory.op_step[i]].v];

		if (!device.v || m->memory.in_use[i] <= 0)
			continue;
		if (device.v != last.v)
			item = item_of(t, model_str(m, device), DEVICE_UNKNOWN);
		if (!item)
			return false;
		last = device;
		t->items[item].peak = MAX(t->items[item].peak, m->memory.in_use[i]);
	}
	return true;
}

/* Steps from which the means of devices are computed. */
struct device_steps {
	const struct phases *p;
	struct steady_steps steady;
	uint32_t *first, *end; /* for each input: its range in steady.used */
	/* tracks sorted by device, and where those of each device begin */
	uint32_t *tracks, *start;
	struct span_list *within; /* for each device: its steady steps */
};

/* Sorts the tracks by device. */
static bool sort_tracks(struct device_list *t, const uint32_t *group, struct device_steps *d)
{
	uint32_t tracks = t->m->track.count, *next;

	d->tracks = ARENA_ARRAY(&t->scratch, uint32_t, tracks);
	d->start = ARENA_ARRAY(&t->scratch, uint32_t, (size_t)t->count + 1);
	next = ARENA_ARRAY(&t->scratch, uint32_t, (size_t)t->count + 1);
	if (!d->tracks || !d->start || !next)
		return false;
	for (uint32_t i = 1; i < tracks; i++)
		if (group[i] != UINT32_MAX)
			d->start[group[i] + 1]++;
	for (uint32_t i = 0; i < t->count; i++)
		d->start[i + 1] += d->start[i];
	memcpy(next, d->start, ((size_t)t->count + 1) * sizeof(*next));
	for (uint32_t i = 1; i < tracks; i++)
		if (group[i] != UINT32_MAX)
			d->tracks[next[group[i]]++] = i;
	return true;
}

/* Finds the steps of each input; windows are sorted by input. */
static bool sort_steps(struct device_list *t, struct device_steps *d)
{
	uint32_t inputs = t->m->source.count;

	d->first = ARENA_ARRAY(&t->scratch, uint32_t, inputs);
	d->end = ARENA_ARRAY(&t->scratch, uint32_t, inputs);
	if (!d->first || !d->end)
		return false;
	for (uint32_t i = 0; i < d->steady.used_count; i++) {
		uint32_t input = d->p->windows[d->steady.used[i]].source.v;

		if (!d->end[input])
			d->first[input] = i;
		d->end[input] = i + 1;
	}
	return true;
}

/* Returns how many steps of the mean length the spans hold: simultaneous steps of several inputs count
 * once. */
static double steps_in(const struct span_list *within, double steps, double length)
{
	double covered = 0;

	for (size_t i = 0; i < within->count; i++)
		covered += (double)span_length(within->items[i].begin, within->items[i].end);
	return length > 0 ? covered * steps / length : steps;
}

/* Collects the spans and the number of steady steps of the inputs that have a device. */
static bool collect_steps(struct device_list *t, const struct device_steps *d, uint32_t item,
			  uint32_t *seen)
{
	double length = 0;
	uint32_t steps = 0;

	for (uint32_t i = d->start[item]; i < d->start[item + 1]; i++) {
		uint32_t input = t->m->track.source[d->tracks[i]].v;

		if (seen[input] == item)
			continue;
		seen[input] = item;
		for (uint32_t k = d->first[input]; k < d->end[input]; k++) {
			const struct phase_window *w = &d->p->windows[d->steady.used[k]];

			if (!filter_step(&t->filter, w->step))
				continue;
			steps++;
			length += (double)span_length(w->start_ns, w->end_ns);
			if (!spans_add(&d->within[item], t->m->mem, w->start_ns, w->end_ns))
				return false;
		}
	}
	t->items[item].in_steps = steps > 0;
	if (!spans_finish(&d->within[item], t->m->mem))
		return false;
	t->items[item].steps = steps ? steps_in(&d->within[item], steps, length) : 0;
	return true;
}

static bool collect_all_steps(struct device_list *t, const uint32_t *group, struct device_steps *d)
{
	uint32_t *seen = ARENA_ARRAY(&t->scratch, uint32_t, t->m->source.count);

	if (!seen || !sort_tracks(t, group, d) || !sort_steps(t, d))
		return false;
	for (uint32_t i = 1; i < t->count; i++)
		if (!collect_steps(t, d, i, seen))
			return false;
	return true;
}

/* Returns the number of steps to divide by if no step has a begin and an end. */
static double steps_of(const struct device_list *t)
{
	return t->filter.step ? 1 : t->m->step.count - 1;
}

static ow_status measure_in(struct device_list *t, const uint32_t *group, struct device_steps *d)
{
	struct busy *busy = ARENA_ARRAY(&t->scratch, struct busy, t->count);
	bool has_mean = !filter_has_time(&t->filter); /* for a part of the time there is no mean */

	if (!busy)
		return error_no_memory(t->err);
	OW_TRY(steady_find(t->m, d->p, t->filter.run, (source_id){ 0 }, &t->scratch, &d->steady,
			   t->err));
	if (has_mean && !collect_all_steps(t, group, d))
		return error_no_memory(t->err);
	OW_TRY(busy_measure(t->m, &t->filter, group, t->count, d->within, busy, t->err));
	for (uint32_t i = 1; i < t->count; i++) {
		t->items[i].busy = busy[i];
		if (has_mean && !t->items[i].in_steps)
			t->items[i].steps = steps_of(t);
	}
	return OW_OK;
}

static ow_status measure(struct device_list *t, const uint32_t *group)
{
	struct device_steps d = { 0 };
	struct phases p;
	ow_status status;

	if (!t->count)
		return OW_OK;
	d.within = ARENA_ARRAY(&t->scratch, struct span_list, t->count);
	if (!d.within)
		return error_no_memory(t->err);
	d.p = &p;
	status = phases_analyse(t->m, &t->filter, &p, t->err);
	if (status == OW_OK)
		status = measure_in(t, group, &d);
	for (uint32_t i = 0; i < t->count; i++)
		spans_release(&d.within[i], t->m->mem);
	phases_release(&p);
	return status;
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(((const struct item *)a)->canonical, ((const struct item *)b)->canonical);
}

static void add_item(struct table *out, const struct item *item)
{
	int64_t busy = item->in_steps ? item->busy.within_ns : item->busy.busy_ns;
	uint32_t row = table_add_row(out, 0);

	table_set_model_text(out, row, COLUMN_DEVICE, item->name);
	table_set_model_text(out, row, COLUMN_KIND, str_from(device_kind_name(item->kind)));
	table_set_int(out, row, COLUMN_OPS, item->ops);
	table_set_int(out, row, COLUMN_EVENTS, (int64_t)item->busy.events);
	table_set_int(out, row, COLUMN_BUSY, item->busy.busy_ns);
	if (item->steps > 0)
		table_set_int(out, row, COLUMN_BUSY_STEP, (int64_t)((double)busy / item->steps));
	else
		table_set_unknown(out, row, COLUMN_BUSY_STEP);
	if (item->peak)
		table_set_int(out, row, COLUMN_PEAK, item->peak);
	else
		table_set_unknown(out, row, COLUMN_PEAK);
}

static ow_status list_devices(struct device_list *t, struct table *out)
{
	uint32_t *group = collect_devices(t);

	if (!group || !count_ops(t) || !find_peaks(t))
		return error_no_memory(t->err);
	OW_TRY(measure(t, group));
	if (t->count > 1)
		qsort(t->items + 1, t->count - 1, sizeof(*t->items), by_name);
	for (uint32_t i = 1; i < t->count; i++)
		add_item(out, &t->items[i]);
	return OW_OK;
}

static ow_status run_devices_view(struct model *m, const struct view_options *options,
				  struct table *out, struct ow_error *err)
{
	struct device_list t = { .m = m, .err = err };
	ow_status status;

	OW_TRY(view_filter(m, options, &t.filter, err));
	add_columns(out);
	arena_init(&t.scratch, m->mem);
	map_init(&t.map, m->mem);
	status = list_devices(&t, out);
	map_release(&t.map);
	arena_release(&t.scratch);
	OW_TRY(status);
	if (options->limit)
		table_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_devices = {
	.name = "devices",
	.summary = "devices with their ops, busy time and peak memory",
	.uses = VIEW_USES_PART,
	.run = run_devices_view,
};
