/*
 * unpack_zstd.c: Zstandard, any number of frames, skippable ones too. Always piece by piece. The
 * window of a frame is the library's own memory; how large it may be follows from our limit.
 */
#include "wire/unpack_int.h"

#include "opwatch_config.h"

#if OPWATCH_HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

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

/* The largest window (as a power of two) that leaves the memory limit respected. */
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
	uint64_t at;	 /* what follows the bytes in `from` */
	bool frame_done; /* nothing of a frame is pending */
};

static ow_status refill(struct zstd *z)
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

/* The library refused: out of memory, padding behind the last frame, or damage. */
static ow_status refused(struct unpack_job *job, struct zstd *z, size_t code, struct error *err)
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

static ow_status decompress(struct unpack_job *job, struct zstd *z, struct error *err)
{
	for (;;) {
		ZSTD_outBuffer to = { 0 };
		unsigned char *room_at;
		size_t code;

		OW_TRY(refill(z));
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
		if (to.pos < to.size) { /* all input taken, all output given, and not at an end */
			unpack_damage(job, job->in->size, "the compressed data is cut short");
			return OW_OK;
		}
	}
}

static ow_status run_zstd(struct unpack_job *job, struct error *err)
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

static ow_status run_zstd(struct unpack_job *job, struct error *err)
{
	return error_set(err, OW_E_UNSUPPORTED,
			 "%s: compressed with zstd, which this build cannot read; unpack it with "
			 "zstd -d first",
			 job->in->name);
}

#endif

const struct unpack_codec unpack_zstd = { "zstd", match_zstd, run_zstd };
