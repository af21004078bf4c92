/*
 * reading.c: what surrounds every call that reads rows of a profile. For most profiles that is little: rows
 * that an importer has put off are made. Rows in a file of our own are verified first, read under a guard, and void when the file changed
 * meanwhile.
 */
#include "api/api_int.h"

static ow_status check_file(const struct model *m, struct error *err)
{
	if (mapping_lost(&m->backing->map))
		return model_lost(m, err);
	return input_check_unchanged(&m->backing->file, err);
}

ow_status api_read_begin(ow_profile *p, uint64_t tables, struct reading *reading, struct error *err)
{
	ow_status status;

	reading->guarded = p && p->m->backing != NULL; /* a server's answer has no profile */
	if (!reading->guarded)
		return p ? model_require_rows(p->m, tables, err) : OW_OK;
	OW_TRY(check_file(p->m, err));
	guard_enter(&reading->guard);
	status = model_require_rows(p->m, tables, err);
	if (status != OW_OK)
		guard_leave(&reading->guard);
	return status;
}

ow_status api_read_end(ow_profile *p, struct reading *reading, ow_status status, struct error *err)
{
	if (!reading->guarded)
		return status;
	guard_leave(&reading->guard);
	return check_file(p->m, err) == OW_OK ? status : OW_E_IO;
}

ow_status ow_profile_verify(ow_profile *p, uint64_t *bytes, struct error *err)
{
	struct reading reading;
	ow_status status;

	error_clear(err);
	if (!p->frozen)
		return error_set(err, OW_E_USAGE,
				 "the profile is still being loaded: freeze it first");
	if (bytes)
		*bytes = p->m->backing ? p->m->backing->file.size : 0;
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	status = model_verify_rest(p->m, err);
	return api_read_end(p, &reading, status, err);
}
