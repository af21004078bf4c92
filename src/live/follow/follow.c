/*
 * follow.c: opens a growing recording or a folder of recordings, and finds new segments; follow_state.c keeps what later
 * segments need from them. It never waits for the writer.
 *
 * Also here: a part of what was followed, written as a recording of its own, and the recent past of a job's ring (cut_ring).
 * The first segment of a part repeats what was known when it begins (processes, names, threads); then come the records.
 * Stacks get new numbers, because a part may span several files with numbers of their own.
 */
#include "live/follow/follow_int.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/vec.h"
#include "live/follow/follow.h"
#include "live/record/recording.h"
#include "wire/container/crc32c.h"

#include "opwatch_config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENT_MAX ((uint64_t)1 << 30)
#define TURN_BYTES ((uint64_t)64 << 20)
#define FOLDER_BACK 3u /* number of ring files that are read before the last one */

static int open_regular(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	return fd;
}

static int current_fd(const struct follow *f)
{
	return f->file_count ? f->files[f->file_count - 1].fd : -1;
}

static int fd_of(const struct follow *f, uint32_t file)
{
	for (size_t i = f->file_count; i-- > 0;)
		if (f->files[i].number == file)
			return f->files[i].fd;
	return -1;
}

/* Adds a file, which grows from here on. Without memory returns false and closes it. */
static bool add_file(struct follow *f, uint32_t number, int fd)
{
	if (!vec_reserve(f->mem, f->files, f->file_cap, f->file_count + 1)) {
		close(fd);
		return false;
	}
	f->files[f->file_count++] = (struct follow_file){ number, fd };
	f->at = sizeof(struct opw_header);
	f->closed = f->caught_up = false;
	return true;
}

/* Finds the lowest file number from `least` on, and the highest; false if there is none. */
static bool find_numbers(const struct follow *f, uint32_t least, uint32_t *next, uint32_t *last)
{
	DIR *dir = opendir(f->path);
	const struct dirent *entry;

	*next = UINT32_MAX;
	*last = 0;
	while (dir && (entry = readdir(dir))) {
		struct str name = str_from(entry->d_name);
		int64_t number;

		if (!str_ends(name, STR(".opw")) ||
		    !str_to_i64(str_first(name, name.len - 4), &number) || number < least ||
		    number >= UINT32_MAX)
			continue;
		*next = MIN(*next, (uint32_t)number);
		*last = MAX(*last, (uint32_t)number);
	}
	if (dir)
		closedir(dir);
	return *next != UINT32_MAX;
}

static int open_number(const struct follow *f, uint32_t number)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%06u.opw", f->path, number) >= (int)sizeof(path))
		return -1;
	return open_regular(path, &st);
}

