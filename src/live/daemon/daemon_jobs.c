/*
 * daemon_jobs.c: decides which job a process belongs to, makes new jobs, loads those of an earlier daemon, and
 * keeps the disk limits. Evidence for a job, strongest first: the process was recorded before; it was announced;
 * it has a job name or batch number; an ancestor is in the job; the address where its ranks meet; its container;
 * the process itself. Called by daemon.c.
 */
#include "live/daemon/daemon_int.h"

#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "live/daemon/jobs.h"
#include "live/proc/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLOCK_DIGITS 6
#define ANCESTORS 64
#define SAVED_PART 4 /* saved incidents may use one part in this many of --total-size */

/*
 * Anomaly detection saves files NAME-ID-slow-120304.opw and NAME-ID-stall-120304.opw beside the rings, and with each what was
 * found (.why.txt, .hang.json). They count towards --total-size, and the oldest are removed first. Other files in the folder are left alone.
 */

static bool is_digits(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	return s.len > 0;
}

/* Cuts the part after the last dash off *rest, together with the dash, and returns it; the whole text if
 * there is no dash. */
static struct str take_last(struct str *rest)
{
	size_t dash = str_rfind_char(*rest, '-');
	struct str last = dash == STR_NONE ? *rest : str_skip(*rest, dash + 1);

	*rest = dash == STR_NONE ? str_first(*rest, 0) : str_first(*rest, dash);
	return last;
}

uint32_t incident_job_of(const char *name)
{
	struct str rest = str_from(name), clock, kind, id;
	int64_t number;

	if (str_ends(rest, STR(".opw")))
		rest = str_first(rest, rest.len - 4);
	else if (str_ends(rest, STR(".hang.json")))
		rest = str_first(rest, rest.len - strlen(".hang.json"));
	else if (str_ends(rest, STR(".why.txt")))
		rest = str_first(rest, rest.len - strlen(".why.txt"));
	else
		return 0;
	clock = take_last(&rest);
	kind = take_last(&rest);
	id = take_last(&rest);
	if (!rest.len || clock.len != CLOCK_DIGITS || !is_digits(clock) || !is_digits(id) ||
	    !(str_eq(kind, STR("slow")) || str_eq(kind, STR("stall"))))
		return 0;
	return str_to_i64(id, &number) && number <= INT32_MAX ? (uint32_t)number : 0;
}

static int by_age(const void *a, const void *b)
{
	const struct incident_file *x = a, *y = b;

	if (x->modified_ns != y->modified_ns)
		return x->modified_ns < y->modified_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Adds an incident; false if memory runs out. */
static bool add_incident(struct saved_incidents *saved, int folder, const char *name)
{
	uint32_t job = incident_job_of(name);
	struct incident_file *file;
	struct stat st;

	if (!job || strlen(name) >= sizeof(file->name) ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return true;
	if (!vec_reserve(saved->mem, saved->items, saved->cap, saved->count + 1))
		return false;
	file = &saved->items[saved->count++];
	*file = (struct incident_file){ .job = job,
					.uid = (uint32_t)st.st_uid,
					.modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
						       st.st_mtim.tv_nsec,
					.bytes = (uint64_t)st.st_size };
	memcpy(file->name, name, strlen(name) + 1);
	saved->bytes += file->bytes;
	return true;
}

ow_status incidents_find(struct saved_incidents *saved, struct mem *mem, const char *folder,
			 struct ow_error *err)
{
	const struct dirent *entry;
	DIR *dir = opendir(folder);
	bool good = true;

	*saved = (struct saved_incidents){ .mem = mem };
	while (dir && good && (entry = readdir(dir)) != NULL)
		good = add_incident(saved, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
	if (!good) {
		incidents_release(saved);
		return error_no_memory(err);
	}
	if (saved->count)
		qsort(saved->items, saved->count, sizeof(*saved->items), by_age);
	return OW_OK;
}

void incidents_release(struct saved_incidents *saved)
{
	mem_free(saved->mem, saved->items, saved->cap * sizeof(*saved->items));
	*saved = (struct saved_incidents){ .mem = saved->mem };
}

uint32_t incidents_trim(struct saved_incidents *saved, const char *folder, uint64_t limit)
{
	uint32_t removed = 0;
	char path[PATH_MAX];

	while (saved->bytes > limit && removed + 1 < saved->count) {
		const struct incident_file *oldest = &saved->items[removed];

		if (snprintf(path, sizeof(path), "%s/%s", folder, oldest->name) >=
			    (int)sizeof(path) ||
		    (unlink(path) != 0 && errno != ENOENT))
			break;
		saved->bytes -= oldest->bytes;
		removed++;
	}
	saved->count -= removed;
	if (removed)
		memmove(saved->items, saved->items + removed, saved->count * sizeof(*saved->items));
	return removed;
}

static bool add_job(struct daemon *d, struct daemon_job *job)
{
	if (!vec_push(d->mem, d->jobs, d->job_count, d->job_cap, job))
		return false;
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

static ow_status load_job(struct daemon *d, const char *folder, struct ow_error *err)
{
	struct daemon_job *job = mem_zalloc(d->mem, sizeof(*job));
	struct ow_error problem = { 0 };
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
	daemon_report(d, "%s; the folder is left unchanged", problem.text);
	return OW_OK;
}

ow_status daemon_load_jobs(struct daemon *d, struct ow_error *err)
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

static struct daemon_job *find_known(const struct daemon *d, uint32_t pid, int64_t monotonic_ns)
{
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->this_boot && job_number_of(d->jobs[i], pid, monotonic_ns))
			return d->jobs[i];
	return NULL;
}

/* Returns whether a job continues: a batch job may pause; a plain name may be used again for
 * another job. */
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

/* Makes the name of a job different from those of other active jobs. */
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
				  const struct ucred *peer, struct ow_error *err)
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
				   const struct ucred *peer, struct ow_error *err)
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

#define USER_RINGS 8192u
#define USER_BYTES ((size_t)16 << 30)
/* Alternatively the quota is this part of the host's memory, because reading pages that the job
 * never touched allocates them for us. */
#define USER_SHARE 8
#define USER_PROCESSES 2048u

static size_t user_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || page <= 0)
		return USER_BYTES;
	return MIN(USER_BYTES, (size_t)pages / USER_SHARE * (size_t)page);
}

