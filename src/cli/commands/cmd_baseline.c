/*
 * cmd_baseline.c: `opwatch baseline add|list|check FOLDER`: keeps runs of a job in a folder and compares new runs with the last comparable ones, for
 * nightly jobs. A run is two files: NNNNNN.opw, the profile, and NNNNNN.run, what is known about it; it is there once NNNNNN.run is. Files
 * appear whole or not at all, and one process at a time adds.
 */
#include "cli/commands/diff_show.h"

#include "base/json_escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LAST_USUAL 8u
#define NAME_BYTES 32
#define FACTS_BYTES 4096

struct baseline_args {
	struct ow_list fail_if;
	const char *commit;
	uint32_t last;
};

static void init(void *own)
{
	((struct baseline_args *)own)->last = LAST_USUAL;
}

/* ---- the folder ---- */

struct stored {
	unsigned *numbers; /* of the runs, ascending */
	size_t count, cap;
};

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

static bool add_number(struct args *args, struct stored *s, unsigned number)
{
	if (s->count == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		unsigned *grown = ARENA_ARRAY(args->arena, unsigned, cap);

		if (!grown)
			return false;
		if (s->count)
			memcpy(grown, s->numbers, s->count * sizeof(*grown));
		s->numbers = grown;
		s->cap = cap;
	}
	s->numbers[s->count++] = number;
	return true;
}

/* The runs that are there. A folder that does not exist has none. */
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

/* Held until the process ends or the descriptor is closed. */
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

/* ---- what is known about a run: lines of "name value" ---- */

static const char *commit_of(const struct baseline_args *own)
{
	static const char *const variables[] = { "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT" };

	if (own->commit)
		return own->commit;
	for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
		const char *value = getenv(variables[i]);

		if (value && *value)
			return value;
	}
	return "";
}

/* Without control characters, so that a value stays on its line. */
static void put_line(struct buf *to, const char *name, const char *value)
{
	buf_printf(to, "%s ", name);
	for (; *value; value++)
		buf_add_char(to, (unsigned char)*value < ' ' ? ' ' : *value);
	buf_add_char(to, '\n');
}

static ow_status write_facts(struct args *args, const char *path, const char *file,
			     struct ow_error *err)
{
	char host[256] = "", when[64] = "";
	time_t now = time(NULL);
	struct mem mem;
	struct tm tm;
	struct buf text;
	ow_status status;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	put_line(&text, "added", when);
	put_line(&text, "commit", commit_of(args->own));
	put_line(&text, "host", host);
	put_line(&text, "file", file);
	status = text.failed ? error_no_memory(err)
			     : atomic_write_whole(path, buf_str(&text), 0666, err);
	buf_release(&text);
	return status;
}

/* The value of a line; empty when it is not there. */
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

/* ---- add ---- */

static int add_run(struct args *args, const char *folder, unsigned number, const char *file)
{
	const char *path = path_in(args, folder, number, "opw");
	struct ow_error err = { 0 };
	int code = EXIT_GOOD;
	ow_profile *profile = diff_load(args, file, &code);
	ow_status status;

	if (!profile)
		return code;
	status = ow_profile_save(profile, path, NULL, &err);
	if (status == OW_OK)
		status = write_facts(args, path_in(args, folder, number, "run"), file, &err);
	ow_profile_free(profile);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	printf("%s: kept as run %u\n", file, number);
	return EXIT_GOOD;
}

static int add(struct args *args, const char *folder)
{
	struct stored s = { 0 };
	int lock = lock_folder(folder), code = EXIT_GOOD;
	unsigned next;

	if (lock < 0)
		return EXIT_FAILED;
	if (!read_folder(args, folder, &s))
		code = EXIT_FAILED;
	next = s.count ? s.numbers[s.count - 1] + 1 : 1;
	for (size_t i = 2; i < args->file_count && code == EXIT_GOOD; i++)
		code = add_run(args, folder, next++, args->files[i]);
	close(lock);
	return code;
}

/* ---- list ---- */

static void print_json(const struct stored *s, struct args *args, const char *folder)
{
	static const char *const names[] = { "added", "commit", "host", "file" };
	struct mem mem;
	struct buf text;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	buf_puts(&text, "{\"schema_version\": 1, \"rows\": [");
	for (size_t i = 0; i < s->count; i++) {
		struct str facts = read_facts(args, path_in(args, folder, s->numbers[i], "run"));

		buf_printf(&text, "%s\n  {\"run\": %u", i ? "," : "", s->numbers[i]);
		for (size_t k = 0; k < ARRAY_COUNT(names); k++) {
			struct str value = fact_of(facts, names[k]);

			buf_printf(&text, ", \"%s\": ", names[k]);
			if (value.len)
				json_quote(&text, value);
			else
				buf_puts(&text, "null");
		}
		buf_add_char(&text, '}');
	}
	buf_puts(&text, "\n]}\n");
	printf("%.*s", STR_ARG(buf_str(&text)));
	buf_release(&text);
}

