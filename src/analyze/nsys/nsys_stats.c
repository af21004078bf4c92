/*
 * nsys_stats.c: computes the reports of `nsys stats` (nsys_stats.h). The first part decides which events a report counts, and groups them: by
 * their categories, which exports of Nsight Systems and traces of PyTorch share, or by their tracks if there are none. The second part
 * writes sums, means and the like as the scripts of Nsight Systems do: shares of the listed rows, the mean of the two middle values as
 * the median, and the standard deviation of a sample.
 */
#include "analyze/nsys/nsys_stats.h"

#include "base/vec.h"

#include <math.h>

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

/* Returns the kind of a device event. A whole CUDA graph does not count as a kernel. */
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

static ow_status find_group(struct nsys_groups *g, const struct nsys_group *group, uint32_t *found)
{
	uint64_t hash = map_hash_u64((uint64_t)group->key[0] << 32 | group->key[1],
				     (uint64_t)group->key[2] << 32 | group->key[3]) ^
			(uint64_t)group->key[4] * 0x9e3779b97f4a7c15ull;

	for (struct map_iter it = map_find(&g->map, hash); it.value; it = map_next(&g->map, it)) {
		if (memcmp(g->list[it.value].key, group->key, sizeof(group->key)) != 0)
			continue;
		*found = it.value;
		return OW_OK;
	}
	if (!vec_reserve(g->mem, g->list, g->cap, g->count + 1))
		return error_no_memory(g->err);
	*found = (uint32_t)g->count;
	g->list[g->count] = *group;
	if (!map_add(&g->map, hash, *found))
		return error_no_memory(g->err);
	g->count++;
	return OW_OK;
}

static ow_status add_value(struct nsys_groups *g, uint32_t group, uint32_t part, int64_t value)
{
	if (!vec_push(g->mem, g->values, g->value_count, g->value_cap,
		      (struct nsys_value){ group * NSYS_PARTS + part, value }))
		return error_no_memory(g->err);
	return OW_OK;
}

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

/* Returns a number for each direction of copying; the label is made on first use. */
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

/* Adds an NVTX range, named domain:text; the default domain has no name. */
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

/* Returns the number at the end of a device's name. */
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
	OW_TRY(add_value(g, found, 0, sum_add(MAX(called, end), -start)));
	OW_TRY(add_value(g, found, 1, m->event.dur_ns[call]));
	if (begun > called)
		OW_TRY(add_value(g, found, 2, sum_add(begun, -called)));
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

/* Returns whether copies have long names, as in nsys since 2023.4. */
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

/* Fills groups and values from the events that belong to the report. */
static ow_status nsys_collect(struct nsys_groups *g, const struct nsys_report *report)
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

const struct nsys_report nsys_reports[] = {
	{ "cuda_gpu_kern_sum", "gpukernsum", "CUDA GPU Kernel Summary", "Total Time (ns)",
	  "Instances", "Name", .style = false },
	{ "cuda_api_sum", "cudaapisum", "CUDA API Summary", "Total Time (ns)", "Num Calls", "Name",
	  .style = false },
	{ "cuda_gpu_mem_time_sum", "gpumemtimesum", "CUDA GPU MemOps Summary (by Time)",
	  "Total Time (ns)", "Count", "Operation", .style = false },
	{ "cuda_gpu_mem_size_sum", "gpumemsizesum", "CUDA GPU MemOps Summary (by Size)",
	  "Total (MB)", "Count", "Operation", .bytes = true },
	{ "nvtx_sum", "nvtxsum", "NVTX Range Summary", "Total Time (ns)", "Instances", "Range",
	  .style = true },
	{ "osrt_sum", "osrtsum", "OS Runtime Summary", "Total Time (ns)", "Num Calls", "Name",
	  .style = false },
	{ "cuda_kern_exec_sum", "kernexecsum", "CUDA Kernel Launch & Exec Time Summary", "",
	  "Count", "Kernel Name", .launches = true },
};
const size_t nsys_report_count = ARRAY_COUNT(nsys_reports);

const struct nsys_report *nsys_report_find(const char *name)
{
	for (size_t i = 0; i < nsys_report_count; i++)
		if (strcmp(nsys_reports[i].name, name) == 0 ||
		    strcmp(nsys_reports[i].old_name, name) == 0)
			return &nsys_reports[i];
	return NULL;
}

struct summary {
	int64_t count, total, least, most;
	double mean, median, deviation;
};