static size_t read_at(int fd, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static uint64_t size_now(const struct follow *f)
{
	struct stat st;

	return f->file_count && fstat(current_fd(f), &st) == 0 && st.st_size > 0
		       ? (uint64_t)st.st_size
		       : 0;
}

static ow_status check_kind(const struct follow *f, struct ow_error *err)
{
	char head[sizeof(struct opw_header) + sizeof(struct opw_head)];
	struct str bytes = { head, read_at(current_fd(f), 0, head, sizeof(head)) };

	if (memcmp(head, OPW_MAGIC, MIN(bytes.len, (size_t)8)) != 0)
		return error_set(err, OW_E_FORMAT,
				 "%s: not an opwatch recording; 'opwatch record' and 'opwatch "
				 "attach' make them",
				 f->path);
	if (bytes.len == sizeof(head) && !opw_starts_with(bytes, OPW_LIVE))
		return error_set(err, OW_E_FORMAT,
				 "%s: not a recording of running programs; 'opwatch %s' shows it",
				 f->path, f->path);
	return OW_OK;
}

/* Opens the last files of a job's ring, which may have none yet. */
static ow_status begin_folder(struct follow *f, struct ow_error *err)
{
	uint32_t first, last;
	int fd;

	if (!find_numbers(f, 0, &first, &last))
		return OW_OK;
	if (f->keep_ns != FOLLOW_ALL && last > first + FOLDER_BACK)
		first = last - FOLDER_BACK;
	fd = open_number(f, first);
	if (fd < 0)
		return OW_OK; /* the file was removed just now */
	return add_file(f, first, fd) ? OW_OK : error_no_memory(err);
}

static ow_status begin_file(struct follow *f, struct ow_error *err)
{
	struct stat st;
	int fd = open_regular(f->path, &st);

	if (fd < 0)
		return error_errno(err, errno, "%s", f->path);
	f->device = st.st_dev;
	f->inode = st.st_ino;
	if (!add_file(f, 0, fd))
		return error_no_memory(err);
	return check_kind(f, err);
}

ow_status follow_open(struct follow *f, struct mem *mem, const char *path, int64_t keep_ns,
		      struct ow_error *err)
{
	struct stat st;
	ow_status status;

	*f = (struct follow){ .mem = mem,
			      .path_size = strlen(path) + 1,
			      .at = sizeof(struct opw_header),
			      .newest_ns = INT64_MIN,
			      .newest_sample_ns = INT64_MIN,
			      .forgotten_ns = INT64_MIN,
			      .keep_ns = keep_ns };
	buf_init(&f->block, mem);
	buf_init(&f->heads, mem);
	f->path = mem_alloc(mem, f->path_size);
	if (!f->path)
		return error_no_memory(err);
	memcpy(f->path, path, f->path_size);
	f->folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	status = f->folder ? begin_folder(f, err) : begin_file(f, err);
	if (status != OW_OK)
		follow_release(f);
	return status;
}

/* Closes the first `count` files, which are no longer needed. */
void follow_close_files(struct follow *f, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(f->files[i].fd);
	f->file_count -= count;
	if (f->file_count)
		memmove(f->files, f->files + count, f->file_count * sizeof(*f->files));
}

static void forget_all(struct follow *f)
{
	follow_forget(f);
	f->at = sizeof(struct opw_header);
	f->has_session = f->closed = f->removed = f->caught_up = false;
}

void follow_release(struct follow *f)
{
	forget_all(f);
	mem_free(f->mem, f->processes, f->process_cap * sizeof(*f->processes));
	mem_free(f->mem, f->rings, f->ring_cap * sizeof(*f->rings));
	mem_free(f->mem, f->segments, f->segment_cap * sizeof(*f->segments));
	mem_free(f->mem, f->path, f->path_size);
	buf_release(&f->block);
	buf_release(&f->heads);
	mem_free(f->mem, f->stacks, f->stacks_cap * sizeof(*f->stacks));
	follow_close_files(f, f->file_count);
	mem_free(f->mem, f->files, f->file_cap * sizeof(*f->files));
	f->files = NULL;
	f->file_cap = 0;
	f->path = NULL;
	f->processes = NULL;
	f->rings = NULL;
	f->segments = NULL;
	f->stacks = NULL;
	f->process_cap = f->ring_cap = f->segment_cap = f->stacks_cap = 0;
}

enum found { NOT_YET, SEGMENT, BROKEN, END };

/* Reads the head at f->at and its blocks into f->heads. */
static enum found read_head(struct follow *f, uint64_t size, struct opw_head *head, bool *good)
{
	size_t blocks;
	uint32_t crc;

	if (size < f->at + sizeof(*head) ||
	    read_at(current_fd(f), f->at, head, sizeof(*head)) != sizeof(*head) ||
	    memcmp(head->magic, OPW_SEGMENT_MAGIC, sizeof(head->magic)) != 0 ||
	    head->block_count > OPW_BLOCKS_MAX)
		return NOT_YET;
	blocks = head->block_count * sizeof(struct opw_block);
	if (head->size < sizeof(*head) + blocks || head->size % OPW_ALIGN ||
	    head->size > size - f->at)
		return NOT_YET;
	buf_clear(&f->heads);
	if (!buf_reserve(&f->heads, blocks + 1)) {
		*good = false;
		return NOT_YET;
	}
	if (read_at(current_fd(f), f->at + sizeof(*head), f->heads.ptr, blocks) != blocks)
		return NOT_YET;
	f->heads.len = blocks;
	crc = head->crc;
	head->crc = 0;
	if (!opw_same_crc(crc32c_extend(crc32c(head, sizeof(*head)), f->heads.ptr, blocks), crc))
		return NOT_YET;
	return head->kind == OPW_FOOTER ? END : head->kind == OPW_LIVE ? SEGMENT : BROKEN;
}

bool follow_read(const struct follow *f, const struct follow_segment *segment, struct buf *to)
{
	int fd = fd_of(f, segment->file);

	buf_clear(to);
	if (fd < 0 || segment->size > SEGMENT_MAX)
		return true;
	if (!buf_reserve(to, (size_t)segment->size))
		return false;
	if (read_at(fd, segment->offset, to->ptr, (size_t)segment->size) == segment->size)
		to->len = (size_t)segment->size;
	return true;
}

static bool take_segment(struct follow *f, const struct opw_head *head)
{
	struct follow_segment segment = { .offset = f->at,
					  .size = head->size,
					  .file = f->files[f->file_count - 1].number };
	struct str blocks[LIVE_BLOCKS];

	if (!follow_read(f, &segment, &f->block))
		return false;
	f->damaged += !live_blocks_find(buf_str(&f->block), (1u << LIVE_BLOCKS) - 1, blocks);
	return follow_take(f, &segment, blocks);
}

/* Opens the file that was begun after the last one read. */
static ow_status next_file(struct follow *f, struct ow_error *err)
{
	uint32_t number = f->file_count ? f->files[f->file_count - 1].number + 1 : 0, next, last;
	struct stat st;
	int fd;

	f->removed = stat(f->path, &st) != 0;
	if (!(f->caught_up || !f->file_count) || !find_numbers(f, number, &next, &last))
		return OW_OK;
	fd = open_number(f, next);
	return fd < 0 || add_file(f, next, fd) ? OW_OK : error_no_memory(err);
}

/* Starts over if another file has the name now, or this file was cut. */
static ow_status look_at_file(struct follow *f, struct ow_error *err)
{
	struct stat st, now;
	int fd;

	if (f->folder)
		return next_file(f, err);
	f->removed = stat(f->path, &st) != 0;
	if (f->removed || (st.st_dev == f->device && st.st_ino == f->inode)) {
		if (size_now(f) >= f->at || !(f->segment_count + f->first_segment))
			return OW_OK;
		forget_all(f);
		f->restarts++;
		return OW_OK;
	}
	fd = open_regular(f->path, &now);
	if (fd < 0)
		return OW_OK;
	forget_all(f);
	follow_close_files(f, f->file_count);
	f->restarts++;
	f->device = now.st_dev;
	f->inode = now.st_ino;
	return add_file(f, 0, fd) ? OW_OK : error_no_memory(err);
}

/* Reads complete segments of the growing file. False if memory runs out. */
static bool read_new(struct follow *f)
{
	uint64_t size = size_now(f), begin = f->at;
	bool good = true;

	f->caught_up = false;
	while (good && !f->closed && f->at - begin < TURN_BYTES) {
		struct opw_head head;
		enum found found = read_head(f, size, &head, &good);

		if (found == NOT_YET) {
			f->caught_up = good;
			break;
		}
		if (found == SEGMENT)
			good = take_segment(f, &head);
		f->damaged += found == BROKEN;
		f->closed = found == END;
		if (good)
			f->at += head.size;
	}
	f->caught_up |= f->closed;
	return good;
}

ow_status follow_turn(struct follow *f, struct ow_error *err)
{
	bool good = true;
	int before = -1;

	/* a folder continues with the next file when one was read to its end */
	for (bool first = true; good; first = false) {
		OW_TRY(look_at_file(f, err));
		if (!first && current_fd(f) == before)
			break;
		before = current_fd(f);
		good = read_new(f);
		if (!f->folder || !f->caught_up)
			break;
	}
	follow_trim(f);
	return good ? OW_OK : error_no_memory(err);
}

int64_t follow_wall(const struct follow *f, int64_t monotonic_ns)
{
	int64_t offset, wall;

	if (__builtin_sub_overflow(f->session.wall_ns, f->session.monotonic_ns, &offset) ||
	    __builtin_add_overflow(monotonic_ns, offset, &wall))
		return 0;
	return wall;
}

#define NUMBER_MAX ((uint32_t)1 << 23)
#define WRITER "opwatch"
/* rates need one earlier value, so counters are kept this long before the cut */
#define COUNTS_BEFORE_NS ((int64_t)2000000000)

/* Maps numbers in a file to numbers in the copy; 0: not known. */
struct stack_numbers {
	uint32_t *items;
	size_t cap;
};

struct stack_copy {
	struct stack_names table;
	struct stack_numbers texts, frames, stacks;
};

static void stack_copy_init(struct stack_copy *c, struct mem *mem, struct recording *to)
{
	*c = (struct stack_copy){ 0 };
	stack_names_init(&c->table, mem, to);
}

static void release_numbers(struct stack_copy *c, struct stack_numbers *n)
{
	mem_free(c->table.mem, n->items, n->cap * sizeof(*n->items));
	*n = (struct stack_numbers){ 0 };
}

/* Prepares for data of another file. */
static void stack_copy_begin_file(struct stack_copy *c)
{
	release_numbers(c, &c->texts);
	release_numbers(c, &c->frames);
	release_numbers(c, &c->stacks);
}

static void stack_copy_release(struct stack_copy *c)
{
	stack_copy_begin_file(c);
	stack_names_release(&c->table);
}

static uint32_t get_number(const struct stack_numbers *n, uint32_t number)
{
	return number < n->cap ? n->items[number] : 0;
}

static bool put_number(struct stack_copy *c, struct stack_numbers *n, uint32_t number,
		       uint32_t value)
{
	void *items = n->items;
	size_t old = n->cap;

	if (!value)
		return false; /* memory ran out */
	if (number >= old) {
		if (!mem_grow(c->table.mem, &items, &n->cap, (size_t)number + 1, sizeof(*n->items)))
			return false;
		n->items = items;
		memset(n->items + old, 0, (n->cap - old) * sizeof(*n->items));
	}
	n->items[number] = value;
	return true;
}

/* Copies a text; false if memory runs out. Damaged numbers are left out. */
static bool stack_copy_text(struct stack_copy *c, uint32_t number, struct str text)
{
	return !number || number > NUMBER_MAX ||
	       put_number(c, &c->texts, number, stack_names_text(&c->table, text));
}

static bool stack_copy_frame(struct stack_copy *c, const struct live_frame *row)
{
	struct live_frame copy = *row;

	copy.function = get_number(&c->texts, row->function);
	copy.file = get_number(&c->texts, row->file);
	if (!row->number || row->number > NUMBER_MAX || !copy.function || !copy.file)
		return true;
	return put_number(c, &c->frames, row->number, stack_names_frame(&c->table, &copy));
}

static bool stack_copy_stack(struct stack_copy *c, const struct live_stack *row)
{
	uint32_t parent = get_number(&c->stacks, row->parent),
		 frame = get_number(&c->frames, row->frame);

	if (!row->number || row->number > NUMBER_MAX || !frame || (row->parent && !parent))
		return true;
	return put_number(c, &c->stacks, row->number, stack_names_stack(&c->table, parent, frame));
}

/* Returns a stack's number in the copy; 0: not known. */
static uint32_t stack_copy_number(const struct stack_copy *c, uint32_t number)
{
	return get_number(&c->stacks, number);
}

struct cutting {
	struct follow *f;
	struct follow_range *range;
	size_t first, last; /* range of segments: [first, last) */
	struct recording out;
	struct stack_copy stacks;
	const struct follow_stacks *numbers; /* stacks whose numbers are known in the copy */
	struct buf bytes;		     /* bytes of a segment */
	struct str blocks[LIVE_BLOCKS];	     /* blocks of the segment */
};

/* Returns whether a process is wanted: in an exact cut only if it has records. */
static bool is_wanted(const struct cutting *c, uint32_t number)
{
	const struct follow_process *p;

	if (!c->range->exact)
		return true;
	p = follow_process(c->f, number);
	return p && p->last_ns >= c->range->from_ns;
}

static bool is_before(const struct cutting *c, uint64_t segment)
{
	return segment < c->f->first_segment + c->first;
}

static void restate_process(struct cutting *c, const struct follow_process *p)
{
	struct str rest = buf_str(&p->texts), text;
	struct live_text head;
	uint64_t segment;

	if (!is_before(c, p->segment) || !is_wanted(c, p->row.number))
		return;
	recording_add_process(&c->out, &p->row);
	while (rest.len >= sizeof(segment)) {
		memcpy(&segment, rest.ptr, sizeof(segment));
		rest = str_skip(rest, sizeof(segment));
		if (!live_text_next(&rest, &head, &text))
			return;
		if (is_before(c, segment))
			recording_add_text(&c->out, head.process, (enum live_text_kind)head.kind,
					   head.number, text);
	}
}

static int by_number(const void *a, const void *b)
{
	const struct follow_mark *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static bool restate_ring(struct cutting *c, const struct follow_ring *ring)
{
	struct follow_mark marks[FOLLOW_QUEUES + 1];
	const struct follow_mark *thread = NULL;
	size_t count = 0;

	if (!is_wanted(c, ring->process))
		return true;
	for (uint32_t i = 0; i < MIN(ring->thread_count, (uint32_t)FOLLOW_THREADS); i++)
		if (is_before(c, ring->threads[i].segment) &&
		    (!thread || thread->number < ring->threads[i].number))
			thread = &ring->threads[i];
	if (thread)
		marks[count++] = *thread;
	for (uint32_t i = 0; i < MIN(ring->queue_count, (uint32_t)FOLLOW_QUEUES); i++)
		if (is_before(c, ring->queues[i].segment))
			marks[count++] = ring->queues[i];
	if (!count)
		return true;
	qsort(marks, count, sizeof(*marks), by_number);
	for (size_t i = 0; i < count; i++) {
		struct live_run run = { .process = ring->process,
					.ring = ring->ring,
					.first = marks[i].number,
					.count = 1 };
		struct ring_record *to = recording_add_run(&c->out, &run);

		if (!to)
			return false;
		*to = marks[i].record;
	}
	return true;
}

static bool take_sources(struct cutting *c, struct str block)
{
	struct live_text head;
	struct str text;

	while (live_text_next(&block, &head, &text))
		if (!head.process && head.kind == LIVE_SOURCE &&
		    !stack_copy_text(&c->stacks, head.number, text))
			return false;
	return true;
}

static bool take_stacks(struct cutting *c, struct str frames, struct str stacks)
{
	bool good = true;

	LIVE_EACH_ROW(frames, struct live_frame, row, good &= stack_copy_frame(&c->stacks, &row));
	LIVE_EACH_ROW(stacks, struct live_stack, row, good &= stack_copy_stack(&c->stacks, &row));
	return good;
}

/* Finds the stack numbers of the segment's samples; those written before the cut are not in its
 * blocks. */
static bool begin_numbers(struct cutting *c, size_t segment)
{
	const struct follow_segment *s = &c->f->segments[segment];
	const struct follow_stacks *numbers = follow_stacks_of(c->f, segment);

	if (numbers == c->numbers)
		return true;
	stack_copy_begin_file(&c->stacks);
	c->numbers = numbers;
	if (!numbers)
		return true;
	return take_sources(c, str_first(buf_str(&numbers->texts), s->texts)) &&
	       take_stacks(c, str_first(buf_str(&numbers->frames), s->frames),
			   str_first(buf_str(&numbers->stacks), s->stacks));
}

static bool put_samples(struct cutting *c)
{
	if (!take_sources(c, c->blocks[LIVE_BLOCK_TEXT]) ||
	    !take_stacks(c, c->blocks[LIVE_BLOCK_FRAME], c->blocks[LIVE_BLOCK_STACK]))
		return false;
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_SAMPLE], struct live_sample, row, {
		row.stack = stack_copy_number(&c->stacks, row.stack);
		if (!row.stack || !is_wanted(c, row.process) ||
		    (c->range->exact && row.ts_ns < c->range->from_ns))
			continue;
		recording_add_sample(&c->out, &row);
		c->range->samples++;
		c->range->first_ns = MIN(c->range->first_ns, row.ts_ns);
	});
	return true;
}

