/*
 * ui.c: bodies of the ow_ui functions: starts the server with its routes, loads files on a separate thread, reports the
 * progress, serves the embedded files of the page. The other routes are in views.c, timeline.c and details.c.
 */
#include "page/page_int.h"

#include "analyze/view.h"
#include "base/clock.h"
#include "base/json_escape.h"
#include "base/parallel.h"
#include "model/event_filter.h"

#include <sys/resource.h>
#include <unistd.h>

/* Priorities of the threads that read files and build tiles: the browser starts and paints in that time, and goes first. */
#define LOAD_NICE 5
#define BUILD_NICE 10
#define STATE_WAIT_NS 200000000

bool page_ready(struct ow_ui *ui, struct server_reply *reply)
{
	struct ow_error err = { 0 };

	switch (ow_ui_progress(ui, &err)) {
	case OW_UI_READY:
		return true;
	case OW_UI_JOBS:
		server_fail(reply, 503, "no files are open");
		return false;
	case OW_UI_LOADING:
		server_fail(reply, 503, "the files are still being read");
		return false;
	default:
		server_fail(reply, 503, "%s", err.text);
		return false;
	}
}

void page_fail(struct server_reply *reply, ow_status status, const struct ow_error *err)
{
	static const unsigned codes[] = {
		[OW_E_USAGE] = 400,	  [OW_E_NOT_FOUND] = 404, [OW_E_PERMISSION] = 403,
		[OW_E_NO_MEMORY] = 503,	  [OW_E_LIMIT] = 413,	  [OW_E_UNSUPPORTED] = 501,
		[OW_E_INTERRUPTED] = 408,
	};
	unsigned code = (size_t)status < ARRAY_COUNT(codes) ? codes[status] : 0;

	server_fail(reply, code ? code : 500, "%s", err->text);
}

bool page_write(void *buf, const void *bytes, size_t len)
{
	struct buf *to = buf;

	buf_add(to, bytes, len);
	return !to->failed;
}

PAGE_HANDLER(asset)
{
	const char *path = strcmp(request->path, "/") == 0 ? "/index.html" : request->path;

	(void)ui;
	for (size_t i = 0; i < page_asset_count; i++)
		if (strcmp(page_assets[i].path, path) == 0) {
			reply->type = page_assets[i].type;
			reply->packed = true;
			buf_add(&reply->body, page_assets[i].bytes, page_assets[i].len);
			return;
		}
	server_fail(reply, 404, "there is nothing at this address");
}

static const char *const state_names[] = { "loading", "ready", "failed", "jobs" };

static void add_paths(const struct ow_ui *u, struct buf *to, const char *key, const char **paths,
		      size_t count)
{
	buf_printf(to, ", \"%s\": [", key);
	for (size_t i = 0; i < count; i++) {
		buf_puts(to, i ? ", " : "");
		if (u->open.redact)
			buf_printf(to, "\"%s-%zu\"", key, i + 1);
		else
			json_quote(to, str_from(paths[i]));
	}
	buf_puts(to, "]");
}

/* Adds a text in which a file name may be redacted. */
static void add_text(const struct ow_ui *u, struct buf *to, const char *key, const char *text,
		     const char *redacted)
{
	buf_printf(to, ", \"%s\": ", key);
	json_quote(to, str_from(u->open.redact ? redacted : text));
}

/* Adds the names of pages that have nothing to show, as far as that is known without reading all events. */
static void add_empty(const struct ow_ui *u, struct buf *to)
{
	const struct {
		const char *page;
		bool empty;
	} known[] = {
		{ "timeline", !tiles_row_count(u->tiles) },
		{ "memory", !u->facts.has_memory },
		{ "ranks", u->profile->m->source.count <= 2 },
	};
	const char *comma = "";

	buf_puts(to, ", \"empty\": [");
	for (size_t i = 0; i < ARRAY_COUNT(known); i++)
		if (known[i].empty) {
			buf_printf(to, "%s\"%s\"", comma, known[i].page);
			comma = ", ";
		}
	buf_puts(to, "]");
}

