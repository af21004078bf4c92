/* overview.c: see overview.h. What its parts share: views of the part that was asked for, and their cells. */
#include "cli/overview.h"

bool overview_worked(const struct overview *o, ow_status status, const struct ow_error *err)
{
	bool failed = status == OW_E_CORRUPT || status == OW_E_IO || status == OW_E_NO_MEMORY ||
		      status == OW_E_LIMIT || status == OW_E_INTERNAL;

	if (failed && o->failure->status == OW_OK)
		*o->failure = *err;
	return status == OW_OK;
}

void overview_heading(const struct overview *o, const char *text, const char *remark)
{
	fprintf(o->to, "\n%s%s%s%s%s\n", o->colour ? "\033[1m" : "", text,
		o->colour ? "\033[0m" : "", *remark ? ", " : "", remark);
}

ow_result *overview_view(const struct overview *o, const char *name,
			 const struct ow_view_options *options)
{
	struct ow_error err = { 0 };
	ow_result *result = NULL;

	if (!overview_worked(o, ow_view(o->profile, name, options, &result, &err), &err))
		return NULL;
	return result;
}

double overview_real(const ow_result *r, uint32_t row, const char *column)
{
	return ow_result_real(r, row, ow_result_find(r, column));
}

struct str overview_text(const ow_result *r, uint32_t row, const char *column)
{
	size_t len;
	const char *text = ow_result_text(r, row, ow_result_find(r, column), &len);

	return str_make(text, len);
}

double overview_sum(const ow_result *r, const char *name)
{
	uint32_t column = r ? ow_result_find(r, name) : 0;
	double sum = 0;

	for (uint32_t i = 0; r && i < ow_result_rows(r); i++)
		sum += MAX(ow_result_real(r, i, column), 0);
	return sum;
}

void overview_part(const struct overview *o, struct ow_view_options *options)
{
	const struct ow_view_options *given = &o->args->options.view;

	ow_view_options_init(options);
	options->step = given->step;
	options->rank = given->rank;
	options->time_from_ns = given->time_from_ns;
	options->time_to_ns = given->time_to_ns;
	options->full_names = given->full_names;
}

ow_result *overview_plain(const struct overview *o, const char *name)
{
	struct ow_view_options options;

	overview_part(o, &options);
	return overview_view(o, name, &options);
}

ow_result *overview_types(const struct overview *o, const char *metric)
{
	static const char *const metrics[] = { "micros", "occurrence", "float_ops", "params" };
	struct ow_view_options options;

	overview_part(o, &options);
	options.order_by = metric;
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ metrics, ARRAY_COUNT(metrics) };
	return overview_view(o, "op", &options);
}
