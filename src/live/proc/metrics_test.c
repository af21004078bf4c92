/* metrics_test.c: what a process does is counted, its end does not take it back, and the text is OpenMetrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "live/proc/metrics.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Uses 50 ms of a processor, by its own account. */
static void burn(void)
{
	struct timespec now;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while (now.tv_sec == 0 && now.tv_nsec < 50000000);
}

static pid_t start_child(int ready[2], int go[2])
{
	static char block[1 << 20];
	char byte = 0;
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child) {
		close(ready[1]);
		close(go[0]);
		return child;
	}
	int zero = open("/dev/zero", O_RDONLY);
	burn();
	if (read(zero, block, sizeof(block)) < 0 || write(ready[1], &byte, 1) < 0)
		_exit(1);
	close(go[1]);
	_exit(read(go[0], &byte, 1) < 0);
}

static void a_child_comes_and_goes(void **state)
{
	uint64_t before[JOB_METRICS];
	struct job_meter meter;
	struct mem mem;
	int ready[2], go[2];
	pid_t pids[2] = { getpid() };
	char byte;

	(void)state;
	mem_init(&mem, 0);
	job_meter_init(&meter, &mem);
	assert_true(job_meter_read(&meter, pids, 1));
	assert_int_equal(meter.values[JOB_CPU_USER] + meter.values[JOB_CPU_SYSTEM], 0);
	assert_int_equal(meter.values[JOB_PROCESSES], 1);
	assert_true(meter.values[JOB_RESIDENT] > 100000);
	pids[1] = start_child(ready, go);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(job_meter_read(&meter, pids, 2));
	assert_int_equal(meter.values[JOB_PROCESSES], 2);
	assert_true(meter.values[JOB_CPU_USER] + meter.values[JOB_CPU_SYSTEM] >= 30000000);
	assert_true(meter.values[JOB_READ] >= 1 << 20);
	assert_true(meter.values[JOB_MINOR_FAULTS] > 10);
	memcpy(before, meter.values, sizeof(before));
	close(go[1]);
	assert_int_equal(waitpid(pids[1], NULL, 0), pids[1]);
	assert_true(job_meter_read(&meter, pids, 2));
	assert_int_equal(meter.values[JOB_PROCESSES], 1);
	assert_true(meter.values[JOB_CPU_USER] >= before[JOB_CPU_USER]);
	assert_true(meter.values[JOB_READ] >= before[JOB_READ]);
	assert_true(meter.values[JOB_READ] <
		    before[JOB_READ] + (1 << 19)); /* and is not counted again */
	assert_int_equal(meter.count, 1);
	close(ready[0]);
	job_meter_release(&meter);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void the_host(void **state)
{
	struct host_meter meter = { 0 };

	(void)state;
	host_meter_read(&meter);
	assert_true(meter.values[HOST_CPU_USER] > 0);
	assert_true(meter.values[HOST_MEMORY_AVAILABLE] > 0);
	assert_true(meter.values[HOST_MEMORY_TOTAL] >= meter.values[HOST_MEMORY_AVAILABLE]);
}

/* ---- text ---- */

/* Every sample belongs to the family that was declared last, and no family comes twice. */
static void check_text(const char *text)
{
	struct str rest = str_from(text), line, family = { 0 };
	size_t samples = 0;

	while (str_split(&rest, '\n', &line)) {
		if (str_starts(line, STR("# TYPE "))) {
			struct str name = str_skip(line, 7);
			char again[128];

			family = str_first(name, str_find_char(name, ' '));
			snprintf(again, sizeof(again), "# TYPE %.*s ", STR_ARG(family));
			assert_null(strstr(strstr(text, again) + 1, again));
		} else if (line.len && line.ptr[0] != '#') {
			assert_true(str_starts(line, family));
			assert_true(str_find_char(line, ' ') != STR_NONE);
			samples++;
		}
	}
	assert_true(samples >= HOST_METRICS);
	assert_true(str_ends(str_from(text), STR("\n# EOF\n")));
}

static void text(void **state)
{
	struct nvml nvml = { .count = 1 };
	struct host_meter host = { { 0 } };
	uint64_t values[JOB_METRICS] = { [JOB_CPU_USER] = 1500000000, [JOB_RESIDENT] = 42 };
	const struct job_counts counts = {
		.records = 7, .dropped = 2, .steps = 3, .disk_bytes = 640, .step_ns = 50000000
	};
	const struct job_text jobs[] = { { "a \"b\"\\c", values, &counts },
					 { "other", values, NULL } };
	struct mem mem;
	struct buf to;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&to, &mem);
	host_meter_read(&host);
	nvml.devices[0].known[GPU_POWER] = true;
	nvml.devices[0].values[GPU_POWER] = 250500;
	metrics_text(&to, &host, jobs, 2, &nvml);
	check_text(buf_cstr(&to));
	assert_non_null(strstr(to.ptr, "opwatch_job_cpu_seconds_total{job=\"a \\\"b\\\"\\\\c\","
				       "mode=\"user\"} 1.5\n"));
	assert_non_null(strstr(to.ptr, "opwatch_job_resident_bytes{job=\"other\"} 42\n"));
	assert_non_null(strstr(to.ptr, "_job_step_seconds{job=\"a \\\"b\\\"\\\\c\"} 0.05\n"));
	assert_null(strstr(to.ptr, "opwatch_job_records_total{job=\"other\"}"));
	assert_non_null(strstr(to.ptr, "opwatch_gpu_power_watts{gpu=\"0\"} 250.5\n"));
	assert_null(strstr(to.ptr, "opwatch_gpu_busy_percent{"));
	buf_release(&to);
}

/* ---- rows ---- */

static ow_status fill(struct mem *mem, struct ow_error *err)
{
	struct model *m = model_new(mem, err);
	const pid_t self = getpid();
	struct metric_rows rows;
	struct builder b;
	bool good;

	if (!m)
		return OW_E_NO_MEMORY;
	builder_init(&b, m, err);
	metric_rows_init(&rows, &b, "job", self);
	good = metric_rows_read(&rows, &self, 1, 1000000000) &&
	       metric_rows_read(&rows, &self, 1, 1500000000);
	if (good && b.status == OW_OK) {
		assert_int_equal(m->counter.count, 1 + HOST_METRICS + JOB_METRICS);
		assert_int_equal(m->counter.ts_ns[1], 1500000000);
		for (uint32_t i = 1; i < m->counter.count; i++)
			assert_true(m->counter.value[i] >= 0);
	}
	metric_rows_release(&rows);
	good &= b.status == OW_OK;
	model_free(m);
	return good ? OW_OK : OW_E_NO_MEMORY;
}

static void rows_and_failing_memory(void **state)
{
	ow_status status = OW_E_NO_MEMORY;
	struct ow_error err = { 0 };
	struct nvml nvml;
	struct mem mem;

	(void)state;
	assert_false(nvml_open(&nvml, "no-such-library.so"));
	assert_false(nvml_open(&nvml, "libm.so.6")); /* has none of the functions */
	for (uint64_t n = 1; status != OW_OK && n < 10000; n++) {
		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = fill(&mem, &err);
		mem_fail_after(0, false);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
	assert_int_equal(status, OW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_comes_and_goes),
		cmocka_unit_test(the_host),
		cmocka_unit_test(text),
		cmocka_unit_test(rows_and_failing_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
