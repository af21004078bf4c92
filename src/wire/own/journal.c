/*
 * journal.c: writes journals, the files of the recorder API (journal.h; the public functions are in src/api). Any thread may
 * write; the segment that is being filled is mapped and shared, and each record has a checksum, so that records outlive the
 * process. import/own/journal_rows.c reads them.
 */
#include "wire/own/journal.h"

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "wire/container/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Segments end at page boundaries, whatever their size; the first one is shorter by the header. */
#define FIRST_END ((uint64_t)64 << 10)
#define SEGMENT_BYTES ((uint64_t)1 << 20)
#define PAGE_MAX ((uint64_t)64 << 10)
#define HEADS_BYTES                                                                                \
	((sizeof(struct opw_head) + sizeof(struct opw_block) + OPW_ALIGN - 1) / OPW_ALIGN *        \
	 OPW_ALIGN)
#define ALIVE 0x600dcafe

/* Returns a page that is zero in a forked child. Without one, the process id is read each time. */
static uint32_t *alive_new(void)
{
	void *page =
		mmap(NULL, PAGE_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, PAGE_MAX, MADV_WIPEONFORK) != 0) {
		munmap(page, PAGE_MAX);
		return NULL;
	}
	*(uint32_t *)page = ALIVE;
	return page;
}

bool journal_is_ours(const struct journal *j)
{
	return j->alive ? *(volatile uint32_t *)j->alive == ALIVE : j->pid == getpid();
}

/* Asked once per thread, and again where a journal is opened, since a fork makes it another: the system's
 * answer costs more than a record. */
static int64_t thread_id(bool anew)
{
	static _Thread_local int64_t tid;

	if (OW_UNLIKELY(!tid || anew))
		tid = syscall(SYS_gettid);
	return tid;
}

int64_t journal_now(const struct journal *j)
{
	return steady_ns() + j->wall_ns;
}

static int64_t wall_offset(void)
{
	return clock_ns(CLOCK_REALTIME) - steady_ns();
}

/* Makes the head of the current segment with its one block, for `slots` records. */
static void make_heads(uint64_t slots, struct opw_head *head, struct opw_block *block)
{
	*block = (struct opw_block){ .offset = HEADS_BYTES,
				     .size = slots * sizeof(struct journal_record) };
	opw_name_block(block, OPW_BLOCK_RECORDS);
	OW_ASSERT(block->value_size == sizeof(struct journal_record));
	*head = (struct opw_head){ .kind = OPW_JOURNAL,
				   .block_count = 1,
				   .size = HEADS_BYTES + opw_round(block->size),
				   .row_count = slots };
	memcpy(head->magic, OPW_SEGMENT_MAGIC, sizeof(head->magic));
	head->crc = crc32c_extend(crc32c(head, sizeof(*head)), block, sizeof(*block));
}

static ow_status keep_heads(struct journal *j, const struct opw_head *head,
			    const struct opw_block *block, struct ow_error *err)
{
	buf_add(&j->writer.heads, &j->at, sizeof(j->at));
	buf_add(&j->writer.heads, head, sizeof(*head));
	buf_add(&j->writer.heads, block, sizeof(*block));
	j->writer.segment_count++;
	return j->writer.heads.failed ? error_no_memory(err) : OW_OK;
}

static void unmap(struct journal *j)
{
	if (j->map)
		munmap(j->map, j->map_size);
	j->map = NULL;
	j->slots = NULL;
	j->slot_count = j->used = 0;
}

/* Maps a segment. Disk space is allocated first, so that a full disk is an error here and not a
 * signal later. */
