/*
 * setup.c: reads the settings of runs: devices, driver, versions, world size and what the job states about itself
 * (batch size, …), from the facts of their sources; and finds which settings differ between two sides (diff_int.h).
 * Runs with different devices or world sizes cannot be compared. Called by run.c and diff.c.
 */
#include "diff/diff_int.h"

#include "base/json_escape.h"
#include "base/vec.h"

#include <stdlib.h>

#define VALUE_BYTES 200u
#define VALUES_MAX 4 /* limit of values of one setting in one run */

/* Whether a member of a trace describes when and how the file was written, not how the job ran. */
static bool is_about_the_file(struct str key)
{
	static const char *const names[] = { "trace_id",	"traceName", "rank",
					     "displayTimeUnit", "pid",	     "schemaVersion" };

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(key, str_from(names[i])))
			return true;
	return str_has(key, STR("time")) || str_has(key, STR("Time"));
}

static struct str key_at(const struct model *m, uint32_t fact)
{
	return model_str(m, m->fact.key[fact]);
}

/* The name of a setting for a fact that an XSpace plane has about its device. */
static struct str capability_name(struct str key)
{
	static const struct {
		const char *stat, *name;
	} known[] = { { "device_type_string", "device" },
		      { "device_vendor", "device_vendor" },
		      { "core_count", "device_cores" },
		      { "memory_size", "device_memory" },
		      { "compute_cap_major", "device_capability_major" },
		      { "compute_cap_minor", "device_capability_minor" } };

	for (size_t i = 0; i < ARRAY_COUNT(known); i++)
		if (str_eq(key, str_from(known[i].stat)))
			return str_from(known[i].name);
	return STR("");
}

/* The name of the setting that a fact stands for; empty when it is not a setting. */
static struct str setting_name(const struct model *m, uint32_t fact)
{
	uint32_t parent = m->fact.parent[fact].v, above = parent ? m->fact.parent[parent].v : 0;
	struct str key = key_at(m, fact), in = parent ? key_at(m, parent) : STR("");

	if (!parent)
		return str_eq(key, STR("world_size")) ? key : STR("");
	if (str_eq(in, STR("gpus")))
		return STR("device");
	if (str_eq(in, STR("hostnames")))
		return STR("host");
	if (above && str_eq(key_at(m, above), STR("deviceProperties")))
		return str_eq(key, STR("name")) ? STR("device") : STR("");
	if (str_eq(in, STR("capabilities")))
		return capability_name(key);
	if (str_eq(in, STR("machine")) || (str_eq(in, STR("top_level")) && !is_about_the_file(key)))
		return str_eq(key, STR("host_name")) ? STR("host") : key;
	return STR("");
}

static size_t fact_value(const struct model *m, uint32_t fact, char *to, size_t size)
{
	int len = 0;

	switch ((enum fact_kind)m->fact.kind[fact]) {
	case FACT_INT:
		len = snprintf(to, size, "%lld", (long long)m->fact.number[fact]);
		break;
	case FACT_REAL:
		len = snprintf(to, size, "%.10g", m->fact.real[fact]);
		break;
	case FACT_BOOL:
		len = snprintf(to, size, "%s", m->fact.number[fact] ? "true" : "false");
		break;
	case FACT_TEXT: {
		struct str text = model_str(m, m->fact.text[fact]);

		len = snprintf(to, size, "%.*s", (int)MIN(text.len, size - 1), text.ptr);
		break;
	}
	default:
		break;
	}
	return len > 0 ? MIN((size_t)len, size - 1) : 0;
}

static ow_status add_setting(struct diff_run *run, struct str name, struct str value,
			     struct ow_error *err)
{
	unsigned values = 0;

	for (size_t i = 0; i < run->setting_count; i++) {
		if (!str_eq(run->settings[i].name, name))
			continue;
		if (str_eq(run->settings[i].value, value) || ++values == VALUES_MAX)
			return OW_OK;
	}
	name = arena_str(&run->arena, name);
	value = arena_str(&run->arena, value);
	if (!name.ptr || !value.ptr ||
	    !vec_push(run->arena.mem, run->settings, run->setting_count, run->setting_cap,
		      ((struct diff_setting){ name, value })))
		return error_no_memory(err);
	return OW_OK;
}

static int by_name(const void *a, const void *b)
{
	const struct diff_setting *x = a, *y = b;
	int order = str_cmp(x->name, y->name);

	return order ? order : str_cmp(x->value, y->value);
}

