/* remote.c: servers: opening one, asking it, pushing to it; bodies of ow_remote_… and ow_push. */
#include "api/api_int.h"
#include "opwatch/push.h"
#include "opwatch/ranks.h"

#include "push/answer.h"
#include "push/baseline.h"
#include "push/push.h"
#include "push/ranks_on.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PASSWORD_MAX 1024
#define DEFAULT_SILENCE_MS 300000
#define DEFAULT_BATCH_ROWS 1000000
#define DEFAULT_RETRY_MS 120000
#define DEFAULT_CONNECTIONS 4

struct ow_remote {
	struct mem mem;
	struct arena arena;
	struct address address;
	struct ow_remote_options options;
	char password[PASSWORD_MAX];
	struct click click;
};

void ow_remote_options_init(struct ow_remote_options *options)
{
	*options = (struct ow_remote_options){ .size = sizeof(*options),
					       .silence_ms = DEFAULT_SILENCE_MS };
}

static ow_status take_password(ow_remote *remote, const char *text, size_t len, const char *from,
			       struct ow_error *err)
{
	if (len >= sizeof(remote->password))
		return error_set(err, OW_E_USAGE, "the password in %s is too long", from);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 32 || text[i] == 127)
			return error_set(err, OW_E_USAGE,
					 "the password in %s has more than one line, or characters "
					 "that cannot be sent",
					 from);
	memcpy(remote->password, text, len);
	remote->password[len] = 0;
	return OW_OK;
}

static ow_status read_password(ow_remote *remote, const char *path, struct ow_error *err)
{
	char text[PASSWORD_MAX + 2];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
	ow_status status;

	if (len < 0)
		status = error_errno(err, errno, "%s", path);
	if (fd >= 0)
		close(fd);
	if (len < 0)
		return status;
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	status = take_password(remote, text, (size_t)len, path, err);
	explicit_bzero(text, sizeof(text));
	return status;
}

static ow_status find_password(ow_remote *remote, struct ow_error *err)
{
	const struct ow_remote_options *options = &remote->options;
	const char *text = getenv("OPWATCH_CLICKHOUSE_PASSWORD");

	if (options->password)
		return take_password(remote, options->password, strlen(options->password),
				     "the options", err);
	if (options->password_file)
		return read_password(remote, options->password_file, err);
	if (text)
		return take_password(remote, text, strlen(text), "OPWATCH_CLICKHOUSE_PASSWORD",
				     err);
	return OW_OK;
}

static ow_status open_remote(ow_remote *remote, const char *address, struct ow_error *err)
{
	struct click_options click = { .http = { 10000, remote->options.silence_ms,
						 remote->options.keep_going,
						 remote->options.keep_going_arg, false },
				       .password = remote->password };

	OW_TRY(address_parse(&remote->address, &remote->arena, str_from(address), err));
	OW_TRY(find_password(remote, err));
	return click_open(&remote->click, &remote->mem, &remote->address, &click, err);
}

ow_status ow_remote_open(const char *address, const struct ow_remote_options *options,
			 ow_remote **out, struct ow_error *err)
{
	ow_remote *remote = calloc(1, sizeof(*remote));
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!remote)
		return error_no_memory(err);
	ow_remote_options_init(&remote->options);
	SIZED_IN(&remote->options, options);
	mem_init(&remote->mem, (size_t)remote->options.memory_limit);
	arena_init(&remote->arena, &remote->mem);
	status = open_remote(remote, address, err);
	if (status != OW_OK) {
		ow_remote_free(remote);
		return status;
	}
	*out = remote;
	return OW_OK;
}

void ow_remote_free(ow_remote *remote)
{
	if (!remote)
		return;
	if (remote->click.mem)
		click_close(&remote->click);
	arena_release(&remote->arena);
	explicit_bzero(remote->password, sizeof(remote->password));
	free(remote);
}

/* Removes a final semicolon: the server takes one statement, and for some of them no semicolon. */
static struct str bare_statement(const char *text)
{
	struct str s = str_trim(str_from(text));

	while (str_ends(s, STR(";")))
		s = str_trim(str_first(s, s.len - 1));
	return s;
}

static ow_status make_table(struct str answer, const char *name, struct mem *mem, struct table **r,
			    struct ow_error *err)
{
	*r = table_new(mem, name, err);
	return *r ? answer_read(*r, answer, err) : OW_E_NO_MEMORY;
}

static ow_status read_answer(ow_remote *remote, struct str text, struct mem *mem, struct table **r,
			     struct ow_error *err)
{
	size_t limit = mem->limit ? mem->limit : SIZE_MAX / 2;
	struct buf answer;
	ow_status status;

