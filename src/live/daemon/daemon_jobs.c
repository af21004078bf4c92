/*
 * daemon_jobs.c: the jobs of the daemon: which one a process is of, new ones, those that a daemon before had, and which
 * have to go. The signs, from the surest: it was here before; it was announced; a name or number of its own; its
 * family; the meeting point of its ranks; its container; itself.
 */
#include "live/daemon_int.h"

#include "base/clock.h"
#include "live/proc.h"
#include "live/processes.h"
#include "live/runtime_dir.h"
#include "live/saved.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#define ANCESTORS 64
#define SAVED_PART 4 /* of what all may take: what attention has saved */

static bool add_job(struct daemon *d, struct daemon_job *job)
{
	void *jobs = d->jobs;

	if (!mem_grow(d->mem, &jobs, &d->job_cap, d->job_count + 1, sizeof(*d->jobs)))
		return false;
	d->jobs = jobs;
	d->jobs[d->job_count++] = job;
	job->writer = d->options->version;
	job->message = d->options->message;
	job->message_arg = d->options->message_arg;
	job->limit = d->options->job_limit;
	d->last_id = MAX(d->last_id, job->info.id);
	return true;
}

static void forget_job(struct daemon *d, size_t index, bool remove)
{
	struct daemon_job *job = d->jobs[index];

	if (remove)
		job_remove(job);
	else
		job_release(job);
	mem_free(d->mem, job, sizeof(*job));
	memmove(&d->jobs[index], &d->jobs[index + 1], (--d->job_count - index) * sizeof(*d->jobs));
}

void daemon_release_jobs(struct daemon *d)
{
	while (d->job_count)
		forget_job(d, d->job_count - 1, false);
	mem_free(d->mem, d->jobs, d->job_cap * sizeof(*d->jobs));
	d->jobs = NULL;
	d->job_cap = 0;
}

/* ---- of a daemon before ---- */

static ow_status load_job(struct daemon *d, const char *folder, struct error *err)
{
	struct daemon_job *job = mem_zalloc(d->mem, sizeof(*job));
	struct error problem = { 0 };
	ow_status status = job ? job_load(job, d->mem, folder, &problem) : OW_E_NO_MEMORY;

	if (status == OW_OK) {
		job->quiet_ns = steady_ns();
		if (add_job(d, job))
			return OW_OK;
		job_release(job);
		status = OW_E_NO_MEMORY;
	}
	mem_free(d->mem, job, sizeof(*job));
	if (status == OW_E_NO_MEMORY)
		return error_no_memory(err);
	daemon_tell(d, "%s; it is left as it is", problem.text);
	return OW_OK;
}

ow_status daemon_load_jobs(struct daemon *d, struct error *err)
{
	DIR *dir = opendir(d->folder);
	const struct dirent *entry;
	ow_status status = OW_OK;

	if (!dir)
		return error_errno(err, errno, "%s", d->folder);
	while (status == OW_OK && (entry = readdir(dir)) != NULL) {
		char folder[JOBS_PATH];
		int len = snprintf(folder, sizeof(folder), "%s/%s", d->folder, entry->d_name);
		unsigned long id = strtoul(entry->d_name, NULL, 10);

		if (!id || id >= UINT32_MAX || !strchr(entry->d_name, '.') ||
		    len >= (int)sizeof(folder))
			continue;
		d->last_id = MAX(d->last_id, (uint32_t)id);
		status = load_job(d, folder, err);
	}
	closedir(dir);
	return status;
}

/* ---- which job ---- */

static struct daemon_job *find_known(const struct daemon *d, uint32_t pid, int64_t monotonic_ns)
{
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->this_boot && job_number_of(d->jobs[i], pid, monotonic_ns))
			return d->jobs[i];
	return NULL;
}

/* A batch job goes on when it has been quiet; a name may be used again for another one. */
static bool goes_on(const struct daemon_job *job)
{
	return job->this_boot &&
	       (job->open || job->info.state == JOB_AWAITED || job->kind == IDENTITY_SLURM);
}

