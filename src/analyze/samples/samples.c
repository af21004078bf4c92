/* samples.c: see samples.h. */
#include "analyze/samples.h"

enum result_unit sample_unit(struct str unit)
{
	if (str_eq(unit, STR("ns")))
		return RESULT_NS;
	return str_eq(unit, STR("bytes")) ? RESULT_BYTES : RESULT_COUNT;
}

void samples_add_cost_columns(struct result *out, enum result_unit unit)
{
	result_column(out, "self", "self", RESULT_INT, unit);
	result_column(out, "self_percent", "share", RESULT_REAL, RESULT_PERCENT);
	result_column(out, "total", "total", RESULT_INT, unit);
	result_column(out, "total_percent", "share", RESULT_REAL, RESULT_PERCENT);
}

void samples_set_cost(struct result *out, uint32_t row, uint32_t first, int64_t self, int64_t total,
		      int64_t all)
{
	result_set_int(out, row, first, self);
	result_set_real(out, row, first + 1, samples_percent(self, all));
	result_set_int(out, row, first + 2, total);
	result_set_real(out, row, first + 3, samples_percent(total, all));
}

static uint32_t find_metric(const struct model *m, const char *name)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < m->metric.count; i++) {
		if (name && str_eq(model_str(m, m->metric.name[i]), str_from(name)))
			return i;
		if (!name && (!found || (m->metric.is_default[i] && !m->metric.is_default[found])))
			found = i;
	}
	return found;
}

static ow_status metric_missing(const struct model *m, const char *name, struct error *err)
{
	char known[512] = "";
	size_t len = 0;

	for (uint32_t i = 1; i < m->metric.count && len < sizeof(known) - 80; i++) {
		struct str other = model_str(m, m->metric.name[i]);

		if (find_metric(m, other.ptr) == i)
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%.*s",
						len ? ", " : "", (int)MIN(other.len, 60),
						other.ptr);
	}
	return error_set(err, OW_E_NOT_FOUND, "no metric is called '%s'; there are %s", name,
			 len ? known : "none: these inputs have no samples");
}

ow_status samples_choose(const struct model *m, const struct view_options *options,
			 struct arena *scratch, struct sample_choice *out, struct error *err)
{
	uint32_t metric = find_metric(m, options->metric);

	*out = (struct sample_choice){ .m = m };
	if (!metric && options->metric)
		return metric_missing(m, options->metric, err);
	OW_TRY(view_filter(m, options, &out->filter, err));
	out->unfiltered = filter_is_all(&out->filter);
	out->name = m->metric.name[metric];
	out->unit = m->metric.unit[metric];
	out->shown_as = sample_unit(model_str(m, out->unit));
	out->wanted = ARENA_ARRAY(scratch, uint8_t, m->metric.count);
	if (!out->wanted)
		return error_no_memory(err);
	for (uint32_t i = 1; i < m->metric.count; i++)
		out->wanted[i] =
			m->metric.name[i].v == out->name.v && m->metric.unit[i].v == out->unit.v;
	return OW_OK;
}

#define NAMED_INPUTS 3

/* For each source: 0 without samples, LEFT_OUT with samples of other metrics only, SHOWN. */
enum { LEFT_OUT = 1, SHOWN };

static uint8_t *judge_sources(const struct sample_choice *c, struct arena *scratch)
{
	const struct model *m = c->m;
	uint8_t *used = ARENA_ARRAY(scratch, uint8_t, m->metric.count);
	uint8_t *sources = ARENA_ARRAY(scratch, uint8_t, m->source.count);

	for (uint32_t i = 1; used && sources && i < m->sample.count; i++)
		used[m->sample.metric[i].v] = 1;
	for (uint32_t i = 1; used && sources && i < m->metric.count; i++) {
		uint8_t *source = &sources[m->metric.source[i].v];

		if (used[i] && *source != SHOWN)
			*source = c->wanted[i] ? SHOWN : LEFT_OUT;
	}
	return used ? sources : NULL;
}

/* What a source measures by default. */
static struct str metric_of(const struct model *m, uint32_t source)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < m->metric.count; i++)
		if (m->metric.source[i].v == source && (!found || m->metric.is_default[i]))
			found = i;
	return model_str(m, m->metric.name[found]);
}

ow_status samples_left_out(const struct sample_choice *c, const struct view_options *options,
			   struct arena *scratch, char **text, struct error *err)
{
	const struct model *m = c->m;
	const uint8_t *sources;
	struct str first = STR("");
	uint32_t count = 0;
	struct buf said;

	*text = NULL;
	if (options->metric || m->source.count <= 2)
		return OW_OK;
	sources = judge_sources(c, scratch);
	if (!sources)
		return error_no_memory(err);
	buf_init(&said, scratch->mem);
	for (uint32_t i = 1; i < m->source.count; i++) {
		struct str metric, path = model_str(m, m->source.path[i]);

		if (sources[i] != LEFT_OUT || count++ >= NAMED_INPUTS)
			continue;
		metric = metric_of(m, i);
		first = count == 1 ? metric : first;
		buf_printf(&said, "%s%.*s of %.*s",
			   count > 1 ? ", " : "Not shown: ", (int)metric.len, metric.ptr,
			   (int)path.len, path.ptr);
	}
	if (count > NAMED_INPUTS)
		buf_printf(&said, " and %u more", count - NAMED_INPUTS);
	if (count)
		buf_printf(&said,
			   "; what is measured differently is not added up. "
			   "--metric %.*s shows that.",
			   (int)first.len, first.ptr);
	if (count && !said.failed)
		*text = (char *)(uintptr_t)arena_str(scratch, buf_str(&said)).ptr;
	buf_release(&said);
	return count && !*text ? error_no_memory(err) : OW_OK;
}

ow_status samples_add_footer(const struct sample_choice *c, const struct view_options *options,
			     struct result *out, struct error *err)
{
	return samples_left_out(c, options, &out->arena, &out->footer, err);
}

int64_t *samples_by_stack(const struct sample_choice *c, struct arena *scratch)
{
	const struct sample_table *s = &c->m->sample;
	int64_t *self = ARENA_ARRAY(scratch, int64_t, c->m->stack.count);

	for (uint32_t i = 1; self && i < s->count; i++)
		if (sample_counts(c, i))
			self[s->stack[i].v] = wrap_add(self[s->stack[i].v], s->weight[i]);
	return self;
}

struct str sample_frame_name(const struct model *m, frame_id frame, struct arena *arena)
{
	const struct frame_table *f = &m->frame;
	struct str name = model_str(m, f->function[frame.v]), file;
	char text[512];
	size_t slash;

	if (name.len)
		return name;
	file = model_str(m, f->file[frame.v]);
	if (file.len) {
		snprintf(text, sizeof(text), "%.*s:%d", (int)MIN(file.len, 480), file.ptr,
			 (int)f->line[frame.v]);
		return arena_str(arena, str_from(text));
	}
	file = model_str(m, COLUMN_GET(f->module, frame.v));
	slash = str_rfind_char(file, '/');
	file = slash == STR_NONE ? file : str_skip(file, slash + 1);
	if (!file.len)
		return STR("[unknown]");
	if (file.ptr[0] == '[')
		return file;
	snprintf(text, sizeof(text), "[%.*s]", (int)MIN(file.len, 480), file.ptr);
	return arena_str(arena, str_from(text));
}
