/*
 * minute.c: opens recordings from the page Jobs: the minute that the daemon saved around an anomaly, and the last
 * minute of a running job. Each is shown by a separate page in this process, with its own address and token; the last
 * minute can also be downloaded. A file is opened only if the daemon lists it: no path from a request is used.
 */
#include "page/page_int.h"

#include "base/json_escape.h"

#include <errno.h>
#include <unistd.h>

#define JOB_NAME 512
#define KEPT_NS ((int64_t)60000000000)
#define DOWNLOAD_MOST ((size_t)512 << 20)

void page_drop_scratch(struct page_child *child)
{
	if (!*child->folder)
		return;
	(void)!unlink(child->path);
	(void)!rmdir(child->folder);
}

static void close_child(struct page_child *child)
{
	ow_ui_close(child->ui);
	page_drop_scratch(child);
	*child = (struct page_child){ 0 };
}

void page_close_children(struct ow_ui *ui)
{
	while (ui->child_count)
		close_child(&ui->children[--ui->child_count]);
}

/* Makes room for a new page; the oldest one is closed when there are too many. */
static struct page_child *new_child(struct ow_ui *ui)
{
	if (ui->child_count == PAGE_CHILDREN) {
		close_child(&ui->children[0]);
		memmove(ui->children, ui->children + 1,
			(PAGE_CHILDREN - 1) * sizeof(*ui->children));
		ui->child_count--;
	}
	ui->children[ui->child_count] = (struct page_child){ 0 };
	return &ui->children[ui->child_count];
}

ow_status page_make_scratch(struct page_child *child, struct ow_error *err)
{
	const char *base = getenv("TMPDIR");
	char folder[sizeof(child->folder)];

	if (snprintf(folder, sizeof(folder), "%s/opwatch-XXXXXX", base && *base ? base : "/tmp") >=
	    (int)sizeof(folder))
		return error_set(err, OW_E_LIMIT, "TMPDIR is too long");
	if (!mkdtemp(folder))
		return error_errno(err, errno, "%s", folder);
	memcpy(child->folder, folder, sizeof(folder));
	snprintf(child->path, sizeof(child->path), "%s/job.opw", folder);
	return OW_OK;
}

static bool copy_text(char *to, size_t size, struct str text, struct ow_error *err)
{
	if (text.len >= size || memchr(text.ptr ? text.ptr : "", '\0', text.len)) {
		error_set(err, OW_E_USAGE, "the name is too long");
		return false;
	}
	snprintf(to, size, "%.*s", STR_ARG(text));
	return true;
}

/* Starts a separate page for a file; the page of a running job is updated. */
static ow_status start_child(struct ow_ui *ui, struct page_child *child, const char *job,
			     struct ow_error *err)
{
	struct ow_open_options open = ui->open;
	struct ow_ui_options options;
	const char *path = child->path;

	open.progress = NULL;
	open.progress_arg = NULL;
	ow_ui_options_init(&options);
	options.open = &open;
	options.listen = ui->listen;
	options.source_dir = ui->source_dir;
	options.daemon_socket = ui->daemon_socket;
	options.job = job;
	options.job_last_ns = job ? KEPT_NS : 0;
	return ow_ui_open(&path, 1, &options, &child->ui, err);
}

PAGE_HANDLER(anomalies)
{
	struct ow_ui *u = ui;
	struct ow_write_options write;
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	ow_status status = ow_job_anomalies(u->daemon_socket, &result, &err);

	(void)request;
	ow_write_options_init(&write);
	if (status == OW_OK)
		status = ow_result_write(result, "json", &write, page_write, &reply->body, &err);
	if (status != OW_OK)
		page_answer_empty(reply, "anomalies", err.text);
	ow_result_free(result);
}

/* Whether the daemon has saved a file with this path for this user. */
static bool is_saved(struct ow_ui *ui, struct str path, struct ow_error *err)
{
	ow_result *list = NULL;
	bool found = false;

	if (ow_job_anomalies(ui->daemon_socket, &list, err) != OW_OK)
		return false;
	for (uint32_t i = 0; !found && i < ow_result_rows(list); i++) {
		size_t len;
		const char *text = ow_result_text(list, i, ow_result_find(list, "file"), &len);

		found = text && str_eq(str_make(text, len), path) &&
			ow_result_int(list, i, ow_result_find(list, "saved")) == 1;
	}
	ow_result_free(list);
	if (!found)
		error_set(err, OW_E_NOT_FOUND,
			  "the daemon does not list this file, or its minute is not over yet");
	return found;
}

