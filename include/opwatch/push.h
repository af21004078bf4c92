/*
 * push.h: ClickHouse servers: run statements on them, and push the tables of a profile to them. Part of the public
 * interface; opwatch.h explains the rules for errors, ownership, structs and threads.
 */
#ifndef OPWATCH_PUSH_H
#define OPWATCH_PUSH_H

#include "opwatch/opwatch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A ClickHouse server, reached over HTTP. The first call loads libcurl; if it is missing, the call returns
 * OW_E_UNSUPPORTED. */
typedef struct ow_remote ow_remote;

struct ow_remote_options {
	size_t size;
	/* The password, or a file with it. Without both: the environment variable OPWATCH_CLICKHOUSE_PASSWORD. The
	 * library never shows or logs a password and never puts it into an error. */
	const char *password, *password_file;
	uint64_t memory_limit; /* largest size of one answer in bytes; 0 = no limit */
	uint32_t silence_ms;   /* time without any answer after which a call gives up; 0 = never */
	/* Called about once a second during a wait. Returns false to stop with
	 * OW_E_INTERRUPTED. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
};
OW_API void ow_remote_options_init(struct ow_remote_options *options);

/* Prepares a connection to clickhouse://USER@HOST:8123/DATABASE; clickhouses:// or https:// use TLS. Nothing is
 * sent yet: a wrong host or password shows as an error of the first query. The caller frees *remote. */
OW_API OW_MUST_CHECK ow_status ow_remote_open(const char *address,
					      const struct ow_remote_options *options,
					      ow_remote **remote, struct ow_error *err);
OW_API void ow_remote_free(ow_remote *remote);

/* Runs one statement, unchanged and once. Integers, reals and booleans keep their type; longer integers and decimals
 * become OW_TYPE_NUMBER; all other types are texts as the server writes them; NULL is not known. A statement
 * without rows returns a result without columns. The caller frees *result, before or after the remote. */
OW_API OW_MUST_CHECK ow_status ow_remote_query(ow_remote *remote, const char *text,
					       ow_result **result, struct ow_error *err);

#define OW_CONTENT_TEXT 33
/* Writes a hash of the bytes of files (directories, patterns): 32 hexadecimal digits and a NUL. Paths do not count. */
OW_API OW_MUST_CHECK ow_status ow_content_hash(const char *const *paths, size_t count,
					       char hex[OW_CONTENT_TEXT], struct ow_error *err);

struct ow_push_options {
	size_t size;
	/* name of the run, for the column `run`; pushing it a second time does nothing */
	const char *name;
	const char *content; /* hash of the inputs, from ow_content_hash */
	/* name of a cluster in the server's table system.clusters; NULL = only this server */
	const char *cluster;
	/* HTTP address (HOST[:PORT]) of each node, in the order of system.clusters. Empty = the hosts
	 * listed there, with the port of the address. */
	struct ow_list nodes;
	struct ow_list tables; /* names of the tables to push; empty = all */
	uint32_t connections, batch_rows;
	uint32_t retry_ms; /* how long to wait for a node that does not answer */
	bool replace;	   /* replace a run of the same name with other content */
	/* Reports progress. Any thread may call it, but only one at a time. Returns false to
	 * cancel. */
	bool (*progress)(void *arg, uint64_t rows_done, uint64_t rows_total);
	void *progress_arg;
	/* receives one line for each batch that is sent again, with the reason */
	ow_line_fn message;
	void *message_arg;
	/* also wait up to retry_ms for the server of the address when the push begins */
	bool await_server;
};
OW_API void ow_push_options_init(struct ow_push_options *options);

struct ow_push_summary {
	size_t size;
	uint64_t rows; /* number of rows of the run */
	uint64_t sent; /* number of rows that this call sent to all nodes */
	/* number of batches, and of batches that an earlier call had sent */
	uint32_t batches, batches_found;
	uint32_t repeats;
	uint32_t tables, nodes, shards;
	bool published_before, replaced;
};

/* Pushes the tables of a frozen profile to a server or cluster. All rows become visible together at the end; after a
 * failure none are visible. Repeat a push that failed or was killed: it continues where it stopped. The caller sets
 * summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_push(ow_profile *profile, ow_remote *remote,
				       const struct ow_push_options *options,
				       struct ow_push_summary *summary, struct ow_error *err);

/* Properties of a run that `opwatch baseline` keeps with it; NULL = unknown. */
struct ow_kept_run {
	size_t size;
	const char *commit, *host, *file;
	const char *configuration; /* JSON object whose values are texts */
};

#define OW_KEPT_ID 33
/* Keeps a saved profile (ow_profile_save) as a whole on a server, in the tables opwatch_baseline and
 * opwatch_baseline_part, which are created if they are missing. Other calls see the run when this call has
 * ended; after a failure they never see it. `id` receives the id of the run: 32 hexadecimal digits and a
 * NUL. */
OW_API OW_MUST_CHECK ow_status ow_remote_keep(ow_remote *remote, const char *path,
					      const struct ow_kept_run *run, char id[OW_KEPT_ID],
					      struct ow_error *err);
/* Lists all kept runs, the oldest first: id, added, commit, host, file, configuration, bytes, parts. The
 * caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_remote_kept(ow_remote *remote, ow_result **result,
					      struct ow_error *err);
/* Writes the profile of a kept run to a new file. */
OW_API OW_MUST_CHECK ow_status ow_remote_fetch(ow_remote *remote, const char *id, const char *path,
					       struct ow_error *err);

#ifdef __cplusplus
}
#endif
#endif