static struct daemon_job *find_key(const struct daemon *d, const char *key, uint32_t uid)
{
	for (size_t i = d->job_count; i-- > 0;)
		if (d->jobs[i]->info.uid == uid && strcmp(d->jobs[i]->key, key) == 0 &&
		    goes_on(d->jobs[i]))
			return d->jobs[i];
	return NULL;
}

struct daemon_job *daemon_job_of(const struct daemon *d, const struct ucred *peer, uint32_t pid)
{
	for (unsigned depth = 0; depth < ANCESTORS && pid > 1; depth++) {
		struct proc_stat stat;

		for (size_t i = 0; i < d->job_count; i++)
			if (d->jobs[i]->info.uid == peer->uid && job_has_process(d->jobs[i], pid))
				return d->jobs[i];
		if (!proc_stat_read((pid_t)pid, 0, &stat) || stat.parent <= 0)
			break;
		pid = (uint32_t)stat.parent;
	}
	return NULL;
}

static const char *expected_name(struct daemon *d, const struct ucred *peer)
{
	for (size_t i = 0; i < d->expected_count; i++)
		if (d->expected[i].pid == (uint32_t)peer->pid &&
		    d->expected[i].until_ns > steady_ns() &&
		    (d->expected[i].uid == 0 || d->expected[i].uid == peer->uid))
			return d->expected[i].name;
	return NULL;
}

/* A name that no other job that goes on has. */
static void make_name_unique(const struct daemon *d, struct job_identity *id)
{
	char name[JOBS_NAME];
	bool taken = true;

	memcpy(name, id->name, sizeof(name));
	for (unsigned number = 2; taken && number < 10000; number++) {
		taken = false;
		for (size_t i = 0; i < d->job_count; i++)
			taken |=
				goes_on(d->jobs[i]) && strcmp(d->jobs[i]->info.name, id->name) == 0;
		if (taken)
			snprintf(id->name, sizeof(id->name), "%.57s-%u", name, number);
	}
}

static struct daemon_job *new_job(struct daemon *d, struct job_identity *id,
				  const struct ucred *peer, struct error *err)
{
	struct daemon_job *job = mem_zalloc(d->mem, sizeof(*job));

	if (!job) {
		error_no_memory(err);
		return NULL;
	}
	make_name_unique(d, id);
	if (job_make(job, d->mem, d->folder, ++d->last_id, id, (uint32_t)peer->uid,
		     (uint32_t)peer->pid, err) == OW_OK) {
		if (add_job(d, job))
			return job;
		job_remove(job);
		error_no_memory(err);
	}
	mem_free(d->mem, job, sizeof(*job));
	return NULL;
}

static struct daemon_job *find_job(struct daemon *d, const struct process_view *view,
				   const struct ucred *peer, struct error *err)
{
	const struct ring_process *process = view->process;
	char variables[RING_TEXT_MAX], command[RING_TEXT_MAX], cgroup[1024] = "";
	struct daemon_job *job =
		find_known(d, (uint32_t)peer->pid, (int64_t)process->clock_monotonic_ns);
	struct identity_facts facts = { .cgroup = cgroup,
					.our_cgroup = d->our_cgroup,
					.uid = (uint32_t)peer->uid,
					.pid = (uint32_t)peer->pid,
					.parent = process->parent };
	const char *expected = expected_name(d, peer);
	struct job_identity id;

	if (job)
		return job;
	facts.variables = process_view_text(view, process->identity, variables);
	facts.command = process_view_text(view, process->command, command);
	if (proc_read(peer->pid, "cgroup", cgroup, sizeof(cgroup)) < 0)
		cgroup[0] = '\0';
	identity_find(&facts, &id);
	if (expected) {
		id.kind = IDENTITY_NAME;
		snprintf(id.name, sizeof(id.name), "%s", expected);
		snprintf(id.key, sizeof(id.key), "name %s", expected);
		snprintf(id.shown, sizeof(id.shown), "name %s", expected);
	}
	if (id.kind > IDENTITY_SLURM)
		job = daemon_job_of(d, peer, (uint32_t)peer->pid);
	if (!job && id.kind > IDENTITY_SLURM)
		job = daemon_job_of(d, peer, process->parent);
	if (!job)
		job = find_key(d, id.key, (uint32_t)peer->uid);
	return job ? job : new_job(d, &id, peer, err);
}

