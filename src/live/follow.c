/* follow.c: see follow.h: files, and where segments are in them. What they say is taken by follow_take.c, the cutting is in
 * follow_cut.c. */
#include "live/follow_int.h"

#include "base/error.h"
#include "wire/crc32c.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define SEGMENT_MAX ((uint64_t)1 << 30)
#define TURN_BYTES ((uint64_t)64 << 20)
#define FOLDER_BACK 3u /* files of a ring that are read before the last one */

/* ---- opening ---- */

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

/* It grows from here on. False without memory, and then it is closed. */
static bool add_file(struct follow *f, uint32_t number, int fd)
{
	void *list = f->files;

	if (!mem_grow(f->mem, &list, &f->file_cap, f->file_count + 1, sizeof(*f->files))) {
		close(fd);
		return false;
	}
	f->files = list;
	f->files[f->file_count++] = (struct follow_file){ number, fd };
	f->at = sizeof(struct opw_header);
	f->closed = f->caught_up = false;
	return true;
}

/* The file of a folder with the lowest number from `least` on, and the highest; false when there is none. */
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

static ow_status check_kind(const struct follow *f, struct error *err)
{
	char head[sizeof(struct opw_header) + sizeof(struct opw_head)];
	struct str bytes = { head, read_at(current_fd(f), 0, head, sizeof(head)) };

	if (memcmp(head, OPW_MAGIC, MIN(bytes.len, (size_t)8)) != 0)
		return error_set(err, OW_E_FORMAT,
				 "%s: no recording of opwatch; opwatch record or attach makes them",
				 f->path);
	if (bytes.len == sizeof(head) && !opw_starts_with(bytes, OPW_LIVE))
		return error_set(err, OW_E_FORMAT,
				 "%s: no recording of running programs; 'opwatch %s' shows it",
				 f->path, f->path);
	return OW_OK;
}

/* The last files of the ring of a job; it may have none yet. */
static ow_status begin_folder(struct follow *f, struct error *err)
{
	uint32_t first, last;
	int fd;

	if (!find_numbers(f, 0, &first, &last))
		return OW_OK;
	if (f->keep_ns != FOLLOW_ALL && last > first + FOLDER_BACK)
		first = last - FOLDER_BACK;
	fd = open_number(f, first);
	if (fd < 0)
		return OW_OK; /* it has just gone */
	return add_file(f, first, fd) ? OW_OK : error_no_memory(err);
}

static ow_status begin_file(struct follow *f, struct error *err)
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
		      struct error *err)
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

/* Files that are before this one, and no longer needed. */
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

/* ---- segments ---- */

enum found { NOT_YET, SEGMENT, BROKEN, END };

/* The head at f->at and its blocks, in f->heads. */
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

/* What was begun after the one that was read last. */
static ow_status next_file(struct follow *f, struct error *err)
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

/* Another file has the name, or this one was cut: from the start. */
static ow_status look_at_file(struct follow *f, struct error *err)
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

/* Segments of the file that grows, as far as they are there. False without memory. */
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

ow_status follow_turn(struct follow *f, struct error *err)
{
	bool good = true;
	int before = -1;

	/* A folder goes on in another file when one was read to its end. */
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
