/* proc.c: see proc.h. */
#include "live/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#define DESCRIPTORS_LOOKED_AT 256 /* a second */

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