void daemon_welcome(struct daemon *d, int fd, const struct ucred *peer, int memory)
{
	struct error err = { 0 };
	struct process_view view;
	struct daemon_job *job = NULL;
	ow_status status = process_view_open(&view, memory, &err);

	if (status == OW_OK)
		job = find_job(d, &view, peer, &err);
	else if (status == OW_E_UNSUPPORTED)
		atomic_store(&view.process->state, RING_REFUSED);
	process_view_close(&view);
	if (!job) {
		daemon_tell(d, "process %d: %s; nothing of it is recorded", (int)peer->pid,
			    err.text);
		close(fd);
		return;
	}
	if (job_join(job, fd, (uint32_t)peer->pid, memory, &err) != OW_OK)
		daemon_tell(d, "process %d, job %s: %s", (int)peer->pid, job->info.name, err.text);
	(void)job_save_about(job, NULL);
	d->wait_ms = 0; /* its rings follow */
}

/* ---- limits ---- */

static uint64_t total_bytes(struct daemon *d, size_t *ended, size_t *oldest)
{
	uint64_t total = 0;

	*ended = 0;
	*oldest = SIZE_MAX;
	for (size_t i = 0; i < d->job_count; i++) {
		struct daemon_job *job = d->jobs[i];

		job_describe(job);
		if (strcmp(job->saved_framework, job->info.framework) != 0)
			(void)job_save_about(job, NULL);
		total += job_bytes(job);
		if (job->open || job->info.state != JOB_ENDED)
			continue;
		++*ended;
		if (*oldest == SIZE_MAX || job->info.ended_ns < d->jobs[*oldest]->info.ended_ns)
			*oldest = i;
	}
	return total;
}

/* Minutes that attention has saved are part of the total: the oldest go when they take more than a quarter of it. What they
 * take. */
static uint64_t keep_saved(struct daemon *d)
{
	uint64_t limit = d->options->total_limit / SAVED_PART, bytes;
	struct saved saved;
	uint32_t removed;

	if (saved_find(&saved, d->mem, d->folder, NULL) != OW_OK)
		return 0; /* another time */
	removed = saved_trim(&saved, d->folder, limit);
	if (removed)
		daemon_tell(d,
			    "%u of the minutes that were saved, the oldest, went: they may take "
			    "%.1f MB, a quarter of --total-size",
			    removed, (double)limit / 1e6);
	for (size_t i = 0; i < d->job_count; i++) {
		struct job_info *info = &d->jobs[i]->info;

		info->saved_bytes = 0;
		for (size_t k = 0; k < saved.count; k++)
			info->saved_bytes +=
				saved.items[k].job == info->id ? saved.items[k].bytes : 0;
	}
	bytes = saved.bytes;
	saved_release(&saved);
	return bytes;
}

void daemon_keep_limits(struct daemon *d)
{
	uint64_t total = d->options->total_limit;
	size_t ended, oldest, open = 0;

	total -= MIN(keep_saved(d), total / SAVED_PART);
	d->rings_limit = total;
	for (size_t i = 0; i < d->job_count; i++)
		open += d->jobs[i]->open;
	for (size_t i = 0; i < d->job_count; i++)
		d->jobs[i]->limit = MAX(MIN(d->options->job_limit, total / MAX(open, (size_t)1)),
					DAEMON_LIMIT_LEAST);
	while ((total_bytes(d, &ended, &oldest) > total || ended > DAEMON_ENDED_JOBS) &&
	       oldest != SIZE_MAX)
		forget_job(d, oldest, true);
}