/* Returns the quota of a user; NULL if there are too many users. */
static struct collector_quota *quota_of(struct daemon *d, const struct ucred *peer)
{
	struct collector_quota *q;

	for (size_t i = 0; i < d->user_count; i++) {
		q = &d->users[i];
		if (q->uid == (uint32_t)peer->uid)
			return q;
	}
	if (d->user_count == DAEMON_USERS)
		return NULL;
	q = &d->users[d->user_count++];
	*q = (struct collector_quota){ .uid = (uint32_t)peer->uid };
	if (!daemon_is_owner(peer)) {
		q->most_rings = USER_RINGS;
		q->most_bytes = user_bytes();
		q->most_processes = USER_PROCESSES;
	}
	return q;
}

void daemon_add_process(struct daemon *d, int fd, const struct ucred *peer, int memory)
{
	struct ow_error err = { 0 };
	struct process_view view;
	struct daemon_job *job = NULL;
	ow_status status = process_view_open(&view, memory, &err);

	struct collector_quota *quota = quota_of(d, peer);

	if (status == OW_OK &&
	    (!quota || (quota->most_processes && quota->processes >= quota->most_processes)))
		status = error_set(&err, OW_E_LIMIT,
				   "user %u has too many recorded processes already",
				   (unsigned)peer->uid);
	if (status == OW_OK)
		job = find_job(d, &view, peer, &err);
	else if (status == OW_E_UNSUPPORTED)
		atomic_store(&view.process->state, RING_REFUSED);
	process_view_close(&view);
	if (!job) {
		daemon_report(d, "process %d is not recorded: %s", (int)peer->pid, err.text);
		close(fd);
		return;
	}
	job->quota = quota;
	if (job_join(job, fd, (uint32_t)peer->pid, memory, &err) != OW_OK)
		daemon_report(d, "process %d, job %s: %s", (int)peer->pid, job->info.name,
			      err.text);
	(void)job_save_about(job, NULL);
	d->wait_ms = 0; /* the process's rings arrive right after this */
}

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

/* Removes the oldest saved incidents if they take more than a quarter of the total. Returns their size. */
static uint64_t keep_saved(struct daemon *d)
{
	uint64_t limit = d->options->total_limit / SAVED_PART, bytes;
	struct saved_incidents saved;
	uint32_t removed;

	if (incidents_find(&saved, d->mem, d->folder, NULL) != OW_OK)
		return 0; /* it is tried again later */
	removed = incidents_trim(&saved, d->folder, limit);
	if (removed)
		daemon_report(d,
			      "removed the %u oldest saved incidents: saved incidents may take "
			      "%.1f MB in all, a quarter of --total-size",
			      removed, (double)limit / 1e6);
	for (size_t i = 0; i < d->job_count; i++) {
		struct job_info *info = &d->jobs[i]->info;

		info->saved_bytes = 0;
		for (size_t k = 0; k < saved.count; k++)
			info->saved_bytes +=
				saved.items[k].job == info->id ? saved.items[k].bytes : 0;
	}
	bytes = saved.bytes;
	incidents_release(&saved);
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