static bool add_run(struct cutting *c, const struct live_run *run, uint32_t first, uint32_t end,
		    const char *records)
{
	struct live_run piece = *run;
	struct ring_record *to;

	piece.first += first;
	piece.count = end - first;
	to = recording_add_run(&c->out, &piece);
	if (to)
		memcpy(to, records + (size_t)first * sizeof(*to), piece.count * sizeof(*to));
	return to != NULL;
}

/* Returns whether a record is dropped because it ended before the cut; records that name threads
 * and queues are kept. */
static bool is_old(struct cutting *c, const char *record)
{
	struct ring_record r;
	int64_t end;

	memcpy(&r, record, sizeof(r));
	if (!follow_slice_end(&r, &end))
		return false;
	if (end < c->range->from_ns)
		return true;
	c->range->first_ns = MIN(c->range->first_ns, (int64_t)r.start_ns);
	return false;
}

/* Writes each wanted piece of a run as a run of its own; the rest keeps its numbers. */
static bool put_pieces(struct cutting *c, const struct live_run *run, const char *records)
{
	for (uint32_t i = 0, end; i < run->count; i = end + 1) {
		for (end = i; end < run->count; end++)
			if (is_old(c, records + (size_t)end * sizeof(struct ring_record)))
				break;
		if (end > i && !add_run(c, run, i, end, records))
			return false;
		c->range->records += end - i;
	}
	return true;
}

