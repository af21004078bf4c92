/*
 * room.c: how much memory the rings of a process may take. It counts for the job's control group, and a job that is at
 * the limit of its group is ended by the system: of a small group only a small part is used, and rings are smaller then.
 * Groups above the process's own are not looked at.
 */
#include "recorder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PART 64u /* of the limit */
#define RECORDS_LEAST 256u

static bool read_file(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	to[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* In a container the group's own folder is all that there is. "max" is no number. */
static uint64_t limit_in(const char *base, const char *group, const char *file)
{
	char path[512], text[64];
	uint64_t limit;

	if (snprintf(path, sizeof(path), "%s%s/%s", base, group, file) >= (int)sizeof(path) ||
	    !read_file(path, text, sizeof(text))) {
		snprintf(path, sizeof(path), "%s/%s", base, file);
		if (!read_file(path, text, sizeof(text)))
			return UINT64_MAX;
	}
	limit = strtoull(text, NULL, 10);
	return limit ? limit : UINT64_MAX;
}

/* The path behind "0::" or "7:memory:", ended with NUL; NULL when there is no such line. */
static char *group_of(char *text, const char *kind)
{
	char *at = strstr(text, kind), *end;

	if (!at)
		return NULL;
	at += strlen(kind);
	end = strchr(at, '\n');
	if (end)
		*end = '\0';
	return at;
}

uint64_t room_for_rings(void)
{
	char text[2048], copy[2048], *group;
	uint64_t limit = UINT64_MAX, other;

	if (!read_file("/proc/self/cgroup", text, sizeof(text)))
		return UINT64_MAX;
	memcpy(copy, text, sizeof(copy));
	group = group_of(text, ":memory:");
	if (group)
		limit = limit_in("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
	group = group_of(copy, "0::");
	if (group) {
		other = limit_in("/sys/fs/cgroup", group, "memory.max");
		limit = other < limit ? other : limit;
	}
	return limit / PART;
}

uint32_t room_records(uint64_t room, uint64_t used, uint32_t wanted)
{
	uint64_t left = room > used ? room - used : 0;

	while (wanted > RECORDS_LEAST && ring_bytes(wanted) > left / 4)
		wanted /= 2;
	return wanted;
}
