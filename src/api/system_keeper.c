/*
 * system_keeper.c: samples the whole host all the time, for the daemon. Each half-minute is a file of its own that every command
 * opens: DIR/system/000001.opw and on. The oldest are removed when there are more than twenty, or when they take an eighth of
 * the daemon's disk. A thread does it; the daemon does not know of it.
 */
#include "api/system_keeper.h"

#include "base/parallel.h"

#include "api/api_int.h"
#include "live/daemon/jobs.h"
#include "opwatch/record.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_NS 30000000000
#define PARTS 20u
#define SHARE 8u

struct system_keeper {
	struct ow_daemon_options options;
	char folder[PATH_MAX];
	pthread_t thread;
	volatile bool stop;
	uint64_t first, next; /* numbers of the first file and of the next file */
};

static bool goes_on(void *arg)
{
	const struct system_keeper *k = arg;

	return !k->stop;
}

static void part_path(const struct system_keeper *k, uint64_t number, char path[PATH_MAX + 32])
{
	snprintf(path, PATH_MAX + 32, "%s/%06" PRIu64 ".opw", k->folder, number);
}

static uint64_t size_of(const struct system_keeper *k, uint64_t number)
{
	char path[PATH_MAX + 32];
	struct stat st;

	part_path(k, number, path);
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void remove_oldest(struct system_keeper *k)
{
	uint64_t limit = MAX(k->options.total_limit, (uint64_t)4 << 20) / SHARE, bytes = 0;
	char path[PATH_MAX + 32];

	for (uint64_t i = k->first; i < k->next; i++)
		bytes += size_of(k, i);
	while (k->next - k->first > 1 && (k->next - k->first > PARTS || bytes > limit)) {
		bytes -= size_of(k, k->first);
		part_path(k, k->first++, path);
		unlink(path);
	}
}

static ow_status record_part(struct system_keeper *k, int64_t for_ns, struct ow_error *err)
{
	struct ow_system_options options;
	char path[PATH_MAX + 32];
	ow_profile *profile;
	ow_status status;

	ow_system_options_init(&options);
	options.hz = k->options.system_hz;
	options.for_ns = for_ns;
	options.memory_limit = (uint64_t)1 << 30;
	options.keep_going = goes_on;
	options.keep_going_arg = k;
	OW_TRY(ow_record_system(&options, &profile, NULL, err));
	part_path(k, k->next, path);
	status = ow_profile_save(profile, path, NULL, err);
	ow_profile_free(profile);
	if (status == OW_OK && chmod(path, 0600) != 0)
		status = error_errno(err, errno, "%s", path);
	k->next += status == OW_OK;
	return status;
}

static void *keep_parts(void *arg)
{
	struct system_keeper *k = arg;
	bool reported = false;

	while (!k->stop) {
		struct ow_error err = { 0 };
		ow_status status = record_part(k, PART_NS, &err);

		remove_oldest(k);
		if (status == OW_OK || status == OW_E_EMPTY) {
			reported = false;
			continue;
		}
		if (!reported && k->options.message)
			k->options.message(k->options.message_arg, err.text, strlen(err.text));
		reported = true;
		sleep(1);
	}
	return NULL;
}

/* Continues after the last file of an earlier daemon. */
static void find_parts(struct system_keeper *k)
{
	char path[PATH_MAX + 64];

	glob_t found;

	k->first = k->next = 1;
	snprintf(path, sizeof(path), "%s/[0-9][0-9][0-9][0-9][0-9][0-9].opw", k->folder);
	if (glob(path, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) { /* the paths are sorted */
		uint64_t number = strtoull(strrchr(found.gl_pathv[i], '/') + 1, NULL, 10);

		k->first = i ? k->first : number;
		k->next = number + 1;
	}
	globfree(&found);
}

static ow_status make_folder(struct system_keeper *k, struct ow_error *err)
{
	char dir[PATH_MAX - 16];

	if (k->options.dir)
		snprintf(dir, sizeof(dir), "%s", k->options.dir);
	else
		runtime_data_dir(dir, sizeof(dir));
	snprintf(k->folder, sizeof(k->folder), "%s/system", dir);
	/* same permissions as the daemon's folder */
	OW_TRY(runtime_make_dir(dir, geteuid() == 0 ? 0711 : 0700, err));
	return runtime_make_dir(k->folder, 0700, err);
}

ow_status system_keeper_start(const struct ow_daemon_options *options, struct system_keeper **out,
			      struct ow_error *err)
{
	struct system_keeper *k = calloc(1, sizeof(*k));
	ow_status status;
	int failed;

	*out = NULL;
	if (!k)
		return error_no_memory(err);
	k->options = *options;
	status = make_folder(k, err);
	if (status == OW_OK) {
		find_parts(k);
		/* tests whether the kernel allows sampling */
		status = record_part(k, 20000000, err);
	}
	if (status != OW_OK && status != OW_E_EMPTY) {
		free(k);
		return status;
	}
	failed = background_start(&k->thread, keep_parts, k);
	if (failed) {
		free(k);
		return error_errno(err, failed, "cannot start the thread that samples the host");
	}
	*out = k;
	return OW_OK;
}

void system_keeper_stop(struct system_keeper *k)
{
	if (!k)
		return;
	k->stop = true;
	pthread_join(k->thread, NULL);
	free(k);
}