	buf_init(&answer, mem);
	status = click_query(&remote->click, text, limit, &answer, err);
	if (status == OW_OK && answer.len && !remote->click.is_tsv)
		status = error_set(err, OW_E_USAGE,
				   "the query has a FORMAT clause: leave it out; --json and --csv "
				   "choose the output format");
	if (status == OW_OK)
		status = make_table(buf_str(&answer), "sql", mem, r, err);
	buf_release(&answer);
	return status;
}

static ow_status read_kept(ow_remote *remote, struct str text, struct mem *mem, struct table **r,
			   struct ow_error *err)
{
	struct buf answer;
	ow_status status;

	(void)text;
	buf_init(&answer, mem);
	status = baseline_list(&remote->click, &answer, err);
	if (status == OW_OK)
		status = make_table(buf_str(&answer), "baseline", mem, r, err);
	buf_release(&answer);
	return status;
}

typedef ow_status (*answer_fn)(ow_remote *remote, struct str text, struct mem *mem,
			       struct table **r, struct ow_error *err);

/* Makes a result that owns its memory. */
static ow_status own_result(ow_remote *remote, answer_fn answer, struct str text, ow_result **out,
			    struct ow_error *err)
{
	ow_result *result = calloc(1, sizeof(*result));
	ow_status status;

	*out = NULL;
	if (!result)
		return error_no_memory(err);
	mem_init(&result->own, (size_t)remote->options.memory_limit);
	status = answer(remote, text, &result->own, &result->r, err);
	if (status != OW_OK) {
		ow_result_free(result);
		return status;
	}
	*out = result;
	return OW_OK;
}

ow_status ow_remote_query(ow_remote *remote, const char *text, ow_result **out,
			  struct ow_error *err)
{
	struct str statement = bare_statement(text);

	error_clear(err);
	*out = NULL;
	if (!statement.len)
		return error_set(err, OW_E_USAGE, "there is no statement in the text");
	return own_result(remote, read_answer, statement, out, err);
}

_Static_assert(OW_KEPT_ID == BASELINE_ID + 1, "the length of an id");

ow_status ow_remote_keep(ow_remote *remote, const char *path, const struct ow_kept_run *run,
			 char id[OW_KEPT_ID], struct ow_error *err)
{
	struct ow_kept_run full = { .size = sizeof(full) };
	struct baseline_facts facts;

	error_clear(err);
	SIZED_IN(&full, run);
	facts = (struct baseline_facts){ full.commit, full.host, full.file, full.configuration };
	return baseline_store(&remote->click, path, &facts, id, err);
}

ow_status ow_remote_kept(ow_remote *remote, ow_result **out, struct ow_error *err)
{
	error_clear(err);
	return own_result(remote, read_kept, STR(""), out, err);
}

ow_status ow_remote_fetch(ow_remote *remote, const char *id, const char *path, struct ow_error *err)
{
	error_clear(err);
	return baseline_fetch(&remote->click, id, path, err);
}

static ow_status compare_ranks(ow_remote *remote, struct mem *mem, const struct ranks_on *on,
			       struct table **out, struct ow_error *err)
{
	struct ranks_job job;
	uint64_t steps = 0;
	ow_status status;

	ranks_init(&job, mem);
	status = ranks_read_server(&job, &remote->click, on, &steps, err);
	if (status == OW_OK) {
		*out = table_new(mem, "ranks", err);
		status = *out ? ranks_table(&job, *out, err) : OW_E_NO_MEMORY;
	}
	if (status == OW_OK) {
		table_add_extra(*out, "files_skipped", "0");
		table_add_extra(*out, "steps_on_server", "%" PRIu64, steps);
		table_add_extra(*out, "steps_added_on_server", "%zu", job.steps_added_up);
	}
	ranks_release(&job);
	return status;
}

ow_status ow_ranks_remote(ow_remote *remote, const char *const *runs, size_t count,
			  const struct ow_ranks_options *options, ow_result **out,
			  struct ow_error *err)
{
	struct ranks_on on = { .runs = { runs, count } };
	const char *most = getenv("OPWATCH_RANKS_COLLECTIVES"); /* smaller limit for tests */
	struct ow_ranks_options full;
	ow_result *result = calloc(1, sizeof(*result));
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!result)
		return error_no_memory(err);
	ow_ranks_options_init(&full);
	SIZED_IN(&full, options);
	on.collectives_most = most ? strtoull(most, NULL, 10) : 0;
	mem_init(&result->own, (size_t)full.memory_limit);
	status = compare_ranks(remote, &result->own, &on, &result->r, err);
	if (status != OW_OK) {
		ow_result_free(result);
		return status;
	}
	*out = result;
	return OW_OK;
}

