/*
 * checkpoint.c: opening checkpoints, their list of variables, and the reading of one; see
 * checkpoint.h. The two kinds of files are in checkpoint_bundle.c and checkpoint_saved.c.
 */
#include "wire/tensorflow/checkpoint_kinds.h"
#include "base/vec.h"
#include "wire/tensorflow/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX_SUFFIX ".index"
#define OTHER_FORMAT                                                                               \
	": perhaps your file is in a different file format and you need to use a different "       \
	"restore operator?"

ow_status checkpoint_fail(const char **code, const char *name, struct ow_error *err,
			  ow_status status, const char *format, ...)
{
	char text[OW_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	*code = name;
	return error_set(err, status, "%s", text);
}

/* Returns TensorFlow's name of a failure that has none yet. */
static const char *code_of(ow_status status)
{
	switch (status) {
	case OW_E_CORRUPT:
		return "Data loss";
	case OW_E_NOT_FOUND:
		return "Not found";
	case OW_E_PERMISSION:
		return "Permission denied";
	case OW_E_NO_MEMORY:
		return "Resource exhausted";
	case OW_E_UNSUPPORTED:
		return "Unimplemented";
	default:
		return "Unknown";
	}
}

static ow_status fail_errno(const char **code, struct ow_error *err, int number, const char *path)
{
	ow_status status = error_errno(err, number, "%s", path);

	return checkpoint_fail(code, number == EISDIR ? "Failed precondition" : code_of(status),
			       err, status, "%s; %s", path, strerror(number));
}

ow_status checkpoint_open_file(struct input *in, struct mem *mem, const char *path,
			       const char **code, struct ow_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC |
				    O_NONBLOCK); /* so that a pipe of this name does not block */
	struct stat st = { 0 };
	ow_status status;

	*in = (struct input){ .mem = mem, .fd = -1 };
	if (fd < 0)
		return fail_errno(code, err, errno, path);
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
		status = fail_errno(code, err, S_ISDIR(st.st_mode) ? EISDIR : errno, path);
		close(fd);
		return status;
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return checkpoint_fail(code, "Failed precondition", err, OW_E_FORMAT,
				       "%s is a pipe or a device, not a file", path);
	}
	status = input_adopt_fd(in, mem, path, fd, err);
	if (status != OW_OK && in->fd != fd)
		close(fd);
	return status;
}

struct checkpoint_var *checkpoint_add(struct checkpoint *c, struct str name)
{
	struct checkpoint_var *var;
	struct str copy;

	if (c->entry_count >= UINT32_MAX - 1 ||
	    !vec_reserve(c->mem, c->vars, c->entry_cap, c->entry_count + 1))
		return NULL;
	copy = arena_str(&c->arena, name);
	if (!copy.ptr || !map_add(&c->by_name, str_hash(name), (uint32_t)c->entry_count + 1))
		return NULL;
	var = &c->vars[c->entry_count++];
	*var = (struct checkpoint_var){ .name = copy };
	return var;
}

struct checkpoint_var *checkpoint_lookup(const struct checkpoint *c, struct str name)
{
	struct map_iter it;

	for (it = map_find(&c->by_name, str_hash(name)); it.value; it = map_next(&c->by_name, it))
		if (str_eq(c->vars[it.value - 1].name, name))
			return &c->vars[it.value - 1];
	return NULL;
}

void checkpoint_count_damage(struct checkpoint *c, uint64_t offset)
{
	if (!c->damaged++)
		c->damaged_offset = offset;
}

const struct checkpoint_var *checkpoint_find(const struct checkpoint *c, struct str name)
{
	const struct checkpoint_var *var = checkpoint_lookup(c, name);

	return var && !var->part ? var : NULL;
}

static int compare_vars(const void *a, const void *b)
{
	const struct checkpoint_var *x = a, *y = b;

	if (x->part != y->part)
		return x->part - y->part;
	return str_cmp(x->name, y->name);
}

