/*
 * pbtxt.h: the protobuf text format, turned into the binary one, so that importers only ever read
 * binary. Driven by the tables of pb_schema.h; follows the grammar of the original's parser, limits
 * included, so that both refuse the same files. Text is read through a window and the output spooled,
 * so neither has to fit into memory.
 *
 * Does not check UTF-8, merge, sort or drop duplicate map keys. A field at its default value is left
 * out as proto3 does; repeated scalars are written unpacked.
 */
#ifndef WIRE_PBTXT_H
#define WIRE_PBTXT_H

#include "base/buf.h"
#include "base/input.h"
#include "wire/protobuf/pb_schema.h"

#define PBTXT_DEPTH_MAX 100

struct pbtxt_options {
	bool allow_unknown; /* skip fields and enum names that are not in the tables */
	bool salvage;	    /* on damage, keep the complete records before it instead of failing */
	size_t memory_max;  /* larger output goes to a temporary file; 0 = 64 MiB */
};

struct pbtxt_result {
	uint64_t skipped; /* number of skipped unknown fields and contents of Any */
	bool damaged;	  /* salvaged: the part behind the damage is missing */
	uint64_t damage_offset;
	char message[256]; /* error as "LINE:COLUMN: what is wrong" */
};

/* Converts a text of `type` to a new input of the same name. OW_E_CORRUPT for any violation of the
 * format, with NAME:LINE:COLUMN and the byte offset in the error. options and result may be NULL. */
ow_status pbtxt_to_input(const struct input *text, const struct pb_message *type,
			 const struct pbtxt_options *options, struct input *binary,
			 struct pbtxt_result *result, struct ow_error *err) OW_MUST_CHECK;

/* Converts a short text in memory; appends to `out`, which stays unchanged after a failure. */
ow_status pbtxt_to_buf(struct str text, const struct pb_message *type, struct buf *out,
		       struct ow_error *err) OW_MUST_CHECK;

/* Returns how likely the head of a file is text of this type, 0..100, judged by its first few
 * names. */
int pbtxt_sniff(struct str head, const struct pb_message *type);

/* The other direction (pbtxt_print.c): a message as text, as Python's protobuf prints it: fields by number, one per
 * line, defaults left out, nested messages indented. Fields that the type does not have are skipped; a damaged message
 * is printed as far as it goes. A failure to get memory is the buffer's. */
void pb_print_text(struct buf *out, const struct pb_message *type, struct str bytes);

#endif
