/*
 * recording.c: writes recordings (wire/own/opw.h): gathers rows and records in memory and writes them as one
 * segment; numbers the frames and stacks of a file. Used by the collector, stack_feed.c and follow.c. What the
 * rows mean is not known here.
 */
#include "live/record/recording.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/temp_file.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROWS ((size_t)1 << 22)

static ow_status write_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			  struct ow_error *err)
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

/* Creates the file. A regular file of that name is replaced, not overwritten, because a reader
 * may have it open. */
static int create_file(const char *path)
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

static void release_recording(struct recording *r)
{
	struct buf *all[] = { &r->process, &r->place, &r->run,	 &r->record, &r->text,
			      &r->count,   &r->end,   &r->frame, &r->stack,  &r->sample };

	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_release(all[i]);
	opw_writer_release(&r->writer);
	if (r->file)
		atomic_path_discard(r->file);
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

/* Checks that the output is a regular file, because the remains of a failed write must be
 * overwritten. */
static ow_status check_kind(const struct recording *r, struct ow_error *err)
{
	struct stat st;

	if (fstat(r->fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		return OW_OK;
	return error_set(err, OW_E_UNSUPPORTED, "%s is a pipe: a recording needs a regular file",
			 r->path);
}

static ow_status begin_recording(struct recording *r, const char *writer_name, struct ow_error *err)
{
	if (r->fd < 0)
		return error_errno(err, errno, "%s", r->path);
	OW_TRY(check_kind(r, err));
	OW_TRY(opw_put_header(&r->writer, writer_name, err));
	return recording_flush(r, err);
}

static ow_status open_recording(struct recording *r, const char *path, bool beside,
				const char *writer_name, struct ow_error *err)
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
		release_recording(r);
		return error_no_memory(err);
	}
	memcpy(r->path, path, r->path_size);
	status = beside ? atomic_path_find(r->file, path, err) : OW_OK;
	if (status == OW_OK) {
		r->fd = beside ? atomic_path_open(r->file, O_RDWR, 0600) : create_file(path);
		status = begin_recording(r, writer_name, err);
	}
	if (status != OW_OK)
		release_recording(r);
	return status;
}

ow_status recording_open_out(struct recording *r, struct mem *mem, const struct opw_out *out,
			     const char *writer_name, const struct live_session *session,
			     struct ow_error *err)
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
		release_recording(r);
	return status;
}

ow_status recording_open(struct recording *r, struct mem *mem, const char *path,
			 const char *writer_name, struct ow_error *err)
{
	*r = (struct recording){ .mem = mem, .session = session_now() };
	return open_recording(r, path, false, writer_name, err);
}

ow_status recording_open_beside(struct recording *r, struct mem *mem, const char *path,
				const char *writer_name, struct ow_error *err)
{
	*r = (struct recording){ .mem = mem, .session = session_now() };
	return open_recording(r, path, true, writer_name, err);
}

ow_status recording_appear(struct recording *r, struct ow_error *err)
{
	ow_status status;

	if (!r->file)
		return OW_OK;
	status = atomic_path_publish(r->file, err);
	if (status != OW_OK)
		status = error_wrap(err, status, "the recording stays in %s", r->file->temp);
	mem_free(r->mem, r->file, sizeof(*r->file));
	r->file = NULL;
	return status;
}

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

static uint32_t make_parts(const struct recording *r, struct opw_part *parts)
{
	const struct buf *blocks[LIVE_BLOCKS] = {
		[LIVE_BLOCK_PROCESS] = &r->process, [LIVE_BLOCK_TEXT] = &r->text,
		[LIVE_BLOCK_PLACE] = &r->place,	    [LIVE_BLOCK_RUN] = &r->run,
		[LIVE_BLOCK_RECORD] = &r->record,   [LIVE_BLOCK_COUNT] = &r->count,
		[LIVE_BLOCK_FRAME] = &r->frame,	    [LIVE_BLOCK_STACK] = &r->stack,
		[LIVE_BLOCK_SAMPLE] = &r->sample,   [LIVE_BLOCK_END] = &r->end,
	};
	uint32_t count = 0;

	for (size_t i = 0; i < LIVE_BLOCKS; i++) {
		bool session = i == LIVE_BLOCK_SESSION;
		size_t len = !session		  ? blocks[i]->len
			     : r->session_written ? 0
						  : sizeof(r->session);

		if (len)
			parts[count++] =
				(struct opw_part){ .name = live_block_info[i].name,
						   .type = "live",
						   .value_size = live_block_info[i].value_size,
						   .size = len,
						   .bytes = session ? (const void *)&r->session
								    : blocks[i]->ptr };
	}
	return count;
}

static bool has_failed(const struct recording *r)
{
	return r->process.failed || r->place.failed || r->run.failed || r->record.failed ||
	       r->text.failed || r->count.failed || r->end.failed || r->frame.failed ||
	       r->stack.failed || r->sample.failed;
}

