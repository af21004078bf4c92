/*
 * change.h: changes of a recording that can be replayed: operators faster, no waits for input, copies that do not block, … what-if
 * parses them, the advice makes them itself. Changes add up in one scenario.
 *
 *	op:REGEX*0.5   an operator's host time and its kernels
 *	kernel:REGEX*0 device work only
 *	input=0        no wait for input
 *	transfer=async copies run beside other work and block no thread
 *	sync=0         no synchronising calls
 *	launch=0       launching costs the host nothing, and there is no launch latency
 *	host=0         no host code but launches, input, synchronisation and allocation
 *	network*2      communication twice as fast
 *	rank:3=median  rank 3 as fast as the median of the others
 *	fuse:REGEX     each run of such kernels on a stream becomes one
 */
#ifndef REPLAY_CHANGE_H
#define REPLAY_CHANGE_H

#include "replay/session.h"

enum change_kind {
	CHANGE_OP,
	CHANGE_KERNEL,
	CHANGE_INPUT,
	CHANGE_TRANSFER,
	CHANGE_SYNC,
	CHANGE_LAUNCH,
	CHANGE_HOST,
	CHANGE_NETWORK,
	CHANGE_RANK,
	CHANGE_FUSE
};

struct change {
	enum change_kind kind;
	double factor; /* factor of the time */
	int32_t rank;
	const char *pattern;
};

/* Parses a change; fails with OW_E_USAGE and a message that names the mistake. Texts are allocated in the arena. */
ow_status change_parse(const char *text, struct arena *arena, struct change *out,
		       struct ow_error *err);
/* Applies a change to a scenario; *matched is the number of nodes that it changes. */
ow_status change_apply(const struct session *s, const struct change *change,
		       struct scenario *scenario, uint64_t *matched, struct ow_error *err);

/* For each op, the factor that turns the own work of a rank into the median of its peers; *out is NULL without peers. */
ow_status rank_factors(const struct session *s, int32_t rank, struct arena *arena, double **out,
		       struct ow_error *err);
/* Whether a node is own work of a rank, unlike communication and waits. */
bool is_of_rank(const struct graph *g, const struct lane *lane, uint32_t node, int32_t rank);

/* Marks nodes of host threads that are inside of an event whose op is marked, or of a Python function whose name (a
 * string) is marked; `names` may be NULL. */
ow_status mark_inside(const struct graph *g, const uint8_t *ops, const uint8_t *names,
		      struct arena *scratch, uint8_t **out, struct ow_error *err);

/* Scales the duration of a node; factor 0 also removes the delays before it. */
void scenario_scale(const struct graph *g, struct scenario *scenario, uint32_t node, double factor);
/* Removes a node's waits for the device or other threads, and scales its own time. */
void scenario_no_wait(const struct graph *g, struct scenario *scenario, uint32_t node,
		      double factor);

#endif
