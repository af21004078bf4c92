/*
 * nsys_groups.c: which events a report of nsys_stats.h counts, and which of them together. Events are told apart by
 * their categories, which exports of Nsight Systems and traces of PyTorch share; where there are none, by their tracks.
 */
#include "analyze/nsys_stats.h"

/* ---- events ---- */

enum event_sort { SORT_OTHER, SORT_KERNEL, SORT_COPY, SORT_SET, SORT_CALL, SORT_RANGE, SORT_OSRT };

static bool starts_with(struct str text, const char *beginning)
{
	return str_starts(text, str_from(beginning));
}

static str_id name_of(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);

	return own.v ? own : m->op.name[m->event.op[event].v];
}

static enum event_sort sort_by_name(struct str name)
{
	if (starts_with(name, "Memcpy") || starts_with(name, "MEMCPY"))
		return SORT_COPY;
	return starts_with(name, "Memset") || starts_with(name, "MEMSET") ? SORT_SET : SORT_KERNEL;
}

/* Whole CUDA graphs are no kernels. */
static enum event_sort sort_of_device(struct str category, struct str name)
{
	if (str_ends(category, STR(",graph")))
		return SORT_OTHER;
	return sort_by_name(name);
}

static enum event_sort sort_of_host(struct str category)
{
	if (str_ends(category, STR("_runtime")) || str_ends(category, STR("_driver")) ||
	    str_eq(category, STR("Runtime")))
		return SORT_CALL;
	if (starts_with(category, "nvtx") || str_ends(category, STR(",nvtx")) ||
	    str_eq(category, STR("user_annotation")))
		return SORT_RANGE;
	return str_eq(category, STR("osrt")) ? SORT_OSRT : SORT_OTHER;
}

static enum event_sort sort_of(const struct model *m, uint32_t event)
{
	track_id track = m->event.track[event];
	struct str category = model_str(m, COLUMN_GET(m->event.category, event));

	if (!event_is_slice(m, event) || COLUMN_GET(m->event.flags, event) & EVENT_UNFINISHED)
		return SORT_OTHER;
	if (m->track.kind[track.v] == TRACK_ASYNC)
		return starts_with(category, "nvtx") ? SORT_RANGE : SORT_OTHER;
	switch (track_work(m, track)) {
	case WORK_DEVICE:
		return sort_of_device(category, model_str(m, name_of(m, event)));
	case WORK_HOST:
		return sort_of_host(category);
	default:
		return SORT_OTHER;
	}
}

/* ---- groups ---- */

static ow_status find_group(struct nsys_groups *g, const struct nsys_group *group, uint32_t *found)
{
	uint64_t hash = map_hash_u64((uint64_t)group->key[0] << 32 | group->key[1],
				     (uint64_t)group->key[2] << 32 | group->key[3]) ^
			(uint64_t)group->key[4] * 0x9e3779b97f4a7c15ull;
	void *list = g->list;

	for (struct map_iter it = map_find(&g->map, hash); it.value; it = map_next(&g->map, it)) {
		if (memcmp(g->list[it.value].key, group->key, sizeof(group->key)) != 0)
			continue;
		*found = it.value;
		return OW_OK;
	}
	if (!mem_grow(g->mem, &list, &g->cap, g->count + 1, sizeof(*g->list)))
		return error_no_memory(g->err);
	g->list = list;
	*found = (uint32_t)g->count;
	g->list[g->count] = *group;
	if (!map_add(&g->map, hash, *found))
		return error_no_memory(g->err);
	g->count++;
	return OW_OK;
}

static ow_status add_value(struct nsys_groups *g, uint32_t group, uint32_t part, int64_t value)
{
	void *values = g->values;

	if (!mem_grow(g->mem, &values, &g->value_cap, g->value_count + 1, sizeof(*g->values)))
		return error_no_memory(g->err);
	g->values = values;
	g->values[g->value_count++] = (struct nsys_value){ group * NSYS_PARTS + part, value };
	return OW_OK;
}

/* ---- names of memory operations ---- */