/* Sorts variables by name, then parts; positions change, so the index is rebuilt. */
static ow_status sort_vars(struct checkpoint *c, struct ow_error *err)
{
	if (c->entry_count)
		qsort(c->vars, c->entry_count, sizeof(*c->vars), compare_vars);
	map_release(&c->by_name);
	map_init(&c->by_name, c->mem);
	c->var_count = 0;
	for (size_t i = 0; i < c->entry_count; i++) {
		if (!map_add(&c->by_name, str_hash(c->vars[i].name), (uint32_t)i + 1))
			return error_no_memory(err);
		c->var_count += !c->vars[i].part;
	}
	return OW_OK;
}

static void init_checkpoint(struct checkpoint *c, struct mem *mem)
{
	*c = (struct checkpoint){ .mem = mem, .damaged_offset = OW_NO_OFFSET };
	arena_init(&c->arena, mem);
	map_init(&c->by_name, mem);
}

void checkpoint_close(struct checkpoint *c)
{
	const char *code = c->code;

	for (size_t i = 0; i < c->file_count; i++) {
		sstable_close(&c->files[i].table);
		input_close(&c->files[i].own);
	}
	mem_free(c->mem, c->vars, c->entry_cap * sizeof(*c->vars));
	map_release(&c->by_name);
	arena_release(&c->arena);
	*c = (struct checkpoint){ .mem = c->mem, .code = code };
}

static ow_status finish_open(struct checkpoint *c, ow_status status, struct ow_error *err)
{
	if (status == OW_OK)
		status = sort_vars(c, err);
	if (status == OW_OK)
		return OW_OK;
	if (!c->code)
		c->code = code_of(status);
	checkpoint_close(c);
	return status;
}

static ow_status set_prefix(struct checkpoint *c, const char *path, struct ow_error *err)
{
	struct str prefix = str_from(path);

	if (str_ends(prefix, STR(INDEX_SUFFIX)))
		prefix.len -= strlen(INDEX_SUFFIX);
	c->prefix = arena_cstr(&c->arena, prefix);
	return c->prefix ? OW_OK : error_no_memory(err);
}

/* Opens a bundle; `path` is that of the index. */
static ow_status open_bundle(struct checkpoint *c, const char *path, struct ow_error *err)
{
	struct sstable table;
	struct input in;
	ow_status status;

	OW_TRY(set_prefix(c, path, err));
	OW_TRY(checkpoint_open_file(&in, c->mem, path, &c->code, err));
	status = sstable_open(&table, c->mem, &in, err);
	if (status == OW_OK)
		status = bundle_load(c, &table, path, err);
	sstable_close(&table);
	input_close(&in);
	return status;
}

/* Reports a table that failed to open in TensorFlow's words. */
static ow_status table_failure(struct checkpoint *c, const char *path, bool opened,
			       ow_status status, struct ow_error *err)
{
	char text[OW_ERROR_TEXT];

	if (status == OW_E_NO_MEMORY || !err)
		return status;
	snprintf(text, sizeof(text), "%s", err->text);
	return checkpoint_fail(
		&c->code, "Data loss", err, status, "Unable to open table file %s: %s: %s%s", path,
		c->code ? c->code : code_of(status), text,
		opened || (c->code && strcmp(c->code, "Failed precondition") == 0) ? OTHER_FORMAT
										   : "");
}

static ow_status open_saved(struct checkpoint *c, char *const *paths, size_t count,
			    struct ow_error *err)
{
	c->version = 1;
	c->files = ARENA_ARRAY(&c->arena, struct checkpoint_file, count);
	if (!c->files)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++) {
		struct checkpoint_file *file = &c->files[i];
		ow_status status =
			checkpoint_open_file(&file->own, c->mem, paths[i], &c->code, err);

		if (status != OW_OK)
			return table_failure(c, paths[i], false, status, err);
		file->in = &file->own;
		file->table.mem = c->mem;
		c->file_count++;
		status = sstable_open(&file->table, c->mem, file->in, err);
		if (status != OW_OK)
			return table_failure(c, paths[i], true, status, err);
		OW_TRY(saved_load(c, i, err));
	}
	return OW_OK;
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