/* Returns whether the disk has room; it is never filled completely, because others use it, too. */
static bool disk_has_room(const struct recording *r, uint64_t bytes)
{
	struct statvfs disk;

	return fstatvfs(r->fd, &disk) != 0 || !disk.f_blocks ||
	       temp_file_fits((uint64_t)disk.f_blocks * disk.f_frsize,
			      (uint64_t)disk.f_bavail * disk.f_frsize, bytes);
}

ow_status recording_flush(struct recording *r, struct ow_error *err)
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
		return error_set(err, OW_E_LIMIT, "%s: reached its size limit of %" PRIu64 " bytes",
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

ow_status recording_close(struct recording *r, struct ow_error *err)
{
	ow_status status = recording_flush(r, err);
	uint64_t size;

	/* removes the remains of a failed write behind the last complete segment; a device
	 * (EINVAL) keeps nothing */
	if (r->fd >= 0 && ftruncate(r->fd, (off_t)r->writer.at) != 0 && errno != EINVAL &&
	    status == OW_OK)
		status = error_errno(err, errno, "%s", r->path);
	if (status == OW_OK)
		status = opw_put_footer(&r->writer, &size, err);
	release_recording(r);
	return status;
}

/*
 * Each frame and stack is written once per file and referred to by its number.
 */

void stack_names_init(struct stack_names *t, struct mem *mem, struct recording *to)
{
	*t = (struct stack_names){ .mem = mem, .to = to };
	arena_init(&t->arena, mem);
	map_init(&t->text_map, mem);
	map_init(&t->frames.map, mem);
	map_init(&t->stacks.map, mem);
}

void stack_names_release(struct stack_names *t)
{
	arena_release(&t->arena);
	map_release(&t->text_map);
	map_release(&t->frames.map);
	map_release(&t->stacks.map);
	mem_free(t->mem, t->texts, t->text_cap * sizeof(*t->texts));
	mem_free(t->mem, t->frames.keys, t->frames.cap * sizeof(*t->frames.keys));
	mem_free(t->mem, t->stacks.keys, t->stacks.cap * sizeof(*t->stacks.keys));
}

void stack_names_begin(struct stack_names *t, struct recording *to)
{
	struct mem *mem = t->mem;

	stack_names_release(t);
	stack_names_init(t, mem, to);
}

uint32_t stack_names_text(struct stack_names *t, struct str text)
{
	uint64_t hash = str_hash(text);
	struct str copy;

	for (struct map_iter it = map_find(&t->text_map, hash); it.value;
	     it = map_next(&t->text_map, it))
		if (str_eq(t->texts[it.value], text))
			return it.value;
	copy = arena_str(&t->arena, text);
	if (!copy.ptr || t->text_count >= MAX_ROWS ||
	    !vec_reserve(t->mem, t->texts, t->text_cap, t->text_count + 2)) {
		t->no_memory = true;
		return 0;
	}
	if (!map_add(&t->text_map, hash, (uint32_t)t->text_count + 1)) {
		t->no_memory = true;
		return 0;
	}
	t->texts[++t->text_count] = copy;
	recording_add_text(t->to, 0, LIVE_SOURCE, (uint32_t)t->text_count, copy);
	return (uint32_t)t->text_count;
}

/* Returns the number of a row; *is_new: the caller writes it. 0 if memory runs out. */
static uint32_t row_number(struct stack_names *t, struct stack_names_rows *rows,
			   const uint32_t key[4], bool *is_new)
{
	uint64_t hash =
		map_hash_u64((uint64_t)key[0] << 32 | key[1], (uint64_t)key[2] << 32 | key[3]);

	*is_new = false;
	for (struct map_iter it = map_find(&rows->map, hash); it.value;
	     it = map_next(&rows->map, it))
		if (memcmp(rows->keys[it.value], key, sizeof(rows->keys[0])) == 0)
			return it.value;
	if (rows->count >= MAX_ROWS ||
	    !vec_reserve(t->mem, rows->keys, rows->cap, rows->count + 2)) {
		t->no_memory = true;
		return 0;
	}
	if (!map_add(&rows->map, hash, (uint32_t)rows->count + 1)) {
		t->no_memory = true;
		return 0;
	}
	memcpy(rows->keys[++rows->count], key, sizeof(rows->keys[0]));
	*is_new = true;
	return (uint32_t)rows->count;
}

uint32_t stack_names_frame(struct stack_names *t, const struct live_frame *frame)
{
	uint32_t key[4] = { frame->function, frame->file, (uint32_t)frame->line,
			    (uint32_t)frame->function_line };
	struct live_frame row = *frame;
	bool is_new;

	row.number = row_number(t, &t->frames, key, &is_new);
	if (is_new)
		recording_add_frame(t->to, &row);
	return row.number;
}

uint32_t stack_names_stack(struct stack_names *t, uint32_t parent, uint32_t frame)
{
	uint32_t key[4] = { parent, frame };
	struct live_stack row = { .parent = parent, .frame = frame };
	bool is_new;

	row.number = row_number(t, &t->stacks, key, &is_new);
	if (is_new)
		recording_add_stack(t->to, &row);
	return row.number;
}
