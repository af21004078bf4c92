/*
 * tf_message.h: recognises which TensorFlow message a file holds, as binary or as text. Binary messages have no magic
 * number and nearly all begin with 0x0a or 0x08, so the head of a file is parsed against the expected structure of
 * each. A text is converted to binary before it is read, and the binary form replaces the text as the source's input.
 * Used by the TensorFlow importers.
 */
#ifndef IMPORT_TF_MESSAGE_H
#define IMPORT_TF_MESSAGE_H

#include "import/importer.h"

enum tf_message {
	TF_GRAPH,
	TF_META_GRAPH,
	TF_SAVED_MODEL,
	TF_RUN_METADATA,
	TF_STEP_STATS,
	TF_OP_LOG,
	TF_PROFILE,
};

/* The score of the head of a binary file: 0 = does not fit, at most 95. */
int tf_sniff_binary(struct str head, enum tf_message message);

/* The score of the head of a file as text of that message: 0..100. */
int tf_text_sniff(struct str head, enum tf_message message);
/* The higher score of both forms. */
int tf_sniff(const struct sniff *sniff, enum tf_message message);

/* Converts ctx->in if it is a text of that message, and adds facts about the text. A binary input is unchanged. A
 * damaged text is used up to the damage, unless options->strict_proto. */
ow_status tf_text_convert(struct import_ctx *ctx, enum tf_message message);

#endif
