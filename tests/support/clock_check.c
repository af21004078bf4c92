/*
 * clock_check.c: checks that the recorder's clock (recorder/clock.c, which this is built with) agrees with
 * CLOCK_MONOTONIC and never runs backwards, while it is adjusted as often as possible. Prints whether the processor's
 * counter was used. Built and run by tests/cli/record_test.py.
 */
#include "recorder.h"

#include <stdio.h>

#define FOR_NS 1500000000u
#define TOLERANCE_NS 50000u

int main(void)
{
	uint64_t begin = clock_ns(), last = 0, used = 0;

	clock_begin();
	while (clock_ns() - begin < FOR_NS) {
		uint64_t before = clock_ns(), now = now_ns(), after = clock_ns();

		if (now + TOLERANCE_NS < before || now > after + TOLERANCE_NS) {
			printf("%lld ns off\n", (long long)(now - before));
			return 1;
		}
		if (now + (used ? 0 : TOLERANCE_NS) < last) {
			printf("back by %lld ns\n", (long long)(last - now));
			return 2;
		}
		last = now;
		used += atomic_load(&recorder_clock) != NULL;
		clock_adjust();
	}
	printf("%s\n", used ? "counter" : "system");
	return 0;
}
