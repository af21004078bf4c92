/*
 * tf_text.h: the text form of TensorFlow's messages. A text is converted to binary before it is read,
 * and the binary form takes the text's place as the source's input.
 */
#ifndef IMPORT_TF_TEXT_H
#define IMPORT_TF_TEXT_H

#include "import/importer.h"
#include "import/tf_sniff.h"

/* How well the head of a file fits as text of that message: 0..100. */
int tf_text_sniff(struct str head, enum tf_message message);
/* Both forms. */
int tf_sniff(const struct sniff *sniff, enum tf_message message);

/* Converts ctx->in if it is a text of that message, and adds the facts that texts have. A binary input
 * is left alone. A damaged text is used as far as it goes, unless options->strict_proto. */
ow_status tf_text_convert(struct import_ctx *ctx, enum tf_message message);

#endif
