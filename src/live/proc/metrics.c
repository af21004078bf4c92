/*
 * metrics.c: how much of the machine the host, a job and NVIDIA devices use, read from /proc and from NVML, and
 * the two forms in which that leaves: OpenMetrics text for the daemon's page, and counter rows of the model for
 * `opwatch stacks`. The list of metrics is metrics.def.
 */
#include "live/proc/metrics.h"

#include "base/vec.h"

#include <dlfcn.h>
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

/* The used part of nvml.h; all functions return 0 for success. */
struct nvml_utilization {
	unsigned gpu, memory;
};
struct nvml_memory {
	unsigned long long total, free, used;
};

/* Finds a function of the library as a pointer of its type. */
#define FIND(nvml, name, ...)                                                                      \
	int (*name)(__VA_ARGS__);                                                                  \
	*(void **)&name = dlsym((nvml)->library, #name)

static bool find_devices(struct nvml *nvml)
{
	FIND(nvml, nvmlInit_v2, void);
	FIND(nvml, nvmlDeviceGetCount_v2, unsigned *);
	FIND(nvml, nvmlDeviceGetHandleByIndex_v2, unsigned, void **);
	FIND(nvml, nvmlDeviceGetName, void *, char *, unsigned);
	unsigned count = 0;

	if (!nvmlInit_v2 || !nvmlDeviceGetCount_v2 || !nvmlDeviceGetHandleByIndex_v2 ||
	    nvmlInit_v2() != 0)
		return false;
	if (nvmlDeviceGetCount_v2(&count) != 0)
		return false;
	for (unsigned i = 0; i < count && nvml->count < NVML_DEVICES; i++) {
		struct nvml_device *device = &nvml->devices[nvml->count];

		if (nvmlDeviceGetHandleByIndex_v2(i, &device->handle) != 0)
			continue;
		if (!nvmlDeviceGetName ||
		    nvmlDeviceGetName(device->handle, device->name, sizeof(device->name)) != 0)
			snprintf(device->name, sizeof(device->name), "gpu %u", i);
		nvml->count++;
	}
	return nvml->count > 0;
}

bool nvml_open(struct nvml *nvml, const char *name)
{
	*nvml = (struct nvml){ .library = dlopen(name ? name : "libnvidia-ml.so.1",
						 RTLD_NOW | RTLD_LOCAL) };
	if (!nvml->library)
		return false;
	if (find_devices(nvml))
		return true;
	nvml_close(nvml);
	return false;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml->library)
		return;
	FIND(nvml, nvmlShutdown, void);
	if (nvmlShutdown)
		nvmlShutdown();
	dlclose(nvml->library);
	*nvml = (struct nvml){ 0 };
}

static void set_value(struct nvml_device *device, enum gpu_metric metric, bool known,
		      uint64_t value)
{
	device->known[metric] = known;
	if (known)
		device->values[metric] = value;
}

void nvml_read(struct nvml *nvml)
{
	FIND(nvml, nvmlDeviceGetUtilizationRates, void *, struct nvml_utilization *);
	FIND(nvml, nvmlDeviceGetMemoryInfo, void *, struct nvml_memory *);
	FIND(nvml, nvmlDeviceGetPowerUsage, void *, unsigned *);

	for (uint32_t i = 0; i < nvml->count; i++) {
		struct nvml_device *device = &nvml->devices[i];
		struct nvml_utilization use = { 0 };
		struct nvml_memory memory = { 0 };
		unsigned milliwatts = 0;
		bool good;

		good = nvmlDeviceGetUtilizationRates &&
		       nvmlDeviceGetUtilizationRates(device->handle, &use) == 0;
		set_value(device, GPU_BUSY, good, use.gpu);
		set_value(device, GPU_MEMORY_BUSY, good, use.memory);
		good = nvmlDeviceGetMemoryInfo &&
		       nvmlDeviceGetMemoryInfo(device->handle, &memory) == 0;
		set_value(device, GPU_MEMORY_USED, good, memory.used);
		set_value(device, GPU_MEMORY_TOTAL, good, memory.total);
		good = nvmlDeviceGetPowerUsage &&
		       nvmlDeviceGetPowerUsage(device->handle, &milliwatts) == 0;
		set_value(device, GPU_POWER, good, milliwatts);
	}
}

const struct meter_info host_metric_info[HOST_METRICS] = {
#include "live/proc/metrics.def"
};
#undef HOST_METRIC
#undef JOB_METRIC
#define HOST_METRIC(id, ...)
#define JOB_METRIC(id, ...) [JOB_##id] = INFO(__VA_ARGS__),
const struct meter_info job_metric_info[JOB_METRICS] = {
#include "live/proc/metrics.def"
};
#undef JOB_METRIC
#undef GPU_METRIC
#define JOB_METRIC(id, ...)
#define GPU_METRIC(id, ...) [GPU_##id] = INFO(__VA_ARGS__),
const struct meter_info gpu_metric_info[GPU_METRICS] = {
#include "live/proc/metrics.def"
};

