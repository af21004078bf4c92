/*
 * unpack.c: inputs that are packed with gzip or zstd, recognised by their first bytes. Called by import.c for every
 * input, and by archive.c through unpack_int.h. Small gzip files go through libdeflate in one call, others through zlib
 * piece by piece. The result is in memory or in a temporary file (spool.c). Damage is reported, and the content before
 * it is used.
 */
#include "opwatch_config.h"
#include "wire/container/unpack_int.h"

#include <stdarg.h>
#include <zlib.h>

#if OPWATCH_HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif
#if OPWATCH_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

struct unpack_codec {
	const char *name;
	bool (*match)(struct str head);
	ow_status (*run)(struct unpack_job *job, struct ow_error *err);
};

/* compressed files up to this size are unpacked as a whole */
#define WHOLE_MAX ((uint64_t)16 << 20)
#define DEFLATE_RATIO_MAX 1032 /* largest compression ratio that deflate can reach */

static bool match_gzip(struct str head)
{
	const unsigned char *h = (const unsigned char *)head.ptr;

	/* two magic bytes, the method deflate, no reserved flag */
	return head.len >= 4 && h[0] == 0x1f && h[1] == 0x8b && h[2] == 8 && !(h[3] & 0xe0);
}

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

/* Position of the next unread compressed byte. */
struct feed {
	struct window window;
	uint64_t at; /* offset of the bytes after those passed to zlib so far */
};

static ow_status refill_gzip(struct feed *feed, z_stream *z)
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

/* Examines the bytes after a gzip member: another member, the end, padding, or something else. */
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
		unpack_damage(job, at, "%" PRIu64 " bytes after the end are not gzip",
			      job->in->size - at);
	return OW_OK;
}

static ow_status inflate_members(struct unpack_job *job, struct feed *feed, z_stream *z,
				 struct ow_error *err)
{
	bool more = true;

