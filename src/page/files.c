/*
 * files.c: the routes of the page Files that change something: the list of files that are shown, and the profile as one
 * file to keep. A file can be added if it is in the folder of one that is shown: the page sends the number of the
 * folder and a name from its list, never a path. The thread of follow.c reads the new list and applies it if that
 * succeeds, so that the page stays unchanged when a file is unusable.
 */
#include "page/page_int.h"

#include "base/json_escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEAR_MOST 500u
#define FOLDERS_MOST 16u
#define SEND_PIECE 262144u

/* A file, not shown yet, in the folder of a shown one. */
struct near_file {
	const char *name;
	size_t folder;
	uint64_t size;
	int64_t modified_ns;
};

struct file_list {
	struct arena arena;
	const char **paths; /* paths of the shown files, each once */
	size_t path_count;
	const char *folders[FOLDERS_MOST]; /* folders of these files */
	size_t folder_count;
};

static bool has_text(const char *const *texts, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(texts[i], text) == 0)
			return true;
	return false;
}

/* The file of an input: "x.zip!member" is a member of x.zip. */
static const char *file_of(struct arena *arena, struct str path)
{
	const char *whole = arena_cstr(arena, path);
	size_t bang = str_find_char(path, '!');
	struct stat st;

	if (!whole || bang >= path.len || stat(whole, &st) == 0)
		return whole;
	return arena_cstr(arena, str_first(path, bang));
}

static void add_folder(struct file_list *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *folder =
		!slash		? "."
		: slash == path ? "/"
				: arena_cstr(&l->arena, str_make(path, (size_t)(slash - path)));

	if (folder && l->folder_count < FOLDERS_MOST &&
	    !has_text(l->folders, l->folder_count, folder))
		l->folders[l->folder_count++] = folder;
}

static ow_status list_shown(struct file_list *l, struct ow_ui *ui, struct ow_error *err)
{
	const struct model *m = ui->profile->m;

	*l = (struct file_list){ 0 };
	arena_init(&l->arena, &ui->mem);
	l->paths = ARENA_ARRAY(&l->arena, const char *, (size_t)m->source.count + 1);
	for (uint32_t i = 1; l->paths && i < m->source.count; i++) {
		const char *path = file_of(&l->arena, model_str(m, m->source.path[i]));

		if (!path)
			return error_no_memory(err);
		if (!has_text(l->paths, l->path_count, path))
			l->paths[l->path_count++] = path;
		add_folder(l, path);
	}
	return l->paths ? OW_OK : error_no_memory(err);
}

/* Why files cannot be added or removed; NULL when they can. */
static const char *fixed(const struct ow_ui *ui)
{
	if (ui->open.redact)
		return "with --redact the names of files are not shown: name them on the command "
		       "line";
	if (ui->job)
		return "this is a job of the daemon, not a list of files";
	if (!atomic_load(&ui->has_follower))
		return "the profile was opened by a program, which names its files";
	return NULL;
}

static int newest_first(const void *a, const void *b)
{
	const struct near_file *x = a, *y = b;

	if (x->modified_ns != y->modified_ns)
		return x->modified_ns > y->modified_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_shown(const struct file_list *l, size_t folder, const char *name, struct arena *tmp)
{
	const char *dir = l->folders[folder];
	const char *path = strcmp(dir, ".") == 0   ? name
			   : strcmp(dir, "/") == 0 ? arena_printf(tmp, "/%s", name)
						   : arena_printf(tmp, "%s/%s", dir, name);
	const char *dotted = arena_printf(tmp, "./%s", name);

	return !path || !dotted || has_text(l->paths, l->path_count, path) ||
	       (strcmp(dir, ".") == 0 && has_text(l->paths, l->path_count, dotted));
}

static size_t list_folder(struct file_list *l, size_t folder, struct near_file *files, size_t count)
{
	DIR *dir = opendir(l->folders[folder]);
	struct dirent *entry;

	while (dir && count < NEAR_MOST && (entry = readdir(dir))) {
		struct stat st;

		if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &st, 0) != 0 ||
		    !S_ISREG(st.st_mode) || st.st_size == 0 ||
		    is_shown(l, folder, entry->d_name, &l->arena))
			continue;
		files[count] = (struct near_file){
			.name = arena_cstr(&l->arena, str_from(entry->d_name)),
			.folder = folder,
			.size = (uint64_t)st.st_size,
			.modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
		};
		count += files[count].name != NULL;
	}
	if (dir)
		closedir(dir);
	return count;
}