static const struct {
	const char *part, *shown, *long_name;
} ways[] = {
	{ "HtoD", "HtoD", "Host-to-Device" },	{ "H2D", "HtoD", "Host-to-Device" },
	{ "DtoH", "DtoH", "Device-to-Host" },	{ "D2H", "DtoH", "Device-to-Host" },
	{ "DtoD", "DtoD", "Device-to-Device" }, { "D2D", "DtoD", "Device-to-Device" },
	{ "PtoP", "PtoP", "Peer-to-Peer" },	{ "P2P", "PtoP", "Peer-to-Peer" },
	{ "HtoH", "HtoH", "Host-to-Host" },	{ "H2H", "HtoH", "Host-to-Host" },
	{ "HtoA", "HtoA", "Host-to-Array" },	{ "AtoH", "AtoH", "Array-to-Host" },
	{ "AtoA", "AtoA", "Array-to-Array" },	{ "AtoD", "AtoD", "Array-to-Device" },
	{ "DtoA", "DtoA", "Device-to-Array" },
};

/* A number for each way of copying; the label is made when it is new. */
static uint32_t way_of(struct str name)
{
	bool unified = str_has(name, STR("(Unified Memory)"));

	for (uint32_t i = 0; i < ARRAY_COUNT(ways); i++)
		if (str_has(name, str_from(ways[i].part)))
			return 2 * (i + 1) + unified;
	return unified;
}

static struct str copy_label(struct nsys_groups *g, uint32_t way)
{
	const char *plain = "Unknown", *text;
	bool unified = way & 1;

	if (way >= 2)
		plain = g->long_names ? ways[way / 2 - 1].long_name : ways[way / 2 - 1].shown;
	text = arena_printf(&g->scratch,
			    g->long_names ? "[CUDA memcpy %s%s]" : "[CUDA %smemcpy %s]",
			    !unified	    ? ""
			    : g->long_names ? "Unified "
					    : "Unified Memory ",
			    plain);
	return text ? str_from(text) : (struct str){ 0 };
}

/* ---- what each report counts ---- */

static ow_status add_named(struct nsys_groups *g, uint32_t event, int64_t value)
{
	str_id name = name_of(g->m, event);
	struct nsys_group group = { .key = { name.v }, .label = model_str(g->m, name) };
	uint32_t found;

	OW_TRY(find_group(g, &group, &found));
	return add_value(g, found, 0, value);
}

static ow_status add_memory(struct nsys_groups *g, uint32_t event, enum event_sort sort,
			    int64_t value)
{
	struct str name = model_str(g->m, name_of(g->m, event));
	uint32_t way = sort == SORT_COPY ? way_of(name) : UINT32_MAX;
	struct nsys_group group = { .key = { way }, .label = STR("[CUDA memset]") };
	uint32_t found;

	OW_TRY(find_group(g, &group, &found));
	if (sort == SORT_COPY && g->list[found].label.ptr == group.label.ptr) {
		g->list[found].label = copy_label(g, way);
		if (!g->list[found].label.ptr)
			return error_no_memory(g->err);
	}
	return add_value(g, found, 0, value);
}

/* domain:text; the default domain has no name. */
static ow_status add_range(struct nsys_groups *g, uint32_t event, int64_t value)
{
	const struct model *m = g->m;
	str_id name = name_of(m, event), category = COLUMN_GET(m->event.category, event);
	struct str domain = model_str(m, category), text = model_str(m, name);
	bool start_end = m->track.kind[m->event.track[event].v] == TRACK_ASYNC;
	size_t comma = str_find_char(domain, ',');
	struct nsys_group group = { .key = { name.v, category.v, start_end },
				    .start_end = start_end };
	uint32_t found;
	char *label;

	OW_TRY(find_group(g, &group, &found));
	if (!g->list[found].label.ptr) {
		domain = comma == STR_NONE || str_ends(domain, STR(",nvtx"))
				 ? STR("")
				 : str_skip(domain, comma + 1);
		label = arena_printf(&g->scratch, "%.*s:%.*s", STR_ARG(domain), STR_ARG(text));
		if (!label)
			return error_no_memory(g->err);
		g->list[found].label = str_from(label);
	}
	return add_value(g, found, 0, value);
}

static bool in_filter(const struct nsys_groups *g, uint32_t event)
{
	const struct model *m = g->m;
	int64_t begin = m->event.ts_ns[event], end = event_end(m, event);

	return filter_track(&g->filter, m, m->event.track[event]) &&
	       filter_step(&g->filter, m->event.step[event]) &&
	       filter_clip(&g->filter, &begin, &end);
}

static ow_status collect_events(struct nsys_groups *g, const struct nsys_report *report,
				enum event_sort wanted)
{
	const struct model *m = g->m;