	while (more) {
		unsigned char *to;
		size_t room;
		int code;

		OW_TRY(refill_gzip(feed, z));
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
		case Z_BUF_ERROR: /* the input ended before the member did */
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

static ow_status inflate_stream(struct unpack_job *job, struct ow_error *err)
{
	z_stream z = { .zalloc = unpack_zlib_alloc,
		       .zfree = unpack_zlib_free,
		       .opaque = job->in->mem };
	struct feed feed = { .at = 0 };
	ow_status status;

	if (inflateInit2(&z, 15 + 16) != Z_OK) /* largest window, with gzip framing */
		return error_no_memory(err);
	window_init(&feed.window, job->in, err);
	status = inflate_members(job, &feed, &z, err);
	window_release(&feed.window);
	inflateEnd(&z);
	return status;
}

#if OPWATCH_HAVE_LIBDEFLATE

static uint32_t load32(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Unpacks all members into `to`; false if anything is irregular. */
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

/* Tries libdeflate; *done stays false when zlib must be used. */
static ow_status inflate_whole(struct unpack_job *job, bool *done, struct ow_error *err)
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
	/* uncompressed size of the last member, which is usually the only one */
	expect = load32(tail);
	if (expect > job->out.memory_max || expect > in->size * DEFLATE_RATIO_MAX ||
	    (job->options->max_unpacked && expect > job->options->max_unpacked))
		return OW_OK;
	if (!in->data) {
		copy = mem_alloc(in->mem, len);
		if (!copy)
			return OW_OK; /* the other method needs less memory */
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

static ow_status inflate_whole(struct unpack_job *job, bool *done, struct ow_error *err)
{
	(void)job;
	(void)err;
	*done = false;
	return OW_OK;
}

#endif

static ow_status run_gzip(struct unpack_job *job, struct ow_error *err)
{
	bool done;

	OW_TRY(inflate_whole(job, &done, err));
	return done ? OW_OK : inflate_stream(job, err);
}

static const struct unpack_codec unpack_gzip = { "gzip", match_gzip, run_gzip };

static bool match_zstd(struct str head)
{
	const unsigned char *h = (const unsigned char *)head.ptr;

	if (head.len < 4)
		return false;
	if (h[0] == 0x28 && h[1] == 0xb5 && h[2] == 0x2f && h[3] == 0xfd)
		return true;
	/* a skippable frame, with which parallel writers begin */
	return (h[0] & 0xf0) == 0x50 && h[1] == 0x2a && h[2] == 0x4d && h[3] == 0x18;
}

#if OPWATCH_HAVE_ZSTD

#define WINDOW_LOG_MIN 10
#define WINDOW_LOG_MAX 31

/* Returns the largest window (as a power of two) within the memory limit. */
static int window_log_max(struct mem *mem)
{
	size_t used = atomic_load(&mem->used);
	size_t left = mem->limit > used ? mem->limit - used : 0;
	int log = WINDOW_LOG_MIN;

	if (!mem->limit)
		return WINDOW_LOG_MAX;
	while (log < WINDOW_LOG_MAX && (size_t)2 << log <= left)
		log++;
	return log;
}

struct zstd {
	ZSTD_DCtx *context;
	struct window window;
	ZSTD_inBuffer from;
	uint64_t at;	 /* offset of the bytes after those in `from` */
	bool frame_done; /* no frame is incomplete */
};

static ow_status refill_zstd(struct zstd *z)
{
	struct str piece;

	if (z->from.pos < z->from.size || z->at >= z->window.in->size)
		return OW_OK;
	piece = window_peek(&z->window, z->at, 1);
	if (!piece.ptr)
		return z->window.status;
	z->from = (ZSTD_inBuffer){ piece.ptr, piece.len, 0 };
	z->at += piece.len;
	return OW_OK;
}

/* Handles a failure of the library: out of memory, padding after the last frame, or damage. */
static ow_status refused(struct unpack_job *job, struct zstd *z, size_t code, struct ow_error *err)
{
	uint64_t at = z->at - (z->from.size - z->from.pos);
	bool zeros = false;

	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_memory_allocation:
		return error_no_memory(err);
	case ZSTD_error_frameParameter_windowTooLarge:
		return error_set(err, OW_E_NO_MEMORY,
				 "%s: needs more memory to unpack than the limit leaves; unpack it "
				 "with zstd -d --long=31 first, or raise --memory-limit",
				 job->in->name);
	default:
		break;
	}
	if (z->frame_done)
		OW_TRY(unpack_only_zeros(&z->window, at, &zeros));
	if (!zeros)
		unpack_damage(job, at, "damaged compressed data: %s", ZSTD_getErrorName(code));
	return OW_OK;
}

static ow_status decompress(struct unpack_job *job, struct zstd *z, struct ow_error *err)
{
	for (;;) {
		ZSTD_outBuffer to = { 0 };
		unsigned char *room_at;
		size_t code;

		OW_TRY(refill_zstd(z));
		OW_TRY(unpack_room(job, &room_at, &to.size, err));
		if (z->frame_done && z->from.pos == z->from.size)
			return OW_OK;
		to.dst = room_at;
		code = ZSTD_decompressStream(z->context, &to, &z->from);
		unpack_made(job, to.pos);
		if (ZSTD_isError(code))
			return refused(job, z, code, err);
		z->frame_done = code == 0;
		if (z->from.pos < z->from.size || z->at < job->in->size || z->frame_done)
			continue;
		/* all input is consumed and all output written, but the frame has not ended */
		if (to.pos < to.size) {
			unpack_damage(job, job->in->size, "the compressed data is cut short");
			return OW_OK;
		}
	}
}

static ow_status run_zstd(struct unpack_job *job, struct ow_error *err)
{
	struct zstd z = { .context = ZSTD_createDCtx() };
	ow_status status;
	size_t code;

	if (!z.context)
		return error_no_memory(err);
	code = ZSTD_DCtx_setParameter(z.context, ZSTD_d_windowLogMax, window_log_max(job->in->mem));
	window_init(&z.window, job->in, err);
	status = ZSTD_isError(code) ? error_no_memory(err) : decompress(job, &z, err);
	window_release(&z.window);
	ZSTD_freeDCtx(z.context);
	return status;
}

#else

static ow_status run_zstd(struct unpack_job *job, struct ow_error *err)
{
	return error_set(err, OW_E_UNSUPPORTED,
			 "%s: compressed with zstd, which this build cannot read; unpack it with "
			 "zstd -d first",
			 job->in->name);
}

#endif

static const struct unpack_codec unpack_zstd = { "zstd", match_zstd, run_zstd };

#define OUTPUT_PIECE ((size_t)256 << 10)

static const struct unpack_codec *const codecs[] = { &unpack_gzip, &unpack_zstd };

static const struct unpack_codec *find_codec(struct str head)
{
	for (size_t i = 0; i < ARRAY_COUNT(codecs); i++)
		if (codecs[i]->match(head))
			return codecs[i];
	return NULL;
}

const char *unpack_container(struct str head)
{
	const struct unpack_codec *codec = find_codec(head);

	return codec ? codec->name : NULL;
}

static ow_status check_cap(const struct unpack_job *job, struct ow_error *err)
{
	uint64_t max = job->options->max_unpacked;

	if (!max || spool_size(&job->out) <= max)
		return OW_OK;
	return error_set(err, OW_E_LIMIT, "%s: unpacks to more than %" PRIu64 " bytes",
			 job->in->name, max);
}

ow_status unpack_room(struct unpack_job *job, unsigned char **to, size_t *room,
		      struct ow_error *err)
{
	OW_TRY(check_cap(job, err));
	if (job->options->judge && job->out.fd < 0 && job->out.buf.len &&
	    job->out.buf.len + OUTPUT_PIECE > spool_piece(&job->out))
		OW_TRY(job->options->judge(job->in->name,
					   str_make(job->out.buf.ptr, job->out.buf.len), err));
	OW_TRY(spool_reserve(&job->out, OUTPUT_PIECE, err));
	*to = (unsigned char *)job->out.buf.ptr + job->out.buf.len;
	*room = MIN(job->out.buf.cap - job->out.buf.len, SPOOL_PIECE);
	return OW_OK;
}

void unpack_damage(struct unpack_job *job, uint64_t offset, const char *format, ...)
{
	struct unpack_result *result = job->result;
	va_list args;

	if (result->truncated) /* only the first damage is reported */
		return;
	result->truncated = true;
	result->damage_offset = offset;
	va_start(args, format);
	vsnprintf(result->message, sizeof(result->message), format, args);
	va_end(args);
}

ow_status unpack_only_zeros(struct window *w, uint64_t offset, bool *zeros)
{
	*zeros = true;
	while (offset < w->in->size) {
		struct str piece = window_peek(w, offset, 1);

		if (!piece.ptr)
			return w->status;
		for (size_t i = 0; i < piece.len; i++)
			if (piece.ptr[i]) {
				*zeros = false;
				return OW_OK;
			}
		offset += piece.len;
	}
	return OW_OK;
}

static ow_status read_head(const struct input *in, unsigned char *head, struct str *got,
			   struct ow_error *err)
{
	size_t len = (size_t)MIN(in->size, (uint64_t)8);

	*got = str_make(head, len);
	return input_read_at(in, 0, head, len, err);
}

/* Removes one container from `in`; *out is a new input. */
static ow_status unpack_once(const struct input *in, const struct unpack_codec *codec,
			     const struct unpack_options *options, struct unpack_result *result,
			     struct input *out, struct ow_error *err)
{
	struct unpack_job job = { .in = in, .options = options, .result = result };
	ow_status status;

	spool_init(&job.out, in->mem, in->name, options->memory_max);
	status = codec->run(&job, err);
	if (status == OW_OK)
		status = check_cap(&job, err);
	if (status == OW_OK && result->truncated && !spool_size(&job.out))
		status = error_at(err, OW_E_CORRUPT, result->damage_offset,
				  "%s: nothing could be unpacked from this %s file: %s", in->name,
				  codec->name, result->message);
	if (status == OW_OK)
		status = spool_to_input(&job.out, in->name, out, err);
	spool_release(&job.out);
	if (status != OW_OK)
		return status;
	out->progress = in->progress;
	result->levels++;
	result->unpacked_size = out->size;
	return OW_OK;
}

static ow_status unpack_levels(const struct input *in, const struct unpack_options *options,
			       struct unpack_result *result, struct input *out,
			       struct ow_error *err)
{
	const struct unpack_codec *codec;
	struct input inner;
	unsigned char bytes[8];
	struct str head;

	for (;;) {
		ow_status status;

		OW_TRY(read_head(result->levels ? out : in, bytes, &head, err));
		codec = find_codec(head);
		if (!codec)
			return OW_OK;
		if (result->levels == UNPACK_LEVELS)
			return error_set(err, OW_E_LIMIT,
					 "%s: compressed more than %d times over; unpack it first",
					 in->name, UNPACK_LEVELS);
		if (!result->container)
			result->container = codec->name;
		status =
			unpack_once(result->levels ? out : in, codec, options, result, &inner, err);
		/* A damaged outer container may hold too little of the inner one. */
		if (status != OW_OK)
			return status;
		if (result->levels > 1)
			input_close(out);
		*out = inner;
	}
}

ow_status unpack_input_with(struct input *in, const struct unpack_options *options,
			    struct unpack_result *result, struct ow_error *err)
{
	struct input out = { .mem = in->mem, .fd = -1 };
	ow_status status;

	*result = (struct unpack_result){ .compressed_size = in->size, .unpacked_size = in->size };
	status = unpack_levels(in, options, result, &out, err);
	if (status != OW_OK) {
		input_close(&out);
		return status;
	}
	if (!result->levels)
		return OW_OK;
	input_close(in);
	*in = out;
	return OW_OK;
}

ow_status unpack_input(struct input *in, struct unpack_result *result, struct ow_error *err)
{
	static const struct unpack_options defaults;

	return unpack_input_with(in, &defaults, result, err);
}