struct row {
	const struct nsys_group *group;
	struct summary parts[NSYS_PARTS];
};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static struct summary summarise(int64_t *values, size_t count)
{
	struct summary s = { .count = (int64_t)count };
	double squares = 0, total = 0;
	size_t middle = count / 2;

	if (!count)
		return s;
	qsort(values, count, sizeof(*values), by_value);
	for (size_t i = 0; i < count; i++) {
		s.total = sum_add(s.total, values[i]);
		total += (double)values[i];
	}
	s.least = values[0];
	s.most = values[count - 1];
	s.mean = total / (double)count;
	s.median = (double)values[middle];
	if (count % 2 == 0)
		s.median = (s.median + (double)values[middle - 1]) / 2;
	for (size_t i = 0; i < count; i++)
		squares += ((double)values[i] - s.mean) * ((double)values[i] - s.mean);
	if (count > 1)
		s.deviation = sqrt(squares / (double)(count - 1));
	return s;
}

/* Sorts the values by slot and summarises the values of each slot. */
static ow_status make_rows(struct nsys_groups *g, struct row *rows)
{
	size_t slots = g->count * NSYS_PARTS;
	size_t *first = ARENA_ARRAY(&g->scratch, size_t, slots + 1);
	int64_t *values = mem_alloc(g->mem, (g->value_count + 1) * sizeof(*values));

	if (!first || !values) {
		mem_free(g->mem, values, (g->value_count + 1) * sizeof(*values));
		return error_no_memory(g->err);
	}
	for (size_t i = 0; i < g->value_count; i++)
		first[g->values[i].slot + 1]++;
	for (size_t i = 0; i < slots; i++)
		first[i + 1] += first[i];
	for (size_t i = 0; i < g->value_count; i++)
		values[first[g->values[i].slot]++] = g->values[i].value;
	/* first[i] now points behind the last value of slot i */
	for (size_t i = 0; i < slots; i++) {
		size_t from = i ? first[i - 1] : 0;

		rows[i / NSYS_PARTS].parts[i % NSYS_PARTS] =
			summarise(values + from, first[i] - from);
	}
	for (size_t i = 1; i < g->count; i++) /* without groups the list is NULL */
		rows[i].group = &g->list[i];
	mem_free(g->mem, values, (g->value_count + 1) * sizeof(*values));
	return OW_OK;
}

static int by_total(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->parts[0].total != y->parts[0].total)
		return x->parts[0].total > y->parts[0].total ? -1 : 1;
	if (x->group->pid != y->group->pid)
		return x->group->pid < y->group->pid ? -1 : 1;
	return str_cmp(x->group->label, y->group->label);
}

static void set_number(struct table *out, uint32_t row, uint32_t column, double value, int decimals)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", decimals, value);
	table_set_text(out, row, column, str_from(text));
}

static void put_int(struct table *out, uint32_t row, uint32_t column, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	table_set_text(out, row, column, str_from(text));
}

static uint32_t number_column(struct table *out, const char *name)
{
	return table_add_column(out, name, name, TYPE_NUMBER, UNIT_NONE);
}

static uint32_t text_column(struct table *out, const char *name)
{
	return table_add_column(out, name, name, TYPE_TEXT, UNIT_NONE);
}

static void sum_columns(const struct nsys_report *report, struct table *out)
{
	static const char *const times[] = { "Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)",
					     "StdDev (ns)" };
	static const char *const sizes[] = { "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)",
					     "StdDev (MB)" };

	if (!report->bytes)
		number_column(out, "Time (%)");
	number_column(out, report->total);
	number_column(out, report->count);
	for (size_t i = 0; i < ARRAY_COUNT(times); i++)
		number_column(out, report->bytes ? sizes[i] : times[i]);
	if (report->style)
		text_column(out, "Style");
	text_column(out, report->label);
}

static void add_time(struct table *out, uint32_t row, const struct summary *s, double sum,
		     uint32_t *column)
{
	set_number(out, row, (*column)++, sum > 0 ? 100 * (double)s->total / sum : 0, 1);
	put_int(out, row, (*column)++, s->total);
	put_int(out, row, (*column)++, s->count);
	set_number(out, row, (*column)++, s->mean, 1);
	set_number(out, row, (*column)++, s->median, 1);
	put_int(out, row, (*column)++, s->least);
	put_int(out, row, (*column)++, s->most);
	set_number(out, row, (*column)++, s->deviation, 1);
}

static void add_size(struct table *out, uint32_t row, const struct summary *s, uint32_t *column)
{
	const double mb = 1e6;

	set_number(out, row, (*column)++, (double)s->total / mb, 3);
	put_int(out, row, (*column)++, s->count);
	set_number(out, row, (*column)++, s->mean / mb, 3);
	set_number(out, row, (*column)++, s->median / mb, 3);
	set_number(out, row, (*column)++, (double)s->least / mb, 3);
	set_number(out, row, (*column)++, (double)s->most / mb, 3);
	set_number(out, row, (*column)++, s->deviation / mb, 3);
}

