/*
 * tf_code.h: code traces of TensorFlow ops (CodeDef). They are large and only the code view wants
 * them, so import copies the raw messages into model.code and leaves one deferred job per source,
 * which makes frames and stacks of them when stacks are asked for.
 *
 *	code = tf_code_new(b);
 *	tf_code_string(code, id, text);		the source's id_to_string
 *	tf_code_copy(code, bytes)		then op.code_offset/code_size/flags by the caller
 *	tf_code_defer(code);			hands it over to the model
 */
#ifndef IMPORT_TF_CODE_H
#define IMPORT_TF_CODE_H

#include "model/builder.h"

struct tf_code;

/* NULL at the memory limit, with the builder failed. */
struct tf_code *tf_code_new(struct builder *b);
void tf_code_free(struct tf_code *code);

/* One entry of id_to_string. Of an id given twice the last text counts. */
void tf_code_string(struct tf_code *code, int64_t id, str_id text);
/* How many distinct ids there are. */
size_t tf_code_strings(const struct tf_code *code);

/* Appends raw CodeDef bytes to model.code; where they are is the caller's to note. */
void tf_code_copy(struct tf_code *code, struct str bytes);

/* The last call before the freeze; takes over `code`. */
ow_status tf_code_defer(struct tf_code *code);

#endif
