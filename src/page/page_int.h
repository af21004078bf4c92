/*
 * page_int.h: what the files of src/page share: the running page and the handlers of its routes. Each handler runs on
 * the thread of its connection; a page that is ready is only read. Numbers come from the public functions, so that
 * the page shows what the commands print.
 */
#ifndef PAGE_PAGE_INT_H
#define PAGE_PAGE_INT_H

#include "api/api_int.h"
#include "base/arena.h"
#include "page/assets.h"
#include "relation/columns.h"
#include "serve/server.h"
#include "tile/tile.h"
#include "opwatch/live.h"
#include "opwatch/ui.h"

#include <pthread.h>
#include <stdatomic.h>

/* What a file was like when it was read. */
struct page_mark {
	bool there, folder;
	uint64_t device, inode, size;
	int64_t modified_ns;
};

/* What the page asks for all the time: kept, because a file that was cut cannot be read without a guard. */
struct page_facts {
	bool damaged;
	bool has_memory;       /* the view heaps has rows */
	bool grows;	       /* all files are recordings of programs, which may still run */
	int64_t view_start_ns; /* where views begin to count on the axis of the timeline */
	uint64_t parts;	       /* bit i: view i can be asked for a part of the time */
};

/* A page of its own for a recording that this one names; minute.c. */
struct page_child {
	ow_ui *ui;
	char folder[512]; /* that goes with it; or empty */
	char path[640];
};
#define PAGE_CHILDREN 8

/* The file of one rank as a profile by itself; compare.c. */
struct page_rank {
	ow_profile *profile; /* or NULL */
	int64_t rank;
	unsigned epoch; /* of the page when it was opened */
};

/* Another list of files that the user chose on the page; files.c. Taken by follow.c. */
struct page_paths {
	struct arena arena;
	const char **paths;
	size_t count;
	struct page_mark *marks;
};

struct ow_ui {
	struct mem mem;
	struct server *server;
	char address[256];
	char *source_dir, *daemon_socket, *listen; /* or NULL */
	bool on_socket;

	ow_profile *profile; /* set when ready */
	bool own_profile;
	ow_profile *base; /* that it is compared with, or NULL */
	bool own_base;
	struct tiles *tiles;
	struct page_facts facts;
	const bool *shown_rows; /* of a report: rows that it holds; NULL = all */
	int64_t zero_ns;	/* times of requests and answers count from here: tiles_start */

	/* For the comparison, each file as a run of its own; made when it is asked for; under watch_lock. */
	ow_profile **runs;
	size_t run_count;
	struct page_rank
		pair[2]; /* two ranks that are compared, opened when asked for; under watch_lock */
	/* Of a report: its runs, the base's first; NULL otherwise. */
	ow_profile *const *given;
	size_t given_base, given_new;

	struct buf ranks; /* the answer of ranks.c, made when it is asked for; under ranks_lock */
	unsigned ranks_epoch;
	pthread_mutex_t ranks_lock;

	struct page_child children[PAGE_CHILDREN]; /* under child_lock */
	size_t child_count;
	pthread_mutex_t child_lock;

	ow_watch *watch; /* of the daemon's jobs, made when they are asked for; under watch_lock */
	pthread_mutex_t watch_lock;

	/* Loading, on a thread of its own. */
	struct ow_open_options open;
	struct arena arena; /* of the copies of paths and options */
	const char **paths;
	size_t path_count;
	const char **base_paths;
	size_t base_count;
	pthread_t loader;
	bool has_loader;
	atomic_bool cancelled;

	/* Files that change, follow.c. */
	pthread_rwlock_t swap; /* handlers read; written when profile, tiles and zero_ns change */
	pthread_t follower;
	bool has_follower;
	atomic_bool frozen; /* nothing new is read */
	atomic_bool again;  /* read once more */
	atomic_uint epoch;  /* how often the profile was replaced */
	struct page_mark *marks;
	struct page_paths *proposed; /* to be read; under lock */
	struct page_paths *chosen;   /* holds paths and marks since one was taken; or NULL */
	char *job;		     /* of the daemon, whose recording is paths[0], or NULL */
	int64_t job_last_ns;
	atomic_int state;      /* ow_ui_state; READY is set last */
	pthread_cond_t loaded; /* loading has ended; with lock */

	pthread_mutex_t lock; /* of the rest */
	uint64_t done, total;
	int64_t started_ns;
	int64_t read_ns; /* how long the files took to be read */
	uint64_t read_bytes;
	char file[512]; /* that is read now */
	struct ow_error failure;
	char refused
		[1200]; /* why the files that the user chose last are not shown; "" = they are */
	char changed[1200]; /* what happened to the files since they were read; "" = nothing */
};

