/*
 * daemon_job.c: one job of the daemon: its files on disk, the processes that it had, writing and starting new
 * files, sampling of its Python stacks, and what lists show of it. Called by daemon.c and daemon_jobs.c. What
 * survives a restart is read and written by job_file.c.
 */
#include "live/daemon/daemon_job.h"

#include "base/clock.h"
#include "base/vec.h"
#include "live/proc/proc.h"
#include "live/record/stack_feed.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000000000)
/* the file of a job without processes is closed after this time */
#define QUIET_NS (10 * SECOND_NS)
#define AWAITED_NS                                                                                 \
	(15 *                                                                                      \
	 SECOND_NS) /* after a restart of the daemon: a job that does not connect within this time has ended */
#define RETRY_NS SECOND_NS
#define SEGMENT_MOST ((size_t)4 << 20)
#define KNOWN_MOST 65536u
#define RANKS_MOST 1024u

void disk_ring_path(const struct disk_ring *ring, uint32_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/%06u.opw", ring->folder, number);
}

/* Returns the number of a ring file; 0 if the name is not one. */
static uint32_t number_of(const char *name)
{
	char again[32];
	unsigned long number = strtoul(name, NULL, 10);

	if (!number || number > INT32_MAX)
		return 0;
	snprintf(again, sizeof(again), "%06lu.opw", number);
	return strcmp(again, name) == 0 ? (uint32_t)number : 0;
}

/* Finds the lowest and the highest file number. */
static ow_status find_range(struct disk_ring *ring, struct ow_error *err)
{
	const struct dirent *entry;
	DIR *dir = opendir(ring->folder);

	if (!dir)
		return error_errno(err, errno, "%s", ring->folder);
	while ((entry = readdir(dir)) != NULL) {
		uint32_t number = number_of(entry->d_name);

		if (!number)
			continue;
		ring->first = ring->first ? MIN(ring->first, number) : number;
		ring->last = MAX(ring->last, number);
	}
	closedir(dir);
	return OW_OK;
}