/* Adds the names of views that accept a range of time, with these files. */
static void add_parts(const struct ow_ui *u, struct buf *to)
{
	const char *comma = "";

	buf_puts(to, ", \"parts\": [");
	for (size_t i = 0; i < view_count && i < 64; i++)
		if (u->facts.parts >> i & 1) {
			buf_printf(to, "%s\"%s\"", comma, views[i]->name);
			comma = ", ";
		}
	buf_puts(to, "]");
}

static uint64_t find_parts(const struct model *m)
{
	uint64_t parts = 0;

	for (size_t i = 0; i < view_count && i < 64; i++) {
		struct view_options options;

		view_options_init(&options);
		options.time_from_ns = 1;
		view_options_drop(views[i], m, &options);
		if (options.time_from_ns == 1)
			parts |= UINT64_C(1) << i;
	}
	return parts;
}

/* Sets the state at the end of loading. */
static void set_state(struct ow_ui *ui, enum ow_ui_state state)
{
	pthread_mutex_lock(&ui->lock);
	atomic_store(&ui->state, state);
	pthread_cond_broadcast(&ui->loaded);
	pthread_mutex_unlock(&ui->lock);
}

/* Returns as soon as loading has ended, or after STATE_WAIT_NS. */
static void wait_for_loading(struct ow_ui *ui)
{
	int64_t until = steady_ns() + STATE_WAIT_NS;
	struct timespec end = { until / 1000000000, until % 1000000000 };
	int failed = 0;

	pthread_mutex_lock(&ui->lock);
	while (!failed && atomic_load(&ui->state) == OW_UI_LOADING)
		failed = pthread_cond_timedwait(&ui->loaded, &ui->lock, &end);
	pthread_mutex_unlock(&ui->lock);
}

/* With wait=1 the answer comes when loading ends, or a little later: the page need not ask again and again. */
PAGE_HANDLER(state)
{
	struct ow_ui *u = ui;
	struct buf *to = &reply->body;
	int state;

	if (server_param_int(request, "wait", 0))
		wait_for_loading(u);
	state = atomic_load(&u->state);
	pthread_mutex_lock(&u->lock);
	buf_printf(to, "{\"state\": \"%s\", \"version\": \"%s\"", state_names[state], ow_version());
	add_paths(u, to, "files", u->paths, u->path_count);
	add_paths(u, to, "base", u->base_paths, u->base_count);
	add_text(u, to, "file", u->file, "");
	buf_printf(to, ", \"done\": %llu, \"total\": %llu, \"elapsed_ns\": %lld",
		   (unsigned long long)u->done, (unsigned long long)u->total,
		   (long long)(steady_ns() - u->started_ns));
	if (state == OW_UI_FAILED)
		add_text(u, to, "error", u->failure.text, "a file cannot be read");
	if (*u->changed)
		add_text(u, to, "changed", u->changed,
			 "a file was changed since it was read; the page shows the old content");
	if (*u->refused)
		add_text(u, to, "refused", u->refused, "a file cannot be read");
	pthread_mutex_unlock(&u->lock);
	buf_printf(to, ", \"epoch\": %u, \"frozen\": %s", atomic_load(&u->epoch),
		   atomic_load(&u->frozen) ? "true" : "false");
	if (u->job)
		add_text(u, to, "job", u->job, "job");
	if (state == OW_UI_READY) {
		buf_printf(to,
			   ", \"damaged\": %s, \"redacted\": %s, \"start_ns\": \"%lld\", "
			   "\"span_ns\": %lld, \"view_start_ns\": %lld",
			   u->facts.damaged ? "true" : "false",
			   u->profile->options.redact ? "true" : "false", (long long)u->zero_ns,
			   (long long)wrap_sub(tiles_end(u->tiles), u->zero_ns),
			   (long long)u->facts.view_start_ns);
		add_empty(u, to);
		add_parts(u, to);
	}
	buf_puts(to, "}\n");
}

PAGE_HANDLER(cancel)
{
	struct ow_ui *u = ui;

	(void)request;
	if (atomic_load(&u->state) == OW_UI_LOADING) /* only loading can be cancelled */
		atomic_store(&u->cancelled, true);
	buf_puts(&reply->body, "{}\n");
}

