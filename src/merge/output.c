/*
 * output.c: the bytes of the output in their order, packed on their way as the file's name asks for. Parts
 * that a thread packed itself are only put behind the others.
 */
#include "merge/merge_int.h"

static ow_status put(struct merge *m, struct str bytes, struct error *err)
{
	m->counts->bytes_out += bytes.len;
	return bytes.len ? m->out->write(m->out->arg, bytes.ptr, bytes.len, err) : OW_OK;
}

static ow_status put_packed(struct merge *m, struct error *err)
{
	if (m->packed.failed)
		return error_no_memory(err);
	return put(m, buf_str(&m->packed), err);
}

ow_status merged_start(struct merge *m, struct error *err)
{
	m->any_event = false;
	m->crc = 0;
	m->unpacked_out = 0;
	m->counts->bytes_out = 0;
	zstd_packer_release(&m->zstd);
	if (m->out->pack != PACK_GZIP)
		return OW_OK;
	buf_clear(&m->packed);
	gzip_head(&m->packed);
	return put_packed(m, err);
}

ow_status merged_write(struct merge *m, struct str bytes, struct error *err)
{
	buf_clear(&m->packed);
	switch (m->out->pack) {
	case PACK_NONE:
		return put(m, bytes, err);
	case PACK_ZSTD:
		OW_TRY(zstd_pack(&m->zstd, bytes, false, &m->packed, err));
		break;
	case PACK_GZIP:
		m->crc = gzip_crc(m->crc, bytes);
		m->unpacked_out += bytes.len;
		OW_TRY(gzip_pack(&m->gzip, bytes, &m->packed, err));
		break;
	}
	return put_packed(m, err);
}

ow_status merged_piece(struct merge *m, size_t len, uint32_t crc, struct str packed,
		       struct error *err)
{
	m->crc = gzip_crc_join(m->crc, crc, len);
	m->unpacked_out += len;
	return put(m, packed, err);
}

ow_status merged_finish(struct merge *m, struct error *err)
{
	buf_clear(&m->packed);
	if (m->out->pack == PACK_GZIP)
		gzip_tail(&m->packed, m->crc, m->unpacked_out);
	else if (m->out->pack == PACK_ZSTD)
		OW_TRY(zstd_pack(&m->zstd, (struct str){ "", 0 }, true, &m->packed, err));
	return put_packed(m, err);
}
