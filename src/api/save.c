/* save.c: ow_profile_save: a profile as a file of our own. */
#include "api/api_int.h"

#include "api/atomic_file.h"
#include "import/record.h"
#include "sink/opw_save.h"

#include "opwatch_config.h"

void ow_save_options_init(struct ow_save_options *options)
{
	*options = (struct ow_save_options){ .size = sizeof(*options) };
}

struct saving {
	struct atomic_file file;
	struct record_reader records;
	struct ow_save_options options;
	const char *path;
};

static ow_status write_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			  struct error *err)
{
	struct saving *s = arg;

	if (atomic_write_at(&s->file, offset, bytes, len))
		return OW_OK;
	return error_errno(err, s->file.failure, "%s", s->path);
}

static ow_status keep_record(void *arg, op_id op, struct str *bytes, struct error *err)
{
	return record_keep(arg, op, bytes, err);
}

static bool report(void *arg, uint64_t done, uint64_t total)
{
	const struct saving *s = arg;

	return !s->options.progress ||
	       s->options.progress(s->options.progress_arg, s->path, done, total);
}

static ow_status save_model(ow_profile *p, struct saving *s, struct error *err)
{
	const struct progress progress = { report, s };
	const struct opw_out out = { write_at, s };
	const struct opw_save_options options = { .writer = "opwatch " OPWATCH_VERSION,
						  .record = keep_record,
						  .record_arg = &s->records,
						  .progress = &progress };
	struct reading reading;
	ow_status status;

	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	record_reader_init(&s->records, p->m);
	status = opw_save(p->m, &options, &out, err);
	record_reader_release(&s->records);
	return api_read_end(p, &reading, status, err);
}

ow_status ow_profile_save(ow_profile *p, const char *path, const struct ow_save_options *options,
			  struct error *err)
{
	struct saving s = { .path = path };
	ow_status status;

	error_clear(err);
	if (!p->frozen)
		return error_set(err, OW_E_USAGE,
				 "the profile is still being loaded: freeze it first");
	ow_save_options_init(&s.options);
	if (options)
		memcpy(&s.options, options, MIN(options->size, sizeof(s.options)));
	OW_TRY(atomic_open(&s.file, &p->mem, path, err));
	status = s.file.seekable ? save_model(p, &s, err)
				 : error_set(err, OW_E_USAGE,
					     "%s: an opwatch file must be a regular file", path);
	return atomic_finish(&s.file, status, err);
}