static uint64_t size_of(const struct disk_ring *ring, uint32_t number)
{
	char path[JOBS_PATH + 32];
	struct stat st;

	disk_ring_path(ring, number, path, sizeof(path));
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static bool reserve_sizes(struct disk_ring *ring, size_t count)
{
	if (!vec_reserve(ring->mem, ring->sizes, ring->cap, count))
		return false;
	return true;
}

static size_t count_of(const struct disk_ring *ring)
{
	return ring->first ? ring->last - ring->first + 1 : 0;
}

ow_status disk_ring_open(struct disk_ring *ring, struct mem *mem, const char *folder,
			 struct ow_error *err)
{
	*ring = (struct disk_ring){ .mem = mem };
	snprintf(ring->folder, sizeof(ring->folder), "%s", folder);
	OW_TRY(find_range(ring, err));
	if (count_of(ring) > 65536) /* implausible range: these are not our files */
		ring->first = ring->last;
	if (!reserve_sizes(ring, count_of(ring) + 1)) {
		disk_ring_release(ring);
		return error_no_memory(err);
	}
	for (uint32_t i = 0; i < count_of(ring); i++) {
		ring->sizes[i] = size_of(ring, ring->first + i);
		ring->bytes += ring->sizes[i];
	}
	return OW_OK;
}

void disk_ring_release(struct disk_ring *ring)
{
	mem_free(ring->mem, ring->sizes, ring->cap * sizeof(*ring->sizes));
	ring->sizes = NULL;
	ring->cap = 0;
}

void disk_ring_rest(struct disk_ring *ring, uint64_t size)
{
	if (!ring->first)
		return;
	ring->bytes += size - ring->sizes[ring->last - ring->first];
	ring->sizes[ring->last - ring->first] = size;
}

ow_status disk_ring_next(struct disk_ring *ring, uint64_t size, char *path, size_t path_size,
			 struct ow_error *err)
{
	if (!reserve_sizes(ring, count_of(ring) + 1))
		return error_no_memory(err);
	if (size)
		disk_ring_rest(ring, size);
	ring->last++;
	ring->first = ring->first ? ring->first : ring->last;
	ring->sizes[ring->last - ring->first] = 0;
	disk_ring_path(ring, ring->last, path, path_size);
	return OW_OK;
}

uint32_t disk_ring_trim(struct disk_ring *ring, uint64_t more, uint64_t limit)
{
	char path[JOBS_PATH + 32];
	uint32_t dropped = 0;

	while (count_of(ring) > 1 &&
	       (ring->bytes + more > limit || count_of(ring) > (size_t)DISK_RING_FILES * 4)) {
		disk_ring_path(ring, ring->first, path, sizeof(path));
		if (unlink(path) != 0 && errno != ENOENT)
			break;
		ring->bytes -= ring->sizes[0];
		memmove(ring->sizes, ring->sizes + 1, (count_of(ring) - 1) * sizeof(*ring->sizes));
		ring->first++;
		dropped++;
	}
	return dropped;
}

void disk_ring_remove(struct disk_ring *ring)
{
	char path[JOBS_PATH + 32];

	for (uint32_t i = ring->first; ring->first && i <= ring->last; i++) {
		disk_ring_path(ring, i, path, sizeof(path));
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/about", ring->folder);
	unlink(path);
	rmdir(ring->folder);
	ring->first = ring->last = 0;
	ring->bytes = 0;
}

static struct recording *recording_of(struct daemon_job *job)
{
	return &job->recordings[job->current];
}

static uint64_t file_bytes(const struct daemon_job *job)
{
	return job->limit / DISK_RING_FILES;
}

static size_t segment_bytes(const struct daemon_job *job)
{
	return (size_t)MIN(file_bytes(job) / 2, (uint64_t)SEGMENT_MOST);
}

/* Makes a file belong to the job's user, because only root can access it otherwise. */
static void give_to_user(const struct daemon_job *job, int fd)
{
	if (geteuid() == 0 && job->info.uid != 0 && fchown(fd, job->info.uid, (gid_t)-1) != 0)
		return; /* without this only root can read the file */
}

static ow_status make_file(struct daemon_job *job, struct recording *r, uint64_t size,
			   struct ow_error *err)
{
	char path[JOBS_PATH + 32];

	OW_TRY(disk_ring_next(&job->ring, size, path, sizeof(path), err));
	OW_TRY(recording_open(r, job->mem, path, job->writer, err));
	give_to_user(job, r->fd);
	r->records = job->records_before + job->collector.totals.records;
	return OW_OK;
}

/* Begins the next file; the full one is closed when the next one exists. */
static void next_file(struct daemon_job *job, int64_t now)
{
	struct recording *old = recording_of(job), *new = &job->recordings[1 - job->current];
	struct ow_error err = { 0 };

	if (now < job->retry_ns)
		return;
	if (make_file(job, new, old->writer.at, &err) != OW_OK) {
		job->retry_ns = now + RETRY_NS;
		return; /* the collector reports write errors */
	}
	(void)recording_close(old, NULL);
	job->current = 1 - job->current;
	job->collector.recording = new;
	collector_begin_file(&job->collector);
}

static ow_status open_job(struct daemon_job *job, struct ow_error *err)
{
	collector_init(&job->collector, job->mem, recording_of(job));
	OW_TRY(make_file(job, recording_of(job), 0, err));
	job->collector.quota = job->quota;
	job->collector.last_number = job->last_number;
	job->collector.segment_bytes = segment_bytes(job);
	job->collector.message = job->message;
	job->collector.message_arg = job->message_arg;
	job->open = true;
	return OW_OK;
}

static void close_job(struct daemon_job *job)
{
	struct ow_error err = { 0 };

	if (!job->open)
		return;
	job_close_stacks(job);
	collector_drain(&job->collector);
	job_describe(job);
	(void)job_save_about(job, NULL);
	collector_leave(&job->collector);
	job_describe(job);
	job->records_before += job->collector.totals.records;
	job->dropped_before += job->collector.totals.dropped;
	job->collector.totals = (struct collector_totals){ 0 };
	job->last_number = job->collector.last_number;
	disk_ring_rest(&job->ring, recording_of(job)->writer.at);
	if (recording_close(recording_of(job), &err) != OW_OK && job->message)
		job->message(job->message_arg, err.text, strlen(err.text));
	job->open = false;
}

void job_release(struct daemon_job *job)
{
	close_job(job);
	disk_ring_release(&job->ring);
	job_meter_release(&job->meter);
	mem_free(job->mem, job->known, job->known_cap * sizeof(*job->known));
	job->known = NULL;
	job->known_cap = job->known_count = 0;
}

void job_remove(struct daemon_job *job)
{
	close_job(job);
	disk_ring_remove(&job->ring);
	job_release(job);
}

uint32_t job_number_of(const struct daemon_job *job, uint32_t pid, int64_t monotonic_ns)
{
	for (size_t i = job->known_count; i-- > 0;)
		if (job->known[i].pid == pid && job->known[i].monotonic_ns == monotonic_ns)
			return job->known[i].number;
	return 0;
}

/* A process that began after the other one was recorded is another one of the same pid. Clocks that stop while the
 * machine sleeps make it look older, never younger. */
static bool is_same(const struct known_process *known, uint32_t pid)
{
	int64_t ticks = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;

	if (known->pid != pid || ticks <= 0 || !proc_stat_read((pid_t)pid, 0, &stat))
		return false;
	return (int64_t)(stat.start_ticks / (uint64_t)ticks) <= known->monotonic_ns / SECOND_NS + 1;
}

bool job_has_process(const struct daemon_job *job, uint32_t pid)
{
	if (!job->this_boot || (!job->open && job->info.state != JOB_AWAITED))
		return false;
	for (size_t i = job->known_count; i-- > 0;)
		if (is_same(&job->known[i], pid))
			return true;
	return false;
}

bool job_know(struct daemon_job *job, const struct known_process *process)
{
	if (job_number_of(job, process->pid, process->monotonic_ns))
		return true;
	if (job->known_count >= KNOWN_MOST) {
		job->known_count /= 2;
		memmove(job->known, job->known + job->known_count,
			job->known_count * sizeof(*job->known));
	}
	return vec_push(job->mem, job->known, job->known_count, job->known_cap, *process);
}

/* Reads the process's description of itself. */
static ow_status read_region(struct daemon_job *job, int memory, struct known_process *process,
			     struct ow_error *err)
{
	struct process_view view;
	ow_status status = process_view_open(&view, memory, err);
	char copy[RING_TEXT_MAX];
	struct str command, word;
	size_t slash;

	if (status != OW_OK && status != OW_E_UNSUPPORTED)
		return status;
	if (status == OW_OK) {
		process->monotonic_ns = (int64_t)view.process->clock_monotonic_ns;
		command = process_view_text(&view, view.process->command, copy);
		if (!job->info.framework[0] && str_split(&command, '\0', &word)) {
			slash = str_rfind_char(word, '/');
			word = slash == STR_NONE ? word : str_skip(word, slash + 1);
			if (str_starts(word, STR("python")))
				snprintf(job->info.framework, sizeof(job->info.framework),
					 "Python");
		}
	}
	process_view_close(&view);
	return OW_OK;
}

ow_status job_join(struct daemon_job *job, int fd, uint32_t pid, int memory, struct ow_error *err)
{
	struct known_process process = { .pid = pid };
	ow_status status = read_region(job, memory, &process, err);

	if (status == OW_OK && !job->open)
		status = open_job(job, err);
	if (status != OW_OK) {
		close(fd);
		return status;
	}
	job->this_boot = true;
	process.number = job_number_of(job, pid, process.monotonic_ns);
	if (process.number)
		collector_drain(
			&job->collector); /* reads the rest of the previous connection, which is closed */
	if (!collector_adopt(&job->collector, fd, pid, process.number, memory))
		return OW_OK; /* the process was refused and reported, or memory ran out and it will connect again */
	if (!process.number)
		process.number = collector_number(&job->collector, (pid_t)pid);
	job->last_number = job->collector.last_number;
	job->quiet_ns = 0;
	job->info.state = JOB_RUNNING;
	job->info.ended_ns = 0;
	return job_know(job, &process) ? OW_OK : error_no_memory(err);
}

static void end_job(struct daemon_job *job)
{
	close_job(job);
	job->info.state = JOB_ENDED;
	if (!job->info.ended_ns)
		job->info.ended_ns = clock_ns(CLOCK_REALTIME);
	(void)job_save_about(job, NULL);
}

/* Detects that no process is left. */
static void see_end(struct daemon_job *job, int64_t now)
{
	if (job->collector.count) {
		job->quiet_ns = 0;
		return;
	}
	if (!job->quiet_ns) {
		job->quiet_ns = now;
		job_describe(job);
		job->info.state = JOB_ENDED;
		job->info.ended_ns = clock_ns(CLOCK_REALTIME);
	}
	if (now - job->quiet_ns >= QUIET_NS)
		end_job(job);
}

static uint64_t growing_bytes(const struct daemon_job *job)
{
	return job->recordings[job->current].writer.at + 2 * (uint64_t)segment_bytes(job);
}

uint64_t job_bytes(const struct daemon_job *job)
{
	return job->ring.bytes + (job->open ? growing_bytes(job) : 0);
}

void job_tick(struct daemon_job *job, int64_t now)
{
	if (!job->open) {
		if (job->info.state == JOB_AWAITED && now - job->quiet_ns >= AWAITED_NS)
			end_job(job);
		return;
	}
	job->collector.segment_bytes = segment_bytes(job);
	collector_tick(&job->collector);
	if (recording_of(job)->writer.at >= file_bytes(job))
		next_file(job, now);
	disk_ring_trim(&job->ring, growing_bytes(job), job->limit);
	if (job->collector.failure.status == OW_E_LIMIT && now >= job->retry_ns) {
		/* if the disk is full, the oldest data makes room for new data */
		disk_ring_trim(&job->ring, job->ring.bytes, job->ring.bytes * 2 - 1);
		job->retry_ns = now + RETRY_NS;
	}
	see_end(job, now);
}

void job_flush(struct daemon_job *job)
{
	if (job->open)
		collector_drain(&job->collector);
}

static void count_rank(int32_t rank, int32_t *ranks, uint32_t *count)
{
	for (uint32_t i = 0; i < *count; i++)
		if (ranks[i] == rank)
			return;
	if (*count < RANKS_MOST)
		ranks[(*count)++] = rank;
}

static void describe_process(struct job_info *info, const struct collected_info *p)
{
	uint64_t steps = step_meter_count(&p->steps);

	if (steps > info->steps || (steps && steps == info->steps && !info->step_ns)) {
		info->steps = steps;
		info->step_ns = step_meter_median(&p->steps);
	}
	if (p->torch[0])
		snprintf(info->framework, sizeof(info->framework), "%.50s", p->torch);
	else if (p->opencl && strncmp(info->framework, "PyTorch", 7) != 0)
		snprintf(info->framework, sizeof(info->framework), "OpenCL");
}

void job_describe(struct daemon_job *job)
{
	struct job_info *info = &job->info;
	int32_t ranks[RANKS_MOST];
	uint32_t rank_count = 0, processes = 0;
	uint64_t dropped = 0;

	for (size_t i = 0; job->open && i < job->collector.count; i++) {
		struct collected_info p;

		if (!collector_info(&job->collector, i, &p))
			continue;
		processes++;
		dropped += p.dropped;
		if (p.rank >= 0)
			count_rank(p.rank, ranks, &rank_count);
		describe_process(info, &p);
	}
	info->processes = processes;
	info->ranks = MAX(info->ranks, rank_count); /* includes processes that have ended */
	info->records = job->records_before + job->collector.totals.records;
	info->dropped = job->dropped_before + job->collector.totals.dropped + dropped;
	info->first_file = job->ring.first;
	info->last_file = job->ring.last;
	info->disk_bytes = job->ring.bytes + (job->open ? recording_of(job)->writer.at : 0);
}

/*
 * Sampled between the daemon's other work and written to the job's ring: for all jobs when the daemon was
 * started with --stacks, or for one job as long as a client repeats its request (JOBS_ASK_STACKS). A killed
 * client therefore leaves nothing running.
 */

void job_want_stacks(struct daemon_job *job, uint32_t hz, int64_t until_ns)
{
	if (!job->stacks)
		job->stacks_hz = hz;
	job->stacks_until_ns = MAX(job->stacks_until_ns, until_ns);
}

void job_close_stacks(struct daemon_job *job)
{
	if (!job->stacks)
		return;
	stack_feed_close(job->stacks);
	mem_free(job->mem, job->stacks, sizeof(*job->stacks));
	job->stacks = NULL;
}

/* Opens the sampler of stacks. Stack numbers start over, so samples with new numbers go to a new
 * segment. */
static void open_stacks(struct daemon_job *job)
{
	job_flush(job);
	job->stacks = mem_zalloc(job->mem, sizeof(*job->stacks));
	if (job->stacks)
		stack_feed_open(job->stacks, job->mem, &job->collector, job->stacks_hz);
}

int64_t job_tick_stacks(struct daemon_job *job, int64_t now_ns)
{
	struct collector *c = &job->collector;

	if (!job->open || !job->stacks_hz || now_ns >= job->stacks_until_ns) {
		job_close_stacks(job);
		return INT64_MAX;
	}
	if (!job->stacks)
		open_stacks(job);
	if (!job->stacks)
		return INT64_MAX; /* without memory, sampling is tried again later */
	if (now_ns >= c->next_beat_ns)
		c->next_beat_ns = c->beat(c->beat_arg, now_ns);
	return c->next_beat_ns;
}
