/*
 * ranks.h: the ranks of one job compared: clocks, waits in collectives, stragglers. Part of the public interface; opwatch.h explains the
 * rules for errors, ownership, structs and threads.
 */
#ifndef OPWATCH_RANKS_H
#define OPWATCH_RANKS_H

#include "opwatch/push.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ow_ranks_options {
	size_t size;
	/* memory limit in bytes, for each file while it is read and for the summaries; 0 = no
	 * limit */
	uint64_t memory_limit;
	/* Reports progress over all files. Returns false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
	bool redact; /* replace names and paths by hashes */
};
OW_API void ow_ranks_options_init(struct ow_ranks_options *options);

/*
 * Compares the ranks of one job, given as files, directories and glob patterns, which are read one after the
 * other. Each row is a rank: its own work, its waits and transfers in collectives, its clock, and whether it
 * is a straggler. Extra values: missing_ranks, duplicates, mixed_jobs, clock, blame, slowdown, bandwidth, map
 * and others. The caller frees *result.
 */
OW_API OW_MUST_CHECK ow_status ow_ranks(const char *const *paths, size_t count,
					const struct ow_ranks_options *options, ow_result **result,
					struct ow_error *err);

/* Compares ranks as ow_ranks does, from recordings that were pushed to a server. A run may hold one rank
 * or several. `runs` are names of runs, in which * matches anything; an empty list means all runs. The
 * server chooses the steps; this library fits the clocks. */
OW_API OW_MUST_CHECK ow_status ow_ranks_remote(ow_remote *remote, const char *const *runs,
					       size_t count, const struct ow_ranks_options *options,
					       ow_result **result, struct ow_error *err);

#ifdef __cplusplus
}
#endif

#endif