static ow_status open_pattern(struct checkpoint *c, const char *path, struct ow_error *err)
{
	char *literal = (char *)path;
	ow_status status;
	glob_t found;
	int failed;

	if (exists(path))
		return open_saved(c, &literal, 1, err);
	failed = glob(path, 0, NULL, &found);
	if (failed == GLOB_NOSPACE)
		return error_no_memory(err);
	if (failed)
		return checkpoint_fail(
			&c->code, "Not found", err, OW_E_NOT_FOUND,
			"Unsuccessful TensorSliceReader constructor: Failed to find any "
			"matching files for %s",
			path);
	status = open_saved(c, found.gl_pathv, found.gl_pathc, err);
	globfree(&found);
	return status;
}

static bool matches(const char *pattern)
{
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		return false;
	globfree(&found);
	return true;
}

/* Whether the table's first value is a bundle's header: a V1 file has a message in field 1, where
 * the header has the number of shards. */
static ow_status is_bundle(const struct sstable *table, bool *bundle, struct ow_error *err)
{
	struct sstable_iter it;
	struct pb_field f;
	ow_status status;

	*bundle = true;
	sstable_iter_init(&it, table);
	status = sstable_find(&it, STR(""), err);
	if (status == OW_OK && it.valid) {
		struct pb message = pb_over(it.value.ptr, it.value.len);

		while (pb_next(&message, &f))
			if (f.tag == PB_TAG(1, PB_BYTES))
				*bundle = false;
	}
	sstable_iter_release(&it);
	return status == OW_E_NO_MEMORY ? status : OW_OK;
}

static bool is_index(struct mem *mem, const char *path)
{
	const char *code = NULL;
	struct sstable table;
	struct input in;
	bool bundle = false;

	if (!str_ends(str_from(path), STR(INDEX_SUFFIX)) ||
	    checkpoint_open_file(&in, mem, path, &code, NULL) != OW_OK)
		return false;
	if (sstable_open(&table, mem, &in, NULL) == OW_OK &&
	    is_bundle(&table, &bundle, NULL) != OW_OK)
		bundle = false;
	sstable_close(&table);
	input_close(&in);
	return bundle;
}

static ow_status open_path(struct checkpoint *c, const char *path, struct ow_error *err)
{
	const char *index = arena_printf(&c->arena, "%s" INDEX_SUFFIX, path);

	if (!index)
		return error_no_memory(err);
	if (exists(index) || matches(index))
		return open_bundle(c, index, err);
	if (is_index(c->mem, path))
		return open_bundle(c, path, err);
	return open_pattern(c, path, err);
}

ow_status checkpoint_open(struct checkpoint *c, struct mem *mem, const char *path,
			  struct ow_error *err)
{
	/* messages contain other messages, so an error struct is needed */
	struct ow_error mine = { 0 };

	init_checkpoint(c, mem);
	return finish_open(c, open_path(c, path, err ? err : &mine), err);
}

static ow_status open_table(struct checkpoint *c, const struct input *in, struct ow_error *err)
{
	struct checkpoint_file *file = ARENA_NEW(&c->arena, struct checkpoint_file);
	bool bundle;

	if (!file)
		return error_no_memory(err);
	file->own = (struct input){ .mem = c->mem, .fd = -1 };
	file->in = in;
	file->table.mem = c->mem;
	c->files = file;
	c->file_count = 1;
	OW_TRY(sstable_open(&file->table, c->mem, in, err));
	OW_TRY(is_bundle(&file->table, &bundle, err));
	if (!bundle) {
		c->version = 1;
		return saved_load(c, 0, err);
	}
	OW_TRY(set_prefix(c, in->name, err));
	return bundle_load(c, &file->table, in->name, err);
}

ow_status checkpoint_open_input(struct checkpoint *c, struct mem *mem, const struct input *in,
				struct ow_error *err)
{
	init_checkpoint(c, mem);
	return finish_open(c, open_table(c, in, err), err);
}

ow_status tensor_reserve(struct checkpoint_tensor *t, size_t bytes, struct ow_error *err)
{
	t->data = mem_zalloc(t->mem, bytes + 1);
	if (!t->data)
		return error_no_memory(err);
	t->data_cap = bytes + 1;
	t->data_size = bytes;
	return OW_OK;
}

void checkpoint_tensor_release(struct checkpoint_tensor *t)
{
	mem_free(t->mem, t->data, t->data_cap);
	mem_free(t->mem, t->strings, t->string_cap);
	*t = (struct checkpoint_tensor){ .mem = t->mem, .code = t->code };
}

