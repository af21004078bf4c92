/*
 * tf_frames.h: raw frames of code traces (CodeDef.Trace) that were decoded before, found by their bytes. The same
 * frame comes again and again, and a look here is much cheaper than decoding it. Frames are prepared some at a time
 * and looked up then, so that their cache misses overlap. Used by tf_code.c, which decodes.
 */
#ifndef IMPORT_TF_FRAMES_H
#define IMPORT_TF_FRAMES_H

#include "model/model.h"

/* Raw frames are short, as they refer to texts by id: these lie in the table itself. Those with texts in them are
 * copied once. */
#define TF_SHORT_BYTES 19

struct tf_short_frame {
	uint64_t bytes[2];
	uint32_t rest; /* the last three bytes, and the size */
	frame_id frame;
};

struct tf_long_frame {
	size_t offset; /* in long_bytes */
	size_t size;
	frame_id frame;
};

struct tf_frames {
	struct mem *mem;
	/* Open addressing, at most half full; a frame that is nil marks a free slot. */
	struct tf_short_frame *slots;
	size_t mask, count; /* slots - 1; how many are taken */
	struct map by_bytes;
	struct buf long_bytes;
	struct tf_long_frame *longs; /* [0] is unused */
	size_t long_count, long_cap;
};

/* A frame to be looked up. */
struct tf_raw_frame {
	struct str bytes;
	uint64_t hash;
	struct tf_short_frame key; /* of a short one */
};

bool tf_frames_init(struct tf_frames *t, struct mem *mem) OW_MUST_CHECK;
void tf_frames_release(struct tf_frames *t);

/* Bytes behind those of the frame, up to `end`, may be read. */
void tf_frames_prepare(const struct tf_frames *t, struct tf_raw_frame *raw, struct str bytes,
		       const char *end);
/* Nil when it was not added. */
frame_id tf_frames_find(const struct tf_frames *t, const struct tf_raw_frame *raw);
/* A frame that was not found. False without memory; nothing may be added then. */
bool tf_frames_add(struct tf_frames *t, const struct tf_raw_frame *raw,
		   frame_id frame) OW_MUST_CHECK;

#endif
