/*
 * job_file.c: keeps a job across restarts of the daemon: writes the file `about` (lines NAME=VALUE) beside its
 * ring, makes new jobs, and loads a job from that file and its ring. Nothing in the folder is trusted: values that
 * make no sense are ignored.
 */
#include "live/daemon/daemon_job.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "live/follow/follow.h"
#include "live/proc/proc.h"
#include "live/daemon/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void boot_id(char to[BOOT_ID])
{
	to[0] = '\0';
	if (proc_read_text("/proc/sys/kernel/random/boot_id", to, BOOT_ID))
		to[strcspn(to, "\n")] = '\0';
}

ow_status job_save_about(struct daemon_job *job, struct ow_error *err)
{
	char path[JOBS_PATH + 32], boot[BOOT_ID] = "-";
	struct job_info *info = &job->info;
	struct buf text;
	ow_status status;

	/* counts only what is in the file, so that it stays true if this program is killed */
	if (job->open) {
		collector_count_dropped(&job->collector);
		info->dropped = job->dropped_before + job->collector.totals.dropped;
	}
	if (job->this_boot)
		boot_id(boot);
	buf_init(&text, job->mem);
	buf_printf(&text, "version=1\nid=%u\nname=%s\nkind=%d\nkey=%s\nidentity=%s\n", info->id,
		   info->name, (int)job->kind, job->key, info->identity);
	buf_printf(&text, "uid=%u\npid=%u\nsince=%" PRId64 "\nended=%" PRId64 "\nboot=%s\n",
		   info->uid, info->pid, info->since_ns, info->ended_ns, boot);
	buf_printf(&text,
		   "framework=%s\nranks=%u\nsteps=%" PRIu64 "\nstep_ns=%" PRId64
		   "\ndropped=%" PRIu64 "\n",
		   info->framework, info->ranks, info->steps, info->step_ns, info->dropped);
	snprintf(path, sizeof(path), "%s/about", job->ring.folder);
	status = text.failed ? error_no_memory(err)
			     : atomic_write_whole(path, buf_str(&text), 0600, err);
	buf_release(&text);
	memcpy(job->saved_framework, info->framework, sizeof(info->framework));
	return status;
}

static void folder_name(char *to, size_t size, const char *dir, uint32_t id, const char *name)
{
	int len = snprintf(to, size, "%s/%u.%.40s", dir, id, name);

	for (char *at = to + strlen(dir) + 1; len > 0 && *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *at))
			*at = '_';
}

static void init_job(struct daemon_job *job, struct mem *mem)
{
	*job = (struct daemon_job){ .mem = mem };
	job_meter_init(&job->meter, mem);
}

ow_status job_make(struct daemon_job *job, struct mem *mem, const char *dir, uint32_t id,
		   const struct job_identity *identity, uint32_t uid, uint32_t pid,
		   struct ow_error *err)
{
	struct job_info *info = &job->info;
	ow_status status;

	init_job(job, mem);
	*info = (struct job_info){ .id = id, .state = JOB_RUNNING, .uid = uid, .pid = pid };
	info->ranks = 1;
	info->since_ns = clock_ns(CLOCK_REALTIME);
	snprintf(info->name, sizeof(info->name), "%s", identity->name);
	snprintf(info->identity, sizeof(info->identity), "%s", identity->shown);
	snprintf(job->key, sizeof(job->key), "%s", identity->key);
	job->kind = identity->kind;
	job->this_boot = true;
	folder_name(info->folder, sizeof(info->folder), dir, id, info->name);
	/* the user of another user's job reads its files; their names are numbers */
	OW_TRY(runtime_make_dir(info->folder, geteuid() == 0 && uid ? 0755 : 0700, err));
	status = disk_ring_open(&job->ring, mem, info->folder, err);
	if (status != OW_OK) {
		rmdir(info->folder);
		return status;
	}
	status = job_save_about(job, err);
	if (status != OW_OK)
		job_remove(job);
	return status;
}

static void take_text(char *to, size_t size, struct str value)
{
	identity_clean_name(to, size, value);
}