static ow_status map_segment(struct journal *j, uint64_t at, uint64_t size, struct ow_error *err)
{
	uint64_t page = at / PAGE_MAX * PAGE_MAX;
	int failure = posix_fallocate(j->fd, (off_t)at, (off_t)size);

	if (failure)
		return error_errno(err, failure, "%s", j->path);
	j->map_size = (size_t)(at + size - page);
	j->map = mmap(NULL, j->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, j->fd, (off_t)page);
	if (j->map == MAP_FAILED) {
		j->map = NULL;
		return error_errno(err, errno, "%s", j->path);
	}
	madvise(j->map, j->map_size, MADV_DONTFORK);
	j->at = at;
	j->size = size;
	j->slots = (struct journal_record *)(void *)(j->map + (at - page) + HEADS_BYTES);
	j->slot_count = (size - HEADS_BYTES) / sizeof(*j->slots);
	return OW_OK;
}

static ow_status begin_segment(struct journal *j, uint64_t at, uint64_t size, struct ow_error *err)
{
	struct opw_head head;
	struct opw_block block;
	char *start;

	OW_TRY(map_segment(j, at, size, err));
	make_heads(j->slot_count, &head, &block);
	start = (char *)j->slots - HEADS_BYTES;
	memcpy(start + sizeof(head), &block, sizeof(block));
	memcpy(start, &head, sizeof(head));
	return OW_OK;
}

static ow_status next_segment(struct journal *j, struct ow_error *err)
{
	struct opw_head head;
	struct opw_block block;
	uint64_t next = j->at + j->size;

	make_heads(j->slot_count, &head, &block);
	OW_TRY(keep_heads(j, &head, &block, err));
	unmap(j);
	return begin_segment(j, next, SEGMENT_BYTES, err);
}

/* Reserves some consecutive slots; NULL if there is no room. */
static struct journal_record *take_slots(struct journal *j, uint64_t count)
{
	struct journal_record *slots;

	if (OW_UNLIKELY(j->failure.status != OW_OK)) {
		j->lost++;
		return NULL;
	}
	if (OW_UNLIKELY(j->slot_count - j->used < count)) {
		if (next_segment(j, &j->failure) != OW_OK) {
			unmap(j);
			j->lost++;
			return NULL;
		}
	}
	slots = &j->slots[j->used];
	j->used += count;
	return slots;
}

static uint32_t check_of(const struct journal_record *record)
{
	return crc32c(record, offsetof(struct journal_record, check));
}

static void put(struct journal *j, struct journal_record record)
{
	struct journal_record *slot = take_slots(j, 1);

	if (!slot)
		return;
	record.check = check_of(&record);
	*slot = record;
}

/* Returns the number of the calling thread, 0 if there is no room. */
static uint32_t this_thread(struct journal *j)
{
	int64_t tid = thread_id(false), now;

	for (size_t i = 0; i < j->thread_count; i++)
		if (OW_LIKELY(j->threads[i].tid == tid))
			return (uint32_t)i + 1;
	if (!vec_reserve(j->mem, j->threads, j->thread_cap, j->thread_count + 1))
		return 0;
	now = journal_now(j);
	j->threads[j->thread_count++] = (struct journal_thread){ tid, now };
	put(j, (struct journal_record){ .ts_ns = now,
					.value = tid,
					.thread = (uint32_t)j->thread_count,
					.kind = JOURNAL_THREAD });
	return (uint32_t)j->thread_count;
}

static uint32_t find_name(const struct journal *j, struct str text, uint64_t hash)
{
	struct map_iter it;

	for (it = map_find(&j->names, hash); it.value; it = map_next(&j->names, it))
		if (str_eq(j->texts[it.value], text))
			return it.value;
	return 0;
}

/* Writes a name; its text follows the record in the file. */
static void put_name(struct journal *j, uint32_t number, struct str text)
{
	uint64_t slots = journal_text_slots(text.len);
	struct journal_record *to = take_slots(j, slots + 1);
	struct journal_record record = { .ts_ns = journal_now(j),
					 .value = (int64_t)text.len,
					 .name = number,
					 .kind = JOURNAL_NAME };

	if (!to)
		return;
	memcpy(to + 1, text.ptr, text.len);
	record.check = crc32c_extend(check_of(&record), text.ptr, text.len);
	*to = record;
}