ow_status diff_settings_read(const struct model *m, struct diff_run *run, struct ow_error *err)
{
	char value[VALUE_BYTES];

	for (uint32_t i = 1; i < m->fact.count; i++) {
		struct str name = setting_name(m, i);
		size_t len = name.len ? fact_value(m, i, value, sizeof(value)) : 0;

		if (len)
			OW_TRY(add_setting(run, name, str_make(value, len), err));
	}
	for (uint32_t i = 1; i < m->source.count; i++) {
		OW_TRY(add_setting(run, STR("format"), model_str(m, m->source.format[i]), err));
		if (m->source.producer[i].v)
			OW_TRY(add_setting(run, STR("producer"),
					   model_str(m, m->source.producer[i]), err));
	}
	if (run->setting_count)
		qsort(run->settings, run->setting_count, sizeof(*run->settings), by_name);
	return OW_OK;
}

/* Makes a table of the settings of one run; several values of a setting are joined: "A100, V100". */
ow_status diff_settings_table(const struct diff_run *run, struct table *out)
{
	struct buf values;

	table_add_column(out, "what", "what", TYPE_TEXT, UNIT_NONE);
	table_add_column(out, "value", "value", TYPE_TEXT, UNIT_NONE);
	for (size_t i = 0; i < run->setting_count;) {
		size_t first = i;
		uint32_t row = table_add_row(out, 0);

		buf_init(&values, out->mem);
		for (; i < run->setting_count &&
		       str_eq(run->settings[i].name, run->settings[first].name);
		     i++) {
			buf_puts(&values, i > first ? ", " : "");
			buf_add_str(&values, run->settings[i].value);
		}
		table_set_known_text(out, row, 0, run->settings[first].name);
		table_set_known_text(out, row, 1, buf_str(&values));
		if (values.failed)
			out->status = OW_E_NO_MEMORY;
		buf_release(&values);
	}
	return out->status;
}

static bool has_value(const struct diff_run *run, const struct diff_setting *setting)
{
	for (size_t i = 0; i < run->setting_count; i++)
		if (str_eq(run->settings[i].name, setting->name) &&
		    str_eq(run->settings[i].value, setting->value))
			return true;
	return false;
}

static bool has_name(const struct diff_run *run, struct str name)
{
	for (size_t i = 0; i < run->setting_count; i++)
		if (str_eq(run->settings[i].name, name))
			return true;
	return false;
}

/* Whether all runs of a side record the setting. */
static bool is_known(const struct comparison *c, unsigned side, struct str name)
{
	const struct diff_run *runs = c->runs + (side ? c->base : 0);
	size_t count = side ? c->other : c->base;

	for (size_t i = 0; i < count; i++)
		if (!has_name(&runs[i], name))
			return false;
	return true;
}

/* Whether some run of one side has a value that some run of the other side does not have. */
static bool is_different(const struct comparison *c, struct str name)
{
	for (size_t a = 0; a < c->base + c->other; a++) {
		const struct diff_run *run = &c->runs[a];
		size_t from = a < c->base ? c->base : 0,
		       to = a < c->base ? c->base + c->other : c->base;

		for (size_t i = 0; i < run->setting_count; i++)
			for (size_t b = from; b < to; b++)
				if (str_eq(run->settings[i].name, name) &&
				    !has_value(&c->runs[b], &run->settings[i]))
					return true;
	}
	return false;
}

/* Writes all values of a side, each once: "A100, V100". */
static void put_values(struct buf *to, const struct comparison *c, unsigned side, struct str name)
{
	size_t first = side ? c->base : 0, end = side ? c->base + c->other : c->base, count = 0;

	for (size_t r = first; r < end; r++)
		for (size_t i = 0; i < c->runs[r].setting_count; i++) {
			const struct diff_setting *s = &c->runs[r].settings[i];
			bool seen = !str_eq(s->name, name);

			for (size_t before = first; before < r && !seen; before++)
				seen = has_value(&c->runs[before], s);
			if (seen)
				continue;
			buf_puts(to, count++ ? ", " : "");
			buf_add_str(to, s->value);
		}
}

/* Whether a setting identifies the device: "device" and similar names. */
static bool is_device(struct str name)
{
	return str_starts(name, STR("device"));
}

static void refuse(struct comparison *c, const char *what, struct str name)
{
	struct buf values[2];

	if (!c->comparable)
		return;
	c->comparable = false;
	for (unsigned side = 0; side < 2; side++) {
		buf_init(&values[side], c->mem);
		put_values(&values[side], c, side, name);
	}
	snprintf(c->why, sizeof(c->why), "%s %.*s → %.*s", what, (int)MIN(values[0].len, 100u),
		 buf_str(&values[0]).ptr, (int)MIN(values[1].len, 100u), buf_str(&values[1]).ptr);
	buf_release(&values[0]);
	buf_release(&values[1]);
}