	for (uint32_t e = 1; e < m->event.count; e++) {
		enum event_sort sort = sort_of(m, e);
		bool memory = wanted == SORT_COPY && (sort == SORT_COPY || sort == SORT_SET);
		int64_t value;

		if ((sort != wanted && !memory) || !in_filter(g, e))
			continue;
		value = report->bytes ? COLUMN_GET(m->event.bytes, e) : m->event.dur_ns[e];
		if (memory)
			OW_TRY(add_memory(g, e, sort, value));
		else if (sort == SORT_RANGE)
			OW_TRY(add_range(g, e, value));
		else
			OW_TRY(add_named(g, e, value));
	}
	return OW_OK;
}

/* ---- launches ---- */

/* The number that the name of a device ends with. */
static int64_t device_number(const struct model *m, track_id track)
{
	struct str name = model_str(m, m->device.name[m->track.device[track.v].v]);
	size_t at = name.len;
	int64_t number = 0;

	while (at && name.ptr[at - 1] >= '0' && name.ptr[at - 1] <= '9')
		at--;
	return at < name.len && str_to_i64(str_skip(name, at), &number) ? number : 0;
}

static ow_status add_launch(struct nsys_groups *g, uint32_t call, uint32_t kernel)
{
	const struct model *m = g->m;
	track_id from = m->event.track[call], to = m->event.track[kernel];
	str_id name = name_of(m, kernel), api = name_of(m, call);
	struct nsys_group group = { .key = { name.v, api.v, from.v, m->track.device[to.v].v, 0 },
				    .label = model_str(m, name),
				    .call = model_str(m, api),
				    .pid = m->track.pid[from.v],
				    .tid = m->track.tid[from.v],
				    .device = device_number(m, to) };
	int64_t start = m->event.ts_ns[call], called = event_end(m, call);
	int64_t begun = m->event.ts_ns[kernel], end = event_end(m, kernel);
	uint32_t found;

	OW_TRY(find_group(g, &group, &found));
	OW_TRY(add_value(g, found, 0, wrap_add(MAX(called, end), -start)));
	OW_TRY(add_value(g, found, 1, m->event.dur_ns[call]));
	if (begun > called)
		OW_TRY(add_value(g, found, 2, wrap_add(begun, -called)));
	return add_value(g, found, 3, m->event.dur_ns[kernel]);
}

static ow_status collect_launches(struct nsys_groups *g)
{
	const struct model *m = g->m;

	for (uint32_t i = 1; i < m->link.count; i++) {
		uint32_t call = m->link.src[i].v, kernel = m->link.dst[i].v;

		if (m->link.kind[i] != LINK_LAUNCH || sort_of(m, kernel) != SORT_KERNEL ||
		    !event_is_slice(m, call) || !in_filter(g, kernel))
			continue;
		OW_TRY(add_launch(g, call, kernel));
	}
	return OW_OK;
}

/* ---- all ---- */

/* Copies are called by their long names since 2023.4. */
static bool has_long_names(const struct model *m)
{
	const struct str prefix = STR("Nsight Systems ");

	for (uint32_t i = 1; i < m->source.count; i++) {
		struct str producer = model_str(m, m->source.producer[i]), year, month;
		int64_t y, z;

		if (!str_starts(producer, prefix))
			continue;
		producer = str_skip(producer, prefix.len);
		if (str_split(&producer, '.', &year) && str_split(&producer, '.', &month) &&
		    str_to_i64(year, &y) && str_to_i64(month, &z))
			return y > 2023 || (y == 2023 && z >= 4);
	}
	return false;
}

ow_status nsys_collect(struct nsys_groups *g, const struct nsys_report *report)
{
	static const struct {
		const char *name;
		enum event_sort sort;
	} sorts[] = {
		{ "cuda_gpu_kern_sum", SORT_KERNEL },
		{ "cuda_api_sum", SORT_CALL },
		{ "cuda_gpu_mem_time_sum", SORT_COPY },
		{ "cuda_gpu_mem_size_sum", SORT_COPY },
		{ "nvtx_sum", SORT_RANGE },
		{ "osrt_sum", SORT_OSRT },
	};

	g->long_names = has_long_names(g->m);
	if (report->launches)
		return collect_launches(g);
	for (size_t i = 0; i < ARRAY_COUNT(sorts); i++)
		if (strcmp(sorts[i].name, report->name) == 0)
			return collect_events(g, report, sorts[i].sort);
	return OW_OK;
}