/* Converts clock ticks of user space, 100 per second. */
static uint64_t ticks_to_ns(uint64_t ticks)
{
	static const uint64_t second = 1000000000;
	long hz = sysconf(_SC_CLK_TCK);

	return ticks * (second / (uint64_t)(hz > 0 ? hz : 100));
}

/* Returns the number behind a word at the beginning of a line: "MemTotal: 123 kB". */
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

/* Returns whether a name is a whole disk: partitions and virtual devices would count twice. */
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

/* number of calls after which a process that no parent waits for is given up */
#define INHERITED_CALLS 10

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
		return; /* the process belongs to another user */
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

/* Adds the activity of a process since the last call. For a new process everything counts, unless all
 * processes are new. */
static bool add_process(struct job_meter *meter, pid_t pid, uint64_t done[JOB_METRICS])
{
	struct metered_process *item;
	uint64_t values[JOB_METRICS] = { 0 }, start_ticks;

	if (!read_process(pid, values, &start_ticks))
		return true;
	item = find_process(meter, pid, start_ticks);
	if (!item) {
		if (!vec_reserve(meter->mem, meter->items, meter->cap, meter->count + 1))
			return false;
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
			MAX(item->last[i],
			    values[i]); /* a process that has ended may show smaller values */
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

static void put_label(struct buf *to, const char *name, const char *value, bool *any)
{
	buf_printf(to, "%s%s=\"", *any ? "," : "{", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			buf_add_char(to, '\\');
		if (*value == '\n')
			buf_puts(to, "\\n");
		else
			buf_add_char(to, *value);
	}
	buf_add_char(to, '"');
	*any = true;
}

static void put_family(struct buf *to, const struct meter_info *info)
{
	buf_printf(to, "# TYPE %s %s\n", info->family,
		   info->kind == METRIC_SUM ? "counter" : "gauge");
	buf_printf(to, "# HELP %s %s.\n", info->family, info->help);
}

/* Writes a value; `name` is the label, or NULL. */
static void put_value(struct buf *to, const struct meter_info *info, const char *name,
		      const char *whose, uint64_t value)
{
	bool any = false;

	buf_printf(to, "%s%s", info->family, info->kind == METRIC_SUM ? "_total" : "");
	if (name)
		put_label(to, name, whose, &any);
	if (*info->label) {
		buf_printf(to, "%s%s", any ? "," : "{", info->label);
		any = true;
	}
	if (info->scale >= 1)
		buf_printf(to, "%s %" PRIu64 "\n", any ? "}" : "", value);
	else
		buf_printf(to, "%s %.9g\n", any ? "}" : "", (double)value * info->scale);
}

/* Returns the end of a family of metrics: rows [*i, end) of a table. */
static size_t family_end(const struct meter_info *infos, size_t count, size_t i)
{
	size_t end = i + 1;

	while (end < count && strcmp(infos[end].family, infos[i].family) == 0)
		end++;
	return end;
}

static void put_host(struct buf *to, const struct host_meter *host)
{
	for (size_t i = 0, end; i < HOST_METRICS; i = end) {
		end = family_end(host_metric_info, HOST_METRICS, i);
		put_family(to, &host_metric_info[i]);
		for (size_t k = i; k < end; k++)
			put_value(to, &host_metric_info[k], NULL, "", host->values[k]);
	}
}

static void put_jobs(struct buf *to, const struct job_text *jobs, size_t count)
{
	for (size_t i = 0, end; count && i < JOB_METRICS; i = end) {
		end = family_end(job_metric_info, JOB_METRICS, i);
		put_family(to, &job_metric_info[i]);
		for (size_t job = 0; job < count; job++)
			for (size_t k = i; k < end; k++)
				put_value(to, &job_metric_info[k], "job", jobs[job].name,
					  jobs[job].values[k]);
	}
}

static void put_devices(struct buf *to, const struct nvml *nvml)
{
	char number[16];

	for (size_t i = 0, end; nvml->count && i < GPU_METRICS; i = end) {
		end = family_end(gpu_metric_info, GPU_METRICS, i);
		put_family(to, &gpu_metric_info[i]);
		for (uint32_t d = 0; d < nvml->count; d++)
			for (size_t k = i; k < end; k++) {
				snprintf(number, sizeof(number), "%u", d);
				if (nvml->devices[d].known[k])
					put_value(to, &gpu_metric_info[k], "gpu", number,
						  nvml->devices[d].values[k]);
			}
	}
}

/* Metrics that come from a recording. */
static const struct meter_info count_info[] = {
	{ .kind = METRIC_SUM,
	  .scale = 1,
	  .family = "opwatch_job_records",
	  .label = "",
	  .help = "Records of a job: operators, reads and other calls" },
	{ .kind = METRIC_SUM,
	  .scale = 1,
	  .family = "opwatch_job_dropped_records",
	  .label = "",
	  .help = "Records dropped because they came faster than they could be written" },
	{ .kind = METRIC_SUM,
	  .scale = 1,
	  .family = "opwatch_job_steps",
	  .label = "",
	  .help = "Steps of the process with the most steps" },
	{ .kind = METRIC_LEVEL,
	  .scale = 1,
	  .family = "opwatch_job_ring_bytes",
	  .label = "",
	  .help = "Size of the job's ring on disk" },
	{ .kind = METRIC_LEVEL,
	  .scale = 1e-9,
	  .family = "opwatch_job_step_seconds",
	  .label = "",
	  .help = "Median duration of the job's last steps" },
};

static void put_counts(struct buf *to, const struct job_text *jobs, size_t count)
{
	for (size_t i = 0; count && i < ARRAY_COUNT(count_info); i++) {
		bool any = false;

		for (size_t job = 0; job < count; job++) {
			const struct job_counts *c = jobs[job].counts;
			uint64_t values[ARRAY_COUNT(count_info)];

			if (!c || (i == 4 && c->step_ns <= 0))
				continue;
			values[0] = c->records;
			values[1] = c->dropped;
			values[2] = c->steps;
			values[3] = c->disk_bytes;
			values[4] = (uint64_t)c->step_ns;
			if (!any)
				put_family(to, &count_info[i]);
			any = true;
			put_value(to, &count_info[i], "job", jobs[job].name, values[i]);
		}
	}
}

void metrics_text(struct buf *to, const struct host_meter *host, const struct job_text *jobs,
		  size_t job_count, const struct nvml *nvml)
{
	if (host)
		put_host(to, host);
	put_jobs(to, jobs, job_count);
	put_counts(to, jobs, job_count);
	if (nvml)
		put_devices(to, nvml);
	buf_puts(to, "# EOF\n");
}

/*
 * Prepares rows. A sum is shown as its increase per second, processor time as the number of busy
 * processors.
 */

void metric_rows_init(struct metric_rows *rows, struct builder *b, const char *name, pid_t pid)
{
	*rows = (struct metric_rows){ .b = b, .last_ns = INT64_MIN };
	job_meter_init(&rows->job, b->m->mem);
	rows->has_nvml = nvml_open(&rows->nvml, NULL);
	rows->host_track = builder_track(b, &(struct track_row){ .name = builder_cstr(b, "host"),
								 .process = builder_cstr(b, "host"),
								 .tid = MODEL_NO_ID,
								 .source = b->source });
	rows->job_track = builder_track(b, &(struct track_row){ .name = builder_cstr(b, "counters"),
								.process = builder_cstr(b, name),
								.pid = pid,
								.tid = MODEL_NO_ID,
								.source = b->source });
}

void metric_rows_release(struct metric_rows *rows)
{
	job_meter_release(&rows->job);
	if (rows->has_nvml)
		nvml_close(&rows->nvml);
	rows->has_nvml = false;
}

static void add_counter_row(struct metric_rows *rows, track_id track, const struct meter_info *info,
			    uint64_t before, uint64_t value, int64_t now_ns, str_id instance)
{
	double shown = (double)value * info->scale;

	if (info->kind == METRIC_SUM)
		shown = (double)(value - MIN(before, value)) * info->scale * 1e9 /
			(double)(now_ns - rows->last_ns);
	builder_add_counter(rows->b, &(struct counter_row){
					     .track = track,
					     .name = builder_cstr(rows->b, info->counter),
					     .series = builder_cstr(rows->b, info->series),
					     .ts_ns = now_ns,
					     .value = shown,
					     .instance = instance,
				     });
}

static void add_device_rows(struct metric_rows *rows, int64_t now_ns)
{
	for (uint32_t d = 0; d < rows->nvml.count; d++) {
		struct nvml_device *device = &rows->nvml.devices[d];
		char number[16];

		snprintf(number, sizeof(number), "%u", d);
		for (size_t i = 0; i < GPU_METRICS; i++)
			if (device->known[i])
				add_counter_row(rows, rows->host_track, &gpu_metric_info[i], 0,
						device->values[i], now_ns,
						builder_cstr(rows->b, number));
	}
}

bool metric_rows_read(struct metric_rows *rows, const pid_t *pids, size_t count, int64_t now_ns)
{
	const str_id none = { 0 };

	host_meter_read(&rows->host);
	if (!job_meter_read(&rows->job, pids, count))
		return false;
	if (rows->has_nvml)
		nvml_read(&rows->nvml);
	if (rows->last_ns != INT64_MIN && now_ns > rows->last_ns) {
		for (size_t i = 0; i < HOST_METRICS; i++)
			add_counter_row(rows, rows->host_track, &host_metric_info[i],
					rows->host_before.values[i], rows->host.values[i], now_ns,
					none);
		for (size_t i = 0; i < JOB_METRICS; i++)
			add_counter_row(rows, rows->job_track, &job_metric_info[i],
					rows->job_before[i], rows->job.values[i], now_ns, none);
		add_device_rows(rows, now_ns);
	}
	rows->host_before = rows->host;
	memcpy(rows->job_before, rows->job.values, sizeof(rows->job_before));
	rows->last_ns = now_ns;
	return true;
}
