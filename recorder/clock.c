/*
 * clock.c: CLOCK_MONOTONIC computed from the processor's time stamp counter, which costs half as much to read. Every tenth
 * of a second the watcher compares both and bends the line from one to the other, without a step back: records stay in
 * order and within a microsecond of the clock. Used only where the system itself takes the time from that counter and
 * reading it is cheaper; otherwise now_ns() asks the system.
 */
#include "recorder.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

_Atomic(const struct clock_line *) recorder_clock;

#if defined(__x86_64__)
#include <cpuid.h>

/* number of lines in the ring of lines: a reader has seconds before a line is used again */
#define LINES 64u
#define INTERVAL_NS 100000000u
#define FIRST_NS 10000000u
#define AWAY_NS 1000000 /* a larger distance means that the machine slept or was moved */
#define TRIES 8

static struct clock_line lines[LINES];
static uint32_t next_line;
static bool usable;
static struct sample {
	uint64_t counter, ns;
} last;

/* Reads the counter and the clock at the same moment, as closely as possible. */
static struct sample take_sample(void)
{
	struct sample best = { 0 };
	uint64_t shortest = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = clock_counter(), ns = clock_ns(), after = clock_counter();

		if (after - before >= shortest)
			continue;
		shortest = after - before;
		best = (struct sample){ before + shortest / 2, ns };
	}
	return best;
}

static bool is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

/* Returns whether the kernel uses the counter as its clock source: it checks that the cores
 * agree, and otherwise chooses another source. */
static bool is_the_systems(void)
{
	char text[16] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return len > 0 && strcmp(text, "tsc\n") == 0;
}

/* Returns whether reading the counter is cheap; virtual machines may intercept the instruction. */
static bool is_cheap(void)
{
	uint64_t begin = clock_ns(), middle, sum = 0;

	for (int i = 0; i < 100; i++)
		sum += clock_counter();
	middle = clock_ns();
	for (int i = 0; i < 100; i++)
		sum += clock_ns();
	return sum && middle - begin < clock_ns() - middle;
}

void clock_begin(void)
{
	atomic_store(&recorder_clock, NULL);
	usable = is_invariant() && is_the_systems() && is_cheap();
	if (usable)
		last = take_sample();
}

/* Returns a rate at which the line meets the clock in one second and never runs backwards. */
static double bent_rate(double rate, double away_ns)
{
	double bent = rate * (1 + away_ns / 1e9);

	return bent < rate / 2 ? rate / 2 : bent;
}

void clock_adjust(void)
{
	const struct clock_line *old = atomic_load(&recorder_clock);
	struct clock_line *line = &lines[next_line % LINES];
	struct sample now;
	double rate, away = 0;

	if (!usable || clock_ns() - last.ns < (old ? INTERVAL_NS : FIRST_NS))
		return;
	now = take_sample();
	if (now.counter <= last.counter || now.ns <= last.ns) {
		usable = false;
		atomic_store(&recorder_clock, NULL);
		return;
	}
	rate = (double)(now.ns - last.ns) / (double)(now.counter - last.counter);
	line->counter = now.counter;
	line->ns = now.ns;
	if (old) {
		uint64_t shown = clock_at(old, now.counter);

		away = (double)(int64_t)(now.ns - shown);
		if (away < AWAY_NS) /* the line is behind by more than that: it steps ahead */
			line->ns = shown;
		else
			away = 0;
	}
	line->rate = (uint64_t)(bent_rate(rate, away) * 4294967296.0);
	last = now;
	next_line++;
	atomic_store_explicit(&recorder_clock, line, memory_order_release);
}

#else

void clock_begin(void)
{
}

void clock_adjust(void)
{
}

#endif
