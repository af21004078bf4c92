/*
 * opw_open.h: a file of our own (.opw) as a model of its own, columns in place. Called by import_opw.c,
 * which makes it the model that is being built, or adds it to that.
 */
#ifndef IMPORT_OPW_OPEN_H
#define IMPORT_OPW_OPEN_H

#include "model/builder.h"
#include "model/backing.h"
#include "wire/opw.h"

/* What there is to say about the file once it is in the model. */
struct opw_remarks {
	bool complete;
	uint64_t end; /* when not: the first byte that was not used, and why */
	char problem[160];
	uint64_t repaired; /* references to rows that are lost */
	uint64_t lost;	   /* arguments and definitions that are */
	uint32_t unknown;  /* columns and tables of a newer program, and the first of them */
	char first_unknown[80];
};

/* Takes over what *in holds; *in becomes a second view of it. The model has no lookups, is frozen when
 * the file is, and has no inputs yet. *made is NULL on failure. */
ow_status opw_open(struct input *in, struct model **made, struct opw_remarks *remarks,
		   struct error *err);

#endif