static const struct page_route {
	enum server_method method;
	const char *path;
	bool open;
	void (*handle)(void *ui, const struct server_request *request, struct server_reply *reply);
} routes[] = {
	{ SERVER_GET, "/", true, page_asset },
	{ SERVER_GET, "/app.js", true, page_asset },
	{ SERVER_GET, "/app.css", true, page_asset },
	{ SERVER_GET, "/icon.svg", true, page_asset },
	{ SERVER_GET, "/api/state", false, page_state },
	{ SERVER_POST, "/api/cancel", false, page_cancel },
	{ SERVER_GET, "/api/view", false, page_view },
	{ SERVER_GET, "/api/advise", false, page_advise },
	{ SERVER_GET, "/api/info", false, page_info },
	{ SERVER_GET, "/api/folded", false, page_folded },
	{ SERVER_GET, "/api/rows", false, page_rows },
	{ SERVER_POST, "/api/tiles", false, page_tiles },
	{ SERVER_POST, "/api/names", false, page_names },
	{ SERVER_GET, "/api/near", false, page_near },
	{ SERVER_GET, "/api/event", false, page_event },
	{ SERVER_GET, "/api/sample", false, page_sample },
	{ SERVER_GET, "/api/search", false, page_search },
	{ SERVER_GET, "/api/area", false, page_area },
	{ SERVER_POST, "/api/sql", false, page_sql },
	{ SERVER_GET, "/api/tables", false, page_tables },
	{ SERVER_GET, "/api/queries", false, page_queries },
	{ SERVER_POST, "/api/ask", false, page_ask },
	{ SERVER_GET, "/api/source", false, page_source },
	{ SERVER_GET, "/api/jobs", false, page_jobs },
	{ SERVER_GET, "/api/graph", false, page_graph },
	{ SERVER_GET, "/api/files", false, page_files },
	{ SERVER_POST, "/api/choose", false, page_change_files },
	{ SERVER_POST, "/api/save", false, page_save },
	{ SERVER_GET, "/api/diff", false, page_diff },
	{ SERVER_GET, "/api/ranks", false, page_ranks },
	{ SERVER_GET, "/api/path", false, page_path },
	{ SERVER_GET, "/api/anomalies", false, page_anomalies },
	{ SERVER_POST, "/api/minute", false, page_minute },
	{ SERVER_POST, "/api/keep", false, page_keep },
	{ SERVER_GET, "/api/gap", false, page_gap },
	{ SERVER_GET, "/api/chain", false, page_chain },
	{ SERVER_POST, "/api/freeze", false, page_freeze },
	{ SERVER_POST, "/api/again", false, page_again },
	{ SERVER_POST, "/api/recording", false, page_recording },
};

/* Calls the handler of a request under the lock, so that the request sees one profile from begin to end. */
static void dispatch(void *arg, const struct server_request *request, struct server_reply *reply)
{
	struct ow_ui *ui = arg;

	for (size_t i = 0; i < ARRAY_COUNT(routes); i++)
		if (strcmp(routes[i].path, request->path) == 0) {
			pthread_rwlock_rdlock(&ui->swap);
			routes[i].handle(ui, request, reply);
			pthread_rwlock_unlock(&ui->swap);
			return;
		}
}

static bool on_progress(void *arg, const char *file, uint64_t done, uint64_t total)
{
	struct ow_ui *ui = arg;

	pthread_mutex_lock(&ui->lock);
	ui->done = done;
	ui->total = total;
	snprintf(ui->file, sizeof(ui->file), "%s", file ? file : "");
	pthread_mutex_unlock(&ui->lock);
	return !atomic_load(&ui->cancelled);
}

bool page_going_on(void *ui, const char *file, uint64_t done, uint64_t total)
{
	(void)file;
	(void)done;
	(void)total;
	return !atomic_load(&((struct ow_ui *)ui)->cancelled);
}

static bool is_recording(const struct model *m)
{
	for (uint32_t i = 1; i < m->source.count; i++)
		if (!str_eq(model_str(m, m->source.format[i]), STR("live")))
			return false;
	return m->source.count > 1;
}

ow_status page_arrange(struct ow_ui *ui, ow_profile *profile, struct tiles **out,
		       struct page_facts *facts, struct ow_error *err)
{
	struct tiles *tiles = NULL;
	int64_t start = TIME_UNKNOWN;
	struct reading reading;
	ow_status status = api_read_begin(profile, TABLES_ALL, &reading, err);

