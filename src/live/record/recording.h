/*
 * recording.h: writing a recording of running programs (wire/own/opw.h). Things to be written are gathered and go
 * to the file as one segment with recording_flush: once that has returned OK, the data survives a kill of any process.
 * Only then does the collector let the job overwrite its records. Nothing is flushed to the disk itself.
 *
 * When the disk is full a flush fails and changes nothing: it may be tried again, and what was written stays whole.
 */
#ifndef LIVE_RECORDING_H
#define LIVE_RECORDING_H

#include "base/arena.h"
#include "base/atomic_file.h"
#include "base/base.h"
#include "base/map.h"
#include "wire/own/opw.h"

struct recording {
	struct mem *mem;
	int fd;
	char *path;
	size_t path_size;
	/* temporary path until the file appears; NULL: it has its final name */
	struct atomic_path *file;
	struct opw_writer writer;
	struct opw_out out;
	struct live_session session;
	bool session_written;
	/* Blocks of the next segment. */
	struct buf process, place, run, record, text, count, end, frame, stack, sample;
	uint64_t records;     /* number of records written so far */
	uint64_t bytes_limit; /* largest size of the file; 0 = no limit */
};

/* Creates the file, readable only by its owner. */
ow_status recording_open(struct recording *r, struct mem *mem, const char *path,
			 const char *writer_name, struct ow_error *err);
/* Creates a file next to an existing one, which stays until recording_appear; without that,
 * recording_close leaves nothing. */
ow_status recording_open_beside(struct recording *r, struct mem *mem, const char *path,
				const char *writer_name, struct ow_error *err);
/* Gives the file its final name. If that fails, it stays where the message says and can be
 * written to. */
ow_status recording_appear(struct recording *r, struct ow_error *err);
/* Writes a recording to any output, with the host and clocks of another recording; NULL: unknown. */
ow_status recording_open_out(struct recording *r, struct mem *mem, const struct opw_out *out,
			     const char *writer_name, const struct live_session *session,
			     struct ow_error *err);
/* Writes gathered data and the footer; returns the first failure. Releases in any case. */
ow_status recording_close(struct recording *r, struct ow_error *err);

void recording_add_process(struct recording *r, const struct live_process *process);
void recording_add_text(struct recording *r, uint32_t process, enum live_text_kind kind,
			uint32_t number, struct str text);
void recording_add_place(struct recording *r, const struct live_place *place);
void recording_add_count(struct recording *r, const struct live_count *count);
void recording_add_end(struct recording *r, const struct live_end *end);
void recording_add_frame(struct recording *r, const struct live_frame *frame);
void recording_add_stack(struct recording *r, const struct live_stack *stack);
void recording_add_sample(struct recording *r, const struct live_sample *sample);
/* Returns room for the records of a run; NULL if memory runs out. */
struct ring_record *recording_add_run(struct recording *r, const struct live_run *run);
/* Drops the runs and samples that were added since the last flush. */
void recording_drop_runs(struct recording *r);
/* Returns whether data waits to be written. */
bool recording_is_pending(const struct recording *r);
ow_status recording_flush(struct recording *r, struct ow_error *err);

/* Rows with numbers; equal rows have one number. */
struct stack_names_rows {
	struct map map;
	uint32_t (*keys)[4]; /* rows; item 0 is not used */
	size_t count, cap;
};

struct stack_names {
	struct mem *mem;
	struct recording *to;
	struct arena arena;
	struct map text_map;
	struct str *texts; /* texts; item 0 is not used */
	size_t text_count, text_cap;
	struct stack_names_rows frames, stacks;
	bool no_memory; /* stays true until the next file */
};

void stack_names_init(struct stack_names *t, struct mem *mem, struct recording *to);
void stack_names_release(struct stack_names *t);
/* Starts another file: written rows are forgotten, and numbers start over. */
void stack_names_begin(struct stack_names *t, struct recording *to);

/* Return numbers; 0 if memory runs out. */
uint32_t stack_names_text(struct stack_names *t, struct str text);
/* Returns the number of a frame; its member `number` is ignored. */
uint32_t stack_names_frame(struct stack_names *t, const struct live_frame *frame);
/* Returns the number of a stack; parent 0: the outermost. */
uint32_t stack_names_stack(struct stack_names *t, uint32_t parent, uint32_t frame);

#endif
