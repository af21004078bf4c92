/*
 * views.c: views, advice and facts as JSON: exactly what the commands print with --json, because the same public
 * functions write it. The parameters of a request have the names of the options (order_by, max_depth, step, …).
 */
#include "page/page_int.h"

#include "base/json_escape.h"

/* Reads a parameter that is a list of texts, one per line. */
static struct ow_list list_param(const struct server_request *request, const char *name,
				 struct arena *arena)
{
	const char *text = server_param(request, name);
	struct str rest = str_from(text ? text : ""), piece;
	const char **items;
	size_t count = 0, cap = 1;

	for (size_t i = 0; i < rest.len; i++)
		cap += rest.ptr[i] == '\n';
	items = rest.len ? ARENA_ARRAY(arena, const char *, cap) : NULL;
	while (items && count < cap && str_split(&rest, '\n', &piece))
		if (piece.len) {
			items[count] = arena_cstr(arena, piece);
			if (!items[count])
				break;
			count++;
		}
	return (struct ow_list){ items, count };
}

static void read_minima(const struct server_request *request, struct ow_view_options *o)
{
	const struct {
		const char *name;
		int64_t *value;
	} minima[] = {
		{ "min_bytes", &o->min_bytes },
		{ "min_peak_bytes", &o->min_peak_bytes },
		{ "min_residual_bytes", &o->min_residual_bytes },
		{ "min_output_bytes", &o->min_output_bytes },
		{ "min_micros", &o->min_micros },
		{ "min_accelerator_micros", &o->min_accelerator_micros },
		{ "min_cpu_micros", &o->min_cpu_micros },
		{ "min_params", &o->min_params },
		{ "min_float_ops", &o->min_float_ops },
		{ "min_occurrence", &o->min_occurrence },
	};

	for (size_t i = 0; i < ARRAY_COUNT(minima); i++)
		*minima[i].value = server_param_int(request, minima[i].name, *minima[i].value);
}

static void read_lists(const struct server_request *request, struct ow_view_options *o,
		       struct arena *arena)
{
	const struct {
		const char *name;
		struct ow_list *list;
	} lists[] = {
		{ "account_type_regexes", &o->account_type_regexes },
		{ "start_name_regexes", &o->start_name_regexes },
		{ "trim_name_regexes", &o->trim_name_regexes },
		{ "show_name_regexes", &o->show_name_regexes },
		{ "hide_name_regexes", &o->hide_name_regexes },
		{ "select", &o->select },
	};

	for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
		struct ow_list list = list_param(request, lists[i].name, arena);

		if (list.count)
			*lists[i].list = list;
	}
}

static int32_t int32_param(const struct server_request *request, const char *name, int32_t usual)
{
	int64_t value = server_param_int(request, name, usual);

	return value < INT32_MIN || value > INT32_MAX ? usual : (int32_t)value;
}

static void read_options(const struct server_request *request, struct ow_view_options *o,
			 struct arena *arena)
{
	int64_t limit = server_param_int(request, "limit", 0);

	ow_view_options_init(o);
	o->max_depth = int32_param(request, "max_depth", OW_DEFAULT_DEPTH);
	o->rank = int32_param(request, "rank", -1);
	o->step = server_param_int(request, "step", -1);
	o->limit = limit > 0 && limit <= UINT32_MAX ? (uint32_t)limit : 0;
	o->time_from_ns = server_param_int(request, "time_from", INT64_MIN);
	o->time_to_ns = server_param_int(request, "time_to", INT64_MAX);
	o->order_by = server_param(request, "order_by");
	o->metric = server_param(request, "metric");
	o->style = server_param(request, "style");
	o->peak = server_param(request, "peak");
	o->full_names = server_param_int(request, "full_names", 0) != 0;
	o->account_displayed_op_only =
		server_param_int(request, "account_displayed_op_only", 0) != 0;
	read_minima(request, o);
	read_lists(request, o, arena);
}

void page_answer_empty(struct server_reply *reply, const char *view, const char *why)
{
	buf_clear(&reply->body);
	buf_puts(&reply->body, "{\"view\": ");
	json_quote(&reply->body, str_from(view));
	buf_puts(&reply->body, ", \"columns\": [], \"rows\": [], \"footer\": ");
	json_quote(&reply->body, str_from(why));
	buf_puts(&reply->body, "}\n");
}

/* Runs the view that the parameter `name` names and writes it through a sink into the reply. */
static void answer_view(struct ow_ui *ui, const struct server_request *request, const char *sink,
			struct server_reply *reply)
{
	const char *name = server_param(request, "name");
	struct ow_view_options options;
	struct ow_write_options write;
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	ow_profile *profile;
	struct arena arena;
	ow_status status;

	if (!page_ready(ui, reply))
		return;
	profile = ui->profile;
	arena_init(&arena, &ui->mem);
	read_options(request, &options, &arena);
	ow_write_options_init(&write);
	write.metric = strcmp(sink, "folded") == 0 ? server_param(request, "value") : NULL;
	options.defer_rows = true;
	if (server_param_int(request, "base", 0) && ui->base)
		profile = ui->base;
	if (name) /* the page uses the same request for every view */
		ow_view_options_drop(profile, name, &options);
	status = name ? ow_view(profile, name, &options, &result, &err)
		      : error_set(&err, OW_E_USAGE, "the name of the view is missing");
	if (status == OW_OK)
		status = ow_result_write(result, sink, &write, page_write, &reply->body, &err);
	if (status == OW_E_NOT_FOUND && strcmp(sink, "json") == 0)
		page_answer_empty(reply, name, err.text);
	else if (status != OW_OK)
		page_fail(reply, status, &err);
	ow_result_free(result);
	arena_release(&arena);
}

PAGE_HANDLER(view)
{
	answer_view(ui, request, "json", reply);
}

PAGE_HANDLER(folded)
{
	reply->type = "text/plain; charset=utf-8";
	answer_view(ui, request, "folded", reply);
}

PAGE_HANDLER(advise)
{
	struct ow_ui *u = ui;
	struct ow_write_options write;
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	ow_status status;

	(void)request;
	if (!page_ready(u, reply))
		return;
	ow_write_options_init(&write);
	status = ow_advise(u->profile, NULL, &result, &err);
	if (status == OW_OK)
		status = ow_result_write(result, "json", &write, page_write, &reply->body, &err);
	if (status != OW_OK)
		page_fail(reply, status, &err);
	ow_result_free(result);
}

PAGE_HANDLER(info)
{
	struct ow_ui *u = ui;
	struct ow_error err = { 0 };
	ow_status status;

	(void)request;
	if (!page_ready(u, reply))
		return;
	status = ow_info_json(u->profile, page_write, &reply->body, &err);
	if (status != OW_OK)
		page_fail(reply, status, &err);
}
