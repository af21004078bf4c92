/*
 * args.h: arguments of events as text, read from the input they came from when somebody asks: in the order of
 * the file, neighbours together. Values of single keys are decoded from that text.
 */
#ifndef RELATION_ARGS_H
#define RELATION_ARGS_H

#include "relation/relation.h"

/* The arguments of events, verbatim (a JSON object); ptr is NULL for those without. rows[i] is a row of the
 * event table, 0 = none. Texts lie in the arena or in the input. */
ow_status args_read(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
		    struct arena *arena, struct error *err);

/* The same with what the ends of events say behind that, where a trace has ends of their own. */
ow_status args_read_all(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
			struct arena *arena, struct error *err);

/* The value of a key, of several the last: decoded text of a string, else the JSON text; ptr NULL when there is none, and for
 * null. */
ow_status args_value(struct str object, struct str key, struct arena *arena, struct str *value,
		     struct error *err);

#endif
