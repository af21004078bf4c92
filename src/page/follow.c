/*
 * follow.c: handles files that change while the page is open. A growing recording, and a job of the daemon, are read
 * again in the background and replace what is shown; any other file that was replaced, cut or deleted is reported, and
 * stays as it was read. One thread, started by ui.c; handlers of requests hold ow_ui.swap for reading while they run.
 */
#include "page/page_int.h"

#include "base/clock.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>

#define LOOK_NS 500000000 /* time between two checks of the files */
/* reading takes at most a quarter of the time: the pause is this many times as long */
#define IDLE_SHARE 3
/* how long a swap waits for running handlers before it is tried again */
#define SWAP_WAIT_NS 200000000

static struct page_mark mark_of(const char *path)
{
	struct page_mark mark = { 0 };
	struct stat st;

	if (stat(path, &st) != 0)
		return mark;
	mark.there = true;
	mark.folder = S_ISDIR(st.st_mode);
	mark.device = (uint64_t)st.st_dev;
	mark.inode = (uint64_t)st.st_ino;
	mark.size = (uint64_t)st.st_size;
	mark.modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	return mark;
}

void page_mark_files(struct ow_ui *ui)
{
	for (size_t i = 0; ui->marks && i < ui->path_count; i++)
		ui->marks[i] = mark_of(ui->paths[i]);
}

/* How a file changed since it was read; NULL when it did not. */
static const char *change_of(const struct page_mark *old, const struct page_mark *now)
{
	if (old->folder || !old->there)
		return NULL;
	if (!now->there)
		return "was deleted";
	if (now->device != old->device || now->inode != old->inode)
		return "was replaced";
	if (now->size < old->size)
		return "was cut";
	if (now->size > old->size)
		return "has grown";
	return now->modified_ns != old->modified_ns ? "was changed" : NULL;
}

OW_PRINTF(2, 3) static void report(struct ow_ui *ui, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&ui->lock);
	vsnprintf(ui->changed, sizeof(ui->changed), format, args);
	pthread_mutex_unlock(&ui->lock);
	va_end(args);
}

static void report_nothing(struct ow_ui *ui)
{
	pthread_mutex_lock(&ui->lock);
	ui->changed[0] = '\0';
	pthread_mutex_unlock(&ui->lock);
}

/* Replaces the list of files. Called while no handler runs. */
static void take_paths(struct ow_ui *ui, struct page_paths *chosen)
{
	page_free_paths(ui->chosen);
	ui->chosen = chosen;
	ui->paths = chosen->paths;
	ui->path_count = chosen->count;
	ui->marks = chosen->marks;
	page_free_runs(ui);
	ui->runs = NULL; /* its length was that of the old list */
}

/* Replaces the profile. False while handlers run: then the caller tries again later. */
static bool swap(struct ow_ui *ui, ow_profile *profile, struct tiles *tiles,
		 const struct page_facts *facts, struct page_paths *chosen)
{
	struct timespec until;
	ow_profile *old_profile;
	struct tiles *old_tiles;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += SWAP_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_rwlock_timedwrlock(&ui->swap, &until) != 0)
		return false;
	old_profile = ui->profile;
	old_tiles = ui->tiles;
	ui->profile = profile;
	ui->tiles = tiles;
	ui->zero_ns = tiles_start(tiles);
	ui->facts = *facts;
	if (chosen)
		take_paths(ui, chosen);
	atomic_fetch_add(&ui->epoch, 1);
	pthread_rwlock_unlock(&ui->swap);
	tiles_free(old_tiles);
	ow_profile_free(old_profile);
	return true;
}

/* Reads the files again; `chosen` is another list of files to read and keep, or NULL. */
static ow_status read_again(struct ow_ui *ui, struct page_paths *chosen, struct ow_error *err)
{
	struct ow_open_options options = ui->open;
	ow_profile *profile = NULL;
	struct tiles *tiles = NULL;
	struct page_facts facts = { 0 };
	ow_status status = OW_OK;

	options.progress = page_going_on;
	if (ui->job)
		status = ow_job_cut(ui->daemon_socket, ui->job, ui->job_last_ns, ui->paths[0], NULL,
				    err);
	if (status == OW_OK && chosen) {
		for (size_t i = 0; i < chosen->count; i++)
			chosen->marks[i] = mark_of(chosen->paths[i]);
		status = ow_profile_open(chosen->paths, chosen->count, &options, &profile, err);
		if (status == OW_OK)
			status = page_check_used(profile, chosen, err);
	} else if (status == OW_OK) {
		page_mark_files(ui);
		status = ow_profile_open(ui->paths, ui->path_count, &options, &profile, err);
	}
	if (status == OW_OK)
		status = page_arrange(ui, profile, &tiles, &facts, err);
	while (status == OW_OK && !atomic_load(&ui->cancelled))
		if (swap(ui, profile, tiles, &facts, chosen))
			return OW_OK;
	tiles_free(tiles);
	ow_profile_free(profile);
	return status;
}

