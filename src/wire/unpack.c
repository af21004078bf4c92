/* unpack.c: see unpack.h. Which container it is, how deep, and what becomes of the input. */
#include "wire/unpack_int.h"

#include <stdarg.h>

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

static ow_status check_cap(const struct unpack_job *job, struct error *err)
{
	uint64_t max = job->options->max_unpacked;

	if (!max || spool_size(&job->out) <= max)
		return OW_OK;
	return error_set(err, OW_E_LIMIT, "%s: unpacks to more than %" PRIu64 " bytes",
			 job->in->name, max);
}

ow_status unpack_room(struct unpack_job *job, unsigned char **to, size_t *room, struct error *err)
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

	if (result->truncated) /* the first is told */
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
			   struct error *err)
{
	size_t len = (size_t)MIN(in->size, (uint64_t)8);

	*got = str_make(head, len);
	return input_read_at(in, 0, head, len, err);
}

/* Takes one container off `in`; *out is a new input. */
static ow_status unpack_once(const struct input *in, const struct unpack_codec *codec,
			     const struct unpack_options *options, struct unpack_result *result,
			     struct input *out, struct error *err)
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
			       struct unpack_result *result, struct input *out, struct error *err)
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
		/* A damaged outer container may hold too little of the inner one to begin. */
		if (status != OW_OK)
			return status;
		if (result->levels > 1)
			input_close(out);
		*out = inner;
	}
}

ow_status unpack_input_with(struct input *in, const struct unpack_options *options,
			    struct unpack_result *result, struct error *err)
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

ow_status unpack_input(struct input *in, struct unpack_result *result, struct error *err)
{
	static const struct unpack_options defaults;

	return unpack_input_with(in, &defaults, result, err);
}
