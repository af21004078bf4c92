/*
 * tf_code.h: code traces of TensorFlow ops (CodeDef). They are large and only the code view wants
 * them, so import copies the raw messages into model.code, or leaves them where they are in a file that has
 * little else, and leaves one deferred job per source, which makes frames and stacks of them when stacks are
 * asked for.
 *
 *	code = tf_code_new(b);
 *	tf_code_string(code, id, text);		the source's id_to_string
 *	tf_code_copy(code, bytes)		then op.code_offset/code_size/flags by the caller
 *	tf_code_defer(code);			hands it over to the model
 */
#ifndef IMPORT_TF_CODE_H
#define IMPORT_TF_CODE_H

#include "import/tensorflow/tf_read.h"

struct tf_code;

/* NULL at the memory limit; then the builder has failed. */
struct tf_code *tf_code_new(struct builder *b);
void tf_code_free(struct tf_code *code);

/* Adds one entry of id_to_string. If an id is given twice the last text counts. */
void tf_code_string(struct tf_code *code, int64_t id, str_id text);
/* Adds an entry from a message in a file, which has the id in field 1 and the text in field 2. */
void tf_code_read_string(struct tf_code *code, struct tf_read *r, const struct pb_stream_field *f);
/* The number of distinct ids. */
size_t tf_code_strings(const struct tf_code *code);

/* Called before anything is added: raw messages stay in the file, if the input is a file. It is the builder's
 * source, which the model keeps open. Useful if a file has little else that would have to be read again. */
void tf_code_stays(struct tf_code *code, const struct input *in);
/* Adds raw CodeDef bytes, which are at `offset` in the source. Returns the value for op.code_offset. */
uint64_t tf_code_add(struct tf_code *code, struct str bytes, uint64_t offset);
/* Appends raw CodeDef bytes to model.code, regardless of tf_code_stays; the caller stores their offset. */
void tf_code_copy(struct tf_code *code, struct str bytes);

/* The last call before the freeze; takes ownership of `code`. */
ow_status tf_code_defer(struct tf_code *code);

#endif
