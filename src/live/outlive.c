/* outlive.c: see outlive.h. */
#include "live/outlive.h"

#include "live/collector_int.h"

#include <dirent.h>
#include <unistd.h>

#define NAMED 8u

static bool is_running(pid_t pid)
{
	struct proc_stat stat;

	if (!proc_stat_read(pid, 0, &stat))
		return false;
	/* The first thread may have ended while others go on. */
	return stat.threads > 1 || (stat.state != 'Z' && stat.state != 'X' && !stat.exits);
}

/* Whether the process was started with that entry, which ends with NUL. */
static bool was_given(struct buf *room, pid_t pid, struct str entry)
{
	char path[64];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	buf_clear(room);
	if (!proc_read_file(room, path) || room->len < entry.len)
		return false;
	at = memmem(room->ptr, room->len, entry.ptr, entry.len);
	return at && (at == room->ptr || at[-1] == '\0');
}

static bool add_connected(const struct collector *c, struct pid_list *list)
{
	for (size_t i = 0; i < c->count; i++) {
		pid_t pid = (pid_t)c->processes[i]->pid;

		if (c->processes[i]->fd >= 0 && !pid_list_has(list, pid) && is_running(pid) &&
		    !pid_list_add(list, pid))
			return false;
	}
	return true;
}

static bool add_started(DIR *proc, struct str entry, struct pid_list *list)
{
	const struct dirent *each;
	struct buf room;
	bool good = true;

	buf_init(&room, list->mem);
	while (good && (each = readdir(proc)) != NULL) {
		int64_t pid;

		if (!str_to_i64(str_from(each->d_name), &pid) || pid < 1 || pid > INT32_MAX ||
		    pid == getpid() || pid_list_has(list, (pid_t)pid))
			continue;
		if (was_given(&room, (pid_t)pid, entry) && is_running((pid_t)pid))
			good = pid_list_add(list, (pid_t)pid);
		good &= !room.failed;
	}
	buf_release(&room);
	return good;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

bool outlive_find(const struct collector *c, struct pid_list *list)
{
	char entry[sizeof(RING_ENV_SOCKET) + sizeof(c->socket_path) + 2];
	int len = snprintf(entry, sizeof(entry), "%s=%s", RING_ENV_SOCKET, c->socket_path);
	DIR *proc;
	bool good = add_connected(c, list);

	proc = good && c->socket_path[0] ? opendir("/proc") : NULL;
	if (proc) {
		good = add_started(proc, str_make(entry, (size_t)len + 1), list);
		closedir(proc);
	}
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_number);
	return good;
}

/* Processes choose their names, and this goes to a terminal. */
static void name_of(pid_t pid, char name[PROC_NAME])
{
	struct proc_stat stat = { .name = "" };

	(void)proc_stat_read(pid, 0, &stat); /* it may have ended by now */
	memcpy(name, stat.name, PROC_NAME);
	for (char *at = name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

void outlive_say(const struct pid_list *list, const char *one, const char *many, char *to,
		 size_t size)
{
	size_t at =
		(size_t)snprintf(to, size, "%zu process%s that it started still %s: ", list->count,
				 list->count == 1 ? "" : "es", list->count == 1 ? one : many);

	for (size_t i = 0; i < MIN(list->count, (size_t)NAMED) && at < size; i++) {
		char name[PROC_NAME];

		name_of(list->items[i], name);
		at += (size_t)snprintf(to + at, size - at, "%s%d%s%s%s", i ? ", " : "",
				       (int)list->items[i], name[0] ? " (" : "", name,
				       name[0] ? ")" : "");
	}
	if (list->count > NAMED && at < size)
		snprintf(to + at, size - at, " and %zu more", list->count - NAMED);
}
