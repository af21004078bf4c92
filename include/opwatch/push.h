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
	uint64_t memory_limit; /* bytes of one answer; 0 = no limit */
	uint32_t silence_ms;   /* give up when the server sends nothing for this long; 0 = never */
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
	const char
		*name; /* name of the run, in the column `run`; a second push of it does nothing */
	const char *content; /* the hash of the inputs from ow_content_hash */
	const char *cluster; /* a name in system.clusters of the server; NULL = only this server */
	/* HOST[:PORT] for HTTP of each node, in the order of system.clusters. Empty = the hosts listed there, with the
	 * port of the address. */
	struct ow_list nodes;
	struct ow_list tables; /* empty = all */
	uint32_t connections, batch_rows;
	uint32_t retry_ms; /* how long to wait for a node that does not answer */
	bool replace;	   /* replace a run of the same name with other content */
	/* Reports progress, from any thread, but one at a time. Returns false to cancel. */
	bool (*progress)(void *arg, uint64_t rows_done, uint64_t rows_total);
	void *progress_arg;
	ow_line_fn
		message; /* receives one line for each batch that is sent again, with the reason */
	void *message_arg;
	bool await_server; /* the server of the address may be away when the push begins: that is tried for retry_ms, too */
};
OW_API void ow_push_options_init(struct ow_push_options *options);

struct ow_push_summary {
	size_t size;
	uint64_t rows;			 /* rows of the run */
	uint64_t sent;			 /* rows that this call sent to all nodes */
	uint32_t batches, batches_found; /* found: an earlier call had sent them */
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

/* What `opwatch baseline` keeps beside a run; NULL: unknown. */
struct ow_kept_run {
	size_t size;
	const char *commit, *host, *file;
	const char *configuration; /* JSON: an object of texts */
};

#define OW_KEPT_ID 33
/* Keeps a saved profile (ow_profile_save) on a server, whole, in tables that are created if they are missing: opwatch_baseline and
 * opwatch_baseline_part. Other calls see it at the end or, after a failure, never. `id` gets its name: 32 hexadecimal digits and a NUL. */
OW_API OW_MUST_CHECK ow_status ow_remote_keep(ow_remote *remote, const char *path,
					      const struct ow_kept_run *run, char id[OW_KEPT_ID],
					      struct ow_error *err);
/* All kept runs, the oldest first: id, added, commit, host, file, configuration, bytes, parts. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_remote_kept(ow_remote *remote, ow_result **result,
					      struct ow_error *err);
/* Writes the profile of a kept run to a new file. */
OW_API OW_MUST_CHECK ow_status ow_remote_fetch(ow_remote *remote, const char *id, const char *path,
					       struct ow_error *err);

#ifdef __cplusplus
}
#endif
#endif
