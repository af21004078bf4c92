/*
 * top.h: what the files of `opwatch top` share: cmd_top.c has the command, the loop and the keys, top_draw.c the screen,
 * top_actions.c what keys write and end.
 */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "cli/commands/live.h"
#include "cli/commands/proctext.h"
#include "cli/terminal/screen.h"

enum top_mode {
	TOP_JOBS,     /* jobs of the daemon, or recordings */
	TOP_PROCESSES /* given processes and their children, or all processes of the host */
};

/* Largest number of processes that one key may end, after a question. */
#define TOP_TARGETS 256
struct top_target {
	int64_t pid;
	uint64_t start;
};

struct top {
	struct args *args;
	const struct live_args *live;
	ow_watch *watch; /* watched jobs; NULL: only processes are shown */
	ow_processes *processes;
	struct mem mem;
	struct screen screen;
	struct buf text;
	enum top_mode mode;
	/* Jobs, in the order on the screen. */
	struct ow_job *jobs;
	size_t count, cap;
	struct job_use *uses; /* resources of each job */
	size_t use_cap;
	char chosen[4096]; /* path of the selected job, which stays selected */
	enum job_order order;
	/* Processes, in the order on the screen. */
	struct ow_process *rows;
	size_t row_count, row_cap;
	int64_t chosen_pid;
	enum process_order process_order;
	int64_t *roots; /* processes that the user gave; NULL: all processes of the host */
	size_t root_count;
	size_t hidden; /* number of rows that the filter hides */

	size_t selected, first; /* selected row, and first row on the screen */
	char filter[64];
	bool typing; /* the user is typing the filter */
	struct top_target targets[TOP_TARGETS];
	size_t target_count; /* not 0: a question whether to end these processes is on the screen */
	int target_signal;
	bool frozen, help, more;
	bool reverse; /* the smallest row comes first */
	/* show the threads of a process instead of its functions, if there is room for one of
	 * them */
	bool threads;
	bool alone; /* the daemon does not answer */
	int64_t asked_ns, processes_due_ns;
	uint64_t written_bytes;
	char message[512];
};

/* Returns the number of rows of the table, of jobs or processes. */
static inline size_t top_rows(const struct top *t)
{
	return t->mode == TOP_JOBS ? t->count : t->row_count;
}

/* Returns the steps of a process if a recording of it is watched; NULL if it takes none. Valid until the
 * next turn. */
const struct ow_job_rank *top_steps_of(const struct top *t, int64_t pid);

/* top_draw.c: draws the screen. */
void top_draw(struct top *t);
void top_print(struct top *t);
void top_print_json(struct top *t);

/* top_fleet.c: shows jobs of all hosts, from a server. Returns the exit status. */
int top_fleet(struct args *args, const char *address, const char *password_file, bool once);

/* top_actions.c: actions of keys. */
void top_save_job(struct top *t);
void top_save_flame_graph(struct top *t);
/* Asks whether to end the selected job or process; top_answer_end receives the next key. */
void top_ask_end(struct top *t);
void top_answer_end(struct top *t, int key);
/* Returns the selected processes, at most `cap`. */
size_t top_selected_pids(const struct top *t, int64_t *pids, size_t cap);

#endif