static void take_line(struct daemon_job *job, struct str name, struct str value)
{
	struct job_info *info = &job->info;
	char boot[BOOT_ID];
	int64_t number = 0;

	(void)str_to_i64(value, &number);
	if (str_eq(name, STR("id")))
		info->id = (uint32_t)number;
	else if (str_eq(name, STR("name")))
		take_text(info->name, sizeof(info->name), value);
	else if (str_eq(name, STR("kind")))
		job->kind = (enum identity_kind)MIN(MAX(number, 0), (int64_t)IDENTITY_PROCESS);
	else if (str_eq(name, STR("key")))
		snprintf(job->key, sizeof(job->key), "%.*s", STR_ARG(value));
	else if (str_eq(name, STR("identity")))
		take_text(info->identity, sizeof(info->identity), value);
	else if (str_eq(name, STR("uid")))
		info->uid = (uint32_t)number;
	else if (str_eq(name, STR("pid")))
		info->pid = (uint32_t)number;
	else if (str_eq(name, STR("since")))
		info->since_ns = number;
	else if (str_eq(name, STR("ended")))
		info->ended_ns = number;
	else if (str_eq(name, STR("framework")) && value.len)
		take_text(info->framework, sizeof(info->framework), value);
	else if (str_eq(name, STR("ranks")))
		info->ranks = (uint32_t)number;
	else if (str_eq(name, STR("steps")))
		info->steps = (uint64_t)number;
	else if (str_eq(name, STR("step_ns")))
		info->step_ns = number;
	else if (str_eq(name, STR("dropped")))
		info->dropped = job->dropped_before = (uint64_t)number;
	else if (str_eq(name, STR("boot"))) {
		boot_id(boot);
		job->this_boot = boot[0] && str_eq(value, str_from(boot));
	}
}

static ow_status read_about(struct daemon_job *job, struct ow_error *err)
{
	char path[JOBS_PATH + 32], text[4096];
	struct str rest, line;
	size_t len;

	snprintf(path, sizeof(path), "%s/about", job->ring.folder);
	len = proc_read_text(path, text, sizeof(text));
	rest = str_make(text, len);
	while (len && str_split(&rest, '\n', &line)) {
		size_t equals = str_find_char(line, '=');

		if (equals != STR_NONE)
			take_line(job, str_first(line, equals), str_skip(line, equals + 1));
	}
	if (!job->info.id || !job->info.name[0] || !job->key[0])
		return error_set(err, OW_E_CORRUPT,
				 "%s: the file does not name the job that the ring belongs to",
				 path);
	return OW_OK;
}

/* Takes the process numbers and the number of records from a segment. */
static ow_status take_segment(struct daemon_job *job, const struct opw_segment *s,
			      const struct live_blocks *blocks, struct ow_error *err)
{
	struct str left = blocks->all[LIVE_BLOCK_PROCESS];

	job->records_before = MAX(job->records_before, s->head.first_row + s->head.row_count);
	for (; left.len >= sizeof(struct live_process);
	     left = str_skip(left, sizeof(struct live_process))) {
		struct known_process process = { 0 };
		struct live_process row;

		memcpy(&row, left.ptr, sizeof(row));
		process = (struct known_process){ row.pid, row.number, row.monotonic_ns };
		job->last_number = MAX(job->last_number, row.number);
		if (row.number && !job_know(job, &process))
			return error_no_memory(err);
	}
	return OW_OK;
}

static ow_status read_ring_file(struct daemon_job *job, uint32_t number, struct ow_error *err)
{
	char path[JOBS_PATH + 32];
	struct live_blocks blocks;
	struct opw_file file;
	struct arena arena;
	struct input in;
	ow_status status;

	disk_ring_path(&job->ring, number, path, sizeof(path));
	OW_TRY(input_open(&in, job->mem, path, err));
	arena_init(&arena, job->mem);
	live_blocks_init(&blocks, job->mem);
	status = opw_read(&file, &in, &arena, err);
	for (size_t i = 0; status == OW_OK && i < file.count; i++) {
		if (file.segments[i].head.kind != OPW_LIVE)
			continue;
		status = live_blocks_read(&blocks, &in, &file.segments[i], 1u << LIVE_BLOCK_PROCESS,
					  err);
		if (status == OW_OK)
			status = take_segment(job, &file.segments[i], &blocks, err);
	}
	live_blocks_release(&blocks);
	arena_release(&arena);
	input_close(&in);
	return status;
}

static ow_status read_ring(struct daemon_job *job, struct ow_error *err)
{
	for (uint32_t i = job->ring.first; i && i <= job->ring.last; i++)
		if (read_ring_file(job, i, err) == OW_E_NO_MEMORY)
			return OW_E_NO_MEMORY; /* damaged segments are left out */
	error_clear(err);
	return OW_OK;
}

ow_status job_load(struct daemon_job *job, struct mem *mem, const char *folder,
		   struct ow_error *err)
{
	ow_status status;

	init_job(job, mem);
	snprintf(job->info.folder, sizeof(job->info.folder), "%s", folder);
	OW_TRY(disk_ring_open(&job->ring, mem, folder, err));
	status = read_about(job, err);
	if (status == OW_OK)
		status = read_ring(job, err);
	if (status != OW_OK) {
		job_release(job);
		return status;
	}
	job->info.state = job->this_boot && !job->info.ended_ns ? JOB_AWAITED : JOB_ENDED;
	if (job->info.state == JOB_ENDED && !job->info.ended_ns)
		job->info.ended_ns = job->info.since_ns;
	job_describe(job);
	return OW_OK;
}
