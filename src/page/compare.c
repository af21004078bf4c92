/*
 * compare.c: the route of the page Compare: returns what `opwatch diff` prints with --json, and with frames=1 what it
 * prints with --frames. Each file is a run, as for the command; if a side has several files, each is opened again
 * separately when the page first asks. A report is given its runs. With base_rank and new_rank the files of two ranks
 * of this job are compared instead.
 */
#include "page/page_int.h"

#define FRAME_LEAST 0.0005 /* as a share of a step: less than half a pixel */

void page_free_runs(struct ow_ui *ui)
{
	for (size_t i = 0; i < ui->run_count; i++)
		ow_profile_free(ui->runs[i]);
	ui->run_count = 0;
	for (size_t i = 0; i < ARRAY_COUNT(ui->pair); i++) {
		ow_profile_free(ui->pair[i].profile);
		ui->pair[i].profile = NULL;
	}
}

static bool single(const struct ow_ui *ui)
{
	return ui->base_count <= 1 && ui->path_count <= 1;
}

static ow_status open_run(struct ow_ui *ui, const char *path, struct ow_error *err)
{
	struct ow_open_options options = ui->open;

	options.progress = NULL; /* progress is reported for the first load only */
	OW_TRY(ow_profile_open(&path, 1, &options, &ui->runs[ui->run_count], err));
	ui->run_count++;
	return OW_OK;
}

/* Opens each file as a run, the base's first. The caller holds the lock. */
static ow_status open_runs(struct ow_ui *ui, struct ow_error *err)
{
	size_t count = ui->base_count + ui->path_count;
	ow_status status = OW_OK;

	if (ui->run_count == count)
		return OW_OK;
	if (!ui->runs)
		ui->runs = ARENA_ARRAY(&ui->arena, ow_profile *, count);
	if (!ui->runs)
		return error_no_memory(err);
	for (size_t i = 0; status == OW_OK && i < ui->base_count; i++)
		status = open_run(ui, ui->base_paths[i], err);
	for (size_t i = 0; status == OW_OK && i < ui->path_count; i++)
		status = open_run(ui, ui->paths[i], err);
	if (status != OW_OK)
		page_free_runs(ui);
	return status;
}

static ow_status compare(struct ow_ui *ui, bool frames, ow_result **result, struct ow_error *err)
{
	ow_profile *sides[2] = { ui->base, ui->profile };
	ow_profile **all = sides;
	size_t base = 1, other = 1;
	struct ow_diff_options options;

	ow_diff_options_init(&options);
	options.frames = frames;
	options.frames_least = FRAME_LEAST;
	if (ui->given) {
		all = (ow_profile **)(uintptr_t)ui->given;
		base = ui->given_base;
		other = ui->given_new;
	} else if (!single(ui)) {
		OW_TRY(open_runs(ui, err));
		all = ui->runs;
		base = ui->base_count;
		other = ui->path_count;
	}
	return ow_diff(all, base, all + base, other, &options, result, err);
}

/* Finds the file of a rank, as it was given or found in a folder. */
static ow_status find_file(struct ow_ui *ui, int64_t rank, const char **path, struct ow_error *err)
{
	const struct model *m = ui->profile->m;
	bool one_each = m->source.count == ui->path_count + 1;
	uint32_t found = 0;

	for (uint32_t i = 1; i < m->source.count; i++) {
		if (m->source.rank[i] != rank)
			continue;
		if (found)
			return error_set(
				err, OW_E_UNSUPPORTED,
				"rank %lld has several files: 'opwatch diff' compares single ones",
				(long long)rank);
		found = i;
	}
	if (!found)
		return error_set(err, OW_E_NOT_FOUND, "rank %lld is not in these files",
				 (long long)rank);
	*path = one_each ? ui->paths[found - 1] : model_str(m, m->source.path[found]).ptr;
	if (!one_each && (ui->profile->options.redact || strchr(*path, '!')))
		return error_set(err, OW_E_UNSUPPORTED,
				 "rank %lld is part of an archive: unpack it, or name the files",
				 (long long)rank);
	return OW_OK;
}

/* Opens the file of a rank. The caller holds the lock. */
static ow_status open_rank(struct ow_ui *ui, struct page_rank *to, int64_t rank,
			   struct ow_error *err)
{
	struct ow_open_options options = ui->open;
	unsigned epoch = atomic_load(&ui->epoch);
	const char *path = NULL;

	if (to->profile && to->rank == rank && to->epoch == epoch)
		return OW_OK;
	OW_TRY(find_file(ui, rank, &path, err));
	ow_profile_free(to->profile);
	to->profile = NULL;
	options.progress = page_going_on;
	options.progress_arg = ui;
	OW_TRY(ow_profile_open(&path, 1, &options, &to->profile, err));
	to->rank = rank;
	to->epoch = epoch;
	return OW_OK;
}

static ow_status compare_ranks(struct ow_ui *ui, int64_t base, int64_t other, bool frames,
			       ow_result **result, struct ow_error *err)
{
	struct ow_diff_options options;

	ow_diff_options_init(&options);
	options.frames = frames;
	options.frames_least = FRAME_LEAST;
	OW_TRY(open_rank(ui, &ui->pair[0], base, err));
	OW_TRY(open_rank(ui, &ui->pair[1], other, err));
	return ow_diff(&ui->pair[0].profile, 1, &ui->pair[1].profile, 1, &options, result, err);
}

PAGE_HANDLER(diff)
{
	struct ow_ui *u = ui;
	struct ow_write_options write;
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	int64_t base = server_param_int(request, "base_rank", -1);
	int64_t other = server_param_int(request, "new_rank", -1);
	bool ranks = base >= 0 && other >= 0;
	bool frames = server_param_int(request, "frames", 0) != 0;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	if (!u->base && !ranks) {
		server_fail(reply, 404, "there is no run to compare with: start with --base FILE");
		return;
	}
	ow_write_options_init(&write);
	pthread_mutex_lock(&u->watch_lock);
	status = ranks ? compare_ranks(u, base, other, frames, &result, &err)
		       : compare(u, frames, &result, &err);
	if (status == OW_OK)
		status = ow_result_write(result, "json", &write, page_write, &reply->body, &err);
	ow_result_free(result);
	pthread_mutex_unlock(&u->watch_lock);
	if (status != OW_OK)
		page_fail(reply, status, &err);
}