static bool put_runs(struct cutting *c)
{
	struct str records = c->blocks[LIVE_BLOCK_RECORD];
	uint64_t first = c->f->first_segment + c->first;

	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_RUN], struct live_run, run, {
		struct follow_drop before =
			follow_dropped_before(c->f, run.process, run.ring, first);

		if (run.count > records.len / sizeof(struct ring_record))
			return true; /* the block is damaged */
		run.dropped -= MIN(run.dropped, before.dropped);
		run.dropped_marks -= MIN(run.dropped_marks, before.marks);
		if (is_wanted(c, run.process) &&
		    !(c->range->exact ? put_pieces(c, &run, records.ptr)
				      : add_run(c, &run, 0, run.count, records.ptr)))
			return false;
		records = str_skip(records, run.count * sizeof(struct ring_record));
	});
	return true;
}

static void put_texts(struct cutting *c)
{
	struct str rest = c->blocks[LIVE_BLOCK_TEXT], text;
	struct live_text head;

	while (live_text_next(&rest, &head, &text))
		if (head.process ? is_wanted(c, head.process) : head.kind != LIVE_SOURCE)
			recording_add_text(&c->out, head.process, (enum live_text_kind)head.kind,
					   head.number, text);
}

static void put_rest(struct cutting *c)
{
	int64_t from = c->range->exact ? c->range->from_ns : INT64_MIN;

	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_PROCESS], struct live_process, row, {
		if (is_wanted(c, row.number))
			recording_add_process(&c->out, &row);
	});
	put_texts(c);
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_PLACE], struct live_place, row, {
		if (is_wanted(c, row.process))
			recording_add_place(&c->out, &row);
	});
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_COUNT], struct live_count, row, {
		if (is_wanted(c, row.process) &&
		    (from == INT64_MIN || row.ts_ns >= from - COUNTS_BEFORE_NS))
			recording_add_count(&c->out, &row);
	});
	LIVE_EACH_ROW(c->blocks[LIVE_BLOCK_END], struct live_end, row, {
		if (is_wanted(c, row.process))
			recording_add_end(&c->out, &row);
	});
}

