/* nsys_stats.c: ow_nsys_stats: reports as `nsys stats` prints them, by analyze/nsys_stats.h. */
#include "api/api_int.h"

#include "analyze/nsys_stats.h"

bool ow_nsys_report_info(size_t index, struct ow_part_info *info)
{
	if (index >= nsys_report_count)
		return false;
	*info = (struct ow_part_info){ nsys_reports[index].name, nsys_reports[index].title,
				       nsys_reports[index].old_name };
	return true;
}

ow_status ow_nsys_stats(ow_profile *p, const char *name, const struct ow_view_options *options,
			ow_result **out, struct error *err)
{
	const struct nsys_report *report = nsys_report_find(name);
	struct ow_view_options full;
	struct reading reading;
	struct result *r;
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!p->frozen)
		return error_set(err, OW_E_USAGE, "the profile is still being loaded");
	if (!report)
		return error_set(err, OW_E_USAGE, "no report is called '%s'", name);
	ow_view_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	r = result_new(&p->mem, report->name, err);
	status = r ? nsys_report_run(p->m, report, &full, r, err) : OW_E_NO_MEMORY;
	status = api_read_end(p, &reading, status, err);
	if (status != OW_OK) {
		result_free(r);
		return status;
	}
	return api_wrap_result(p, r, out, err);
}
