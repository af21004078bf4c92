/* queries.c: the set of named queries: those that are built in, and those of folders. See queries.h. */
#include "ask/queries.h"

#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define FILE_MAX ((off_t)1 << 20)

static struct query *find(const struct queries *q, const char *name)
{
	for (size_t i = 0; i < q->count; i++)
		if (strcmp(q->items[i].name, name) == 0)
			return &q->items[i];
	return NULL;
}

const struct query *queries_find(const struct queries *q, const char *name)
{
	return find(q, name);
}

static ow_status add(struct queries *q, const struct query *query, struct ow_error *err)
{
	struct query *old = find(q, query->name);

	if (old) {
		*old = *query;
		return OW_OK;
	}
	if (!vec_push(q->mem, q->items, q->count, q->cap, *query))
		return error_no_memory(err);
	return OW_OK;
}

static ow_status read_file(struct queries *q, const char *path, struct str *text,
			   struct ow_error *err)
{
	FILE *file = fopen(path, "r");
	ow_status status = OW_OK;
	struct stat st;
	char *bytes;

	if (!file)
		return error_errno(err, errno, "%s", path);
	if (fstat(fileno(file), &st) < 0)
		status = error_errno(err, errno, "%s", path);
	else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		status = error_set(err, OW_E_FORMAT,
				   "%s: the file is too large for a query: at most 1 MB is allowed",
				   path);
	bytes = status == OW_OK ? arena_push(&q->arena, (size_t)st.st_size + 1) : NULL;
	if (status == OW_OK && !bytes)
		status = error_no_memory(err);
	if (status == OW_OK) {
		*text = str_make(bytes, fread(bytes, 1, (size_t)st.st_size, file));
		if (ferror(file))
			status = error_errno(err, EIO, "%s", path);
	}
	fclose(file);
	return status;
}

static ow_status add_file(struct queries *q, const char *dir, const char *file,
			  struct ow_error *err)
{
	struct str name = str_from(file);
	struct str text = { 0 };
	struct query query;
	char *path, *plain;

	if (!str_ends(name, STR(".sql")) || file[0] == '.')
		return OW_OK;
	path = arena_printf(&q->arena, "%s/%s", dir, file);
	plain = arena_cstr(&q->arena, str_first(name, name.len - 4));
	if (!path || !plain)
		return error_no_memory(err);
	OW_TRY(read_file(q, path, &text, err));
	OW_TRY(query_parse(&q->arena, plain, path, text, &query, err));
	return add(q, &query, err);
}

static ow_status add_dir(struct queries *q, const char *path, struct ow_error *err)
{
	DIR *dir = opendir(path);
	ow_status status = OW_OK;
	struct dirent *entry;

	if (!dir && errno == ENOENT)
		return OW_OK;
	if (!dir)
		return error_errno(err, errno, "%s", path);
	while (status == OW_OK && (entry = readdir(dir)))
		status = add_file(q, path, entry->d_name, err);
	closedir(dir);
	return status;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct query *)a)->name, ((const struct query *)b)->name);
}

static ow_status add_all(struct queries *q, const struct ow_list *dirs, struct ow_error *err)
{
	for (size_t i = 0; i < query_file_count; i++) {
		struct query query;

		OW_TRY(query_parse(&q->arena, query_files[i].name, NULL, query_files[i].text,
				   &query, err));
		OW_TRY(add(q, &query, err));
	}
	for (size_t i = 0; i < dirs->count; i++)
		OW_TRY(add_dir(q, dirs->items[i], err));
	qsort(q->items, q->count, sizeof(*q->items), by_name);
	return OW_OK;
}

ow_status queries_open(struct queries *q, struct mem *mem, const struct ow_list *dirs,
		       struct ow_error *err)
{
	ow_status status;

	*q = (struct queries){ .mem = mem };
	arena_init(&q->arena, mem);
	status = add_all(q, dirs, err);
	if (status != OW_OK)
		queries_close(q);
	return status;
}

void queries_close(struct queries *q)
{
	mem_free(q->mem, q->items, q->cap * sizeof(*q->items));
	arena_release(&q->arena);
	*q = (struct queries){ .mem = q->mem };
}