	if (status != OW_OK)
		return status;
	facts->grows = is_recording(profile->m);
	facts->damaged = ow_profile_damaged(profile);
	facts->parts = find_parts(profile->m);
	start = model_trace_start(profile->m);
	status = tiles_new(profile->m, &ui->mem, &tiles, err);
	if (status == OW_OK)
		status = page_add_memory(ui, profile, tiles, &facts->has_memory, err);
	status = api_read_end(profile, &reading, status, err);
	if (status != OW_OK) {
		tiles_free(tiles);
		tiles = NULL;
	} else {
		/* Views count from the first event, the timeline from its first item, which may be a sample or a
		 * value. */
		facts->view_start_ns =
			start == TIME_UNKNOWN ? 0 : wrap_sub(start, tiles_start(tiles));
	}
	*out = tiles;
	return status;
}

static ow_status arrange(struct ow_ui *ui, struct ow_error *err)
{
	OW_TRY(page_arrange(ui, ui->profile, &ui->tiles, &ui->facts, err));
	ui->zero_ns = tiles_start(ui->tiles);
	return OW_OK;
}

/* Lowers the priority of this thread, and of those that it starts, for good. */
static void lower_priority(int nice)
{
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), nice); /* on Linux, a thread has one */
}

/* Builds the dense tiles of every row, so that requests rarely have to; a handler that needs one first builds it itself. The browser
 * starts and paints the first page in that time: this thread only takes what it leaves of the processors. */
static void build_tiles(struct ow_ui *ui)
{
	bool going_on = true;

	lower_priority(BUILD_NICE);
	for (uint32_t row = 0; going_on && !atomic_load(&ui->cancelled); row++) {
		struct reading reading;
		struct ow_error err = { 0 };

		pthread_rwlock_rdlock(&ui->swap);
		going_on = row < tiles_row_count(ui->tiles) &&
			   api_read_begin(ui->profile, 0, &reading, &err) == OW_OK;
		if (going_on)
			going_on =
				api_read_end(ui->profile, &reading,
					     tiles_build_row(ui->tiles, row, &err), &err) == OW_OK;
		pthread_rwlock_unlock(&ui->swap);
	}
}

/* Measures how fast these files were read, to estimate the time for others. */
static void measure_reading(struct ow_ui *ui)
{
	const struct model *m = ui->profile->m;

	ui->read_ns = steady_ns() - ui->started_ns;
	for (uint32_t i = 1; i < m->source.count; i++)
		ui->read_bytes += m->source.packed_size[i];
}

static void *load(void *arg)
{
	struct ow_ui *ui = arg;
	struct ow_error err = { 0 };
	ow_status status;

	lower_priority(LOAD_NICE);
	page_mark_files(ui);
	status = ow_profile_open(ui->paths, ui->path_count, &ui->open, &ui->profile, &err);

	if (status == OW_OK && ui->base_count) {
		ui->own_base = true;
		status =
			ow_profile_open(ui->base_paths, ui->base_count, &ui->open, &ui->base, &err);
	}
	if (status == OW_OK)
		status = arrange(ui, &err);
	if (status == OW_OK) {
		measure_reading(ui);
		set_state(ui, OW_UI_READY);
		build_tiles(ui);
		return NULL;
	}
	if (atomic_load(&ui->cancelled))
		error_set(&err, OW_E_INTERRUPTED, "loading was cancelled");
	pthread_mutex_lock(&ui->lock);
	ui->failure = err;
	pthread_mutex_unlock(&ui->lock);
	set_state(ui, OW_UI_FAILED);
	return NULL;
}

void ow_ui_options_init(struct ow_ui_options *options)
{
	*options = (struct ow_ui_options){ .size = sizeof(*options) };
}

bool ow_ui_available(const char **why)
{
	if (why)
		*why = page_asset_count
			       ? ""
			       : "this build has no web page: install npm, then build again (make)";
	return page_asset_count > 0;
}

static struct ow_ui *ui_new(const struct ow_ui_options *options)
{
	struct ow_ui *ui = calloc(1, sizeof(*ui));

