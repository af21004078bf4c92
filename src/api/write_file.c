/* write_file.c: ow_result_write_file: a result into a file that appears whole or not at all. */
#include "api/api_int.h"

#include "api/atomic_file.h"

static bool write_to_file(void *arg, const void *bytes, size_t len)
{
	return atomic_write(arg, bytes, len);
}

ow_status ow_result_write_file(ow_result *result, const char *sink,
			       const struct ow_write_options *options, const char *path,
			       struct error *err)
{
	struct atomic_file file;

	error_clear(err);
	OW_TRY(atomic_open(&file, result->r->mem, path, err));
	return atomic_finish(
		&file, ow_result_write(result, sink, options, write_to_file, &file, err), err);
}
