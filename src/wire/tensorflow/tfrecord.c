/*
 * tfrecord.c: reads the records of TFRecord files, as TensorBoard event files are (tfrecord.h). Checks sums and finds the
 * next record after damage; does not know what a record holds.
 */
#include "wire/tensorflow/tfrecord.h"

#include "wire/container/crc32c.h"
#include "wire/protobuf/pb.h"

#define CHUNK ((size_t)1 << 20) /* large records are checked, and gaps searched, in such pieces */

bool tfrecord_header(const unsigned char header[TFRECORD_HEADER], uint64_t *len)
{
	*len = pb_load64(header);
	return crc32c_mask(crc32c(header, 8)) == pb_load32(header + 8);
}

void tfrecord_init(struct tfrecord *r, const struct input *in, struct ow_error *err)
{
	*r = (struct tfrecord){ .report.first_bad_offset = OW_NO_OFFSET };
	window_init(&r->window, in, err);
}

void tfrecord_release(struct tfrecord *r)
{
	window_release(&r->window);
}

static uint64_t left_behind(const struct tfrecord *r, uint64_t offset)
{
	return r->window.in->size - offset;
}

static const unsigned char *bytes_at(struct tfrecord *r, uint64_t offset, size_t len)
{
	const unsigned char *at = window_at(&r->window, offset, len);

	if (!at)
		r->status = r->window.status;
	return at;
}

/* Whether a record that fits into the input starts at `offset`, by its header. */
static bool header_at(struct tfrecord *r, uint64_t offset, uint64_t *len)
{
	const unsigned char *header;

	if (left_behind(r, offset) < TFRECORD_HEADER)
		return false;
	header = bytes_at(r, offset, TFRECORD_HEADER);
	return header && tfrecord_header(header, len);
}

static bool fits(const struct tfrecord *r, uint64_t offset, uint64_t len)
{
	uint64_t left = left_behind(r, offset);

	return left >= TFRECORD_HEADER + TFRECORD_FOOTER &&
	       len <= left - TFRECORD_HEADER - TFRECORD_FOOTER;
}

static bool data_is_good(struct tfrecord *r, uint64_t offset, uint64_t len)
{
	const unsigned char *at;
	uint32_t crc = 0;

	while (len > CHUNK) {
		at = bytes_at(r, offset, CHUNK);
		if (!at)
			return false;
		crc = crc32c_extend(crc, at, CHUNK);
		offset += CHUNK;
		len -= CHUNK;
	}
	at = bytes_at(r, offset, (size_t)len + TFRECORD_FOOTER);
	return at && crc32c_mask(crc32c_extend(crc, at, (size_t)len)) == pb_load32(at + len);
}

/* The next offset from `from` on where a header is right and its record fits; the end of the input
 * when there is none. */
static uint64_t search(struct tfrecord *r, uint64_t from)
{
	uint64_t end = r->window.in->size;

	while (end - from >= TFRECORD_HEADER + TFRECORD_FOOTER) {
		size_t span = (size_t)MIN(end - from, (uint64_t)CHUNK);
		const unsigned char *at = bytes_at(r, from, span);

		if (!at)
			return end;
		for (size_t i = 0; i + TFRECORD_HEADER <= span; i++) {
			uint64_t len;

			/* The length first: cheap to check, and hardly ever small by chance. */
			if (fits(r, from + i, pb_load64(at + i)) && tfrecord_header(at + i, &len))
				return from + i;
		}
		from += span - TFRECORD_HEADER + 1;
	}
	return end;
}

static void count_bad(struct tfrecord *r, uint64_t offset, uint64_t next)
{
	r->report.bad++;
	r->report.skipped_bytes += next - offset;
	if (r->report.first_bad_offset == OW_NO_OFFSET)
		r->report.first_bad_offset = offset;
}

/* The header at `offset` is wrong, or right with a record that goes beyond the end. */
static void skip_gap(struct tfrecord *r, uint64_t offset, bool header)
{
	uint64_t next = search(r, offset + (header ? TFRECORD_HEADER : 1));

	if (r->status != OW_OK)
		return;
	if (next == r->window.in->size && (header || left_behind(r, offset) < TFRECORD_HEADER)) {
		/* Nothing comes behind: the writer was stopped in the middle of a record. */
		r->report.truncated = true;
		r->report.skipped_bytes += next - offset;
		if (r->report.first_bad_offset == OW_NO_OFFSET)
			r->report.first_bad_offset = offset;
	} else {
		count_bad(r, offset, next);
	}
	r->at = next;
}

/* The data of a whole record is wrong: it is skipped by its length if that leads to the end or to
 * another header, else by searching inside it, since bytes may be missing from it. */
static void skip_record(struct tfrecord *r, uint64_t offset, uint64_t next)
{
	uint64_t len;

	if (next != r->window.in->size && !header_at(r, next, &len))
		next = r->status == OW_OK ? search(r, offset + TFRECORD_HEADER) : next;
	if (r->status != OW_OK)
		return;
	count_bad(r, offset, next);
	r->at = next;
}

bool tfrecord_next(struct tfrecord *r)
{
	while (r->status == OW_OK && left_behind(r, r->at)) {
		uint64_t offset = r->at, len, next;
		bool header = header_at(r, offset, &len);

		if (r->status != OW_OK)
			return false;
		if (!header || !fits(r, offset, len)) {
			skip_gap(r, offset, header);
			continue;
		}
		next = offset + TFRECORD_HEADER + len + TFRECORD_FOOTER;
		if (data_is_good(r, offset + TFRECORD_HEADER, len)) {
			r->data_offset = offset + TFRECORD_HEADER;
			r->data_len = len;
			r->at = next;
			r->report.records++;
			return true;
		}
		if (r->status == OW_OK)
			skip_record(r, offset, next);
	}
	return false;
}

const unsigned char *tfrecord_data(struct tfrecord *r)
{
	return bytes_at(r, r->data_offset, (size_t)r->data_len);
}
