/*
 * baseline_place.h: where `opwatch baseline` keeps runs: a folder (baseline_folder.c) or a ClickHouse server (baseline_server.c). cmd_baseline.c
 * opens one by its name, lists its runs, adds to it and loads from it.
 */
#ifndef CLI_BASELINE_PLACE_H
#define CLI_BASELINE_PLACE_H

#include "cli/commands/diff_show.h"

/* A run that is kept. Texts are empty when unknown. */
struct kept_run {
	unsigned number; /* number from 1, by the time of adding */
	const char *id;	 /* id of the run on a server */
	struct str added, commit, host, file;
	struct str configuration; /* configuration as JSON */
};

struct kept_runs {
	struct kept_run *items; /* kept runs, the oldest first */
	size_t count;
};

struct baseline {
	const char *name; /* place as the user wrote it */
	ow_remote *remote;
	char temp[64]; /* temporary folder for files from the server; empty: none */
	/* Lists the kept runs, or opens one as a profile. On failure prints a message and
	 * returns false, or NULL with an exit code. */
	bool (*list)(struct args *args, struct baseline *place, struct kept_runs *runs);
	ow_profile *(*load)(struct args *args, struct baseline *place, const struct kept_run *run,
			    int *code);
	/* Keeps profiles one after the other; the properties of each, except its number, are in `run`.
	 * begin returns an exit code. */
	int (*begin)(struct args *args, struct baseline *place);
	ow_status (*add)(struct args *args, struct baseline *place, ow_profile *profile,
			 struct kept_run *run, struct ow_error *err);
	void (*end)(struct baseline *place);
	int lock;      /* lock of a folder while runs are added */
	unsigned next; /* next number in the folder */
};

/* Opens a place: a folder, or clickhouse://USER@HOST:8123/DATABASE. */
bool baseline_open(struct args *args, const char *name, struct baseline *place, int *code);
void baseline_close(struct baseline *place);

/* Set the functions for a folder (baseline_folder.c) or a server (baseline_server.c). */
void baseline_use_folder(struct baseline *place);
bool baseline_use_server(struct args *args, struct baseline *place, int *code);

#endif