static ow_status put_restated(struct cutting *c, struct ow_error *err)
{
	for (size_t i = 0; i < c->f->process_count; i++)
		restate_process(c, &c->f->processes[i]);
	for (size_t i = 0; i < c->f->ring_count; i++)
		if (!restate_ring(c, &c->f->rings[i]))
			return error_no_memory(err);
	return recording_flush(&c->out, err);
}

static ow_status put_segment(struct cutting *c, size_t segment, struct ow_error *err)
{
	bool samples = !c->range->no_samples;
	unsigned wanted = (1u << LIVE_BLOCKS) - 1;

	if (!samples)
		wanted &= ~(1u << LIVE_BLOCK_FRAME | 1u << LIVE_BLOCK_STACK |
			    1u << LIVE_BLOCK_SAMPLE);
	if (!follow_read(c->f, &c->f->segments[segment], &c->bytes))
		return error_no_memory(err);
	(void)live_blocks_find(buf_str(&c->bytes), wanted,
			       c->blocks); /* the part of the block that is kept */
	put_rest(c);
	if (!put_runs(c) || (samples && (!begin_numbers(c, segment) || !put_samples(c))))
		return error_no_memory(err);
	return recording_flush(&c->out, err);
}

static bool has_since(const struct follow_segment *s, const struct follow_range *range, int64_t ns)
{
	return s->last_ns >= ns || (!range->no_samples && s->last_sample_ns >= ns);
}

