/* clock.h: the time, in nanoseconds. steady_ns never jumps; it is not a time of day. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t steady_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
