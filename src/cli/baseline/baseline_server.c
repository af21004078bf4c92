/*
 * baseline_server.c: runs of `opwatch baseline` on a ClickHouse server (baseline_place.h), by the library (ow_remote_keep and its relatives). A profile
 * goes through a file in a temporary folder, in both directions.
 */
#include "cli/baseline/baseline_place.h"

#include "cli/runs.h"

#include <errno.h>
#include <unistd.h>

static const char *temp_path(struct args *args, const struct baseline *place, const char *id)
{
	return arena_printf(args->arena, "%s/%.32s.opw", place->temp, id);
}

static bool make_temp(struct baseline *place)
{
	const char *folder = getenv("TMPDIR");

	if (*place->temp)
		return true;
	if (!folder || !*folder || strlen(folder) > sizeof(place->temp) - 24)
		folder = "/tmp";
	snprintf(place->temp, sizeof(place->temp), "%s/opwatch-XXXXXX", folder);
	if (mkdtemp(place->temp))
		return true;
	complain("opwatch: %s: %s\n", folder, strerror(errno));
	place->temp[0] = '\0';
	return false;
}

static struct str text_at(struct args *args, const ow_result *r, uint32_t row, const char *name)
{
	size_t len = 0;
	const char *text = ow_result_text(r, row, ow_result_find(r, name), &len);

	return arena_str(args->arena, str_make(text, len));
}

static bool list(struct args *args, struct baseline *place, struct kept_runs *runs)
{
	struct ow_error err = { 0 };
	ow_result *r;
	uint32_t count;

	if (ow_remote_kept(place->remote, &r, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return false;
	}
	count = ow_result_rows(r);
	runs->items = ARENA_ARRAY(args->arena, struct kept_run, (size_t)count + 1);
	for (runs->count = 0; runs->items && runs->count < count; runs->count++) {
		uint32_t row = (uint32_t)runs->count;

		runs->items[row] = (struct kept_run){
			.number = row + 1,
			.id = arena_cstr(args->arena, text_at(args, r, row, "id")),
			.added = text_at(args, r, row, "added"),
			.commit = text_at(args, r, row, "commit"),
			.host = text_at(args, r, row, "host"),
			.file = text_at(args, r, row, "file"),
			.configuration = text_at(args, r, row, "configuration"),
		};
	}
	ow_result_free(r);
	return runs->items != NULL;
}

static ow_profile *load(struct args *args, struct baseline *place, const struct kept_run *run,
			int *code)
{
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	const char *path;

	*code = EXIT_FAILED;
	if (!run->id || !make_temp(place))
		return NULL;
	path = temp_path(args, place, run->id);
	if (ow_remote_fetch(place->remote, run->id, path, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return NULL;
	}
	*code = EXIT_GOOD;
	profile = diff_load(args, path, code);
	(void)unlink(path); /* the open profile keeps the file's content */
	return profile;
}

static int begin(struct args *args, struct baseline *place)
{
	(void)args;
	return make_temp(place) ? EXIT_GOOD : EXIT_FAILED;
}

static ow_status add(struct args *args, struct baseline *place, ow_profile *profile,
		     struct kept_run *run, struct ow_error *err)
{
	const char *path = temp_path(args, place, "new");
	struct ow_kept_run facts = { .size = sizeof(facts),
				     .commit = arena_cstr(args->arena, run->commit),
				     .host = arena_cstr(args->arena, run->host),
				     .file = arena_cstr(args->arena, run->file),
				     .configuration = arena_cstr(args->arena, run->configuration) };
	char id[OW_KEPT_ID];
	ow_status status = ow_profile_save(profile, path, NULL, err);

	if (status == OW_OK)
		status = ow_remote_keep(place->remote, path, &facts, id, err);
	(void)unlink(path);
	if (status == OW_OK)
		run->id = arena_cstr(args->arena, str_from(id));
	return status;
}

static void end(struct baseline *place)
{
	(void)place;
}

bool baseline_use_server(struct args *args, struct baseline *place, int *code)
{
	place->list = list;
	place->load = load;
	place->begin = begin;
	place->add = add;
	place->end = end;
	place->remote = remote_open(args, place->name, code);
	return place->remote != NULL;
}
