/* saved.c: see saved.h. */
#include "live/saved.h"

#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLOCK_DIGITS 6

static bool is_digits(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	return s.len > 0;
}

/* What is behind the last dash, which goes with it; all when there is none. */
static struct str take_last(struct str *rest)
{
	size_t dash = str_rfind_char(*rest, '-');
	struct str last = dash == STR_NONE ? *rest : str_skip(*rest, dash + 1);

	*rest = dash == STR_NONE ? str_first(*rest, 0) : str_first(*rest, dash);
	return last;
}

uint32_t saved_job_of(const char *name)
{
	struct str rest = str_from(name), clock, kind, id;
	int64_t number;

	if (!str_ends(rest, STR(".opw")))
		return 0;
	rest = str_first(rest, rest.len - 4);
	clock = take_last(&rest);
	kind = take_last(&rest);
	id = take_last(&rest);
	if (!rest.len || clock.len != CLOCK_DIGITS || !is_digits(clock) || !is_digits(id) ||
	    !(str_eq(kind, STR("slow")) || str_eq(kind, STR("stall"))))
		return 0;
	return str_to_i64(id, &number) && number <= INT32_MAX ? (uint32_t)number : 0;
}

static int by_age(const void *a, const void *b)
{
	const struct saved_file *x = a, *y = b;

	if (x->modified_ns != y->modified_ns)
		return x->modified_ns < y->modified_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* False without memory. */
static bool take(struct saved *saved, int folder, const char *name)
{
	uint32_t job = saved_job_of(name);
	void *items = saved->items;
	struct saved_file *file;
	struct stat st;

	if (!job || strlen(name) >= sizeof(file->name) ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return true;
	if (!mem_grow(saved->mem, &items, &saved->cap, saved->count + 1, sizeof(*file)))
		return false;
	saved->items = items;
	file = &saved->items[saved->count++];
	*file = (struct saved_file){ .job = job,
				     .modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
						    st.st_mtim.tv_nsec,
				     .bytes = (uint64_t)st.st_size };
	memcpy(file->name, name, strlen(name) + 1);
	saved->bytes += file->bytes;
	return true;
}

ow_status saved_find(struct saved *saved, struct mem *mem, const char *folder, struct error *err)
{
	const struct dirent *entry;
	DIR *dir = opendir(folder);
	bool good = true;

	*saved = (struct saved){ .mem = mem };
	while (dir && good && (entry = readdir(dir)) != NULL)
		good = take(saved, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
	if (!good) {
		saved_release(saved);
		return error_no_memory(err);
	}
	if (saved->count)
		qsort(saved->items, saved->count, sizeof(*saved->items), by_age);
	return OW_OK;
}

void saved_release(struct saved *saved)
{
	mem_free(saved->mem, saved->items, saved->cap * sizeof(*saved->items));
	*saved = (struct saved){ .mem = saved->mem };
}

uint32_t saved_trim(struct saved *saved, const char *folder, uint64_t limit)
{
	uint32_t removed = 0;
	char path[PATH_MAX];

	while (saved->bytes > limit && removed + 1 < saved->count) {
		const struct saved_file *oldest = &saved->items[removed];

		if (snprintf(path, sizeof(path), "%s/%s", folder, oldest->name) >=
			    (int)sizeof(path) ||
		    (unlink(path) != 0 && errno != ENOENT))
			break;
		saved->bytes -= oldest->bytes;
		removed++;
	}
	saved->count -= removed;
	if (removed)
		memmove(saved->items, saved->items + removed, saved->count * sizeof(*saved->items));
	return removed;
}
