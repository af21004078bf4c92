/*
 * args.h: arguments of events as text, read on demand from the input they came from: in the order of the file,
 * neighbours together. Values of single keys are decoded from that text.
 */
#ifndef RELATION_ARGS_H
#define RELATION_ARGS_H

#include "relation/relation.h"

/* The arguments of events, verbatim (a JSON object); ptr is NULL for those without. rows[i] is a row of the
 * event table, 0 = none. Texts lie in the arena or in the input. */
ow_status args_read(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
		    struct arena *arena, struct ow_error *err);

/* The same, followed by the arguments of the ends of events, where a trace has separate ends. */
ow_status args_read_all(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
			struct arena *arena, struct ow_error *err);

/* The value of a key, the last one if it repeats: decoded text of a string, else the JSON text; ptr is NULL without
 * a value, and for null. */
ow_status args_value(struct str object, struct str key, struct arena *arena, struct str *value,
		     struct ow_error *err);

#endif
