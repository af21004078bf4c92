/*
 * tfrecord.h: the record framing of TensorFlow's event files (and TFRecord files): length, masked
 * CRC of the length, data, masked CRC of the data. Damage is skipped and counted: a record
 * whose data does not match its CRC is skipped, and where the chain of lengths is broken the reader
 * looks for the next header that is right. It does not look into the records.
 *
 *	tfrecord_init(&r, &input, err);
 *	while (tfrecord_next(&r))
 *		use bytes [r.data_offset, r.data_offset + r.data_len) of the input
 *	if (r.status != OW_OK) … memory or the disk gave out
 *	tfrecord_release(&r);
 */
#ifndef WIRE_TFRECORD_H
#define WIRE_TFRECORD_H

#include "base/input.h"

#define TFRECORD_HEADER 12 /* length and its CRC */
#define TFRECORD_FOOTER 4  /* CRC of the data */

struct tfrecord_report {
	uint64_t records; /* good ones */
	uint64_t bad; /* places with damage: a bad record, or a stretch of bytes that are none */
	uint64_t skipped_bytes;	   /* in all of these, and in a record cut off by the end */
	uint64_t first_bad_offset; /* OW_NO_OFFSET when there is none */
	bool truncated;		   /* the input ends inside a record */
};

struct tfrecord {
	struct window window;
	uint64_t at; /* offset of the next record */
	uint64_t data_offset, data_len;
	ow_status status;
	struct tfrecord_report report;
};

/* The length in a header, false when its CRC is wrong: also the way to recognise such a file. */
bool tfrecord_header(const unsigned char header[TFRECORD_HEADER], uint64_t *len);

/* The input must outlive the reader; err is filled only for failures other than damage. */
void tfrecord_init(struct tfrecord *r, const struct input *in, struct ow_error *err);
void tfrecord_release(struct tfrecord *r);

/* To the next good record; false at the end, or when r->status is not OW_OK. */
bool tfrecord_next(struct tfrecord *r);

/* The current record in one piece, until the reader moves; NULL on failure (r->status). */
const unsigned char *tfrecord_data(struct tfrecord *r);

#endif
