/*
 * args.h: the arguments of events as text, read on demand from the input that they came from: in the order of the file,
 * neighbours together. Values of single keys are decoded from that text.
 */
#ifndef RELATION_ARGS_H
#define RELATION_ARGS_H

#include "relation/relation.h"

/* Reads the arguments of events verbatim (a JSON object); ptr is NULL for an event without arguments. rows[i] is a
 * row of the event table, 0 = none. Texts are in the arena or in the input. */
ow_status args_read(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
		    struct arena *arena, struct ow_error *err);

/* Like args_read; if the trace has separate end events, their arguments follow. */
ow_status args_read_all(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
			struct arena *arena, struct ow_error *err);

/* The value of a key, the last one if the key is repeated: the decoded text of a string, else the JSON text; ptr is
 * NULL if the key is missing or its value is null. */
ow_status args_value(struct str object, struct str key, struct arena *arena, struct str *value,
		     struct ow_error *err);

#endif
