/*
 * tf_sniff.h: tells TensorFlow's messages apart by their structure. They have no magic number and
 * nearly all begin with 0x0a or 0x08, so the head of a file is parsed against the expected shape of
 * each. Used by the sniffers of the TensorFlow importers only.
 */
#ifndef IMPORT_TF_SNIFF_H
#define IMPORT_TF_SNIFF_H

#include "base/str.h"

enum tf_message {
	TF_GRAPH,
	TF_META_GRAPH,
	TF_SAVED_MODEL,
	TF_RUN_METADATA,
	TF_STEP_STATS,
	TF_OP_LOG,
	TF_PROFILE,
};

/* How well the head of a binary file fits: 0 = not at all, at most 95. */
int tf_sniff_binary(struct str head, enum tf_message message);

#endif