/* Chooses the segments: from the last one with data before `to` back to the first one that is
 * wanted or fits. */
static void choose_segments(struct cutting *c)
{
	const struct follow *f = c->f;
	struct follow_range *range = c->range;
	int64_t from = range->from_ns;
	uint64_t bytes = 0;

	if (range->exact && from > INT64_MIN + COUNTS_BEFORE_NS)
		from -= COUNTS_BEFORE_NS;
	c->last = f->segment_count;
	while (c->last && f->segments[c->last - 1].first_ns > range->to_ns)
		c->last--;
	/* records of several threads are not written in the order of their times */
	while (c->first < c->last && !has_since(&f->segments[c->first], range, from))
		c->first++;
	for (size_t i = c->last; range->bytes_max && i-- > c->first;) {
		bytes += f->segments[i].size;
		if (bytes > range->bytes_max && i + 1 < c->last)
			c->first = i + 1;
	}
}

static void count_chosen(struct cutting *c)
{
	const struct follow *f = c->f;
	struct follow_range *range = c->range;

	range->begin_ns = range->first_ns = INT64_MAX;
	range->records = range->samples = 0;
	for (size_t i = c->first; i < c->last && !range->exact; i++)
		range->records += f->segments[i].records;
	/* slices are written when they end, so those that ended before the first segment are
	 * missing */
	if (c->first < c->last)
		range->begin_ns = c->first ? f->segments[c->first - 1].last_ns : f->forgotten_ns;
}