/* minute.c: ends the pages that were opened from this one. */
void page_close_children(struct ow_ui *ui);
/* A folder of its own for the file child->path, and its end with the file. */
ow_status page_make_scratch(struct page_child *child, struct ow_error *err);
void page_drop_scratch(struct page_child *child);
/* Answers with a file, as far as it is not too large; false when it cannot be opened. */
bool page_send_file(struct server_reply *reply, const char *path);
/* files.c: frees a list of files; NULL is ignored. */
void page_free_paths(struct page_paths *p);
/* Fails when a file of the list is in no part of the profile. */
ow_status page_check_used(const ow_profile *profile, const struct page_paths *p,
			  struct ow_error *err);
/* compare.c: frees what a comparison opened. */
void page_free_runs(struct ow_ui *ui);
/* ui.c: a page without a server, for a report; base may be NULL. NULL with an error; page_free is due. */
struct ow_ui *page_new(ow_profile *profile, ow_profile *base, struct ow_error *err);
void page_free(struct ow_ui *ui);

/* memory.c: adds a row of values for each heap; any: whether there is one. */
ow_status page_add_memory(struct ow_ui *ui, ow_profile *profile, struct tiles *tiles, bool *any,
			  struct ow_error *err);
/* ui.c: the rows of the timeline of a profile. */
ow_status page_arrange(struct ow_ui *ui, ow_profile *profile, struct tiles **out,
		       struct page_facts *facts, struct ow_error *err);
/* An ow_progress_fn that ends loading when the page is closed; for all but the first load. */
bool page_going_on(void *ui, const char *file, uint64_t done, uint64_t total);

/* follow.c: remembers what the files are like now; starts to look at them. */
void page_mark_files(struct ow_ui *ui);
bool page_follow(struct ow_ui *ui);

/* Answers 503 and returns false while files load or when they could not be opened. */
bool page_ready(struct ow_ui *ui, struct server_reply *reply);
/* Appends a tile, key = row, level, index, in the form of /api/tiles. */
ow_status page_add_tile(struct ow_ui *ui, struct buf *to, const uint64_t key[3],
			struct ow_error *err);
/* Answers with an error of the library. */
void page_fail(struct server_reply *reply, ow_status status, const struct ow_error *err);
/* Answers with a table without rows that says why it has none. */
void page_answer_empty(struct server_reply *reply, const char *view, const char *why);
/* An ow_write_fn that adds to a struct buf. */
bool page_write(void *buf, const void *bytes, size_t len);

/* The name of an event or a sample, as the timeline shows it. */
str_id page_event_name(const struct model *m, uint32_t event);
str_id page_sample_name(const struct model *m, uint32_t sample);

/* A word of an enum, as SQL spells it; relation/columns.h. "unknown" when there is none. */
struct str page_word(const struct table_dict *words, uint32_t number);

#define PAGE_HANDLER(name)                                                                         \
	void page_##name(void *ui, const struct server_request *request, struct server_reply *reply)
PAGE_HANDLER(asset); /* ui.c */
PAGE_HANDLER(state);
PAGE_HANDLER(cancel);
PAGE_HANDLER(view); /* views.c */
PAGE_HANDLER(advise);
PAGE_HANDLER(info);
PAGE_HANDLER(folded);
PAGE_HANDLER(rows); /* timeline.c */
PAGE_HANDLER(tiles);
PAGE_HANDLER(names);
PAGE_HANDLER(near);
PAGE_HANDLER(event); /* details.c */
PAGE_HANDLER(sample);
PAGE_HANDLER(search);
PAGE_HANDLER(area);
PAGE_HANDLER(sql); /* questions.c */
PAGE_HANDLER(tables);
PAGE_HANDLER(queries);
PAGE_HANDLER(ask);
PAGE_HANDLER(source); /* source.c */
PAGE_HANDLER(jobs);   /* jobs.c */
PAGE_HANDLER(graph);  /* graph.c */
PAGE_HANDLER(files);  /* files.c */
PAGE_HANDLER(change_files);
PAGE_HANDLER(save);
PAGE_HANDLER(freeze); /* follow.c */
PAGE_HANDLER(again);
PAGE_HANDLER(recording);
PAGE_HANDLER(gap); /* gap.c */
PAGE_HANDLER(chain);
PAGE_HANDLER(diff);	 /* compare.c */
PAGE_HANDLER(ranks);	 /* ranks.c */
PAGE_HANDLER(path);	 /* path.c */
PAGE_HANDLER(anomalies); /* minute.c */
PAGE_HANDLER(minute);
PAGE_HANDLER(keep);

#endif
