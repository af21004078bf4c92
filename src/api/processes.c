/* processes.c: the bodies of ow_processes_new and its kin: processes of this host, their functions, and signals to them. */
#include "api/api_int.h"
#include "opwatch/live.h"

#include "base/clock.h"
#include "live/proc/process_table.h"
#include "live/proc/thread_table.h"
#include "live/record/live_functions.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FUNCTIONS_MAX 256u

struct ow_processes {
	struct mem mem;
	struct process_table table;
	struct pid_list pids;
	struct thread_table threads;
	struct live_functions *sampler;
	struct live_function functions[FUNCTIONS_MAX];
	size_t function_count;
	char why[256];
	double (*histories)
		[PROCESS_HISTORY]; /* history of each row, oldest first; the host's is the last one */
	size_t history_cap;
};

ow_status ow_processes_new(ow_processes **processes, struct ow_error *err)
{
	ow_processes *made = calloc(1, sizeof(*made));

	error_clear(err);
	*processes = made;
	if (!made)
		return error_no_memory(err);
	mem_init(&made->mem, 0);
	process_table_init(&made->table, &made->mem);
	made->pids.mem = &made->mem;
	thread_table_init(&made->threads, &made->mem);
	return OW_OK;
}

void ow_processes_free(ow_processes *p)
{
	if (!p)
		return;
	live_functions_stop(p->sampler);
	process_table_release(&p->table);
	pid_list_release(&p->pids);
	thread_table_release(&p->threads);
	mem_free(&p->mem, p->histories, p->history_cap * sizeof(*p->histories));
	free(p);
}

static bool list_pids(ow_processes *p, const int64_t *pids, size_t count, bool children)
{
	bool good = true;

	p->pids.count = 0;
	for (size_t i = 0; good && i < count; i++)
		if (pids[i] > 0 && pids[i] <= INT32_MAX && !pid_list_has(&p->pids, (pid_t)pids[i]))
			good = pid_list_add(&p->pids, (pid_t)pids[i]);
	for (size_t i = 0; children && good && i < count; i++)
		if (pids[i] > 0 && pids[i] <= INT32_MAX)
			good = proc_descendants((pid_t)pids[i], &p->pids);
	return good;
}

static void unroll(const float *ring, uint64_t readings, double to[PROCESS_HISTORY])
{
	uint64_t count = MIN(readings, (uint64_t)PROCESS_HISTORY);

	for (uint64_t i = 0; i < count; i++)
		to[i] = (double)ring[(readings - count + i) % PROCESS_HISTORY];
}

static bool make_histories(ow_processes *p)
{
	const struct process_table *t = &p->table;
	void *rooms = p->histories;

	if (!mem_grow(&p->mem, &rooms, &p->history_cap, t->count + 1, sizeof(*p->histories)))
		return false;
	p->histories = rooms;
	for (size_t i = 0; i < t->count; i++)
		unroll(t->rows[i].history, t->rows[i].readings, p->histories[i]);
	unroll(t->host_history, t->host_readings, p->histories[t->count]);
	return true;
}

ow_status ow_processes_turn(ow_processes *p, const int64_t *pids, size_t count, bool children,
			    struct ow_error *err)
{
	static const pid_t none;
	bool good = true;

	error_clear(err);
	if (pids)
		good = list_pids(p, pids, count, children);
	good = good && process_table_turn(&p->table,
					  !pids		  ? NULL
					  : p->pids.items ? p->pids.items
							  : &none,
					  pids ? p->pids.count : 0);
	return good && make_histories(p) ? OW_OK : error_no_memory(err);
}

size_t ow_processes_count(const ow_processes *p)
{
	return p->table.count;
}

bool ow_processes_get(const ow_processes *p, size_t index, struct ow_process *process)
{
	const struct process_row *row;

	if (index >= p->table.count)
		return false;
	row = &p->table.rows[index];
	const struct ow_process full = {
		.size = sizeof(full),
		.pid = row->pid,
		.parent = row->parent,
		.user = row->user,
		.name = row->name,
		.arguments = row->arguments,
		.state = row->state,
		.threads = row->threads,
		.start = row->start_ticks,
		.cpu = row->cpu,
		.wait = row->wait,
		.memory = row->memory,
		.read_rate = row->read_rate,
		.write_rate = row->write_rate,
		.history = p->histories[index],
		.history_count = (size_t)MIN(row->readings, (uint64_t)PROCESS_HISTORY),
	};

	SIZED_OUT(process, &full);
	return true;
}

bool ow_processes_find(const ow_processes *p, int64_t pid, struct ow_process *process)
{
	const struct process_row *row =
		pid > 0 && pid <= INT32_MAX ? process_table_find(&p->table, (pid_t)pid) : NULL;

	return row && ow_processes_get(p, (size_t)(row - p->table.rows), process);
}

