/*
 * page_int.h: what the files of src/page share: the state of the running page and the handlers of its routes. Each
 * handler runs on the thread of its connection; a page that is ready is only read. Numbers come from the public
 * functions, so that the page shows what the commands print.
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

/* Size and times of a file when it was read. */
struct page_mark {
	bool there, folder;
	uint64_t device, inode, size;
	int64_t modified_ns;
};

/* Facts that the page asks for often. They are stored, because a file that was cut short cannot be read without a
 * guard. */
struct page_facts {
	bool damaged;
	bool has_memory;       /* the view heaps has rows */
	bool grows;	       /* all files are recordings of programs, which may still run */
	int64_t view_start_ns; /* time on the axis of the timeline at which views begin to count */
	uint64_t parts;	       /* bit i: view i accepts a range of time */
};

/* A separate page for a recording that this page names; minute.c. */
struct page_child {
	ow_ui *ui;
	char folder[512]; /* folder to delete with the page; may be empty */
	char path[640];
};
#define PAGE_CHILDREN 8

/* The file of one rank, opened as a separate profile; compare.c. */
struct page_rank {
	ow_profile *profile; /* may be NULL */
	int64_t rank;
	unsigned epoch; /* ow_ui.epoch when the file was opened */
};

/* A list of files that the user chose on the page (files.c); follow.c applies it. */
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
	char *source_dir, *daemon_socket, *listen; /* may be NULL */
	bool on_socket;

	ow_profile *profile; /* set when the state is READY */
	bool own_profile;
	ow_profile *base; /* profile to compare with, or NULL */
	bool own_base;
	struct tiles *tiles;
	struct page_facts facts;
	/* for a report: rows of the timeline that it contains; NULL = all */
	const bool *shown_rows;
	int64_t zero_ns; /* times in requests and answers count from here: tiles_start */

	/* For the comparison: each file as a separate run, opened on demand; protected by watch_lock. */
	ow_profile **runs;
	size_t run_count;
	/* pair: two ranks that are compared, opened on demand; protected by watch_lock */
	struct page_rank pair[2];
	/* For a report: its runs, the base's first; else NULL. */
	ow_profile *const *given;
	size_t given_base, given_new;

	struct buf ranks; /* answer of ranks.c, made on demand; protected by ranks_lock */
	unsigned ranks_epoch;
	pthread_mutex_t ranks_lock;

	struct page_child children[PAGE_CHILDREN]; /* protected by child_lock */
	size_t child_count;
	pthread_mutex_t child_lock;

	/* watch of the daemon's jobs, created on demand; protected by watch_lock */
	ow_watch *watch;
	pthread_mutex_t watch_lock;

	/* Loading, on a separate thread. */
	struct ow_open_options open;
	struct arena arena; /* memory of the copies of paths and options */
	const char **paths;
	size_t path_count;
	const char **base_paths;
	size_t base_count;
	pthread_t loader;
	bool has_loader;
	atomic_bool cancelled;

	/* State for files that change (follow.c). */
	/* read-locked by handlers; write-locked when profile, tiles and zero_ns change */
	pthread_rwlock_t swap;
	pthread_t follower;
	atomic_bool has_follower; /* set when requests are answered already */
	atomic_bool frozen;	  /* new data is not read */
	atomic_bool again;	  /* the files are to be read once more */
	atomic_uint epoch;	  /* how often the profile was replaced */
	struct page_mark *marks;
	struct page_paths *proposed; /* list of files to be read; protected by lock */
	/* list that owns paths and marks, if one was applied; else NULL */
	struct page_paths *chosen;
	/* name of the daemon's job whose recording is paths[0], or NULL */
	char *job;
	int64_t job_last_ns;
	atomic_int state;      /* ow_ui_state; READY is set last */
	pthread_cond_t loaded; /* loading has ended; with lock */

	pthread_mutex_t lock; /* protects the fields below */
	uint64_t done, total;
	int64_t started_ns;
	int64_t read_ns; /* time that reading the files took */
	uint64_t read_bytes;
	char file[512]; /* file that is being read */
	struct ow_error failure;
	/* choice_error: why the files that the user chose last are not shown; "" = they are */
	char refused[1200];
	char changed[1200]; /* how the files changed since they were read; "" = not */
};