static void add_sums(const struct nsys_report *report, struct table *out, const struct row *rows,
		     size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)rows[i].parts[0].total;
	for (size_t i = 0; i < count; i++) {
		uint32_t row = table_add_row(out, 0), column = 0;

		if (report->bytes)
			add_size(out, row, &rows[i].parts[0], &column);
		else
			add_time(out, row, &rows[i].parts[0], sum, &column);
		if (report->style)
			table_set_model_text(out, row, column++,
					     rows[i].group->start_end ? STR("StartEnd")
								      : STR("PushPop"));
		table_set_text(out, row, column, rows[i].group->label);
	}
}

static const char *const launch_columns[NSYS_PARTS][5] = {
	{ "TAvg (ns)", "TMed (ns)", "TMin (ns)", "TMax (ns)", "TStdDev (ns)" },
	{ "AAvg (ns)", "AMed (ns)", "AMin (ns)", "AMax (ns)", "AStdDev (ns)" },
	{ "QAvg (ns)", "QMed (ns)", "QMin (ns)", "QMax (ns)", "QStdDev (ns)" },
	{ "KAvg (ns)", "KMed (ns)", "KMin (ns)", "KMax (ns)", "KStdDev (ns)" },
};

/* Adds one part of a launch. A part that did not occur, such as waiting in the queue, is left
 * empty. */
static void add_part(struct table *out, uint32_t row, const struct summary *s, uint32_t column)
{
	if (!s->count) {
		for (uint32_t i = 0; i < 5; i++)
			table_set_unknown(out, row, column + i);
		return;
	}
	set_number(out, row, column, s->mean, 1);
	set_number(out, row, column + 1, s->median, 1);
	put_int(out, row, column + 2, s->least);
	put_int(out, row, column + 3, s->most);
	set_number(out, row, column + 4, s->deviation, 1);
}

static void add_launches(struct table *out, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *from = &rows[i];
		uint32_t row = table_add_row(out, 0), column = 5;

		put_int(out, row, 0, from->group->pid);
		put_int(out, row, 1, from->group->tid);
		put_int(out, row, 2, from->group->device);
		put_int(out, row, 3, from->parts[0].count);
		put_int(out, row, 4, from->parts[2].count);
		for (int part = 0; part < NSYS_PARTS; part++, column += 5)
			add_part(out, row, &from->parts[part], column);
		table_set_text(out, row, column, from->group->call);
		table_set_text(out, row, column + 1, from->group->label);
	}
}

static void launch_headings(struct table *out)
{
	static const char *const first[] = { "PID", "TID", "DevId", "Count", "QCount" };

	for (size_t i = 0; i < ARRAY_COUNT(first); i++)
		number_column(out, first[i]);
	for (int part = 0; part < NSYS_PARTS; part++)
		for (int i = 0; i < 5; i++)
			number_column(out, launch_columns[part][i]);
	text_column(out, "API Name");
	text_column(out, "Kernel Name");
}

static ow_status fill(struct nsys_groups *g, const struct nsys_report *report, struct table *out)
{
	struct row *rows;
	size_t count;

	OW_TRY(nsys_collect(g, report));
	rows = ARENA_ARRAY(&g->scratch, struct row, g->count);
	if (!rows)
		return error_no_memory(g->err);
	OW_TRY(make_rows(g, rows));
	count = g->count - 1;
	if (count)
		qsort(rows + 1, count, sizeof(*rows), by_total);
	if (report->launches)
		add_launches(out, rows + 1, count);
	else
		add_sums(report, out, rows + 1, count);
	return out->status == OW_OK ? OW_OK : error_no_memory(g->err);
}

ow_status nsys_report_run(struct model *m, const struct nsys_report *report,
			  const struct view_options *options, struct table *out,
			  struct ow_error *err)
{
	struct nsys_groups g = { .m = m, .mem = m->mem, .err = err, .count = 1 };
	ow_status status;

	OW_TRY(view_filter(m, options, &g.filter, err));
	if (report->launches)
		launch_headings(out);
	else
		sum_columns(report, out);
	arena_init(&g.scratch, m->mem);
	map_init(&g.map, m->mem);
	status = fill(&g, report, out);
	map_release(&g.map);
	mem_free(m->mem, g.list, g.cap * sizeof(*g.list));
	mem_free(m->mem, g.values, g.value_cap * sizeof(*g.values));
	arena_release(&g.scratch);
	if (status == OW_OK && options->limit)
		table_limit(out, options->limit);
	return status;
}
