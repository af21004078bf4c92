/*
 * view_devices.c: one row per device, with the ops placed on it, how long it was busy and how much
 * memory its allocator held. TensorFlow reports a GPU twice: as the device whose executor schedules
 * the ops, and as .../stream:all, where they really ran; both are shown.
 *
 * Devices are the same when they differ only in case: ops carry the canonical, lower-case name.
 */
#include "analyze/busy.h"
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
	struct str name;      /* as the source spells it */
	struct str canonical; /* lower case */
	uint8_t kind;
	int64_t ops;
	int64_t peak; /* 0 = unknown */
	struct busy busy;
};

struct table {
	struct model *m;
	struct event_filter filter;
	struct arena scratch;
	struct map map;	    /* canonical name to item */
	struct item *items; /* [0] is unused */
	uint32_t count, cap;
	struct error *err;
};

static void add_columns(struct result *out)
{
	result_column(out, "device", "device", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "kind", "kind", RESULT_TEXT, RESULT_PLAIN);
	result_column(out, "ops", "ops", RESULT_INT, RESULT_COUNT);
	result_column(out, "events", "events", RESULT_INT, RESULT_COUNT);
	result_column(out, "busy_ns", "busy", RESULT_INT, RESULT_NS);
	result_column(out, "busy_step_ns", "busy per step", RESULT_INT, RESULT_NS);
	result_column(out, "peak_bytes", "peak memory", RESULT_INT, RESULT_BYTES);
}

static struct str lower(struct arena *arena, struct str name)
{
	struct str copy = arena_str(arena, name);

	for (size_t i = 0; copy.ptr && i < copy.len; i++)
		if (copy.ptr[i] >= 'A' && copy.ptr[i] <= 'Z')
			((char *)(uintptr_t)copy.ptr)[i] |= 0x20;
	return copy;
}

static bool grow_items(struct table *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 32;
	struct item *grown;

	if (t->count < t->cap)
		return true;
	grown = ARENA_ARRAY(&t->scratch, struct item, cap);
	if (!grown)
		return false;
	if (t->count)
		memcpy(grown, t->items, t->count * sizeof(*grown));
	t->items = grown;
	t->cap = cap;
	t->count = MAX(t->count, 1u);
	return true;
}

/* The item of a device, new or not; 0 when there is no memory. */
static uint32_t item_of(struct table *t, struct str name, uint8_t kind)
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

/* Restatements and bookkeeping are not work of a device. */
static bool is_work(uint8_t kind)
{
	return kind != TRACK_DERIVED && kind != TRACK_SPAN && kind != TRACK_FRAMES &&
	       kind != TRACK_ASYNC;
}

/* Gives group[track], the item of each track. */
static uint32_t *collect_devices(struct table *t)
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

static bool count_ops(struct table *t)
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

static bool find_peaks(struct table *t)
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

static ow_status measure(struct table *t, const uint32_t *group)
{
	struct busy *busy = ARENA_ARRAY(&t->scratch, struct busy, MAX(t->count, 1u));

	if (!busy)
		return error_no_memory(t->err);
	OW_TRY(busy_measure(t->m, &t->filter, group, t->count, busy, t->err));
	for (uint32_t i = 1; i < t->count; i++)
		t->items[i].busy = busy[i];
	return OW_OK;
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(((const struct item *)a)->canonical, ((const struct item *)b)->canonical);
}

static void add_item(struct result *out, const struct item *item, uint32_t steps)
{
	uint32_t row = result_row(out, 0);

	result_set_model_text(out, row, COLUMN_DEVICE, item->name);
	result_set_model_text(out, row, COLUMN_KIND, str_from(device_kind_name(item->kind)));
	result_set_int(out, row, COLUMN_OPS, item->ops);
	result_set_int(out, row, COLUMN_EVENTS, (int64_t)item->busy.events);
	result_set_int(out, row, COLUMN_BUSY, item->busy.busy_ns);
	if (steps)
		result_set_int(out, row, COLUMN_BUSY_STEP, item->busy.busy_ns / steps);
	else
		result_set_unknown(out, row, COLUMN_BUSY_STEP);
	if (item->peak)
		result_set_int(out, row, COLUMN_PEAK, item->peak);
	else
		result_set_unknown(out, row, COLUMN_PEAK);
}

/* By how many a mean per step is divided; 0 = a part of the time has none. */
static uint32_t steps_of(const struct table *t)
{
	if (filter_has_time(&t->filter))
		return 0;
	return t->filter.step ? 1 : t->m->step.count - 1;
}

static ow_status list_devices(struct table *t, struct result *out)
{
	uint32_t *group = collect_devices(t);

	if (!group || !count_ops(t) || !find_peaks(t))
		return error_no_memory(t->err);
	OW_TRY(measure(t, group));
	if (t->count > 1)
		qsort(t->items + 1, t->count - 1, sizeof(*t->items), by_name);
	for (uint32_t i = 1; i < t->count; i++)
		add_item(out, &t->items[i], steps_of(t));
	return OW_OK;
}

static ow_status run(struct model *m, const struct view_options *options, struct result *out,
		     struct error *err)
{
	struct table t = { .m = m, .err = err };
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
		result_limit(out, options->limit);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

const struct view view_devices = {
	.name = "devices",
	.summary = "devices with their ops, busy time and peak memory",
	.run = run,
};
