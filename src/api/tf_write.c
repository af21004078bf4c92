/*
 * tf_write.c: ow_tf_profile_write and ow_tf_op_log_write: a profile as TensorFlow's own messages.
 */
#include "api/api_int.h"

#include "api/atomic_file.h"
#include "import/record.h"
#include "sink/profile_proto.h"

struct tf_writer {
	ow_write_fn write;
	void *arg;
};

static ow_status write_bytes(void *arg, const void *bytes, size_t len, struct error *err)
{
	struct tf_writer *writer = arg;

	if (writer->write(writer->arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the output was closed");
}

static ow_status put_attrs(void *arg, op_id op, struct buf *to, struct error *err)
{
	return record_attrs(arg, op, to, err);
}

static ow_status begin(ow_profile *p, struct reading *reading, struct error *err)
{
	error_clear(err);
	if (!p->frozen)
		return error_set(err, OW_E_USAGE,
				 "the profile is still being loaded: freeze it first");
	return api_read_begin(p, TABLES_ALL, reading, err);
}

ow_status ow_tf_profile_write(ow_profile *p, ow_write_fn write, void *arg, struct error *err)
{
	struct tf_writer writer = { write, arg };
	const struct out out = { write_bytes, &writer };
	struct record_reader records;
	const struct profile_proto_options options = { .attrs =
							       p->options.redact ? NULL : put_attrs,
						       .arg = &records };
	struct reading reading;
	ow_status status;

	OW_TRY(begin(p, &reading, err));
	record_reader_init(&records, p->m);
	status = profile_proto_write(p->m, &options, &out, err);
	record_reader_release(&records);
	return api_read_end(p, &reading, status, err);
}

ow_status ow_tf_op_log_write(ow_profile *p, ow_write_fn write, void *arg, struct error *err)
{
	struct tf_writer writer = { write, arg };
	const struct out out = { write_bytes, &writer };
	struct reading reading;

	OW_TRY(begin(p, &reading, err));
	return api_read_end(p, &reading, op_log_write(p->m, &out, err), err);
}

static bool write_to_file(void *arg, const void *bytes, size_t len)
{
	return atomic_write(arg, bytes, len);
}

typedef ow_status (*tf_write_fn)(ow_profile *p, ow_write_fn write, void *arg, struct error *err);

static ow_status write_file(ow_profile *p, tf_write_fn write, const char *path, struct error *err)
{
	struct atomic_file file;

	error_clear(err);
	OW_TRY(atomic_open(&file, &p->mem, path, err));
	return atomic_finish(&file, write(p, write_to_file, &file, err), err);
}

ow_status ow_tf_profile_write_file(ow_profile *p, const char *path, struct error *err)
{
	return write_file(p, ow_tf_profile_write, path, err);
}

ow_status ow_tf_op_log_write_file(ow_profile *p, const char *path, struct error *err)
{
	return write_file(p, ow_tf_op_log_write, path, err);
}