ow_status follow_cut(struct follow *f, struct follow_range *range, const struct opw_out *out,
		     const char *writer_name, struct ow_error *err)
{
	struct cutting c = { .f = f, .range = range };
	ow_status status, closed;

	choose_segments(&c);
	count_chosen(&c);
	OW_TRY(recording_open_out(&c.out, f->mem, out, writer_name,
				  f->has_session ? &f->session : NULL, err));
	buf_init(&c.bytes, f->mem);
	stack_copy_init(&c.stacks, f->mem, &c.out);
	status = put_restated(&c, err);
	for (size_t i = c.first; i < c.last && status == OW_OK; i++)
		status = put_segment(&c, i, err);
	stack_copy_release(&c.stacks);
	buf_release(&c.bytes);
	closed = recording_close(&c.out, status == OW_OK ? err : NULL);
	return status != OW_OK ? status : closed;
}

static ow_status write_buf(void *arg, uint64_t offset, const void *bytes, size_t len,
			   struct ow_error *err)
{
	struct buf *to = arg;

	if (offset + len > to->len) {
		if (!buf_reserve(to, (size_t)(offset + len) - to->len))
			return error_no_memory(err);
		memset(to->ptr + to->len, 0, (size_t)(offset + len) - to->len);
		to->len = (size_t)(offset + len);
	}
	memcpy(to->ptr + offset, bytes, len);
	return OW_OK;
}

