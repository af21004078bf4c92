/* metrics.c: see metrics.h. The text for other programs is in metrics_text.c. */
#include "live/metrics.h"

#include <unistd.h>

#define SECTOR_BYTES 512
#define FILE_BYTES 16384

#define INFO(counter, series, kind, scale, family, label, help)                                    \
	{                                                                                          \
		counter, series, METRIC_##kind, scale, family, label, help                         \
	}
#define HOST_METRIC(id, ...) [HOST_##id] = INFO(__VA_ARGS__),
#define JOB_METRIC(id, ...)
#define GPU_METRIC(id, ...)
const struct metric_info host_metric_info[HOST_METRICS] = {
#include "live/metrics.def"
};
#undef HOST_METRIC
#undef JOB_METRIC
#define HOST_METRIC(id, ...)
#define JOB_METRIC(id, ...) [JOB_##id] = INFO(__VA_ARGS__),
const struct metric_info job_metric_info[JOB_METRICS] = {
#include "live/metrics.def"
};
#undef JOB_METRIC
#undef GPU_METRIC
#define JOB_METRIC(id, ...)
#define GPU_METRIC(id, ...) [GPU_##id] = INFO(__VA_ARGS__),
const struct metric_info gpu_metric_info[GPU_METRICS] = {
#include "live/metrics.def"
};

/* Ticks are those of user space, a hundred a second. */
static uint64_t ticks_to_ns(uint64_t ticks)
{
	static const uint64_t second = 1000000000;
	long hz = sysconf(_SC_CLK_TCK);

	return ticks * (second / (uint64_t)(hz > 0 ? hz : 100));
}

/* ---- the host ---- */

/* The number behind a word that begins a line: "MemTotal:  123 kB". */
static bool number_after(const char *text, const char *word, uint64_t *value)
{
	size_t len = strlen(word);

	for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
		if (strncmp(at, word, len) == 0) {
			*value = strtoull(at + len, NULL, 10);
			return true;
		}
	return false;
}

static void read_processors(struct host_meter *meter)
{
	uint64_t field[8] = { 0 };
	char text[512], *at = text + 4;

	if (proc_read_text("/proc/stat", text, sizeof(text)) < 5 || memcmp(text, "cpu ", 4) != 0)
		return;
	for (size_t i = 0; i < ARRAY_COUNT(field); i++)
		field[i] = strtoull(at, &at, 10);
	meter->values[HOST_CPU_USER] = ticks_to_ns(field[0] + field[1]);
	meter->values[HOST_CPU_SYSTEM] = ticks_to_ns(field[2] + field[5] + field[6]);
	meter->values[HOST_CPU_IDLE] = ticks_to_ns(field[3]);
	meter->values[HOST_CPU_IOWAIT] = ticks_to_ns(field[4]);
}

static void read_memory(struct host_meter *meter)
{
	char text[FILE_BYTES];
	uint64_t kb;

	if (proc_read_text("/proc/meminfo", text, sizeof(text))) {
		if (number_after(text, "MemTotal:", &kb))
			meter->values[HOST_MEMORY_TOTAL] = kb << 10;
		if (number_after(text, "MemAvailable:", &kb))
			meter->values[HOST_MEMORY_AVAILABLE] = kb << 10;
	}
	if (proc_read_text("/proc/vmstat", text, sizeof(text)))
		number_after(text, "pgmajfault ", &meter->values[HOST_MAJOR_FAULTS]);
}

/* Whole disks: what is made of them, or is none, would count twice. */
static bool is_disk(const char *name)
{
	static const char *const others[] = { "loop", "ram", "dm-", "md", "zram", "sr", "fd" };
	char path[128];

	for (size_t i = 0; i < ARRAY_COUNT(others); i++)
		if (strncmp(name, others[i], strlen(others[i])) == 0)
			return false;
	snprintf(path, sizeof(path), "/sys/block/%s", name);
	return access(path, F_OK) == 0;
}

static void read_disks(struct host_meter *meter)
{
	unsigned long long read_sectors, written_sectors;
	uint64_t read = 0, written = 0;
	char text[FILE_BYTES], name[64];
	struct str rest, line;

	if (!proc_read_text("/proc/diskstats", text, sizeof(text)))
		return;
	rest = str_from(text);
	while (str_split(&rest, '\n', &line)) {
		char copy[512];

		snprintf(copy, sizeof(copy), "%.*s", STR_ARG(line));
		if (sscanf(copy, " %*u %*u %63s %*u %*u %llu %*u %*u %*u %llu", name, &read_sectors,
			   &written_sectors) != 3 ||
		    !is_disk(name))
			continue;
		read += read_sectors * SECTOR_BYTES;
		written += written_sectors * SECTOR_BYTES;
	}
	meter->values[HOST_DISK_READ] = read;
	meter->values[HOST_DISK_WRITTEN] = written;
}

static void read_networks(struct host_meter *meter)
{
	uint64_t received = 0, sent = 0;
	char text[FILE_BYTES];
	struct str rest, line;

	if (!proc_read_text("/proc/net/dev", text, sizeof(text)))
		return;
	rest = str_from(text);
	while (str_split(&rest, '\n', &line)) {
		unsigned long long in, out;
		char copy[512], *colon;

		snprintf(copy, sizeof(copy), "%.*s", STR_ARG(line));
		colon = strchr(copy, ':');
		if (!colon || str_eq(str_trim(str_make(copy, (size_t)(colon - copy))), STR("lo")) ||
		    sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &out) != 2)
			continue;
		received += in;
		sent += out;
	}
	meter->values[HOST_NET_RECEIVED] = received;
	meter->values[HOST_NET_SENT] = sent;
}

