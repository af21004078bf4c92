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
	uint64_t
		memory_limit; /* bytes for each file while it is read, and for the summaries; 0 = no limit */
	/* Reports progress over all files. Returns false to cancel. */
	bool (*progress)(void *arg, const char *file, uint64_t done, uint64_t total);
	void *progress_arg;
	bool redact; /* replace names and paths by hashes */
};
OW_API void ow_ranks_options_init(struct ow_ranks_options *options);

/* Compares the ranks of one job: files, directories and glob patterns, which are read one after the other. The rows are ranks: own work,
 * waiting and moving in collectives, clocks, stragglers. Values beside them: missing_ranks, duplicates, mixed_jobs, clock, blame, slowdown,
 * bandwidth, map and others. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_ranks(const char *const *paths, size_t count,
					const struct ow_ranks_options *options, ow_result **result,
					struct ow_error *err);

/* The same for recordings that were pushed to a server, each rank in a run of its own or several in one. `runs` are names of runs, in which *
 * stands for anything; none: all. The server chooses the steps, clocks are fitted here. */
OW_API OW_MUST_CHECK ow_status ow_ranks_remote(ow_remote *remote, const char *const *runs,
					       size_t count, const struct ow_ranks_options *options,
					       ow_result **result, struct ow_error *err);

#ifdef __cplusplus
}
#endif

#endif