ow_status checkpoint_read(const struct checkpoint *c, struct str name, struct checkpoint_tensor *t,
			  struct ow_error *err)
{
	ow_status status;

	*t = (struct checkpoint_tensor){ .mem = c->mem };
	status = c->version == 2 ? bundle_read(c, name, t, err) : saved_read(c, name, t, err);
	if (status == OW_OK)
		return OW_OK;
	if (!t->code)
		t->code = code_of(status);
	checkpoint_tensor_release(t);
	return status;
}

/* Values as text.
 * What tfprof shows for the value of a variable: brackets per dimension, elements followed by a blank.
 */

#define TEXT_MAX 10000	     /* text beyond this length is cut off */
#define HUGE_ELEMENTS 100000 /* number of elements from which on tfprof warns */

static double element_double(const struct checkpoint_tensor *t, int64_t i)
{
	float narrow;
	double wide;

	if (t->dtype == TF_FLOAT) {
		memcpy(&narrow, t->data + (size_t)i * sizeof(narrow), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, t->data + (size_t)i * sizeof(wide), sizeof(wide));
	return wide;
}

static int64_t element_int(const struct checkpoint_tensor *t, int64_t i)
{
	int32_t narrow;
	int64_t wide;

	if (t->dtype == TF_INT32) {
		memcpy(&narrow, t->data + (size_t)i * sizeof(narrow), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, t->data + (size_t)i * sizeof(wide), sizeof(wide));
	return wide;
}

/* Adds a number as tfprof does: it prints six digits, reads them back, and prints two decimals. */
static void add_double(struct buf *out, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%g", value);
	buf_printf(out, "%.2f ", strtod(text, NULL));
}

static void add_element(struct buf *out, const struct checkpoint_tensor *t, int64_t i)
{
	if (t->dtype == TF_FLOAT || t->dtype == TF_DOUBLE) {
		add_double(out, element_double(t, i));
	} else if (t->dtype == TF_STRING) {
		buf_add_char(out, '\'');
		buf_add_str(out, str_first(t->strings[i], TEXT_MAX + 1));
		buf_puts(out, "' ");
	} else {
		buf_printf(out, "%" PRId64 " ", element_int(t, i));
	}
}

static bool is_full(const struct buf *out, size_t start)
{
	return out->len - start > TEXT_MAX || out->failed;
}

/* Adds the elements in brackets, without the last closing one; stops when nothing more can be
 * shown. */
static void add_brackets(struct buf *out, size_t start, const struct checkpoint_tensor *t)
{
	int64_t at[256] = { 0 };
	int64_t next = 0;
	int32_t depth = 0;

	buf_add_char(out, '[');
	if (t->rank == 0) {
		add_element(out, t, 0);
		return;
	}
	while (!is_full(out, start)) {
		if (at[depth] == t->dims[depth]) {
			if (depth == 0)
				return;
			buf_puts(out, "],\n");
			at[depth--] = 0;
		} else if (depth == t->rank - 1) {
			at[depth]++;
			add_element(out, t, next++);
		} else {
			at[depth++]++;
			buf_add_char(out, '[');
		}
	}
}

/* Writes a tensor as tfprof does, which cuts before each closing bracket and continues: the
 * first 10,000 bytes stay, and the last bracket follows. */
enum tensor_text checkpoint_tensor_text(const struct checkpoint_tensor *t, struct buf *out)
{
	size_t start = out->len;

	switch (t->dtype) {
	case TF_FLOAT:
	case TF_DOUBLE:
	case TF_INT32:
	case TF_INT64:
	case TF_STRING:
		break;
	default:
		return TENSOR_TEXT_UNSUPPORTED;
	}
	add_brackets(out, start, t);
	if (out->len - start > TEXT_MAX)
		out->len = start + TEXT_MAX;
	buf_puts(out, "],\n");
	if (out->len - start >= TEXT_MAX)
		buf_puts(out, "...omitted from display\n\n");
	return t->elements > HUGE_ELEMENTS ? TENSOR_TEXT_HUGE : TENSOR_TEXT_OK;
}