/* Whether something has to be read again; also reports changes of files that are not read again. */
static bool must_read_again(struct ow_ui *ui)
{
	if (ui->job || atomic_exchange(&ui->again, false))
		return true;
	for (size_t i = 0; ui->marks && i < ui->path_count; i++) {
		struct page_mark now = mark_of(ui->paths[i]);
		const char *what = change_of(&ui->marks[i], &now);

		if (!what)
			continue;
		if (ui->facts.grows && now.size > ui->marks[i].size &&
		    now.inode == ui->marks[i].inode)
			return true;
		report(ui, "%s %s since it was read; the page shows the old content", ui->paths[i],
		       what);
		return false;
	}
	report_nothing(ui);
	return false;
}

/* Returns after this time, or soon after the page is closed. */
static void wait_ns(struct ow_ui *ui, int64_t ns)
{
	struct timespec pause = { .tv_nsec = 50000000 };

	for (; ns > 0 && !atomic_load(&ui->cancelled); ns -= pause.tv_nsec)
		nanosleep(&pause, NULL);
}

/* The list of files that the user chose last, if it was not read yet. */
static struct page_paths *take_proposed(struct ow_ui *ui)
{
	struct page_paths *proposed;

	pthread_mutex_lock(&ui->lock);
	proposed = ui->proposed;
	ui->proposed = NULL;
	pthread_mutex_unlock(&ui->lock);
	return proposed;
}

/* Reads the files that the user chose. The page stays unchanged if they cannot be read. */
static void read_chosen(struct ow_ui *ui, struct page_paths *chosen)
{
	struct ow_error err = { 0 };

	if (read_again(ui, chosen, &err) != OW_OK) {
		pthread_mutex_lock(&ui->lock);
		snprintf(ui->refused, sizeof(ui->refused), "The files stay as they were: %s",
			 err.text);
		pthread_mutex_unlock(&ui->lock);
	}
	if (ui->chosen != chosen) /* the list was not applied */
		page_free_paths(chosen);
}

static void *follow(void *arg)
{
	struct ow_ui *ui = arg;
	int64_t pause = LOOK_NS;

	while (!atomic_load(&ui->cancelled)) {
		struct page_paths *chosen;
		int64_t begin;
		struct ow_error err = { 0 };

		wait_ns(ui, pause);
		pause = LOOK_NS;
		if (atomic_load(&ui->cancelled) || atomic_load(&ui->state) != OW_UI_READY)
			continue;
		chosen = take_proposed(ui);
		if (chosen) {
			read_chosen(ui, chosen);
			continue;
		}
		if (atomic_load(&ui->frozen) || !must_read_again(ui))
			continue;
		begin = steady_ns();
		if (read_again(ui, NULL, &err) == OW_OK)
			report_nothing(ui);
		else if (!atomic_load(&ui->cancelled))
			report(ui, "the page is no longer updated: %s", err.text);
		pause = MAX(LOOK_NS, (steady_ns() - begin) * IDLE_SHARE);
	}
	return NULL;
}

bool page_follow(struct ow_ui *ui)
{
	bool started = pthread_create(&ui->follower, NULL, follow, ui) == 0;

	atomic_store(&ui->has_follower, started);
	return started;
}

/* The body of the request: 1 stops reading new data, 0 continues. */
PAGE_HANDLER(freeze)
{
	struct ow_ui *u = ui;

	atomic_store(&u->frozen, str_eq(request->body, STR("1")));
	buf_printf(&reply->body, "{\"frozen\": %s}\n", atomic_load(&u->frozen) ? "true" : "false");
}

/* Reads all files once more, whatever their kind. */
PAGE_HANDLER(again)
{
	struct ow_ui *u = ui;

	(void)request;
	atomic_store(&u->again, true);
	buf_puts(&reply->body, "{}\n");
}

/* Sends the shown recording as a file to keep. */
PAGE_HANDLER(recording)
{
	struct ow_ui *u = ui;

	(void)request;
	if (!page_ready(u, reply))
		return;
	if (!u->job || !u->path_count) {
		server_fail(reply, 404,
			    "only a job of the daemon can be saved; the page shows files");
		return;
	}
	if (u->open.redact) {
		server_fail(reply, 403, "with --redact the recording cannot be downloaded");
		return;
	}
	if (!page_send_file(reply, u->paths[0]))
		server_fail(reply, 404, "the recording no longer exists");
}