ow_status follow_cut_buf(struct follow *f, struct follow_range *range, struct buf *to,
			 struct ow_error *err)
{
	struct opw_out out = { write_buf, to };

	buf_clear(to);
	return follow_cut(f, range, &out, WRITER, err);
}

static ow_status read_ring(struct follow *f, struct ow_error *err)
{
	do
		OW_TRY(follow_turn(f, err));
	while (!f->caught_up && f->file_count);
	return OW_OK;
}

static uint32_t count_processes(const struct follow *f, int64_t from_ns)
{
	uint32_t count = 0;

	for (size_t i = 0; i < f->process_count; i++)
		count += f->processes[i].last_ns > INT64_MIN && f->processes[i].last_ns >= from_ns;
	return count;
}

static ow_status nothing_there(const struct cut *cut, struct ow_error *err)
{
	return error_set(err, OW_E_EMPTY, "job %s: nothing was recorded%s", cut->job->name,
			 cut->from_ns ? " in that time" : " yet");
}

static ow_status write_part_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			       struct ow_error *err)
{
	(void)err; /* atomic_finish reports the error */
	return atomic_write_at(arg, offset, bytes, len) ? OW_OK : OW_E_IO;
}

/* Builds the file in memory first, for outputs that can only be written from front to back. */
static ow_status write_in_order(struct follow *f, struct follow_range *range,
				struct atomic_file *file, struct ow_error *err)
{
	struct buf whole;
	ow_status status;

	buf_init(&whole, f->mem);
	status = follow_cut_buf(f, range, &whole, err);
	if (status == OW_OK)
		(void)!atomic_write(file, whole.ptr,
				    whole.len); /* atomic_finish reports the error */
	buf_release(&whole);
	return status;
}

ow_status follow_save(struct follow *f, struct follow_range *range, const char *path,
		      struct ow_error *err)
{
	struct atomic_file file;
	struct opw_out out = { write_part_at, &file };
	ow_status status;

	OW_TRY(atomic_open(&file, f->mem, path, err));
	if (!file.seekable)
		return atomic_finish(&file, write_in_order(f, range, &file, err), err);
	status = fchmod(file.fd, 0600) == 0 ? OW_OK : error_errno(err, errno, "%s", path);
	if (status == OW_OK)
		status = follow_cut(f, range, &out, "opwatch " OPWATCH_VERSION, err);
	return atomic_finish(&file, status, err);
}

static ow_status cut_followed(const struct cut *cut, struct follow *f, struct cut_summary *summary,
			      struct ow_error *err)
{
	int64_t newest = MAX(f->newest_ns, f->newest_sample_ns);
	struct follow_range range = { .from_ns = INT64_MIN, .to_ns = INT64_MAX, .exact = true };

	if (cut->from_ns)
		range.from_ns = cut->from_ns;
	else if (cut->last_ns && newest > 0)
		range.from_ns = newest - cut->last_ns;
	summary->files = (uint32_t)f->file_count;
	summary->processes = count_processes(f, range.from_ns);
	if (!f->has_session || !summary->processes)
		return nothing_there(cut, err);
	OW_TRY(follow_save(f, &range, cut->out_path, err));
	summary->records = range.records;
	summary->samples = range.samples;
	summary->covers_ns = newest - range.first_ns;
	return OW_OK;
}

ow_status cut_ring(const struct cut *cut, struct mem *mem, struct cut_summary *summary,
		   struct ow_error *err)
{
	struct follow follow;
	ow_status status;

	*summary = (struct cut_summary){ 0 };
	OW_TRY(follow_open(&follow, mem, cut->job->folder, FOLLOW_ALL, err));
	status = read_ring(&follow, err);
	if (status == OW_OK)
		status = cut_followed(cut, &follow, summary, err);
	follow_release(&follow);
	return status;
}