static uint32_t add_name(struct journal *j, struct str text, uint64_t hash)
{
	const char *copy = arena_cstr(&j->text_arena, text);
	size_t number = j->name_count + 1;

	if (!copy || !vec_reserve(j->mem, j->texts, j->name_cap, number + 1))
		return 0;
	if (number > UINT32_MAX || !map_add(&j->names, hash, (uint32_t)number))
		return 0;
	j->texts[number] = str_make(copy, text.len);
	j->name_count = number;
	put_name(j, (uint32_t)number, text);
	return (uint32_t)number;
}

static bool enter(struct journal *j)
{
	if (!journal_is_ours(j))
		return false;
	pthread_mutex_lock(&j->lock);
	return true;
}

static void leave(struct journal *j)
{
	pthread_mutex_unlock(&j->lock);
}

uint32_t journal_name(struct journal *j, struct str text)
{
	uint64_t hash;
	uint32_t number;

	text = str_first(text, utf8_valid_prefix(str_first(text, JOURNAL_TEXT_MAX)));
	hash = str_hash(text);
	if (!enter(j))
		return 0;
	number = find_name(j, text, hash);
	if (!number)
		number = add_name(j, text, hash);
	leave(j);
	return number;
}

void journal_name_thread(struct journal *j, uint32_t name)
{
	uint32_t thread;

	if (!enter(j))
		return;
	thread = this_thread(j);
	put(j, (struct journal_record){ .ts_ns = journal_now(j),
					.value = thread_id(false),
					.name = name,
					.thread = thread,
					.kind = JOURNAL_THREAD });
	leave(j);
}

/* Writes a slice; the lock must be held. */
static void put_slice(struct journal *j, uint32_t thread, uint32_t name, int64_t start, int64_t end)
{
	put(j, (struct journal_record){ .ts_ns = end,
					.value = end - start,
					.name = name,
					.thread = thread,
					.kind = JOURNAL_SLICE });
	if (thread)
		j->threads[thread - 1].last_ns = MAX(j->threads[thread - 1].last_ns, end);
}

void journal_mark(struct journal *j, uint32_t name)
{
	uint32_t thread;
	int64_t now;

	if (!enter(j))
		return;
	thread = this_thread(j);
	now = journal_now(j);
	put_slice(j, thread, name, thread ? j->threads[thread - 1].last_ns : now, now);
	leave(j);
}

void journal_slice(struct journal *j, uint32_t name, int64_t start_ns, int64_t end_ns)
{
	if (!enter(j))
		return;
	put_slice(j, this_thread(j), name, start_ns, MAX(start_ns, end_ns));
	leave(j);
}

int64_t journal_step(struct journal *j, int64_t number, int64_t start_ns)
{
	uint32_t thread;

	if (!enter(j))
		return number;
	thread = this_thread(j);
	if (number == INT64_MIN)
		number = j->next_step;
	j->next_step = number < INT64_MAX ? number + 1 : number;
	j->in_step = true;
	put(j,
	    (struct journal_record){
		    .ts_ns = start_ns, .value = number, .thread = thread, .kind = JOURNAL_STEP });
	if (thread)
		j->threads[thread - 1].last_ns = start_ns;
	leave(j);
	return number;
}

void journal_end_step(struct journal *j, bool drop)
{
	if (!enter(j))
		return;
	if (j->in_step) {
		put(j, (struct journal_record){ .ts_ns = journal_now(j),
						.value = drop,
						.thread = this_thread(j),
						.kind = JOURNAL_END });
		j->next_step -= drop;
	}
	j->in_step = false;
	leave(j);
}

void journal_value(struct journal *j, uint32_t name, double value)
{
	struct journal_record record = { .name = name, .kind = JOURNAL_VALUE };

	if (!enter(j))
		return;
	record.ts_ns = journal_now(j);
	record.thread = this_thread(j);
	memcpy(&record.value, &value, sizeof(value));
	put(j, record);
	leave(j);
}