static double host_rate(const struct process_table *t, enum host_metric metric)
{
	uint64_t now = t->host.values[metric], before = t->host_before.values[metric];

	return t->host_before_ns && now >= before
		       ? (double)(now - before) * 1e9 / (double)(t->host_ns - t->host_before_ns)
		       : -1;
}

void ow_processes_host(const ow_processes *p, struct ow_host *host)
{
	const struct process_table *t = &p->table;
	const uint64_t *values = t->host.values;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct ow_host full = {
		.size = sizeof(full),
		.cpus = (uint32_t)MAX(cpus, 1L),
		.cpu = t->host_readings
			       ? (double)t->host_history[(t->host_readings - 1) % PROCESS_HISTORY]
			       : -1,
		.memory_total = (int64_t)values[HOST_MEMORY_TOTAL],
		.memory_used = (int64_t)(values[HOST_MEMORY_TOTAL] - values[HOST_MEMORY_AVAILABLE]),
		.disk_read = host_rate(t, HOST_DISK_READ),
		.disk_written = host_rate(t, HOST_DISK_WRITTEN),
		.received = host_rate(t, HOST_NET_RECEIVED),
		.sent = host_rate(t, HOST_NET_SENT),
		.history = p->histories ? p->histories[t->count] : NULL,
		.history_count = (size_t)MIN(t->host_readings, (uint64_t)PROCESS_HISTORY),
	};

	if (getloadavg(&full.load, 1) != 1)
		full.load = -1;
	SIZED_OUT(host, &full);
}

ow_status ow_processes_sample(ow_processes *p, const int64_t *pids, size_t count,
			      struct ow_error *err)
{
	pid_t chosen[LIVE_FUNCTIONS_PROCESSES];
	size_t taken = 0;

	error_clear(err);
	if (!p->sampler && !count)
		return OW_OK;
	if (!p->sampler)
		OW_TRY(live_functions_start(&p->sampler, &p->mem, err));
	for (size_t i = 0; i < count && taken < LIVE_FUNCTIONS_PROCESSES; i++)
		if (pids[i] > 0 && pids[i] <= INT32_MAX && pids[i] != getpid())
			chosen[taken++] = (pid_t)pids[i];
	live_functions_choose(p->sampler, chosen, taken);
	return OW_OK;
}

size_t ow_processes_functions(ow_processes *p, const char **why)
{
	p->why[0] = '\0';
	p->function_count =
		p->sampler ? live_functions_read(p->sampler, p->functions, FUNCTIONS_MAX, p->why)
			   : 0;
	if (why)
		*why = p->why;
	return p->function_count;
}

bool ow_processes_function(const ow_processes *p, size_t index, struct ow_function *function)
{
	const struct live_function *from = &p->functions[MIN(index, (size_t)FUNCTIONS_MAX - 1)];
	const struct ow_function full = { .size = sizeof(full),
					  .name = from->name,
					  .place = from->place,
					  .own = from->own,
					  .total = from->total,
					  .cpu = from->cpu };

	if (index >= p->function_count)
		return false;
	SIZED_OUT(function, &full);
	return true;
}

size_t ow_processes_threads(ow_processes *p, int64_t pid)
{
	if (pid <= 0 || pid > INT32_MAX || !thread_table_turn(&p->threads, (pid_t)pid, steady_ns()))
		return 0;
	return p->threads.count;
}

bool ow_processes_thread(const ow_processes *p, size_t index, struct ow_thread *thread)
{
	const struct thread_row *row;

	if (index >= p->threads.count)
		return false;
	row = &p->threads.rows[index];
	const struct ow_thread full = { .size = sizeof(full),
					.tid = row->tid,
					.name = row->name,
					.state = row->state,
					.cpu = row->cpu,
					.wait = row->wait };

	SIZED_OUT(thread, &full);
	return true;
}

ow_status ow_process_signal(int64_t pid, uint64_t start, int number, struct ow_error *err)
{
	struct proc_stat stat;
	int fd, failed = 0;
	pid_t id;

	error_clear(err);
	OW_TRY(proc_to_pid(pid, &id, err));
	fd = (int)syscall(SYS_pidfd_open, id, 0); /* from here on the pid refers to one process */
	if (fd < 0)
		failed = errno;
	else if (!proc_stat_read(id, 0, &stat) || stat.start_ticks != start)
		failed = ESRCH;
	else if (syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) != 0)
		failed = errno;
	if (fd >= 0)
		close(fd);
	if (!failed)
		return OW_OK;
	return error_set(err,
			 failed == ESRCH   ? OW_E_NOT_FOUND
			 : failed == EPERM ? OW_E_PERMISSION
					   : OW_E_UNSUPPORTED,
			 "process %d: %s", (int)id,
			 failed == ESRCH ? "the process has ended" : strerror(failed));
}
