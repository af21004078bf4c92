/*
 * proc.c: everything that opwatch reads about other processes: files below /proc, and their memory
 * (process_vm_readv). Used by all of src/live. A process may end at any time, so every call may fail; nothing is
 * written and nothing is stopped.
 */
#include "live/proc/proc.h"

#include "base/input.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_FILE ((size_t)64 << 20)
#define DESCRIPTORS_LOOKED_AT 256 /* number of descriptors that are examined per second */

static ssize_t read_some(int fd, char *to, size_t len)
{
	ssize_t got;

	do
		got = read(fd, to, len);
	while (got < 0 && errno == EINTR);
	return got;
}

static bool read_whole(struct buf *to, int fd)
{
	ssize_t got = -1;

	if (fd < 0)
		return false;
	while (to->len < MAX_FILE && buf_reserve(to, 16 << 10)) {
		got = read_some(fd, to->ptr + to->len, 16 << 10);
		if (got <= 0)
			break;
		to->len += (size_t)got;
	}
	close(fd);
	return got >= 0 && !to->failed;
}

bool proc_read_file(struct buf *to, const char *path)
{
	return read_whole(to, open(path, O_RDONLY | O_CLOEXEC));
}

bool proc_read_job_file(struct buf *to, const char *path)
{
	return read_whole(to, open_regular_file(path));
}

size_t proc_read_text(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = 0;

	to[0] = 0;
	if (fd < 0)
		return 0;
	while (len + 1 < size && (got = read_some(fd, to + len, size - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	to[len] = 0;
	return got < 0 ? 0 : len;
}

#define TASK_EXITS 4 /* the kernel's flag PF_EXITING */

/* Parses a stat line. The name may contain blanks and brackets, so the last bracket ends it. */
static bool parse_stat(char *text, struct proc_stat *stat)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')'), *at;
	uint64_t field[50] = { 0 };
	size_t len;

	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return false;
	len = MIN((size_t)(close - open - 1), sizeof(stat->name) - 1);
	memcpy(stat->name, open + 1, len);
	stat->name[len] = 0;
	stat->state = close[2];
	at = close + 3;
	for (size_t i = 4; i < ARRAY_COUNT(field) && *at; i++)
		field[i] = (uint64_t)strtoll(at, &at, 10);
	stat->parent = (pid_t)field[4];
	stat->exits = field[9] & TASK_EXITS;
	stat->minor_faults = field[10];
	stat->major_faults = field[12];
	stat->user_ticks = field[14];
	stat->system_ticks = field[15];
	stat->threads = (uint32_t)field[20];
	stat->start_ticks = field[22];
	stat->processor = (uint32_t)field[39];
	stat->policy = (uint32_t)field[41];
	stat->io_wait_ticks = field[42];
	return true;
}

bool proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *stat)
{
	char path[64], text[1024];

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return proc_read_text(path, text, sizeof(text)) && parse_stat(text, stat);
}

bool proc_owner(pid_t pid, uid_t *uid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) != 0)
		return false;
	*uid = st.st_uid;
	return true;
}

int64_t proc_status_number(pid_t pid, const char *name)
{
	char path[64], text[4096];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (!proc_read_text(path, text, sizeof(text)))
		return -1;
	for (at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, name, strlen(name)) == 0)
			return strtoll(at + strlen(name), NULL, 10);
	}
	return -1;
}

ow_status proc_check_first(pid_t pid, struct ow_error *err)
{
	int64_t process = proc_status_number(pid, "Tgid:");

	if (process <= 0 || process == pid)
		return OW_OK;
	return error_set(err, OW_E_NOT_FOUND,
			 "%d is not a process but a thread of process %" PRId64 ": use that number",
			 (int)pid, process);
}

void pid_list_release(struct pid_list *list)
{
	mem_free(list->mem, list->items, list->cap * sizeof(*list->items));
	*list = (struct pid_list){ .mem = list->mem };
}

bool pid_list_add(struct pid_list *list, pid_t pid)
{
	return vec_push(list->mem, list->items, list->count, list->cap, pid);
}

bool pid_list_has(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i] == pid)
			return true;
	return false;
}

bool proc_threads(pid_t pid, struct pid_list *list)
{
	const struct dirent *entry;
	char path[64];
	bool good = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return true;
	while (good && (entry = readdir(dir))) {
		int64_t tid;

		if (str_to_i64(str_from(entry->d_name), &tid) && tid > 0 && tid < INT32_MAX)
			good = pid_list_add(list, (pid_t)tid);
	}
	closedir(dir);
	return good;
}

static bool add_children(pid_t pid, pid_t tid, struct pid_list *list)
{
	char path[96], text[4096], *at = text;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
	if (!proc_read_text(path, text, sizeof(text)))
		return true;
	for (;;) {
		char *end;
		long child = strtol(at, &end, 10);

		if (end == at || child <= 0 || child > INT32_MAX)
			return true;
		at = end;
		if (!pid_list_has(list, (pid_t)child) && !pid_list_add(list, (pid_t)child))
			return false;
	}
}