static ow_status add_near(struct buf *to, struct file_list *l, struct ow_error *err)
{
	struct near_file *files = ARENA_ARRAY(&l->arena, struct near_file, NEAR_MOST);
	size_t count = 0;

	if (!files)
		return error_no_memory(err);
	for (size_t i = 0; i < l->folder_count; i++)
		count = list_folder(l, i, files, count);
	qsort(files, count, sizeof(*files), newest_first);
	for (size_t i = 0; i < count; i++) {
		buf_printf(to, "%s\n{\"folder\": %zu, \"bytes\": %llu, \"modified_ns\": %lld, ",
			   i ? "," : "", files[i].folder, (unsigned long long)files[i].size,
			   (long long)files[i].modified_ns);
		buf_puts(to, "\"in\": ");
		json_quote(to, str_from(l->folders[files[i].folder]));
		buf_puts(to, ", \"name\": ");
		json_quote(to, str_from(files[i].name));
		buf_puts(to, "}");
	}
	return OW_OK;
}

/* Returns the shown files, how fast they were read, and other files in the same folders. */
PAGE_HANDLER(files)
{
	struct ow_ui *u = ui;
	struct buf *to = &reply->body;
	struct file_list list;
	struct ow_error err = { 0 };
	ow_status status = OW_OK;
	const char *why;

	(void)request;
	if (!page_ready(u, reply))
		return;
	why = fixed(u);
	buf_printf(to, "{\"read_ns\": %lld, \"read_bytes\": %llu", (long long)u->read_ns,
		   (unsigned long long)u->read_bytes);
	if (why) {
		buf_puts(to, ", \"fixed\": ");
		json_quote(to, str_from(why));
	} else {
		status = list_shown(&list, u, &err);
		buf_puts(to, ", \"files\": [");
		for (size_t i = 0; status == OW_OK && i < list.path_count; i++) {
			buf_puts(to, i ? ", " : "");
			json_quote(to, str_from(list.paths[i]));
		}
		buf_puts(to, "], \"near\": [");
		if (status == OW_OK)
			status = add_near(to, &list, &err);
		buf_puts(to, "]");
		arena_release(&list.arena);
	}
	buf_puts(to, "}\n");
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

/* Passes the list to the thread that reads; an older list that the thread has not taken yet is replaced. */
static ow_status propose(struct ow_ui *ui, const char *const *paths, size_t count,
			 struct ow_error *err)
{
	struct page_paths *p = calloc(1, sizeof(*p)), *old;
	ow_status status = OW_OK;

	if (!p)
		return error_no_memory(err);
	arena_init(&p->arena, &ui->mem);
	p->paths = ARENA_ARRAY(&p->arena, const char *, count + 1);
	p->marks = ARENA_ARRAY(&p->arena, struct page_mark, count + 1);
	for (size_t i = 0; p->paths && i < count; i++) {
		p->paths[i] = arena_cstr(&p->arena, str_from(paths[i]));
		if (!p->paths[i])
			status = error_no_memory(err);
	}
	if (!p->paths || !p->marks)
		status = error_no_memory(err);
	p->count = count;
	if (status != OW_OK) {
		page_free_paths(p);
		return status;
	}
	pthread_mutex_lock(&ui->lock);
	old = ui->proposed;
	ui->proposed = p;
	ui->refused[0] = '\0';
	pthread_mutex_unlock(&ui->lock);
	page_free_paths(old);
	return OW_OK;
}

void page_free_paths(struct page_paths *p)
{
	if (!p)
		return;
	arena_release(&p->arena);
	free(p);
}

ow_status page_check_used(const ow_profile *profile, const struct page_paths *p,
			  struct ow_error *err)
{
	const struct model *m = profile->m;

	for (size_t i = 0; i < p->count; i++) {
		struct str path = str_from(p->paths[i]);
		bool used = false;

		for (uint32_t s = 1; !used && s < m->source.count; s++) {
			struct str source = model_str(m, m->source.path[s]);

			used = str_starts(source, path) &&
			       (source.len == path.len || source.ptr[path.len] == '!');
		}
		if (!used)
			return error_set(err, OW_E_FORMAT,
					 "%s has an unknown format or no content; 'opwatch info "
					 "%s' says why",
					 p->paths[i], p->paths[i]);
	}
	return OW_OK;
}

/* Finds the folder and the name of a file that is in the folder now. */
static ow_status find_near(struct file_list *l, struct str folder, struct str name,
			   const char **path, struct ow_error *err)
{
	struct near_file *files = ARENA_ARRAY(&l->arena, struct near_file, NEAR_MOST);
	int64_t number;
	size_t count;

	if (!files)
		return error_no_memory(err);
	if (!str_to_i64(folder, &number) || number < 0 || (size_t)number >= l->folder_count)
		return error_set(err, OW_E_USAGE, "there is no folder %.*s", STR_ARG(folder));
	count = list_folder(l, (size_t)number, files, 0);
	for (size_t i = 0; i < count; i++)
		if (str_eq(str_from(files[i].name), name)) {
			*path = arena_printf(&l->arena, "%s/%s", l->folders[number], files[i].name);
			return *path ? OW_OK : error_no_memory(err);
		}
	return error_set(err, OW_E_NOT_FOUND, "this file is not in a folder of the shown files");
}

static ow_status change(struct ow_ui *ui, struct str body, struct file_list *l,
			struct ow_error *err)
{
	struct str kind, first;
	const char **paths = ARENA_ARRAY(&l->arena, const char *, l->path_count + 1);
	size_t count = 0;

	if (!paths)
		return error_no_memory(err);
	str_split(&body, '\n', &kind);
	if (str_eq(kind, STR("add"))) {
		memcpy(paths, l->paths, l->path_count * sizeof(*paths));
		count = l->path_count;
		str_split(&body, '\n', &first);
		OW_TRY(find_near(l, first, body, &paths[count], err));
		return propose(ui, paths, count + 1, err);
	}
	if (!str_eq(kind, STR("remove")))
		return error_set(err, OW_E_USAGE, "files can be added and removed");
	for (size_t i = 0; i < l->path_count; i++)
		if (!str_eq(str_from(l->paths[i]), body))
			paths[count++] = l->paths[i];
	if (count == l->path_count)
		return error_set(err, OW_E_NOT_FOUND, "this file is not shown");
	if (!count)
		return error_set(err, OW_E_USAGE, "the last file stays: there would be no page");
	return propose(ui, paths, count, err);
}

/* The body of the request: "remove" and a shown path, or "add", the number of a folder and a name; one per line. */
PAGE_HANDLER(change_files)
{
	struct ow_ui *u = ui;
	struct file_list list;
	struct ow_error err = { 0 };
	ow_status status;
	const char *why;

	if (!page_ready(u, reply))
		return;
	why = fixed(u);
	if (why) {
		server_fail(reply, 409, "%s", why);
		return;
	}
	status = list_shown(&list, u, &err);
	if (status == OW_OK)
		status = change(u, request->body, &list, &err);
	arena_release(&list.arena);
	if (status != OW_OK)
		page_fail(reply, status, &err);
	else
		buf_puts(&reply->body, "{}\n");
}

static bool send_piece(void *stream, struct buf *to)
{
	size_t n;

	if (!buf_reserve(to, SEND_PIECE))
		return false;
	n = fread(to->ptr + to->len, 1, SEND_PIECE, stream);
	to->len += n;
	return n == SEND_PIECE;
}

static void end_piece(void *stream)
{
	fclose(stream);
}

/* Sends everything that is shown as an opwatch file. It is written to a temporary file, which is unlinked before it
 * is sent. */
PAGE_HANDLER(save)
{
	struct ow_ui *u = ui;
	struct page_child scratch = { 0 };
	struct ow_error err = { 0 };
	ow_status status;
	FILE *file = NULL;

	(void)request;
	if (!page_ready(u, reply))
		return;
	status = page_make_scratch(&scratch, &err);
	if (status == OW_OK)
		status = ow_profile_save(u->profile, scratch.path, NULL, &err);
	if (status == OW_OK) {
		file = fopen(scratch.path, "rbe");
		if (!file)
			status = error_errno(&err, errno, "%s", scratch.path);
	}
	page_drop_scratch(&scratch);
	if (status != OW_OK || !file) {
		page_fail(reply, status, &err);
		return;
	}
	reply->type = "application/octet-stream";
	reply->next = send_piece;
	reply->release = end_piece;
	reply->stream = file;
}