static ow_status write_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			  struct ow_error *err)
{
	const struct journal *j = arg;

	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(j->fd, (const char *)bytes + done, len - done,
				   (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return error_errno(err, errno, "%s", j->path);
		done += n > 0 ? (size_t)n : 0;
	}
	return OW_OK;
}

/* Creates the file next to its final name first, because another process may use the file that
 * has the name now. */
static ow_status create(struct journal *j, const char *path, const char *writer,
			struct ow_error *err)
{
	struct atomic_path to;
	ow_status status;

	OW_TRY(atomic_path_find_regular(&to, path, "a recording", err));
	j->fd = atomic_path_open(&to, O_RDWR, 0666);
	if (j->fd < 0)
		return error_errno(err, errno, "%s", path);
	status = opw_put_header(&j->writer, writer, err);
	if (status == OW_OK)
		status = begin_segment(j, sizeof(struct opw_header),
				       FIRST_END - sizeof(struct opw_header), err);
	if (status == OW_OK)
		status = atomic_path_publish(&to, err);
	if (status != OW_OK)
		atomic_path_discard(&to);
	return status;
}

static void release(struct journal *j)
{
	bool ours = journal_is_ours(j);

	if (ours) /* a child process has no such mapping */
		unmap(j);
	if (j->fd >= 0)
		close(j->fd);
	opw_writer_release(&j->writer);
	mem_free(j->mem, j->threads, j->thread_cap * sizeof(*j->threads));
	mem_free(j->mem, j->texts, j->name_cap * sizeof(*j->texts));
	mem_free(j->mem, j->path, j->path_size);
	map_release(&j->names);
	arena_release(&j->text_arena);
	if (j->alive)
		munmap(j->alive, PAGE_MAX);
	pthread_mutex_destroy(&j->lock);
}

ow_status journal_open(struct journal *j, struct mem *mem, const char *path, const char *writer,
		       struct ow_error *err)
{
	ow_status status;

	*j = (struct journal){ .mem = mem,
			       .fd = -1,
			       .pid = getpid(),
			       .path_size = strlen(path) + 1,
			       .wall_ns = wall_offset() };
	thread_id(true);
	pthread_mutex_init(&j->lock, NULL);
	map_init(&j->names, mem);
	arena_init(&j->text_arena, mem);
	j->out = (struct opw_out){ write_at, j };
	opw_writer_init(&j->writer, mem, &j->out);
	j->alive = alive_new();
	j->path = mem_alloc(mem, j->path_size);
	if (j->path)
		memcpy(j->path, path, j->path_size);
	status = j->path ? create(j, path, writer, err) : error_no_memory(err);
	if (status != OW_OK)
		release(j);
	return status;
}

/* Cuts off an unfinished last segment; the footer follows the rest. */
static ow_status finish(struct journal *j, struct ow_error *err)
{
	struct opw_head head;
	struct opw_block block;
	uint64_t size;

	if (!j->slots)
		return OW_OK;
	make_heads(j->used, &head, &block);
	OW_TRY(keep_heads(j, &head, &block, err));
	memcpy((char *)j->slots - HEADS_BYTES + sizeof(head), &block, sizeof(block));
	memcpy((char *)j->slots - HEADS_BYTES, &head, sizeof(head));
	unmap(j);
	if (ftruncate(j->fd, (off_t)(j->at + head.size)) != 0)
		return error_errno(err, errno, "%s", j->path);
	j->writer.at = j->at + head.size;
	OW_TRY(opw_put_footer(&j->writer, &size, err));
	return fsync(j->fd) != 0 && errno != EINVAL ? error_errno(err, errno, "%s", j->path)
						    : OW_OK;
}

ow_status journal_close(struct journal *j, struct ow_error *err)
{
	ow_status status = OW_OK;

	if (enter(j)) {
		if (j->failure.status == OW_OK)
			status = finish(j, err);
		if (j->failure.status != OW_OK) {
			status = j->failure.status;
			if (err)
				*err = j->failure;
		}
		leave(j);
	}
	release(j);
	return status;
}