/* minute.c: closes the pages that were opened from this one. */
void page_close_children(struct ow_ui *ui);
/* Makes a temporary folder for the file child->path; the other function deletes both. */
ow_status page_make_scratch(struct page_child *child, struct ow_error *err);
void page_drop_scratch(struct page_child *child);
/* Answers with the content of a file, up to a size limit; false when it cannot be opened. */
bool page_send_file(struct server_reply *reply, const char *path);
/* files.c: frees a list of files; NULL is ignored. */
void page_free_paths(struct page_paths *p);
/* Fails when the profile does not contain a file of the list. */
ow_status page_check_used(const ow_profile *profile, const struct page_paths *p,
			  struct ow_error *err);
/* compare.c: frees the profiles that a comparison opened. */
void page_free_runs(struct ow_ui *ui);
/* ui.c: creates a page without a server, for a report; base may be NULL. NULL with an error on failure; the caller
 * calls page_free. */
struct ow_ui *page_new(ow_profile *profile, ow_profile *base, struct ow_error *err);
void page_free(struct ow_ui *ui);

/* memory.c: adds a row of values for each heap; *any: whether there is one. */
ow_status page_add_memory(struct ow_ui *ui, ow_profile *profile, struct tiles *tiles, bool *any,
			  struct ow_error *err);
/* ui.c: makes the rows of the timeline of a profile. */
ow_status page_arrange(struct ow_ui *ui, ow_profile *profile, struct tiles **out,
		       struct page_facts *facts, struct ow_error *err);
/* An ow_progress_fn that cancels loading when the page is closed; for all loads but the first. */
bool page_going_on(void *ui, const char *file, uint64_t done, uint64_t total);

/* follow.c: page_mark_files stores the present sizes and times of the files; page_follow starts to check them. */
void page_mark_files(struct ow_ui *ui);
bool page_follow(struct ow_ui *ui);

/* Answers 503 and returns false while files are loading or when they could not be opened. */
bool page_ready(struct ow_ui *ui, struct server_reply *reply);
/* Appends a tile in the form of /api/tiles; key = row, level, index. */
ow_status page_add_tile(struct ow_ui *ui, struct buf *to, const uint64_t key[3],
			struct ow_error *err);
/* Answers with an error of the library. */
void page_fail(struct server_reply *reply, ow_status status, const struct ow_error *err);
/* Answers with a table that has no rows but a reason. */
void page_answer_empty(struct server_reply *reply, const char *view, const char *why);
/* An ow_write_fn that appends to a struct buf. */
bool page_write(void *buf, const void *bytes, size_t len);

/* The name of an event or a sample, as the timeline shows it. */
str_id page_event_name(const struct model *m, uint32_t event);
str_id page_sample_name(const struct model *m, uint32_t sample);

/* The word for an enum value, as in SQL (relation/columns.h); "unknown" when there is none. */
struct str page_word(const struct table_dict *words, uint32_t number);

#define PAGE_HANDLER(name)                                                                         \
	void page_##name(void *ui, const struct server_request *request, struct server_reply *reply)
PAGE_HANDLER(asset); /* in ui.c */
PAGE_HANDLER(state);
PAGE_HANDLER(cancel);
PAGE_HANDLER(view); /* in views.c */
PAGE_HANDLER(advise);
PAGE_HANDLER(info);
PAGE_HANDLER(folded);
PAGE_HANDLER(rows); /* in timeline.c */
PAGE_HANDLER(tiles);
PAGE_HANDLER(names);
PAGE_HANDLER(near);
PAGE_HANDLER(event); /* in details.c */
PAGE_HANDLER(sample);
PAGE_HANDLER(search);
PAGE_HANDLER(area);
PAGE_HANDLER(sql); /* in questions.c */
PAGE_HANDLER(tables);
PAGE_HANDLER(queries);
PAGE_HANDLER(ask);
PAGE_HANDLER(source); /* in source.c */
PAGE_HANDLER(jobs);   /* in jobs.c */
PAGE_HANDLER(graph);  /* in graph.c */
PAGE_HANDLER(files);  /* in files.c */
PAGE_HANDLER(change_files);
PAGE_HANDLER(save);
PAGE_HANDLER(freeze); /* in follow.c */
PAGE_HANDLER(again);
PAGE_HANDLER(recording);
PAGE_HANDLER(gap); /* in gap.c */
PAGE_HANDLER(chain);
PAGE_HANDLER(diff);	 /* in compare.c */
PAGE_HANDLER(ranks);	 /* in ranks.c */
PAGE_HANDLER(path);	 /* in path.c */
PAGE_HANDLER(anomalies); /* in minute.c */
PAGE_HANDLER(minute);
PAGE_HANDLER(keep);

#endif
