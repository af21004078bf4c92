/*
 * perf_line.h: one line of `perf script`'s output: the head of a sample, or a frame. Pure functions of the
 * text; import_perf_script.c makes samples of them.
 */
#ifndef IMPORT_PERF_LINE_H
#define IMPORT_PERF_LINE_H

#include "base/str.h"

struct perf_head {
	struct str comm, event; /* event without its last colon; empty when there is none */
	struct str rest;	/* what follows the event: a frame, or the text of a record */
	int64_t pid, tid;	/* pid -1 when only one number is there */
	int64_t ts_ns;		/* INT64_MIN when there is no time */
	int64_t period;		/* of the event; 0 when it is not printed */
	int32_t cpu;		/* -1 when it is not printed */
};

/* comm [pid/]tid [[cpu]] [time:] [period] event: … */
bool perf_head_parse(struct str line, struct perf_head *head);

struct perf_frame {
	uint64_t address;
	struct str symbol, module; /* empty when unknown */
	bool nameless;		   /* two blanks stand where the symbol is */
};

/* ip symbol (module) */
bool perf_frame_parse(struct str line, struct perf_frame *frame);
/* Whether a line is a frame though nothing says so but its form: no blank before it, below a sample. */
bool perf_frame_is(struct str line);

#endif
