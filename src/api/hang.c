/*
 * hang.c: the body of ow_hang: the files of a job that hangs are read one after the other, and the answer is a table.
 * The work is in src/hang; here files are found and opened, and what is a recording is loaded as a profile.
 */
#include "api/api_int.h"

#include "hang/hang.h"

void ow_hang_options_init(struct ow_hang_options *options)
{
	*options = (struct ow_hang_options){ .size = sizeof(*options) };
}

struct hang_files {
	struct hang_job job;
	struct path_list paths;
	const char **recordings; /* paths of files that no reader of src/hang recognises */
	bool *found;
	size_t recording_count;
};

/* Returns whether a file that the user did not name deserves a message because it may be a
 * damaged dump. */
static bool may_be_dump(const struct input *in)
{
	unsigned char head[2] = { 0 };
	struct ow_error none;

	if (in->size < sizeof(head))
		return true;
	return input_read_at(in, 0, head, sizeof(head), &none) == OW_OK &&
	       (head[0] == 0x80 || head[0] == '{');
}

static ow_status read_open(struct hang_files *f, struct input *in, const struct path *path,
			   struct ow_error *err)
{
	struct unpack_result unpacked = { 0 };
	struct ow_error why = { 0 };
	bool known = false;
	ow_status status = unpack_input(in, &unpacked, &why);

	if (status == OW_OK && in->size)
		status = hang_read(&f->job, in, &known, &why);
	if (status == OW_E_NO_MEMORY)
		return error_no_memory(err);
	if (status != OW_OK) {
		hang_add_unreadable(&f->job, path->name, why.text);
		return OW_OK;
	}
	if (known)
		return OW_OK;
	if (!in->size || (path->found && may_be_dump(in))) {
		hang_add_unreadable(&f->job, path->name,
				    in->size ? "the format of the file is unknown"
					     : "the file is empty");
		return OW_OK;
	}
	f->found[f->recording_count] = path->found;
	f->recordings[f->recording_count++] = path->name;
	return OW_OK;
}

static ow_status read_one(struct hang_files *f, const struct path *path, struct ow_error *err)
{
	struct ow_error why = { 0 };
	struct input in;
	ow_status status = input_open(&in, f->job.mem, path->name, &why);

	if (status == OW_E_NO_MEMORY)
		return error_no_memory(err);
	if (status != OW_OK) {
		hang_add_unreadable(&f->job, path->name, why.text);
		return OW_OK;
	}
	status = read_open(f, &in, path, err);
	input_close(&in);
	return status;
}

/* Reads all recordings together, because the files of a ring are one recording. */
static ow_status read_recordings(struct hang_files *f, const char *const *paths, size_t count,
				 ow_status *opened, struct ow_error *err)
{
	struct ow_error why = { 0 };
	struct ow_open_options options;
	struct reading reading;
	ow_profile *p = NULL;
	ow_status status;

	ow_open_options_init(&options);
	options.memory_limit = f->job.mem->limit;
	*opened = ow_profile_open(paths, count, &options, &p, &why);
	if (*opened == OW_E_NO_MEMORY)
		return error_no_memory(err);
	if (*opened != OW_OK) {
		if (count == 1 && !f->found[0])
			hang_add_unreadable(&f->job, paths[0], why.text);
		return OW_OK;
	}
	status = api_read_begin(p, TABLES_ALL, &reading, err);
	if (status == OW_OK) {
		status = hang_add_model(&f->job, p->m, paths[0], err);
		status = api_read_end(p, &reading, status, err);
	}
	ow_profile_free(p);
	return status;
}

static ow_status read_all(struct hang_files *f, struct ow_error *err)
{
	ow_status opened;

	for (size_t i = 0; i < f->paths.count; i++)
		OW_TRY(read_one(f, &f->paths.items[i], err));
	if (!f->recording_count)
		return OW_OK;
	OW_TRY(read_recordings(f, f->recordings, f->recording_count, &opened, err));
	if (opened == OW_OK || f->recording_count == 1)
		return OW_OK;
	/* one of the files is not a recording: read them one by one, so that the others are still used */
	for (size_t i = 0; i < f->recording_count; i++) {
		f->found[0] = f->found[i];
		OW_TRY(read_recordings(f, &f->recordings[i], 1, &opened, err));
	}
	return OW_OK;
}

static ow_status answer(ow_result *result, struct hang_files *f, const char *const *paths,
			size_t count, bool redact, struct ow_error *err)
{
	OW_TRY(paths_expand(&f->paths, &result->own, paths, count, err));
	f->recordings = ARENA_ARRAY(&f->job.arena, const char *, f->paths.count + 1);
	f->found = ARENA_ARRAY(&f->job.arena, bool, f->paths.count + 1);
	if (!f->recordings || !f->found)
		return error_no_memory(err);
	OW_TRY(read_all(f, err));
	if (!f->job.files_read && f->job.note_count)
		return error_set(err, OW_E_UNSUPPORTED, "nothing could be read: %.*s",
				 (int)MIN(f->job.notes[0].len, 700u), f->job.notes[0].ptr);
	if (!f->job.files_read)
		return error_set(err, OW_E_EMPTY,
				 "no flight recorder dump, log, stack dump or recording was found");
	if (redact)
		OW_TRY(hang_redact(&f->job, err));
	result->r = table_new(&result->own, "hang", err);
	return result->r ? hang_table(&f->job, result->r, err) : OW_E_NO_MEMORY;
}

ow_status ow_hang(const char *const *paths, size_t count, const struct ow_hang_options *options,
		  ow_result **out, struct ow_error *err)
{
	ow_result *result = calloc(1, sizeof(*result));
	struct hang_files f = { 0 };
	struct ow_hang_options full;
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!result)
		return error_no_memory(err);
	ow_hang_options_init(&full);
	SIZED_IN(&full, options);
	mem_init(&result->own, (size_t)full.memory_limit);
	hang_init(&f.job, &result->own);
	if (count)
		status = answer(result, &f, paths, count, full.redact, err);
	else
		status = error_set(err, OW_E_USAGE, "no file is given");
	if (f.paths.arena.mem)
		arena_release(&f.paths.arena);
	hang_release(&f.job);
	if (status != OW_OK) {
		table_free(result->r);
		free(result);
		return status;
	}
	*out = result;
	return OW_OK;
}
