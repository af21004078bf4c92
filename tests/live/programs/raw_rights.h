/* raw_rights.h: how many threads of this process stand as its first one does: users, groups, capabilities, namespaces. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_rights(const char *task, char *to, size_t size)
{
	static const char *const lines[] = { "Uid:",	"Gid:",	   "Groups:", "CapPrm:",
					     "CapEff:", "CapBnd:", "Seccomp:" };
	char path[300], line[1024];
	size_t at = 0;
	ssize_t len;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
			if (strncmp(line, lines[i], strlen(lines[i])) == 0 && at < size)
				at += (size_t)snprintf(to + at, size - at, "%s", line);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/self/task/%s/ns/net", task);
	len = readlink(path, line, sizeof(line) - 1);
	if (len > 0 && at < size)
		snprintf(to + at, size - at, "%.*s", (int)len, line);
}

static int threads_that_differ(void)
{
	DIR *dir = opendir("/proc/self/task");
	char own[4096] = "", other[4096], first[32];
	struct dirent *entry;
	int found = 0;

	snprintf(first, sizeof(first), "%d", getpid());
	read_rights(first, own, sizeof(own));
	while (dir && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		memset(other, 0, sizeof(other));
		read_rights(entry->d_name, other, sizeof(other));
		found += strcmp(own, other) != 0;
	}
	if (dir)
		closedir(dir);
	return found;
}