void host_meter_read(struct host_meter *meter)
{
	read_processors(meter);
	read_memory(meter);
	read_disks(meter);
	read_networks(meter);
}

/* ---- a job ---- */

#define INHERITED_CALLS 10 /* in which a process is waited for, or will not be */

struct metered_process {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t last[JOB_METRICS];
	bool seen;
};

void job_meter_init(struct job_meter *meter, struct mem *mem)
{
	*meter = (struct job_meter){ .mem = mem };
}

void job_meter_release(struct job_meter *meter)
{
	mem_free(meter->mem, meter->items, meter->cap * sizeof(*meter->items));
	*meter = (struct job_meter){ .mem = meter->mem };
}

static void read_io(pid_t pid, uint64_t values[JOB_METRICS])
{
	char path[64], text[1024];

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	if (!proc_read_text(path, text, sizeof(text)))
		return; /* of another user */
	number_after(text, "rchar:", &values[JOB_READ]);
	number_after(text, "wchar:", &values[JOB_WRITTEN]);
	number_after(text, "read_bytes:", &values[JOB_DISK_READ]);
	number_after(text, "write_bytes:", &values[JOB_DISK_WRITTEN]);
}

static uint64_t read_resident(pid_t pid)
{
	char path[64], text[256], *at = text;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (!proc_read_text(path, text, sizeof(text)))
		return 0;
	strtoull(at, &at, 10);
	return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool read_process(pid_t pid, uint64_t values[JOB_METRICS], uint64_t *start_ticks)
{
	struct proc_stat stat;

	if (!proc_stat_read(pid, 0, &stat))
		return false;
	*start_ticks = stat.start_ticks;
	values[JOB_CPU_USER] = ticks_to_ns(stat.user_ticks);
	values[JOB_CPU_SYSTEM] = ticks_to_ns(stat.system_ticks);
	values[JOB_IOWAIT] = ticks_to_ns(stat.io_wait_ticks);
	values[JOB_MINOR_FAULTS] = stat.minor_faults;
	values[JOB_MAJOR_FAULTS] = stat.major_faults;
	values[JOB_PROCESSES] = 1;
	values[JOB_THREADS] = stat.threads;
	values[JOB_RESIDENT] = read_resident(pid);
	read_io(pid, values);
	return true;
}

static struct metered_process *find_process(struct job_meter *meter, pid_t pid,
					    uint64_t start_ticks)
{
	for (size_t i = 0; i < meter->count; i++)
		if (meter->items[i].pid == pid && meter->items[i].start_ticks == start_ticks)
			return &meter->items[i];
	return NULL;
}

static bool is_inherited(size_t metric)
{
	return metric == JOB_READ || metric == JOB_WRITTEN || metric == JOB_DISK_READ ||
	       metric == JOB_DISK_WRITTEN;
}

/* What a process has done since it was seen last; all of it when it is new, unless everything is. */
static bool add_process(struct job_meter *meter, pid_t pid, uint64_t done[JOB_METRICS])
{
	struct metered_process *item;
	uint64_t values[JOB_METRICS] = { 0 }, start_ticks;
	void *items = meter->items;

	if (!read_process(pid, values, &start_ticks))
		return true;
	item = find_process(meter, pid, start_ticks);
	if (!item) {
		if (!mem_grow(meter->mem, &items, &meter->cap, meter->count + 1, sizeof(*item)))
			return false;
		meter->items = items;
		item = &meter->items[meter->count++];
		*item = (struct metered_process){ .pid = pid, .start_ticks = start_ticks };
		if (!meter->begun)
			memcpy(item->last, values, sizeof(values));
	}
	for (size_t i = 0; i < JOB_METRICS; i++) {
		if (job_metric_info[i].kind == METRIC_LEVEL)
			meter->values[i] += values[i];
		else if (values[i] > item->last[i])
			done[i] += values[i] - item->last[i];
		item->last[i] =
			MAX(item->last[i], values[i]); /* one that has ended may tell nothing */
	}
	item->seen = true;
	return true;
}

static void forget_ended(struct job_meter *meter)
{
	size_t kept = 0;

	for (size_t i = 0; i < meter->count; i++) {
		struct metered_process *item = &meter->items[i];

		if (item->seen) {
			item->seen = false;
			meter->items[kept++] = *item;
			continue;
		}
		for (size_t k = 0; k < JOB_METRICS; k++)
			meter->inherited[k] += is_inherited(k) ? item->last[k] : 0;
		meter->inherited_age = 0;
	}
	meter->count = kept;
	if (++meter->inherited_age > INHERITED_CALLS)
		memset(meter->inherited, 0, sizeof(meter->inherited));
}

bool job_meter_read(struct job_meter *meter, const pid_t *pids, size_t count)
{
	uint64_t done[JOB_METRICS] = { 0 };
	bool good = true;

	for (size_t i = 0; i < JOB_METRICS; i++)
		if (job_metric_info[i].kind == METRIC_LEVEL)
			meter->values[i] = 0;
	for (size_t i = 0; i < count && good; i++)
		good = add_process(meter, pids[i], done);
	if (good)
		forget_ended(meter);
	for (size_t i = 0; i < JOB_METRICS; i++) {
		uint64_t again = MIN(done[i], meter->inherited[i]);

		meter->inherited[i] -= again;
		meter->values[i] += done[i] - again;
	}
	meter->begun |= good;
	return good;
}
