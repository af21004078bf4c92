/* kineto_files.c: the traces that jobs were asked for: where they are to be written, and whether they are. */
#include "live/kineto.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define STILL_NS ((int64_t)500000000)

void kineto_want(struct kineto_process *process, const char *folder, int64_t for_ns)
{
	process->state = KINETO_WANTED;
	process->found[0] = 0;
	process->size = 0;
	process->for_ms = MAX(for_ns / 1000000, 1);
	process->grown_ns = 0;
	snprintf(process->path, sizeof(process->path), "%s/kineto_%d.json", folder,
		 (int)process->pid);
}

/* Jobs put their pid, and some a number, between the name and its end: any file that begins so. */
static bool find_file(struct kineto_process *process)
{
	struct str path = str_from(process->path);
	size_t slash = str_rfind_char(path, '/');
	struct str stem = str_skip(str_first(path, path.len - strlen(".json")), slash + 1);
	const struct dirent *entry;
	char folder[512];
	DIR *dir;

	snprintf(folder, sizeof(folder), "%.*s", (int)slash, process->path);
	dir = opendir(folder);
	while (dir && !process->found[0] && (entry = readdir(dir))) {
		struct str name = str_from(entry->d_name);

		if (str_starts(name, stem) &&
		    (str_ends(name, STR(".json")) || str_ends(name, STR(".json.gz"))))
			snprintf(process->found, sizeof(process->found), "%s/%.80s", folder,
				 entry->d_name);
	}
	if (dir)
		closedir(dir);
	return process->found[0];
}

/* A trace is an object; its last character, but for blanks, ends it. */
static bool is_whole(const char *path, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char tail[16] = { 0 };
	size_t len = (size_t)MIN(size, (uint64_t)sizeof(tail));
	bool whole = false;

	if (fd < 0)
		return false;
	if (len && pread(fd, tail, len, (off_t)(size - len)) == (ssize_t)len) {
		struct str end = str_trim(str_make(tail, len));

		whole = end.len && end.ptr[end.len - 1] == '}';
	}
	close(fd);
	return whole;
}

static void look_at(struct kineto_process *process, int64_t now_ns)
{
	struct stat st;
	bool gone = kill(process->pid, 0) != 0 && errno == ESRCH;

	if ((process->found[0] || find_file(process)) && stat(process->found, &st) == 0) {
		if ((uint64_t)st.st_size != process->size) {
			process->size = (uint64_t)st.st_size;
			process->grown_ns = now_ns;
		} else if (process->size && now_ns - process->grown_ns >= STILL_NS &&
			   (is_whole(process->found, process->size) || gone ||
			    str_ends(str_from(process->found), STR(".gz")))) {
			process->state = KINETO_WRITTEN;
		}
		return;
	}
	if (gone)
		process->state = KINETO_GONE;
}

void kineto_look(struct kineto *k, int64_t now_ns)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->items[i].state == KINETO_TOLD)
			look_at(&k->items[i], now_ns);
		else if (k->items[i].state == KINETO_WANTED && kill(k->items[i].pid, 0) != 0 &&
			 errno == ESRCH)
			k->items[i].state = KINETO_GONE;
}
