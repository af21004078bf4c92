/* recording.c: see recording.h. */
#include "live/recording.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static ow_status write_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			  struct error *err)
{
	const struct recording *r = arg;

	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(r->fd, (const char *)bytes + done, len - done,
				   (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_errno(err, n < 0 ? errno : ENOSPC, "%s", r->path);
		done += (size_t)n;
	}
	return OW_OK;
}

/* A regular file of that name is replaced, not written into: somebody may be reading it. */
static int create(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path);
	return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void init_blocks(struct recording *r)
{
	struct buf *all[] = { &r->process, &r->place, &r->run,	 &r->record, &r->text,
			      &r->count,   &r->end,   &r->frame, &r->stack,  &r->sample };

	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_init(all[i], r->mem);
}

static void release(struct recording *r)
{
	struct buf *all[] = { &r->process, &r->place, &r->run,	 &r->record, &r->text,
			      &r->count,   &r->end,   &r->frame, &r->stack,  &r->sample };

	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_release(all[i]);
	opw_writer_release(&r->writer);
	if (r->file)
		new_file_drop(r->file);
	mem_free(r->mem, r->file, r->file ? sizeof(*r->file) : 0);
	if (r->fd >= 0)
		close(r->fd);
	mem_free(r->mem, r->path, r->path_size);
	r->fd = -1;
	r->path = NULL;
	r->file = NULL;
}

static struct live_session session_now(void)
{
	struct live_session session = { .version = LIVE_VERSION };

	session.wall_ns = clock_ns(CLOCK_REALTIME);
	session.monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	if (gethostname(session.host, sizeof(session.host) - 1) != 0)
		session.host[0] = '\0';
	return session;
}

/* What a failed write left is written over, so there must be a way back. */
static ow_status check_kind(const struct recording *r, struct error *err)
{
	struct stat st;

	if (fstat(r->fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		return OW_OK;
	return error_set(err, OW_E_UNSUPPORTED,
			 "%s is a pipe: a recording needs a file, give it the name of one",
			 r->path);
}

static ow_status begin(struct recording *r, const char *writer_name, struct error *err)
{
	if (r->fd < 0)
		return error_errno(err, errno, "%s", r->path);
	OW_TRY(check_kind(r, err));
	OW_TRY(opw_put_header(&r->writer, writer_name, err));
	return recording_flush(r, err);
}

static ow_status open_recording(struct recording *r, const char *path, bool beside,
				const char *writer_name, struct error *err)
{
	ow_status status;

	r->fd = -1;
	r->path_size = strlen(path) + 1;
	r->out = (struct opw_out){ .write_at = write_at, .arg = r };
	init_blocks(r);
	opw_writer_init(&r->writer, r->mem, &r->out);
	r->path = mem_alloc(r->mem, r->path_size);
	if (r->path && beside)
		r->file = mem_zalloc(r->mem, sizeof(*r->file));
	if (!r->path || (beside && !r->file)) {
		release(r);
		return error_no_memory(err);
	}
	memcpy(r->path, path, r->path_size);
	r->fd = beside ? new_file_open(r->file, path) : create(path);
	status = begin(r, writer_name, err);
	if (status != OW_OK)
		release(r);
	return status;
}

ow_status recording_open_out(struct recording *r, struct mem *mem, const struct opw_out *out,
			     const char *writer_name, const struct live_session *session,
			     struct error *err)
{
	ow_status status;

	*r = (struct recording){
		.mem = mem, .fd = -1, .out = *out, .session_written = session == NULL
	};
	if (session)
		r->session = *session;
	init_blocks(r);
	opw_writer_init(&r->writer, mem, &r->out);
	status = opw_put_header(&r->writer, writer_name, err);
	if (status == OW_OK)
		status = recording_flush(r, err);
	if (status != OW_OK)
		release(r);
	return status;
}

ow_status recording_open(struct recording *r, struct mem *mem, const char *path,
			 const char *writer_name, struct error *err)
{
	*r = (struct recording){ .mem = mem, .session = session_now() };
	return open_recording(r, path, false, writer_name, err);
}

ow_status recording_open_beside(struct recording *r, struct mem *mem, const char *path,
				const char *writer_name, struct error *err)
{
	*r = (struct recording){ .mem = mem, .session = session_now() };
	return open_recording(r, path, true, writer_name, err);
}

ow_status recording_appear(struct recording *r, struct error *err)
{
	ow_status status = OW_OK;

	if (!r->file)
		return OW_OK;
	if (!new_file_appear(r->file))
		status = error_errno(err, errno, "%s: it is written to %s", r->path, r->file->made);
	mem_free(r->mem, r->file, sizeof(*r->file));
	r->file = NULL;
	return status;
}

/* ---- gathering ---- */

void recording_add_process(struct recording *r, const struct live_process *process)
{
	buf_add(&r->process, process, sizeof(*process));
}

void recording_add_text(struct recording *r, uint32_t process, enum live_text_kind kind,
			uint32_t number, struct str text)
{
	struct live_text head = {
		.process = process, .kind = kind, .number = number, .len = (uint32_t)text.len
	};

	buf_add(&r->text, &head, sizeof(head));
	buf_add(&r->text, text.ptr, text.len);
	buf_add_repeat(&r->text, '\0',
		       (size_t)(live_text_bytes(text.len) - sizeof(head)) - text.len);
}

void recording_add_place(struct recording *r, const struct live_place *place)
{
	buf_add(&r->place, place, sizeof(*place));
}

void recording_add_count(struct recording *r, const struct live_count *count)
{
	buf_add(&r->count, count, sizeof(*count));
}

void recording_add_end(struct recording *r, const struct live_end *end)
{
	buf_add(&r->end, end, sizeof(*end));
}

void recording_add_frame(struct recording *r, const struct live_frame *frame)
{
	buf_add(&r->frame, frame, sizeof(*frame));
}

void recording_add_stack(struct recording *r, const struct live_stack *stack)
{
	buf_add(&r->stack, stack, sizeof(*stack));
}

void recording_add_sample(struct recording *r, const struct live_sample *sample)
{
	buf_add(&r->sample, sample, sizeof(*sample));
}

struct ring_record *recording_add_run(struct recording *r, const struct live_run *run)
{
	size_t bytes = (size_t)run->count * sizeof(struct ring_record);
	struct ring_record *room;

	if (!buf_reserve(&r->record, bytes))
		return NULL;
	buf_add(&r->run, run, sizeof(*run));
	if (r->run.failed)
		return NULL;
	room = (struct ring_record *)(void *)(r->record.ptr + r->record.len);
	r->record.len += bytes;
	return room;
}

void recording_drop_runs(struct recording *r)
{
	buf_clear(&r->run);
	buf_clear(&r->record);
	buf_clear(&r->sample);
}

bool recording_is_pending(const struct recording *r)
{
	return r->process.len || r->place.len || r->run.len || r->text.len || r->count.len ||
	       r->end.len || r->frame.len || r->stack.len || r->sample.len;
}

/* ---- writing ---- */

static void add_part(struct opw_part *parts, uint32_t *count, const char *name, const void *bytes,
		     size_t len, size_t value_size)
{
	if (len)
		parts[(*count)++] = (struct opw_part){ .name = name,
						       .type = "live",
						       .value_size = (uint32_t)value_size,
						       .size = len,
						       .bytes = bytes };
}

static uint32_t make_parts(const struct recording *r, struct opw_part *parts)
{
	uint32_t count = 0;

	if (!r->session_written)
		add_part(parts, &count, "session", &r->session, sizeof(r->session),
			 sizeof(r->session));
	add_part(parts, &count, "process", r->process.ptr, r->process.len,
		 sizeof(struct live_process));
	add_part(parts, &count, "text", r->text.ptr, r->text.len, 1);
	add_part(parts, &count, "place", r->place.ptr, r->place.len, sizeof(struct live_place));
	add_part(parts, &count, "run", r->run.ptr, r->run.len, sizeof(struct live_run));
	add_part(parts, &count, "record", r->record.ptr, r->record.len, sizeof(struct ring_record));
	add_part(parts, &count, "count", r->count.ptr, r->count.len, sizeof(struct live_count));
	add_part(parts, &count, "frame", r->frame.ptr, r->frame.len, sizeof(struct live_frame));
	add_part(parts, &count, "stack", r->stack.ptr, r->stack.len, sizeof(struct live_stack));
	add_part(parts, &count, "sample", r->sample.ptr, r->sample.len, sizeof(struct live_sample));
	add_part(parts, &count, "end", r->end.ptr, r->end.len, sizeof(struct live_end));
	return count;
}

static bool has_failed(const struct recording *r)
{
	return r->process.failed || r->place.failed || r->run.failed || r->record.failed ||
	       r->text.failed || r->count.failed || r->end.failed || r->frame.failed ||
	       r->stack.failed || r->sample.failed;
}

/* The disk is never filled to its brim: others live on it, too. */
static bool disk_has_room(const struct recording *r, uint64_t bytes)
{
	struct statvfs disk;

	return fstatvfs(r->fd, &disk) != 0 || !disk.f_blocks ||
	       temp_file_fits((uint64_t)disk.f_blocks * disk.f_frsize,
			      (uint64_t)disk.f_bavail * disk.f_frsize, bytes);
}

ow_status recording_flush(struct recording *r, struct error *err)
{
	struct opw_part parts[11];
	uint32_t count = make_parts(r, parts);
	uint64_t at = r->writer.at, rows = r->record.len / sizeof(struct ring_record);
	ow_status status;

	if (has_failed(r))
		return error_no_memory(err);
	if (!count)
		return OW_OK;
	if (r->bytes_limit && at + opw_segment_size(parts, count) > r->bytes_limit)
		return error_set(err, OW_E_LIMIT, "%s: has reached its limit of %" PRIu64 " bytes",
				 r->path, r->bytes_limit);
	if (!disk_has_room(r, opw_segment_size(parts, count)))
		return error_set(err, OW_E_LIMIT, "%s: the disk is nearly full", r->path);
	status = opw_put_segment(&r->writer, OPW_LIVE, "", r->records, rows, parts, count, err);
	if (status != OW_OK) {
		r->writer.at = at;
		return status;
	}
	r->records += rows;
	r->session_written = true;
	recording_drop_runs(r);
	buf_clear(&r->process);
	buf_clear(&r->place);
	buf_clear(&r->text);
	buf_clear(&r->count);
	buf_clear(&r->end);
	buf_clear(&r->frame);
	buf_clear(&r->stack);
	return OW_OK;
}

ow_status recording_close(struct recording *r, struct error *err)
{
	ow_status status = recording_flush(r, err);
	uint64_t size;

	/* What a failed write left behind the last whole segment goes; a device (EINVAL) keeps nothing. */
	if (r->fd >= 0 && ftruncate(r->fd, (off_t)r->writer.at) != 0 && errno != EINVAL &&
	    status == OW_OK)
		status = error_errno(err, errno, "%s", r->path);
	if (status == OW_OK)
		status = opw_put_footer(&r->writer, &size, err);
	release(r);
	return status;
}