static int list(struct args *args, const char *folder)
{
	struct stored s = { 0 };

	if (!read_folder(args, folder, &s))
		return EXIT_FAILED;
	if (strcmp(args->output.sink, "json") == 0) {
		print_json(&s, args, folder);
		return EXIT_GOOD;
	}
	if (!s.count)
		printf("%s: no runs yet\n", folder);
	for (size_t i = 0; i < s.count; i++) {
		struct str facts = read_facts(args, path_in(args, folder, s.numbers[i], "run"));
		struct str commit = fact_of(facts, "commit");

		printf("%6u  %.*s  %-12.*s  %.*s  %.*s\n", s.numbers[i],
		       STR_ARG(fact_of(facts, "added")), (int)MIN(commit.len, 12u), commit.ptr,
		       STR_ARG(fact_of(facts, "host")), STR_ARG(fact_of(facts, "file")));
	}
	return EXIT_GOOD;
}

/* ---- check ---- */

/* The last runs of the folder that can be compared with the new one, newest first. */
static size_t load_base(struct args *args, const char *folder, const struct stored *s,
			ow_profile *other, ow_profile **base)
{
	const struct baseline_args *own = args->own;
	size_t count = 0;

	for (size_t i = s->count; i-- && count < own->last;) {
		int code = EXIT_GOOD;
		ow_profile *profile =
			diff_load(args, path_in(args, folder, s->numbers[i], "opw"), &code);

		if (profile && diff_is_comparable(profile, other))
			base[count++] = profile;
		else
			ow_profile_free(profile);
	}
	return count;
}

static int compare(struct args *args, const char *folder, const struct stored *s,
		   ow_profile **profiles)
{
	const struct baseline_args *own = args->own;
	size_t others = args->file_count - 2, count;
	ow_profile **base = profiles + others;
	int code = EXIT_GOOD;

	for (size_t i = 0; i < others && code == EXIT_GOOD; i++)
		profiles[i] = diff_load(args, args->files[i + 2], &code);
	if (code != EXIT_GOOD)
		return code;
	count = load_base(args, folder, s, profiles[0], base);
	if (!count) {
		complain("opwatch: %s: none of its %zu runs can be compared with %s\n", folder,
			 s->count, args->files[2]);
		return s->count ? EXIT_NOT_COMPARABLE : EXIT_INCONCLUSIVE;
	}
	return diff_show(args, base, count, profiles, others, &own->fail_if, false);
}

static int check(struct args *args, const char *folder)
{
	const struct baseline_args *own = args->own;
	size_t most = args->file_count + own->last;
	ow_profile **profiles = ARENA_ARRAY(args->arena, ow_profile *, most);
	struct stored s = { 0 };
	int code;

	if (!profiles || !output_choose(args) || !read_folder(args, folder, &s))
		return EXIT_FAILED;
	code = compare(args, folder, &s, profiles);
	for (size_t i = 0; i < most; i++)
		ow_profile_free(profiles[i]);
	return code;
}

static int run_baseline(struct args *args)
{
	const char *word = args->file_count ? args->files[0] : "";
	bool is_list = strcmp(word, "list") == 0;

	if (!is_list && strcmp(word, "add") != 0 && strcmp(word, "check") != 0) {
		(void)usage_error("baseline needs a word: add, list or check");
		return EXIT_USAGE;
	}
	if (args->file_count < 2 || (is_list ? args->file_count > 2 : args->file_count < 3)) {
		(void)usage_error("baseline %s takes a folder%s", word,
				  is_list ? "" : " and at least one file");
		return EXIT_USAGE;
	}
	if (is_list)
		return list(args, args->files[1]);
	return strcmp(word, "add") == 0 ? add(args, args->files[1]) : check(args, args->files[1]);
}

static const struct option options[] = {
	{ "commit", STORE_TEXT(struct baseline_args, commit), .argument = "ID",
	  .help = "add: the commit of the runs; GITHUB_SHA or CI_COMMIT_SHA without it" },
	{ "last", STORE_UINT32(struct baseline_args, last, 1, 1000), .argument = "N",
	  .help = "check: compare with the last N comparable runs", .usual = "8" },
	{ "fail-if", STORE_REPEAT(struct baseline_args, fail_if), .argument = "LIMIT",
	  .help = "check: as for diff" },
};

const struct command cmd_baseline = {
	.name = "baseline",
	.usage = "add|check FOLDER FILE… | list FOLDER [--fail-if LIMIT]",
	.summary = "keep runs in a folder and compare new ones with them",
	.help = "add keeps each file as a run, with the commit, the time and the host. check\n"
		"compares the files with the last comparable runs (same devices, same world\n"
		"size) as 'opwatch diff' does, with the same outputs and exit codes; 6 if the\n"
		"folder has no runs yet, 4 if none is comparable.\n",
	.examples = { "opwatch baseline add runs before.json", "opwatch baseline list runs" },
	.own = OPTIONS(options),
	.groups = { &output_options, &input_options },
	.own_size = sizeof(struct baseline_args),
	.init = init,
	.run = run_baseline,
};