bool proc_descendants(pid_t pid, struct pid_list *list)
{
	struct pid_list threads = { .mem = list->mem };
	size_t next = list->count;
	bool good = true;

	for (;;) {
		threads.count = 0;
		good = proc_threads(pid, &threads);
		for (size_t i = 0; good && i < threads.count; i++)
			good = add_children(pid, threads.items[i], list);
		if (!good || next >= list->count)
			break;
		pid = list->items[next++];
	}
	pid_list_release(&threads);
	return good;
}

static bool parse_map(struct str line, struct proc_map *map)
{
	char head[128], *at = head;
	size_t len = MIN(line.len, sizeof(head) - 1), path = 0;

	memcpy(head, line.ptr, len);
	head[len] = 0;
	map->start = strtoull(at, &at, 16);
	if (*at++ != '-')
		return false;
	map->end = strtoull(at, &at, 16);
	map->executable = strlen(at) > 3 && at[3] == 'x';
	at = *at ? strchr(at + 1, ' ') : NULL; /* moves behind the permissions */
	if (!at)
		return false;
	map->offset = strtoull(at, &at, 16);
	/* skips range, permissions, offset, device and inode */
	for (int field = 0; field < 5; field++) {
		while (path < line.len && line.ptr[path] != ' ')
			path++;
		while (path < line.len && line.ptr[path] == ' ')
			path++;
	}
	map->path = str_skip(line, path);
	map->deleted = str_ends(map->path, STR(" (deleted)"));
	if (map->deleted)
		map->path.len -= STR(" (deleted)").len;
	return true;
}

bool proc_next_map(struct str *rest, struct proc_map *map)
{
	struct str line;

	while (str_split(rest, '\n', &line))
		if (parse_map(line, map))
			return true;
	return false;
}

bool proc_next_file_map(struct str *rest, struct proc_map *map)
{
	while (proc_next_map(rest, map))
		if (map->path.len && map->path.ptr[0] == '/')
			return true;
	return false;
}

static ssize_t read_path(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = 0, n;

	if (fd < 0)
		return -1;
	while ((size_t)len < size - 1 && (n = read(fd, to + len, size - 1 - (size_t)len)) > 0)
		len += n;
	close(fd);
	to[len] = '\0';
	return len;
}

ssize_t proc_read(pid_t pid, const char *what, char *to, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	return read_path(path, to, size);
}

static bool find_number(const char *text, const char *key, uint64_t *value)
{
	const char *at = strstr(text, key);

	if (!at)
		return false;
	*value = strtoull(at + strlen(key), NULL, 10);
	return true;
}

bool proc_schedule(pid_t pid, pid_t tid, uint64_t *running_ns, uint64_t *waiting_ns)
{
	char path[64], text[96], *end;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (!proc_read_text(path, text, sizeof(text)))
		return false;
	*running_ns = strtoull(text, &end, 10);
	*waiting_ns = strtoull(end, &end, 10);
	return *end == ' ';
}

bool proc_read_io(pid_t pid, struct proc_io *io)
{
	char text[512];

	return proc_read(pid, "io", text, sizeof(text)) > 0 &&
	       find_number(text, "syscr: ", &io->read_calls) &&
	       find_number(text, "rchar: ", &io->read_bytes) &&
	       find_number(text, "\nread_bytes: ", &io->storage_bytes);
}

uint64_t proc_count_urings(pid_t pid)
{
	char path[64], target[64];
	uint64_t count = 0, looked = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && looked++ < DESCRIPTORS_LOOKED_AT && (entry = readdir(dir)) != NULL) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[MAX(len, 0)] = '\0';
		count += strcmp(target, "anon_inode:[io_uring]") == 0;
	}
	if (dir)
		closedir(dir);
	return count;
}

bool proc_thread_name(pid_t pid, pid_t tid, char name[16])
{
	char path[64], text[32];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	len = read_path(path, text, sizeof(text));
	if (len <= 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	snprintf(name, 16, "%.15s", text);
	return true;
}

_Static_assert(ESRCH == 3, "remote_is_gone");

bool remote_read(struct remote *r, uint64_t at, void *to, size_t len)
{
	const struct remote_part part = { at, to, len };

	return remote_read_parts(r, &part, 1) == 1;
}

size_t remote_read_parts(struct remote *r, const struct remote_part *parts, size_t count)
{
	struct iovec local[REMOTE_PARTS], there[REMOTE_PARTS];
	size_t whole = 0;
	ssize_t got;

	OW_ASSERT(count <= REMOTE_PARTS);
	if (!count)
		return 0;
	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){ parts[i].to, parts[i].len };
		there[i] = (struct iovec){ (void *)(uintptr_t)parts[i].at, parts[i].len };
	}
	r->reads++;
	got = process_vm_readv(r->pid, local, count, there, count, 0);
	if (got < 0) {
		r->failure = errno;
		return 0;
	}
	for (size_t left = (size_t)got; whole < count && left >= parts[whole].len; whole++)
		left -= parts[whole].len;
	if (whole < count)
		r->failure = EFAULT;
	return whole;
}

ow_status proc_to_pid(int64_t number, pid_t *pid, struct ow_error *err)
{
	if (number <= 0 || number > INT32_MAX)
		return error_set(err, OW_E_NOT_FOUND, "%" PRId64 " is not a process id", number);
	*pid = (pid_t)number;
	return OW_OK;
}