static void put_difference(struct buf *to, const struct comparison *c, struct str name)
{
	struct buf value;

	buf_puts(to, to->len > 1 ? ", {\"what\": " : "{\"what\": ");
	json_quote(to, name);
	for (unsigned side = 0; side < 2; side++) {
		buf_puts(to, side ? ", \"new\": " : ", \"base\": ");
		buf_init(&value, c->mem);
		put_values(&value, c, side, name);
		if (value.len)
			json_quote(to, buf_str(&value));
		else
			buf_puts(to, "null");
		to->failed = to->failed || value.failed;
		buf_release(&value);
	}
	buf_add_char(to, '}');
}

/* Whether a difference is shown. A setting that one side does not record is a difference only between files of one
 * format. */
static bool is_worth_showing(const struct comparison *c, struct str name)
{
	return (is_known(c, 0, name) && is_known(c, 1, name)) || !is_different(c, STR("format"));
}

static void refuse_if_needed(struct comparison *c, struct str name)
{
	if (!is_known(c, 0, name) || !is_known(c, 1, name))
		return;
	if (str_eq(name, STR("world_size")))
		refuse(c, "world", name);
	else if (is_device(name))
		refuse(c, "device", name);
}

/* Lists the names that some run has, each once, in order. */
static ow_status list_names(const struct comparison *c, struct str **names, size_t *count)
{
	size_t most = 1;

	for (size_t r = 0; r < c->base + c->other; r++)
		most += c->runs[r].setting_count;
	*names = ARENA_ARRAY((struct arena *)(uintptr_t)&c->scratch, struct str, most);
	*count = 0;
	if (!*names)
		return error_no_memory(c->err);
	for (size_t r = 0; r < c->base + c->other; r++)
		for (size_t i = 0; i < c->runs[r].setting_count; i++) {
			struct str name = c->runs[r].settings[i].name;
			bool seen = i && str_eq(c->runs[r].settings[i - 1].name, name);

			for (size_t before = 0; before < r && !seen; before++)
				seen = has_name(&c->runs[before], name);
			if (!seen)
				(*names)[(*count)++] = name;
		}
	return OW_OK;
}

static struct str unit_of(const struct diff_run *run)
{
	return run->unit.len ? run->unit : STR("ns");
}

/* The metric that the values measure, also if samples are only counted. */
static struct str metric_of(const struct diff_run *run)
{
	struct str metric = run->own_metric.len ? run->own_metric : run->metric;

	return metric.len ? str_first(metric, MIN(metric.len, 80u)) : STR("timed events");
}

/* Whether the values are numbers of samples, because both sides have only these in common. */
static bool is_only_counted(const struct diff_run *run)
{
	return str_eq(run->metric, STR(METRIC_SAMPLES));
}

/* Marks runs as not comparable if they measure different things: another unit, another metric of samples, or whole
 * recordings because some run has no steps. */
static void refuse_other_kinds(struct comparison *c)
{
	const struct diff_run *first = &c->runs[0];

	for (size_t i = 0; c->comparable && i < c->base + c->other; i++) {
		const struct diff_run *run = &c->runs[i];

		c->comparable = false;
		if (!str_eq(unit_of(run), unit_of(first)))
			snprintf(c->why, sizeof(c->why), "the unit %.*s → %.*s",
				 STR_ARG(unit_of(first)), STR_ARG(unit_of(run)));
		else if (!str_eq(metric_of(run), metric_of(first)))
			snprintf(c->why, sizeof(c->why), "the metric %.*s → %.*s%s",
				 STR_ARG(metric_of(first)), STR_ARG(metric_of(run)),
				 is_only_counted(first) ? ", so numbers of samples are compared"
							: "");
		else if (run->whole)
			snprintf(c->why, sizeof(c->why),
				 "some runs have no steps, so whole recordings are compared");
		else
			c->comparable = true;
	}
}

ow_status diff_compare_setup(struct comparison *c)
{
	struct buf json;
	struct str *names;
	size_t count;
	const char *text;

	c->comparable = true;
	for (size_t i = 1; i < c->base + c->other; i++)
		c->mixed = c->mixed || !str_eq(unit_of(&c->runs[i]), unit_of(&c->runs[0]));
	OW_TRY(list_names(c, &names, &count));
	buf_init(&json, c->mem);
	buf_add_char(&json, '[');
	for (size_t i = 0; i < count; i++)
		if (str_eq(names[i], STR("world_size")) && is_different(c, names[i]))
			refuse_if_needed(c, names[i]);
	for (size_t i = 0; i < count; i++) {
		if (!is_different(c, names[i]))
			continue;
		refuse_if_needed(c, names[i]);
		if (is_worth_showing(c, names[i]))
			put_difference(&json, c, names[i]);
	}
	refuse_other_kinds(c);
	buf_add_char(&json, ']');
	text = buf_cstr(&json);
	if (text)
		table_add_extra(c->out, "configuration", "%s", text);
	buf_release(&json);
	return text ? OW_OK : error_no_memory(c->err);
}