static ow_status open_file(struct ow_ui *ui, struct str path, const char **address,
			   struct ow_error *err)
{
	struct page_child *child;

	for (size_t i = 0; i < ui->child_count; i++)
		if (!*ui->children[i].folder && str_eq(str_from(ui->children[i].path), path)) {
			*address = ow_ui_address(ui->children[i].ui);
			return OW_OK;
		}
	if (!is_saved(ui, path, err))
		return err->status;
	child = new_child(ui);
	if (!copy_text(child->path, sizeof(child->path), path, err))
		return OW_E_USAGE;
	OW_TRY(start_child(ui, child, NULL, err));
	ui->child_count++;
	*address = ow_ui_address(child->ui);
	return OW_OK;
}

static ow_status open_job(struct ow_ui *ui, struct str name, const char **address,
			  struct ow_error *err)
{
	struct page_child *child;
	ow_status status;
	char job[JOB_NAME];

	if (!copy_text(job, sizeof(job), name, err))
		return OW_E_USAGE;
	child = new_child(ui);
	OW_TRY(page_make_scratch(child, err));
	status = ow_job_cut(ui->daemon_socket, job, KEPT_NS, child->path, NULL, err);
	if (status == OW_OK)
		status = start_child(ui, child, job, err);
	if (status != OW_OK) {
		page_drop_scratch(child);
		return status;
	}
	ui->child_count++;
	*address = ow_ui_address(child->ui);
	return OW_OK;
}

/* The body of the request: "file" or "job", and in the next line the path of a saved minute or the name of a job. */
PAGE_HANDLER(minute)
{
	struct ow_ui *u = ui;
	struct str rest = request->body, kind;
	struct ow_error err = { 0 };
	const char *address = "";
	ow_status status;

	str_split(&rest, '\n', &kind);
	if (u->on_socket) {
		server_fail(reply, 409,
			    "this page is on a socket and cannot open a second page; run "
			    "'opwatch ui %.*s'",
			    STR_ARG(str_first(rest, 400)));
		return;
	}
	pthread_mutex_lock(&u->child_lock);
	if (str_eq(kind, STR("file")))
		status = open_file(u, rest, &address, &err);
	else if (str_eq(kind, STR("job")))
		status = open_job(u, rest, &address, &err);
	else
		status = error_set(&err, OW_E_USAGE, "name a file or a job to open");
	if (status == OW_OK) {
		buf_puts(&reply->body, "{\"address\": ");
		json_quote(&reply->body, str_from(address));
		buf_puts(&reply->body, "}\n");
	}
	pthread_mutex_unlock(&u->child_lock);
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

bool page_send_file(struct server_reply *reply, const char *path)
{
	char part[65536];
	FILE *file = fopen(path, "rbe");
	size_t n;

	if (!file)
		return false;
	reply->type = "application/octet-stream";
	while (reply->body.len <= DOWNLOAD_MOST && (n = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&reply->body, part, n);
	fclose(file);
	if (reply->body.len > DOWNLOAD_MOST)
		server_fail(
			reply, 413,
			"the recording is larger than %zu MB: opwatch record --last 60s --job NAME",
			DOWNLOAD_MOST >> 20);
	return true;
}

/* The body of the request is the name of a job; the answer is its last minute as a file to keep. */
PAGE_HANDLER(keep)
{
	struct ow_ui *u = ui;
	struct page_child scratch = { 0 };
	struct ow_error err = { 0 };
	char job[JOB_NAME];
	ow_status status = copy_text(job, sizeof(job), request->body, &err)
				   ? page_make_scratch(&scratch, &err)
				   : OW_E_USAGE;

	if (status == OW_OK)
		status = ow_job_cut(u->daemon_socket, job, KEPT_NS, scratch.path, NULL, &err);
	if (status == OW_OK && !page_send_file(reply, scratch.path))
		status = error_errno(&err, errno, "%s", scratch.path);
	page_drop_scratch(&scratch);
	if (status != OW_OK)
		page_fail(reply, status, &err);
}