	if (!ui)
		return NULL;
	mem_init(&ui->mem, 0);
	arena_init(&ui->arena, &ui->mem);
	pthread_mutex_init(&ui->lock, NULL);
	background_cond_init(&ui->loaded);
	pthread_mutex_init(&ui->watch_lock, NULL);
	pthread_mutex_init(&ui->ranks_lock, NULL);
	pthread_mutex_init(&ui->child_lock, NULL);
	buf_init(&ui->ranks, &ui->mem);
	pthread_rwlock_init(&ui->swap, NULL);
	ow_open_options_init(&ui->open);
	SIZED_IN(&ui->open, options->open);
	/* equal names must get equal hashes, because the page compares these profiles */
	ui->open.redact_alike = true;
	ui->started_ns = steady_ns();
	ui->on_socket = options->socket != NULL;
	if (options->source_dir)
		ui->source_dir = arena_cstr(&ui->arena, str_from(options->source_dir));
	if (options->daemon_socket)
		ui->daemon_socket = arena_cstr(&ui->arena, str_from(options->daemon_socket));
	if (options->listen)
		ui->listen = arena_cstr(&ui->arena, str_from(options->listen));
	if (options->job)
		ui->job = arena_cstr(&ui->arena, str_from(options->job));
	ui->job_last_ns = options->job_last_ns;
	return ui;
}

static ow_status start_server(struct ow_ui *ui, const struct ow_ui_options *options,
			      struct ow_error *err)
{
	struct server_route *table =
		ARENA_ARRAY(&ui->arena, struct server_route, ARRAY_COUNT(routes));
	struct server_options server = { .listen = options->listen,
					 .port = (uint16_t)options->port,
					 .socket = options->socket,
					 .routes = table,
					 .route_count = ARRAY_COUNT(routes),
					 .arg = ui };
	const char *why, *host = options->listen ? options->listen : "127.0.0.1";

	if (!ow_ui_available(&why))
		return error_set(err, OW_E_UNSUPPORTED, "%s", why);
	if (!table)
		return error_no_memory(err);
	for (size_t i = 0; i < ARRAY_COUNT(routes); i++)
		table[i] = (struct server_route){ routes[i].method, routes[i].path, routes[i].open,
						  dispatch };
	if (options->port > UINT16_MAX)
		return error_set(err, OW_E_USAGE, "port %u does not exist; the highest is 65535",
				 options->port);
	OW_TRY(server_start(&server, &ui->mem, &ui->server, err));
	if (!options->socket)
		snprintf(ui->address, sizeof(ui->address),
			 strchr(host, ':') ? "http://[%s]:%u/#t=%s" : "http://%s:%u/#t=%s", host,
			 server_port(ui->server), server_token(ui->server));
	return OW_OK;
}

static ow_status copy_paths(struct ow_ui *ui, const char *const *paths, size_t count,
			    const char ***to, size_t *to_count, struct ow_error *err)
{
	const char **copies = ARENA_ARRAY(&ui->arena, const char *, count + 1);

	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = arena_cstr(&ui->arena, str_from(paths[i]));
		if (!copies[i])
			return error_no_memory(err);
	}
	*to = copies;
	*to_count = copies ? count : 0;
	return copies ? OW_OK : error_no_memory(err);
}

ow_status ow_ui_open(const char *const *paths, size_t count, const struct ow_ui_options *options,
		     ow_ui **out, struct ow_error *err)
{
	struct ow_ui_options full;
	struct ow_ui *ui;
	ow_status status;

	error_clear(err);
	*out = NULL;
	ow_ui_options_init(&full);
	SIZED_IN(&full, options);
	ui = ui_new(&full);
	if (!ui)
		return error_no_memory(err);
	ui->own_profile = true;
	ui->open.progress = on_progress;
	ui->open.progress_arg = ui;
	status = copy_paths(ui, paths, count, &ui->paths, &ui->path_count, err);
	if (status == OW_OK)
		status = copy_paths(ui, full.base.items, full.base.count, &ui->base_paths,
				    &ui->base_count, err);
	if (status == OW_OK)
		status = start_server(ui, &full, err);
	if (status == OW_OK && !count) {
		atomic_store(&ui->state, OW_UI_JOBS);
	} else if (status == OW_OK) {
		ui->marks = ARENA_ARRAY(&ui->arena, struct page_mark, count);
		ui->has_loader = pthread_create(&ui->loader, NULL, load, ui) == 0;
		if (!ui->has_loader || !page_follow(ui))
			status = error_set(err, OW_E_LIMIT, "no thread could be started");
	}
	if (status != OW_OK) {
		ow_ui_close(ui);
		return status;
	}
	*out = ui;
	return OW_OK;
}

