/* processes.c: see processes.h. */
#include "live/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE ((size_t)64 << 20)

static ssize_t read_some(int fd, char *to, size_t len)
{
	ssize_t got;

	do
		got = read(fd, to, len);
	while (got < 0 && errno == EINTR);
	return got;
}

bool proc_read_file(struct buf *to, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
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

/* ---- stat ---- */

#define TASK_EXITS 4 /* the kernel's PF_EXITING */

/* The name may hold anything, blanks and brackets too: the last bracket ends it. */
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

ow_status proc_check_first(pid_t pid, struct error *err)
{
	int64_t process = proc_status_number(pid, "Tgid:");

	if (process <= 0 || process == pid)
		return OW_OK;
	return error_set(err, OW_E_NOT_FOUND,
			 "%d is no process, but a thread of process %" PRId64 ": give that number",
			 (int)pid, process);
}

/* ---- lists of processes ---- */

void pid_list_release(struct pid_list *list)
{
	mem_free(list->mem, list->items, list->cap * sizeof(*list->items));
	*list = (struct pid_list){ .mem = list->mem };
}

bool pid_list_add(struct pid_list *list, pid_t pid)
{
	void *items = list->items;

	if (!mem_grow(list->mem, &items, &list->cap, list->count + 1, sizeof(*list->items)))
		return false;
	list->items = items;
	list->items[list->count++] = pid;
	return true;
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

/* ---- maps ---- */

static bool parse_map(struct str line, struct proc_map *map)
{
	static const char deleted[] = " (deleted)";
	char head[128], *at = head;
	size_t slash = str_find_char(line, '/');

	if (slash == STR_NONE || slash >= sizeof(head))
		return false;
	memcpy(head, line.ptr, slash);
	head[slash] = 0;
	map->start = strtoull(at, &at, 16);
	if (*at++ != '-')
		return false;
	map->end = strtoull(at, &at, 16);
	at = *at ? strchr(at + 1, ' ') : NULL; /* behind the permissions */
	if (!at)
		return false;
	map->offset = strtoull(at, &at, 16);
	map->path = str_skip(line, slash);
	map->deleted = str_ends(map->path, STR(" (deleted)"));
	if (map->deleted)
		map->path.len -= sizeof(deleted) - 1;
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
