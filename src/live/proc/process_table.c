/*
 * process_table.c: what processes use now, from two readings of /proc. Time on a processor and waiting for one come
 * from the schedstat of each thread, to the nanosecond; where the kernel keeps none, from the ticks of the process.
 * Called by src/api/processes.c. Nothing is written, and no process is opened beyond small files of /proc.
 */
#include "live/proc/process_table.h"

#include "base/clock.h"
#include "base/vec.h"

#include <dirent.h>
#include <pwd.h>
#include <unistd.h>

#define LEAST_NS 20000000 /* least time between two readings for a rate */
#define TICK_NS 10000000u

void process_table_init(struct process_table *t, struct mem *mem)
{
	*t = (struct process_table){ .mem = mem, .pids.mem = mem };
}

void process_table_release(struct process_table *t)
{
	vec_free(t->mem, t->rows, t->cap);
	vec_free(t->mem, t->before, t->before_cap);
	pid_list_release(&t->pids);
	*t = (struct process_table){ .mem = t->mem, .pids.mem = t->mem };
}

static const struct process_row *find_in(const struct process_row *rows, size_t count, pid_t pid)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows[middle].pid == pid)
			return &rows[middle];
		if (rows[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct process_row *process_table_find(const struct process_table *t, pid_t pid)
{
	return find_in(t->rows, t->count, pid);
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static bool list_all(struct pid_list *list)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	bool good = true;

	while (dir && good && (entry = readdir(dir))) {
		int64_t pid;

		if (str_to_i64(str_from(entry->d_name), &pid) && pid > 0 && pid < INT32_MAX)
			good = pid_list_add(list, (pid_t)pid);
	}
	if (dir)
		closedir(dir);
	return good;
}

static bool list_pids(struct process_table *t, const pid_t *pids, size_t count)
{
	size_t kept = 0;
	bool good = true;

	t->pids.count = 0;
	for (size_t i = 0; pids && good && i < count; i++)
		good = pid_list_add(&t->pids, pids[i]);
	if (!pids)
		good = list_all(&t->pids);
	if (!good || !t->pids.count)
		return good;
	qsort(t->pids.items, t->pids.count, sizeof(*t->pids.items), by_pid);
	for (size_t i = 0; i < t->pids.count; i++)
		if (!kept || t->pids.items[kept - 1] != t->pids.items[i])
			t->pids.items[kept++] = t->pids.items[i];
	t->pids.count = kept;
	return true;
}

static void read_sched(pid_t pid, struct process_sums *sums)
{
	const struct dirent *entry;
	char path[96], text[96];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char *at = text;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", (int)pid,
			 entry->d_name);
		if (!proc_read_text(path, text, sizeof(text)))
			continue;
		sums->run_ns += strtoull(at, &at, 10);
		sums->wait_ns += strtoull(at, NULL, 10);
		sums->has_run = true;
	}
	if (dir)
		closedir(dir);
}

static bool number_of(const char *text, const char *key, uint64_t *value)
{
	const char *at = strstr(text, key);

	if (at)
		*value = strtoull(at + strlen(key), NULL, 10);
	return at != NULL;
}

/* Reads I/O. A process inherits the I/O of its ended children; a thread does not. */
static void read_io(pid_t pid, uint32_t threads, struct process_sums *sums)
{
	char what[48] = "io", text[512];

	if (threads == 1)
		snprintf(what, sizeof(what), "task/%d/io", (int)pid);
	if (proc_read(pid, what, text, sizeof(text)) <= 0)
		return;
	sums->has_io = number_of(text, "rchar: ", &sums->read) &&
		       number_of(text, "wchar: ", &sums->written);
	number_of(text, "\nread_bytes: ", &sums->disk_read);
	number_of(text, "\nwrite_bytes: ", &sums->disk_written);
}

static int64_t read_memory(pid_t pid)
{
	char text[256], *at = text;

	if (proc_read(pid, "statm", text, sizeof(text)) <= 0)
		return -1;
	strtoull(at, &at, 10);
	return (int64_t)(strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE));
}

/* Reads the command line, with blanks between the words. */
static void read_arguments(struct process_row *row)
{
	ssize_t len = proc_read(row->pid, "cmdline", row->arguments, sizeof(row->arguments));

	while (len > 0 && row->arguments[len - 1] == '\0')
		len--;
	for (ssize_t i = 0; i < len; i++)
		if (row->arguments[i] == '\0')
			row->arguments[i] = ' ';
	row->arguments[MAX(len, 0)] = '\0';
}

static void read_user(struct process_row *row)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (getpwuid_r(row->uid, &entry, room, sizeof(room), &found) == 0 && found)
		snprintf(row->user, sizeof(row->user), "%s", found->pw_name);
	else
		snprintf(row->user, sizeof(row->user), "%u", (unsigned)row->uid);
}

