/*
 * load_time.c: loads the files given, freezes, makes the op view, with --part also that of a part of the time, for which
 * the self time of every event is stored; prints how long each took and how much anonymous memory was used
 * at most until it was frozen. For bench/trace; uses the public interface only.
 *
 *     load_time [--part] FILE…	→ "load S freeze S total S op S part S rss BYTES accounted BYTES"
 *
 * Seconds count from the start of the process.
 */
#include <opwatch/opwatch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The time at which this process was started, on the same clock (to 10 ms, or now if that is later). */
static double started(double at_main)
{
	unsigned long long ticks = 0;
	FILE *f = fopen("/proc/self/stat", "r");
	double start;

	if (!f)
		return at_main;
	if (fscanf(f,
		   "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
		   "%*d %*d %*d %llu",
		   &ticks) != 1)
		ticks = 0;
	fclose(f);
	start = (double)ticks / (double)sysconf(_SC_CLK_TCK) +
		(now(CLOCK_MONOTONIC) - now(CLOCK_BOOTTIME));
	return ticks && start < at_main && at_main - start < 0.1 ? start : at_main;
}

static void check(ow_status status, const struct ow_error *err)
{
	if (status == OW_OK)
		return;
	fprintf(stderr, "%s: %s\n", ow_status_name(status), err->text);
	exit(1);
}

int main(int argc, char **argv)
{
	double start = started(now(CLOCK_MONOTONIC)), loaded, frozen, viewed, parted;
	bool with_part = argc > 1 && strcmp(argv[1], "--part") == 0;
	struct ow_view_options part;
	struct ow_error err = { 0 };
	struct ow_memory_use use = { .size = sizeof(use) };
	struct rusage usage;
	ow_profile *profile;
	ow_result *result;

	check(ow_profile_new(NULL, &profile, &err), &err);
	for (int i = 1 + with_part; i < argc; i++)
		check(ow_profile_add_file(profile, argv[i], NULL, NULL, &err), &err);
	loaded = now(CLOCK_MONOTONIC);
	check(ow_profile_freeze(profile, &err), &err);
	frozen = now(CLOCK_MONOTONIC);
	/* inputs are not mapped, so resident memory is allocated memory */
	getrusage(RUSAGE_SELF, &usage);
	ow_profile_memory(profile, &use);
	check(ow_view(profile, "op", NULL, &result, &err), &err);
	viewed = now(CLOCK_MONOTONIC);
	ow_view_options_init(&part);
	part.time_from_ns = 0;
	part.time_to_ns = 1000;
	if (with_part)
		check(ow_view(profile, "op", &part, &result, &err), &err);
	parted = now(CLOCK_MONOTONIC);
	printf("load %.3f freeze %.3f total %.3f op %.3f part %.3f rss %ld accounted %llu\n",
	       loaded - start, frozen - loaded, frozen - start, viewed - frozen, parted - viewed,
	       usage.ru_maxrss * 1024L, (unsigned long long)use.peak);
	fflush(stdout);
	_exit(0);
}
