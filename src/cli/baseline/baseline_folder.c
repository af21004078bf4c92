/*
 * baseline_folder.c: runs of `opwatch baseline` in a folder (baseline_place.h). A run is two files: NNNNNN.opw, the profile, and NNNNNN.run, what is
 * known about it: lines of "name value". It is there once NNNNNN.run is. Files appear whole or not at all, and one process at a time adds.
 */
#include "cli/baseline/baseline_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define NAME_BYTES 32
#define FACTS_BYTES 65536

struct stored {
	unsigned *numbers; /* numbers of the runs, ascending */
	size_t count, cap;
};

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static bool add_number(struct args *args, struct stored *s, unsigned number)
{
	unsigned *grown = arena_grow(args->arena, s->numbers, s->count, &s->cap, sizeof(*grown));

	if (!grown)
		return false;
	s->numbers = grown;
	s->numbers[s->count++] = number;
	return true;
}

/* Reads the stored runs. A folder that does not exist has none. */
static bool read_folder(struct args *args, const char *folder, struct stored *s)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	bool good = true;

	if (!dir && errno == ENOENT)
		return true;
	if (!dir) {
		complain("opwatch: %s: %s\n", folder, strerror(errno));
		return false;
	}
	while (good && (entry = readdir(dir))) {
		unsigned number;
		int end = 0;

		if (sscanf(entry->d_name, "%6u.run%n", &number, &end) == 1 && end == 10 &&
		    !entry->d_name[end])
			good = add_number(args, s, number);
	}
	closedir(dir);
	if (s->count)
		qsort(s->numbers, s->count, sizeof(*s->numbers), by_number);
	return good;
}

static const char *path_in(struct args *args, const char *folder, unsigned number, const char *end)
{
	size_t size = strlen(folder) + NAME_BYTES;
	char *path = arena_push(args->arena, size);

	if (path)
		snprintf(path, size, "%s/%06u.%s", folder, number, end);
	return path ? path : "";
}

/* Locks the folder until the process ends or the descriptor is closed. */
static int lock_folder(const char *folder)
{
	char path[PATH_MAX];
	int fd = -1;

	if ((mkdir(folder, 0777) == 0 || errno == EEXIST) &&
	    snprintf(path, sizeof(path), "%s/.lock", folder) < (int)sizeof(path)) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		while (fd >= 0 && flock(fd, LOCK_EX) != 0)
			if (errno != EINTR) {
				close(fd);
				fd = -1;
			}
	}
	if (fd < 0)
		complain("opwatch: %s: %s\n", folder, strerror(errno));
	return fd;
}

/* Writes a line without control characters, so that a value stays on its line. */
static void put_line(struct buf *to, const char *name, struct str value)
{
	buf_printf(to, "%s ", name);
	for (size_t i = 0; i < value.len; i++)
		buf_add_char(to, (unsigned char)value.ptr[i] < ' ' ? ' ' : value.ptr[i]);
	buf_add_char(to, '\n');
}

static ow_status write_facts(const char *path, const struct kept_run *run, struct ow_error *err)
{
	struct mem mem;
	struct buf text;
	ow_status status;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	put_line(&text, "added", run->added);
	put_line(&text, "commit", run->commit);
	put_line(&text, "host", run->host);
	put_line(&text, "file", run->file);
	put_line(&text, "configuration", run->configuration);
	status = text.failed ? error_no_memory(err)
			     : atomic_write_whole(path, buf_str(&text), 0666, err);
	buf_release(&text);
	return status;
}

/* Returns the value of a line; empty if there is none. */
static struct str fact_of(struct str facts, const char *name)
{
	struct str line, key;

	while (str_split(&facts, '\n', &line)) {
		struct str rest = line;

		if (str_split(&rest, ' ', &key) && str_eq(key, str_from(name)))
			return rest;
	}
	return STR("");
}

static struct str read_facts(struct args *args, const char *path)
{
	char *text = arena_push(args->arena, FACTS_BYTES);
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t len = fd >= 0 ? read(fd, text, FACTS_BYTES) : -1;

	if (fd >= 0)
		close(fd);
	return len > 0 ? str_make(text, (size_t)len) : STR("");
}

static bool list(struct args *args, struct baseline *place, struct kept_runs *runs)
{
	struct stored s = { 0 };

	if (!read_folder(args, place->name, &s))
		return false;
	runs->items = ARENA_ARRAY(args->arena, struct kept_run, s.count + 1);
	if (!runs->items)
		return false;
	for (runs->count = 0; runs->count < s.count; runs->count++) {
		unsigned number = s.numbers[runs->count];
		struct str facts = read_facts(args, path_in(args, place->name, number, "run"));

		runs->items[runs->count] =
			(struct kept_run){ .number = number,
					   .added = fact_of(facts, "added"),
					   .commit = fact_of(facts, "commit"),
					   .host = fact_of(facts, "host"),
					   .file = fact_of(facts, "file"),
					   .configuration = fact_of(facts, "configuration") };
	}
	return true;
}

static ow_profile *load(struct args *args, struct baseline *place, const struct kept_run *run,
			int *code)
{
	return diff_load(args, path_in(args, place->name, run->number, "opw"), code);
}

static int begin(struct args *args, struct baseline *place)
{
	struct stored s = { 0 };

	place->lock = lock_folder(place->name);
	if (place->lock < 0 || !read_folder(args, place->name, &s))
		return EXIT_FAILED;
	place->next = s.count ? s.numbers[s.count - 1] + 1 : 1;
	return EXIT_GOOD;
}

static ow_status add(struct args *args, struct baseline *place, ow_profile *profile,
		     struct kept_run *run, struct ow_error *err)
{
	run->number = place->next;
	OW_TRY(ow_profile_save(profile, path_in(args, place->name, run->number, "opw"), NULL, err));
	OW_TRY(write_facts(path_in(args, place->name, run->number, "run"), run, err));
	place->next++;
	return OW_OK;
}

static void end(struct baseline *place)
{
	if (place->lock >= 0)
		close(place->lock);
	place->lock = -1;
}

void baseline_use_folder(struct baseline *place)
{
	place->list = list;
	place->load = load;
	place->begin = begin;
	place->add = add;
	place->end = end;
}
