/* Drops root's rights by a raw instruction, as privilege-separating programs do, then once more through the C library,
 * and reports whether any thread of the process kept them. Needs root to say anything. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int threads_with_root(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int found = 0;

	while (dir && (entry = readdir(dir)) != NULL) {
		char path[300], line[256];
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			if (strncmp(line, "Uid:", 4) == 0 && strtol(line + 4, NULL, 10) == 0)
				found++;
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return found;
}

#if !defined(DROP) && defined(__x86_64__)
static long drop_raw(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}
#define DROP drop_raw
#elif !defined(DROP)
#define DROP syscall
#endif

int main(void)
{
	if (geteuid() != 0) {
		puts("not root: nothing to drop");
		return 0;
	}
	usleep(50000);
	if (DROP(SYS_setresuid, 65534, 65534, 65534) != 0)
		return 2;
	usleep(300000);
	printf("threads with root's rights: %d\n", threads_with_root());
	fflush(stdout);
	if (setresuid(65534, 65534, 65534) != 0)
		return 3;
	puts("dropped");
	return 0;
}