_Static_assert(OW_CONTENT_TEXT == CONTENT_HEX + 1, "the length of a hash");

ow_status ow_content_hash(const char *const *paths, size_t count, char hex[OW_CONTENT_TEXT],
			  struct ow_error *err)
{
	struct path_list list;
	ow_status status;
	struct mem mem;

	error_clear(err);
	for (size_t i = 0; i < count; i++)
		if (strcmp(paths[i], "-") == 0)
			return error_set(err, OW_E_USAGE,
					 "standard input can be read only once; save it to a file "
					 "first");
	mem_init(&mem, 0);
	status = paths_expand(&list, &mem, paths, count, err);
	if (status == OW_OK)
		status = content_hash(&list, &mem, hex, err);
	arena_release(&list.arena);
	return status;
}

void ow_push_options_init(struct ow_push_options *options)
{
	*options = (struct ow_push_options){ .size = sizeof(*options),
					     .connections = DEFAULT_CONNECTIONS,
					     .batch_rows = DEFAULT_BATCH_ROWS,
					     .retry_ms = DEFAULT_RETRY_MS };
}

static uint64_t add_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return (hash ^ 0xff) * 0x100000001b3ull;
}

/* Hashes the import options that change rows. */
static uint64_t hash_reading(const ow_profile *p)
{
	const struct ow_open_options *o = &p->options;
	uint64_t hash = 0xcbf29ce484222325ull;

	hash = add_text(hash, o->infer ? "infer" : "");
	hash = add_text(hash, o->redact ? "redact" : "");
	hash = add_text(hash, o->strict_proto ? "strict" : "");
	hash = add_text(hash, p->import.step_marker);
	for (size_t i = 0; i < p->import.input_shape_count; i++)
		hash = add_text(hash, p->import.input_shapes[i]);
	return hash;
}

static void pass_note(void *arg, const char *line)
{
	const struct ow_push_options *options = arg;

	if (options->message)
		options->message(options->message_arg, line, strlen(line));
}

static bool pass_progress(void *arg, uint64_t done, uint64_t total)
{
	const struct ow_push_options *options = arg;

	return !options->progress || options->progress(options->progress_arg, done, total);
}

static ow_status check_options(const ow_profile *p, const struct ow_push_options *o,
			       struct ow_error *err)
{
	OW_TRY(api_check_frozen(p, err));
	if (!o->name || !*o->name || strlen(o->name) > 1000 || !utf8_valid(str_from(o->name)))
		return error_set(err, OW_E_USAGE, "a run needs a name, of valid UTF-8");
	if (!o->content || strlen(o->content) + 1 != OW_CONTENT_TEXT ||
	    strspn(o->content, "0123456789abcdef") != strlen(o->content))
		return error_set(err, OW_E_USAGE,
				 "the hash of the content is needed, as ow_content_hash gives it");
	if (!o->connections || !o->batch_rows)
		return error_set(err, OW_E_USAGE, "connections and rows of a batch must not be 0");
	return OW_OK;
}

static void fill_summary(const struct push_summary *s, struct ow_push_summary *to)
{
	struct ow_push_summary all = { .size = sizeof(all),
				       .rows = s->rows,
				       .sent = s->sent,
				       .batches = s->batches,
				       .batches_found = s->batches_found,
				       .repeats = s->repeats,
				       .tables = s->tables,
				       .nodes = s->nodes,
				       .shards = s->shards,
				       .published_before = s->published_before,
				       .replaced = s->replaced };

	SIZED_OUT(to, &all);
}

ow_status ow_push(ow_profile *p, ow_remote *remote, const struct ow_push_options *options,
		  struct ow_push_summary *summary, struct ow_error *err)
{
	struct ow_push_options o;
	struct push_summary sums = { 0 };
	struct push_options push;
	ow_status status;

	error_clear(err);
	ow_push_options_init(&o);
	SIZED_IN(&o, options);
	OW_TRY(check_options(p, &o, err));
	push = (struct push_options){ .address = remote->address,
				      .password = remote->password,
				      .cluster = o.cluster,
				      .nodes = o.nodes,
				      .tables = o.tables,
				      .run = o.name,
				      .content = o.content,
				      .reading = hash_reading(p),
				      .connections = o.connections,
				      .batch_rows = o.batch_rows,
				      .retry_ms = o.retry_ms,
				      .await = o.await_server,
				      .replace = o.replace,
				      .progress = pass_progress,
				      .progress_arg = &o,
				      .note = pass_note,
				      .note_arg = &o };
	status = push_run(p->m, &push, &p->mem, &sums, err);
	fill_summary(&sums, summary);
	return status;
}