/* Copies the names of the inputs, for the title of the page. */
static ow_status copy_sources(struct ow_ui *ui, const ow_profile *profile, const char ***paths,
			      size_t *path_count, struct ow_error *err)
{
	const struct model *m = profile->m;
	const char **names = ARENA_ARRAY(&ui->arena, const char *, m->source.count + 1);
	size_t count = 0;

	for (uint32_t i = 1; names && i < m->source.count; i++)
		names[count++] = model_str(m, m->source.path[i]).ptr;
	return names ? copy_paths(ui, names, count, paths, path_count, err) : error_no_memory(err);
}

ow_status ow_ui_open_profile(ow_profile *profile, const struct ow_ui_options *options, ow_ui **out,
			     struct ow_error *err)
{
	struct ow_ui_options full;
	struct ow_ui *ui;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(api_check_frozen(profile, err));
	ow_ui_options_init(&full);
	SIZED_IN(&full, options);
	ui = ui_new(&full);
	if (!ui)
		return error_no_memory(err);
	ui->profile = profile;
	status = copy_sources(ui, profile, &ui->paths, &ui->path_count, err);
	if (status == OW_OK)
		status = arrange(ui, err);
	if (status == OW_OK) {
		atomic_store(&ui->state, OW_UI_READY);
		status = start_server(ui, &full, err);
	}
	if (status != OW_OK) {
		ow_ui_close(ui);
		return status;
	}
	*out = ui;
	return OW_OK;
}

struct ow_ui *page_new(ow_profile *profile, ow_profile *base, struct ow_error *err)
{
	struct ow_ui_options options;
	struct ow_ui *ui;

	ow_ui_options_init(&options);
	ui = ui_new(&options);
	if (!ui) {
		error_no_memory(err);
		return NULL;
	}
	ui->profile = profile;
	ui->base = base;
	if (copy_sources(ui, profile, &ui->paths, &ui->path_count, err) != OW_OK ||
	    (base && copy_sources(ui, base, &ui->base_paths, &ui->base_count, err) != OW_OK) ||
	    arrange(ui, err) != OW_OK) {
		page_free(ui);
		return NULL;
	}
	atomic_store(&ui->state, OW_UI_READY);
	return ui;
}

void page_free(struct ow_ui *ui)
{
	ow_ui_close(ui);
}

void ow_ui_close(ow_ui *ui)
{
	if (!ui)
		return;
	atomic_store(&ui->cancelled, true);
	if (ui->has_loader)
		pthread_join(ui->loader, NULL);
	if (atomic_load(&ui->has_follower))
		pthread_join(ui->follower, NULL);
	server_stop(ui->server);
	page_close_children(ui);
	tiles_free(ui->tiles);
	if (ui->own_profile)
		ow_profile_free(ui->profile);
	if (ui->own_base)
		ow_profile_free(ui->base);
	page_free_runs(ui);
	page_free_paths(ui->proposed);
	page_free_paths(ui->chosen);
	arena_release(&ui->arena);
	pthread_cond_destroy(&ui->loaded);
	pthread_mutex_destroy(&ui->lock);
	ow_watch_free(ui->watch);
	pthread_mutex_destroy(&ui->watch_lock);
	buf_release(&ui->ranks);
	pthread_mutex_destroy(&ui->ranks_lock);
	pthread_mutex_destroy(&ui->child_lock);
	pthread_rwlock_destroy(&ui->swap);
	free(ui);
}

const char *ow_ui_address(const ow_ui *ui)
{
	return ui->address;
}

const char *ow_ui_token(const ow_ui *ui)
{
	return server_token(ui->server);
}

ow_ui_state ow_ui_progress(ow_ui *ui, struct ow_error *err)
{
	ow_ui_state state = (ow_ui_state)atomic_load(&ui->state);

	error_clear(err);
	if (state == OW_UI_FAILED && err) {
		pthread_mutex_lock(&ui->lock);
		*err = ui->failure;
		pthread_mutex_unlock(&ui->lock);
	}
	return state;
}
