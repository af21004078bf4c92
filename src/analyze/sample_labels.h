/*
 * sample_labels.h: what the boxes of a tree of sampled stacks are called. Native names are cut and marked
 * as the stackcollapse scripts do it, so that folded stacks can be compared with theirs: parameters are
 * left out, unknown functions are called by their module, and marks for the kernel and for code compiled
 * at run time are there when the style asks for them.
 */
#ifndef ANALYZE_SAMPLE_LABELS_H
#define ANALYZE_SAMPLE_LABELS_H

#include "analyze/samples.h"
#include "base/buf.h"
#include "base/map.h"

enum sample_style {
	STYLE_PID = 1 << 0,    /* comm-pid */
	STYLE_TID = 1 << 1,    /* comm-pid/tid */
	STYLE_KERNEL = 1 << 2, /* name_[k] */
	STYLE_JIT = 1 << 3,    /* name_[j] */
	STYLE_ADDRESS = 1 << 4,
	STYLE_LINES = 1 << 5,	     /* file:line:function where there are lines */
	STYLE_STACKCOLLAPSE = 1 << 6 /* without what the scripts lose */
};

#define LABEL_DROPPED UINT32_MAX /* a frame that is no frame */

struct sample_labels {
	const struct model *m;
	struct mem *mem;
	struct arena *arena; /* of the texts */
	unsigned style;
	struct str *texts; /* from 1 */
	size_t count, cap;
	struct map map;
	uint32_t *of_frame[2]; /* frame → label; of any process, of java */
	struct buf text;
};

/* Words that are no style are left to others. */
unsigned sample_style_parse(const char *words);

/* sample_labels_release is due in any case. */
bool sample_labels_init(struct sample_labels *l, const struct model *m, unsigned style,
			struct arena *arena, struct arena *scratch);
void sample_labels_release(struct sample_labels *l);

/* The label of a frame in a process; 0 without memory. */
uint32_t sample_label(struct sample_labels *l, frame_id frame, bool java);
/* Of the process or thread that a track is; *label is 0 when it is not worth a level. False without memory. */
bool sample_track_label(struct sample_labels *l, track_id track, bool several, uint32_t *label);

#endif
