/*
 * path.c: the route of the critical path in the timeline: what `opwatch path --json` prints for a step, every piece of it.
 */
#include "page/page_int.h"

PAGE_HANDLER(path)
{
	struct ow_ui *u = ui;
	struct ow_view_options options;
	struct ow_write_options write;
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	ow_view_options_init(&options);
	ow_write_options_init(&write);
	options.step = server_param_int(request, "step", -1);
	status = ow_path(u->profile, &options, NULL, &result, &err);
	if (status == OW_OK)
		status = ow_result_write(result, "json", &write, page_write, &reply->body, &err);
	if (status != OW_OK)
		page_fail(reply, status, &err);
	ow_result_free(result);
}
