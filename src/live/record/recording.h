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
	struct atomic_path *file; /* until it has appeared; NULL: it is where it belongs */
	struct opw_writer writer;
	struct opw_out out;
	struct live_session session;
	bool session_written;
	/* Blocks of the next segment. */
	struct buf process, place, run, record, text, count, end, frame, stack, sample;
	uint64_t records;     /* written so far */
	uint64_t bytes_limit; /* of the file; 0 = none */
};

/* Creates the file again, for its owner only. */
ow_status recording_open(struct recording *r, struct mem *mem, const char *path,
			 const char *writer_name, struct ow_error *err);
/* The same, but beside what is there, which stays until recording_appear; without that nothing is left by recording_close. */
ow_status recording_open_beside(struct recording *r, struct mem *mem, const char *path,
				const char *writer_name, struct ow_error *err);
/* It takes its place. When that fails, it stays where the message says, and can be written to. */
ow_status recording_appear(struct recording *r, struct ow_error *err);
/* Into whatever takes bytes, with the host and clocks of another recording, whose content it gets; NULL: not known. */
ow_status recording_open_out(struct recording *r, struct mem *mem, const struct opw_out *out,
			     const char *writer_name, const struct live_session *session,
			     struct ow_error *err);
/* Writes what was gathered, and the footer; gives the first failure. Releases in any case. */
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
/* Room for the records of a run; NULL without memory. */
struct ring_record *recording_add_run(struct recording *r, const struct live_run *run);
/* The runs and samples that were added since the last flush are not written after all. */
void recording_drop_runs(struct recording *r);
/* Whether something waits to be written. */
bool recording_is_pending(const struct recording *r);
ow_status recording_flush(struct recording *r, struct ow_error *err);

/* Equal rows have one number. */
struct stack_names_rows {
	struct map map;
	uint32_t (*keys)[4]; /* 0 is not used */
	size_t count, cap;
};

struct stack_names {
	struct mem *mem;
	struct recording *to;
	struct arena arena;
	struct map text_map;
	struct str *texts; /* 0 is not used */
	size_t text_count, text_cap;
	struct stack_names_rows frames, stacks;
	bool no_memory; /* sticks, until the next file */
};

void stack_names_init(struct stack_names *t, struct mem *mem, struct recording *to);
void stack_names_release(struct stack_names *t);
/* Another file: what was written is forgotten, and numbers start over. */
void stack_names_begin(struct stack_names *t, struct recording *to);

/* Numbers; 0 without memory. */
uint32_t stack_names_text(struct stack_names *t, struct str text);
/* Its number is not looked at. */
uint32_t stack_names_frame(struct stack_names *t, const struct live_frame *frame);
/* Parent 0: the outermost. */
uint32_t stack_names_stack(struct stack_names *t, uint32_t parent, uint32_t frame);

#endif