/* Finds the name of a user, once per user, because the user database may be remote. */
static void find_user(const struct process_table *t, struct process_row *row)
{
	for (size_t i = 0; i < t->before_count; i++)
		if (t->before[i].uid == row->uid && t->before[i].user[0]) {
			memcpy(row->user, t->before[i].user, sizeof(row->user));
			return;
		}
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].uid == row->uid && t->rows[i].user[0]) {
			memcpy(row->user, t->rows[i].user, sizeof(row->user));
			return;
		}
	read_user(row);
}

static double rate(uint64_t now, uint64_t before, int64_t ns)
{
	return now >= before ? (double)(now - before) / (double)ns : -1;
}

static void compute_rates(struct process_row *row, const struct process_sums *before, int64_t ns)
{
	const struct process_sums *now = &row->sums;

	/* time of ended threads is missing in the sum of threads; the coarse ticks of the process include
	 * it */
	double ticks = rate(now->ticks_ns, before->ticks_ns + 2 * TICK_NS, ns);

	row->cpu = now->has_run && before->has_run ? rate(now->run_ns, before->run_ns, ns) : -1;
	if (row->cpu < 0)
		ticks = rate(now->ticks_ns, before->ticks_ns, ns);
	row->cpu = MAX(MAX(row->cpu, ticks), 0.0);
	if (now->has_run && before->has_run && now->wait_ns >= before->wait_ns)
		row->wait = rate(now->wait_ns, before->wait_ns, ns);
	row->read_rate = row->write_rate = -1;
	if (now->has_io && before->has_io) {
		row->read_rate = MAX(rate(now->read, before->read, ns), 0.0) * 1e9;
		row->write_rate = MAX(rate(now->written, before->written, ns), 0.0) * 1e9;
	}
	row->history[row->readings++ % PROCESS_HISTORY] = (float)row->cpu;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return ticks * (1000000000u / (uint64_t)(hz > 0 ? hz : 100));
}

/* Reads a process; false if it has ended. */
static bool read_process(const struct process_table *t, const struct process_row *old, pid_t pid,
			 struct process_row *row)
{
	struct proc_stat stat;
	int64_t now;

	if (!proc_stat_read(pid, 0, &stat) || stat.state == 'Z' || stat.state == 'X')
		return false;
	if (old && old->start_ticks == stat.start_ticks)
		*row = *old;
	else
		*row = (struct process_row){
			.pid = pid, .cpu = -1, .wait = -1, .read_rate = -1, .write_rate = -1
		};
	if (!proc_owner(pid, &row->uid))
		return false;
	if (!row->read_ns || strcmp(row->name, stat.name) != 0) {
		read_arguments(row);
		find_user(t, row);
	}
	memcpy(row->name, stat.name, sizeof(row->name));
	row->parent = stat.parent;
	row->state = stat.state;
	row->threads = stat.threads;
	row->start_ticks = stat.start_ticks;
	now = steady_ns();
	if (row->read_ns && now - row->read_ns < LEAST_NS)
		return true;
	struct process_sums before = row->sums;

	row->sums = (struct process_sums){ .ticks_ns = ticks_to_ns(stat.user_ticks +
								   stat.system_ticks) };
	read_sched(pid, &row->sums);
	read_io(pid, stat.threads, &row->sums);
	row->memory = read_memory(pid);
	if (row->read_ns)
		compute_rates(row, &before, now - row->read_ns);
	row->read_ns = now;
	return true;
}

static void read_host(struct process_table *t)
{
	int64_t now = steady_ns();
	uint64_t busy;

	if (t->host_ns && now - t->host_ns < LEAST_NS)
		return;
	t->host_before = t->host;
	t->host_before_ns = t->host_ns;
	host_meter_read(&t->host);
	t->host_ns = now;
	if (!t->host_before_ns)
		return;
	busy = t->host.values[HOST_CPU_USER] + t->host.values[HOST_CPU_SYSTEM] -
	       t->host_before.values[HOST_CPU_USER] - t->host_before.values[HOST_CPU_SYSTEM];
	t->host_history[t->host_readings++ % PROCESS_HISTORY] =
		(float)((double)busy / (double)(now - t->host_before_ns));
}

bool process_table_turn(struct process_table *t, const pid_t *pids, size_t count)
{
	int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct process_row *rows = t->before;
	size_t cap = t->before_cap;

	if (!list_pids(t, pids, count))
		return false;
	t->before = t->rows;
	t->before_count = t->count;
	t->before_cap = t->cap;
	t->rows = rows;
	t->cap = cap;
	t->count = 0;
	if (!vec_reserve(t->mem, t->rows, t->cap, t->pids.count + 1))
		return false;
	for (size_t i = 0; i < t->pids.count; i++) {
		pid_t pid = t->pids.items[i];

		if (read_process(t, find_in(t->before, t->before_count, pid), pid,
				 &t->rows[t->count]))
			t->count++;
	}
	read_host(t);
	t->cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	return true;
}
