/*
 * unpack_gzip.c: gzip, one or several members. Small files go through libdeflate in one call, if it
 * is there and all is well; large, damaged and otherwise unusual ones through zlib piece by piece,
 * which also gives what comes before the damage.
 */
#include "wire/unpack_int.h"

#include "opwatch_config.h"

#include <zlib.h>
#if OPWATCH_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

#define WHOLE_MAX ((uint64_t)16 << 20) /* compressed */
#define DEFLATE_RATIO_MAX 1032	       /* what deflate cannot exceed */

static bool match_gzip(struct str head)
{
	const unsigned char *h = (const unsigned char *)head.ptr;

	/* the two magic bytes, the method deflate, no reserved flag */
	return head.len >= 4 && h[0] == 0x1f && h[1] == 0x8b && h[2] == 8 && !(h[3] & 0xe0);
}

/* ---- zlib's memory through ours: blocks carry their size ---------------------------------------- */

#define BLOCK_HEADER 16

void *unpack_zlib_alloc(void *opaque, unsigned items, unsigned size)
{
	size_t bytes = (size_t)items * size + BLOCK_HEADER;
	char *block = mem_alloc(opaque, bytes);

	if (!block)
		return Z_NULL;
	memcpy(block, &bytes, sizeof(bytes));
	return block + BLOCK_HEADER;
}

void unpack_zlib_free(void *opaque, void *address)
{
	char *block = (char *)address - BLOCK_HEADER;
	size_t bytes;

	memcpy(&bytes, block, sizeof(bytes));
	mem_free(opaque, block, bytes);
}

/* ---- piece by piece ----------------------------------------------------------------------------- */

/* Where the next unread compressed byte is. */
struct feed {
	struct window window;
	uint64_t at; /* what follows the bytes given to zlib so far */
};

static ow_status refill(struct feed *feed, z_stream *z)
{
	struct str piece;

	if (z->avail_in || feed->at >= feed->window.in->size)
		return OW_OK;
	piece = window_peek(&feed->window, feed->at, 1);
	if (!piece.ptr)
		return feed->window.status;
	piece.len = MIN(piece.len, SPOOL_PIECE);
	z->next_in = (unsigned char *)piece.ptr;
	z->avail_in = (uInt)piece.len;
	feed->at += piece.len;
	return OW_OK;
}

/* Behind a member: another one, the end, padding, or something else. */
static ow_status next_member(struct unpack_job *job, struct feed *feed, z_stream *z, bool *more)
{
	uint64_t at = feed->at - z->avail_in;
	struct str head;
	bool zeros;

	*more = false;
	if (at >= job->in->size)
		return OW_OK;
	head = window_peek(&feed->window, at, 4);
	if (!head.ptr)
		return feed->window.status;
	feed->at = at;
	z->avail_in = 0; /* the window may have moved */
	if (match_gzip(head)) {
		*more = true;
		return inflateReset(z) == Z_OK ? OW_OK : OW_E_INTERNAL;
	}
	OW_TRY(unpack_only_zeros(&feed->window, at, &zeros));
	if (!zeros)
		unpack_damage(job, at, "%" PRIu64 " bytes behind the end are not gzip",
			      job->in->size - at);
	return OW_OK;
}

static ow_status inflate_members(struct unpack_job *job, struct feed *feed, z_stream *z,
				 struct error *err)
{
	bool more = true;

	while (more) {
		unsigned char *to;
		size_t room;
		int code;

		OW_TRY(refill(feed, z));
		OW_TRY(unpack_room(job, &to, &room, err));
		z->next_out = to;
		z->avail_out = (uInt)room;
		code = inflate(z, Z_NO_FLUSH);
		unpack_made(job, room - z->avail_out);
		switch (code) {
		case Z_OK:
			break;
		case Z_STREAM_END:
			OW_TRY(next_member(job, feed, z, &more));
			break;
		case Z_BUF_ERROR: /* no input left, and the member is not at its end */
			unpack_damage(job, job->in->size, "the compressed data is cut short");
			return OW_OK;
		case Z_MEM_ERROR:
			return error_no_memory(err);
		default:
			unpack_damage(job, feed->at - z->avail_in, "damaged compressed data: %s",
				      z->msg ? z->msg : "unknown");
			return OW_OK;
		}
	}
	return OW_OK;
}

static ow_status inflate_stream(struct unpack_job *job, struct error *err)
{
	z_stream z = { .zalloc = unpack_zlib_alloc,
		       .zfree = unpack_zlib_free,
		       .opaque = job->in->mem };
	struct feed feed = { .at = 0 };
	ow_status status;

	if (inflateInit2(&z, 15 + 16) != Z_OK) /* largest window, gzip framing */
		return error_no_memory(err);
	window_init(&feed.window, job->in, err);
	status = inflate_members(job, &feed, &z, err);
	window_release(&feed.window);
	inflateEnd(&z);
	return status;
}

/* ---- in one call -------------------------------------------------------------------------------- */

#if OPWATCH_HAVE_LIBDEFLATE

static uint32_t load32(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* All members into `to`; false when anything is not as it should be. */
static bool deflate_whole(const unsigned char *from, size_t len, char *to, size_t room,
			  size_t *made_all)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	bool good = d != NULL;

	*made_all = 0;
	while (good && len) {
		size_t used, made;

		good = libdeflate_gzip_decompress_ex(d, from, len, to + *made_all, room - *made_all,
						     &used, &made) == LIBDEFLATE_SUCCESS;
		if (!good)
			break;
		from += used;
		len -= used;
		*made_all += made;
	}
	libdeflate_free_decompressor(d);
	return good;
}

/* Tries the quick way; *done stays false when the other one must be gone. */
static ow_status inflate_whole(struct unpack_job *job, bool *done, struct error *err)
{
	const struct input *in = job->in;
	size_t len = (size_t)in->size, made;
	unsigned char *copy = NULL;
	unsigned char tail[4];
	uint32_t expect;

	*done = false;
	if (in->size > WHOLE_MAX || in->size < 18)
		return OW_OK;
	OW_TRY(input_read_at(in, in->size - 4, tail, sizeof(tail), err));
	expect = load32(tail); /* the size of the last member, which mostly is the only one */
	if (expect > job->out.memory_max || expect > in->size * DEFLATE_RATIO_MAX ||
	    (job->options->max_unpacked && expect > job->options->max_unpacked))
		return OW_OK;
	if (!in->data) {
		copy = mem_alloc(in->mem, len);
		if (!copy)
			return OW_OK; /* the other way needs less */
	}
	if (copy) {
		ow_status status = input_read_at(in, 0, copy, len, err);

		if (status != OW_OK) {
			mem_free(in->mem, copy, len);
			return status;
		}
	}
	if (buf_reserve(&job->out.buf, (size_t)expect + 1) &&
	    deflate_whole(copy ? copy : in->data, len, job->out.buf.ptr, expect, &made)) {
		unpack_made(job, made);
		*done = true;
	}
	job->out.buf.failed = false;
	mem_free(in->mem, copy, len);
	return OW_OK;
}

#else

static ow_status inflate_whole(struct unpack_job *job, bool *done, struct error *err)
{
	(void)job;
	(void)err;
	*done = false;
	return OW_OK;
}

#endif

static ow_status run_gzip(struct unpack_job *job, struct error *err)
{
	bool done;

	OW_TRY(inflate_whole(job, &done, err));
	return done ? OW_OK : inflate_stream(job, err);
}

const struct unpack_codec unpack_gzip = { "gzip", match_gzip, run_gzip };
