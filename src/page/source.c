/*
 * source.c: the route that shows source files. It opens only files that a frame of the profile names and that lie
 * inside the user's folder (the working directory, or --source), after links are resolved: a profile from elsewhere
 * must not make the page show /etc/passwd.
 */
#include "page/page_int.h"

#include "base/json_escape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_MOST ((off_t)4 << 20)

static bool is_named(const struct model *m, struct str file)
{
	for (uint32_t i = 1; i < m->frame.count; i++)
		if (str_eq(model_str(m, m->frame.file[i]), file))
			return true;
	return false;
}

/* Opens the file if it is inside the folder; `path` receives its real path. */
static int open_inside(const char *folder, const char *candidate, char path[PATH_MAX])
{
	size_t len = strlen(folder);
	struct stat st;
	int fd;

	if (!realpath(candidate, path) || strncmp(path, folder, len) != 0 ||
	    (path[len] != '/' && len > 1))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SOURCE_MOST)
		return fd;
	close(fd);
	return -1;
}

/* Finds the file itself, or one in the folder with the same end of its path: a/b/x.py, b/x.py, x.py. */
static int find_source(const char *folder, struct str file, struct arena *arena,
		       char path[PATH_MAX])
{
	struct str rest = file;
	int fd = -1;

	if (file.len && file.ptr[0] == '/') {
		const char *whole = arena_cstr(arena, file);

		fd = whole ? open_inside(folder, whole, path) : -1;
	}
	while (fd < 0 && rest.len) {
		const char *candidate;
		size_t slash;

		while (rest.len && rest.ptr[0] == '/')
			rest = str_skip(rest, 1);
		candidate = arena_printf(arena, "%s/%.*s", folder, STR_ARG(rest));
		if (candidate && rest.len)
			fd = open_inside(folder, candidate, path);
		slash = str_find_char(rest, '/');
		rest = slash < rest.len ? str_skip(rest, slash + 1) : (struct str){ 0 };
	}
	return fd;
}

static bool read_all(int fd, struct buf *to)
{
	ssize_t n;

	do {
		if (!buf_reserve(to, 65536))
			return false;
		n = read(fd, to->ptr + to->len, 65536);
		if (n > 0)
			to->len += (size_t)n;
	} while (n > 0 && to->len <= (size_t)SOURCE_MOST);
	return n == 0;
}

static void answer(struct ow_ui *u, struct str file, struct server_reply *reply)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct arena arena;
	struct buf text;
	int fd = -1;

	arena_init(&arena, &u->mem);
	buf_init(&text, &u->mem);
	if (realpath(u->source_dir ? u->source_dir : ".", folder))
		fd = find_source(folder, file, &arena, path);
	if (fd < 0) {
		/* status 200, because a missing source file is not a failure: the page shows the rest */
		server_fail(
			reply, 200,
			"the file is not below %s; start opwatch where the sources are, or with "
			"--source DIR",
			u->source_dir ? u->source_dir : "the folder that opwatch was started in");
	} else if (!read_all(fd, &text)) {
		server_fail(reply, 500, "%s cannot be read", path);
	} else {
		buf_puts(&reply->body, "{\"path\": ");
		json_quote(&reply->body, str_from(path));
		buf_puts(&reply->body, ", \"text\": ");
		json_quote(&reply->body, buf_str(&text));
		buf_puts(&reply->body, "}\n");
	}
	if (fd >= 0)
		close(fd);
	buf_release(&text);
	arena_release(&arena);
}

PAGE_HANDLER(source)
{
	struct ow_ui *u = ui;
	const char *file = server_param(request, "file");
	struct reading reading;
	struct ow_error err = { 0 };
	bool named = false;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = model_require_stacks(u->profile->m, &err);
		named = status == OW_OK && file && is_named(u->profile->m, str_from(file));
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
	else if (!named)
		server_fail(reply, 404, "the profile does not name this file");
	else
		answer(u, str_from(file), reply);
}
