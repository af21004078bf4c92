/*
 * anomaly.c: detects that the steps of a recorded job have become longer or have stopped, reports why, and saves the
 * minute around that moment. It runs in a thread: for one recording (anomaly_start) or for all jobs of a daemon
 * (anomaly_daemon_start). anomaly_why.c makes the sentences, step_change.c the statistics.
 */
#include "watch/anomaly.h"

#include "base/parallel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"
#include "live/daemon/jobs.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS (500 * 1000000L)
#define HALF_NS (30 * 1000000000LL) /* half of the minute that is saved around an anomaly */
#define QUIET_NS (60 * 1000000000LL)
#define STALL_STEPS 3u /* a job with fewer steps is still starting */
/* the daemon is asked for its jobs every this many turns, that is every two seconds */
#define ASK_TURNS 4

struct ticker;

/* Called at each turn; returns false to end the thread. */
typedef bool (*ticker_fn)(void *arg, bool last);

struct ticker {
	ticker_fn tick;
	void *arg;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
};

/* Waits for the next turn; true when the thread has to end. */
static bool wait_or_stop(struct ticker *t)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&t->lock);
	while (!t->stop && pthread_cond_timedwait(&t->wake, &t->lock, &until) == 0)
		;
	stop = t->stop;
	pthread_mutex_unlock(&t->lock);
	return stop;
}

static void *ticker_main(void *arg)
{
	struct ticker *t = arg;
	bool stop = false, more = true;

	while (!stop && more) {
		stop = wait_or_stop(t);
		more = t->tick(t->arg, stop);
	}
	return NULL;
}

static void release_ticker(struct ticker *t)
{
	pthread_cond_destroy(&t->wake);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Starts a thread that calls `tick` regularly; signals are blocked in it, because other threads handle them. */
static ow_status ticker_start(ticker_fn tick, void *arg, struct ticker **out, struct ow_error *err)
{
	struct ticker *t = calloc(1, sizeof(*t));
	int failed;

	*out = NULL;
	if (!t)
		return error_no_memory(err);
	t->tick = tick;
	t->arg = arg;
	pthread_mutex_init(&t->lock, NULL);
	background_cond_init(&t->wake);
	failed = background_start(&t->thread, ticker_main, t);
	if (failed) {
		release_ticker(t);
		return error_errno(err, failed, "cannot start the thread that watches the job");
	}
	*out = t;
	return OW_OK;
}

/* Stops the thread; returns after its last tick has returned. */
static void ticker_stop(struct ticker *t)
{
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	release_ticker(t);
}

ow_status anomaly_init(struct anomaly_watch *a, struct mem *mem,
		       const struct anomaly_options *options, struct ow_error *err)
{
	const char *texts[] = { options->recording, options->prefix, options->job };
	const char **to[] = { &a->options.recording, &a->options.prefix, &a->options.job };
	size_t at = 0;

	*a = (struct anomaly_watch){ .mem = mem, .options = *options };
	watch_init(&a->watch, mem, 0, NULL);
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
		a->texts_size += texts[i] ? strlen(texts[i]) + 1 : 0;
	a->texts = mem_alloc(mem, a->texts_size + 1);
	if (!a->texts) {
		watch_release(&a->watch);
		return error_no_memory(err);
	}
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		if (!texts[i])
			continue;
		memcpy(a->texts + at, texts[i], strlen(texts[i]) + 1);
		*to[i] = a->texts + at;
		at += strlen(texts[i]) + 1;
	}
	return OW_OK;
}

void anomaly_release(struct anomaly_watch *a)
{
	watch_release(&a->watch);
	mem_free(a->mem, a->ranks, a->rank_cap * sizeof(*a->ranks));
	mem_free(a->mem, a->texts, a->texts_size + 1);
}

static void report_line(const struct anomaly_watch *a, const char *format, ...) OW_PRINTF(2, 3);

static void report_line(const struct anomaly_watch *a, const char *format, ...)
{
	char text[1024];
	int used = 0, len;
	va_list args;

	if (!a->options.message)
		return;
	if (a->options.job)
		used = snprintf(text, sizeof(text), "%.100s: ", a->options.job);
	va_start(args, format);
	len = vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
	va_end(args);
	if (len > 0)
		a->options.message(a->options.message_arg, text,
				   MIN((size_t)(used + len), sizeof(text) - 1));
}

static struct follow *recording_of(struct anomaly_watch *a)
{
	return &a->watch.files[0]->follow;
}

static void save_pending(struct anomaly_watch *a, bool last)
{
	struct follow *f = recording_of(a);
	struct follow_range range = { .from_ns = a->from_ns, .to_ns = a->to_ns };
	struct ow_error err = { 0 };
	struct stat st;

	if (!a->pending || (!last && !follow_has_ended(f) && clock_ns(CLOCK_MONOTONIC) < a->to_ns))
		return;
	a->pending = false;
	if (!a->options.save)
		return;
	if (a->options.save(f, &range, a->path, &err) != OW_OK) {
		report_line(a, "cannot save it: %.900s", err.text);
		return;
	}
	if (stat(a->path, &st) == 0)
		a->saved_bytes += (uint64_t)st.st_size;
	if (a->options.uid && geteuid() == 0 && lchown(a->path, a->options.uid, (gid_t)-1) != 0)
		report_line(a, "%s: cannot change its owner: only root can read it", a->path);
}

static bool is_full(const struct anomaly_watch *a)
{
	return a->options.saved_limit && a->saved_bytes >= a->options.saved_limit;
}

/* Plans to save the minute around a time, once that minute is over. One file at a time: later anomalies within the
 * minute are in the same file. */
static void save_later(struct anomaly_watch *a, const char *kind, int64_t monotonic_ns)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	char clock[16] = "";
	time_t seconds = time(NULL);
	struct tm tm;

	if (a->pending || now < a->quiet_until || is_full(a))
		return;
	if (localtime_r(&seconds, &tm))
		strftime(clock, sizeof(clock), "%H%M%S", &tm);
	snprintf(a->path, sizeof(a->path), "%s-%s-%s.opw", a->options.prefix, kind, clock);
	a->from_ns = monotonic_ns - HALF_NS;
	a->to_ns = MAX(monotonic_ns + HALF_NS, now);
	a->quiet_until = now + QUIET_NS;
	a->pending = true;
}

/* Writes the sentence to a file beside the saved minute, at once; later sentences within the minute are appended. */
static void keep_why(const struct anomaly_watch *a, const struct buf *why)
{
	char path[sizeof(a->path) + 16];
	int fd;

	snprintf(path, sizeof(path), "%.*s.why.txt", (int)strlen(a->path) - 4, a->path);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || dprintf(fd, "%s\n", why->ptr) < 0 ||
	    (a->options.uid && geteuid() == 0 && fchown(fd, a->options.uid, (gid_t)-1) != 0))
		report_line(a, "%s: cannot write the reason there", path);
	if (fd >= 0)
		close(fd);
}

/* Reports a sentence, and the file that the minute goes to. */
static void explain(struct anomaly_watch *a, const char *kind, struct buf *why)
{
	if (!buf_cstr(why))
		return;
	if (a->options.event)
		a->options.event(a->options.event_arg,
				 &(struct anomaly_event){ .kind = kind,
							  .job = a->options.job,
							  .why = why->ptr,
							  .file = a->pending ? a->path : NULL });
	if (a->pending && a->options.keep_why)
		keep_why(a, why);
	if (a->pending)
		report_line(a, "%s; saving the minute around it to %s", why->ptr, a->path);
	else if (is_full(a) && !a->full)
		report_line(a,
			    "%s; not saved: saved incidents already take %.1f MB of the %.1f MB "
			    "that they "
			    "may",
			    why->ptr, (double)a->saved_bytes / 1e6,
			    (double)a->options.saved_limit / 1e6);
	else
		report_line(a, "%s", why->ptr);
	a->full = is_full(a);
}

static struct anomaly_rank *state_of(struct anomaly_watch *a, const struct watch_rank *r)
{
	uint32_t pid = r->rank < 0 ? r->pid : 0;

	for (size_t i = 0; i < a->rank_count; i++)
		if (a->ranks[i].rank == r->rank && a->ranks[i].pid == pid)
			return &a->ranks[i];
	if (!vec_reserve(a->mem, a->ranks, a->rank_cap, a->rank_count + 1))
		return NULL;
	a->ranks[a->rank_count] = (struct anomaly_rank){ .rank = r->rank, .pid = pid };
	step_change_init(&a->ranks[a->rank_count].change, a->options.slowdown);
	return &a->ranks[a->rank_count++];
}

static ow_status on_change(struct anomaly_watch *a, const struct watch_rank *r, uint64_t number,
			   const struct step_change_found *found, struct ow_error *err)
{
	struct follow *f = recording_of(a);
	uint64_t first = number - MIN((uint64_t)found->steps_ago, number);
	struct anomaly_why why = { .watch = &a->watch,
				   .file = a->watch.files[0],
				   .rank = r,
				   .change = *found,
				   .since_ns = watch_step_at(r, first)->start_ns };
	struct buf text;
	ow_status status;

	buf_init(&text, a->mem);
	status = anomaly_explain_change(&why, &text, err);
	if (status == OW_OK) {
		save_later(a, "slow", why.since_ns - follow_wall(f, 0));
		explain(a, "slow", &text);
	}
	buf_release(&text);
	return status;
}

/* Checks whether steps became longer. Ranks that work together become slower together, so that is reported once. */
static ow_status look_for_change(struct anomaly_watch *a, struct ow_error *err)
{
	struct watch_file *f = a->watch.files[0];
	bool reported = false;

	for (size_t i = 0; i < f->rank_count; i++) {
		const struct watch_rank *r = f->ranks[i];
		struct anomaly_rank *state = state_of(a, r);

		if (!state)
			return error_no_memory(err);
		/* repeated calls are only a guess at the steps: other calls may count from now on */
		if (r->marker == STEPS_REPEATED)
			continue;
		if (state->fed > r->count) { /* the earlier steps were not steps; see watch.c */
			state->fed = 0;
			step_change_init(&state->change, a->options.slowdown);
		}
		if (r->count - state->fed > WATCH_STEPS)
			state->fed = r->count - WATCH_STEPS;
		for (; state->fed < r->count; state->fed++) {
			const struct watch_step *s = watch_step_at(r, state->fed);
			struct step_change_found found;

			if (!step_change_add(&state->change, s->end_ns - s->start_ns, &found) ||
			    reported)
				continue;
			reported = true;
			OW_TRY(on_change(a, r, state->fed, &found, err));
		}
	}
	if (!reported)
		return OW_OK;
	for (size_t i = 0; i < a->rank_count; i++)
		if (a->ranks[i].change.count >= STEP_CHANGE_LAST + STEP_CHANGE_LEAST)
			a->ranks[i].change.count = 0; /* all other ranks start over, too */
	return OW_OK;
}

/* Saves the answer about a hang as prefix-stall-120304.hang.json, beside the minute. */
static void save_answer(struct anomaly_watch *a, struct table *answer)
{
	struct ow_error problem = { 0 };
	char path[sizeof(a->path) + 16];
	struct stat st;

	if (!a->pending || !a->options.save_answer)
		return;
	snprintf(path, sizeof(path), "%.*s.hang.json", (int)strlen(a->path) - 4, a->path);
	if (a->options.save_answer(answer, path, &problem) != OW_OK) {
		report_line(a, "cannot save the answer: %.900s", problem.text);
		return;
	}
	if (stat(path, &st) == 0)
		a->saved_bytes += (uint64_t)st.st_size;
	if (a->options.uid && geteuid() == 0 && lchown(path, a->options.uid, (gid_t)-1) != 0)
		report_line(a, "%s: cannot change its owner: only root can read it", path);
}

/* Adds to the sentence which rank did not come to a collective, if that is known. */
static ow_status explain_hang(const struct anomaly_why *why, struct buf *text,
			      struct table **answer, struct ow_error *err)
{
	const char *conclusion, *sentence;

	*answer = NULL;
	if (why->file->rank_count < 2 || why->file->ranks[0]->rank < 0)
		return OW_OK;
	OW_TRY(anomaly_hang(why, answer, err));
	conclusion = *answer ? table_extra(*answer, "conclusion") : NULL;
	sentence = *answer ? table_extra(*answer, "sentence") : NULL;
	if (!conclusion || !sentence || strcmp(conclusion, "\"none\"") == 0 ||
	    strcmp(conclusion, "\"cannot_tell\"") == 0)
		return OW_OK;
	buf_printf(text, "; %.*s", (int)strlen(sentence) - 2, sentence + 1);
	return OW_OK;
}

static ow_status look_for_stall(struct anomaly_watch *a, struct ow_error *err)
{
	struct table *answer = NULL;
	struct watch_file *f = a->watch.files[0];
	const struct watch_rank *latest = NULL;
	struct anomaly_why why = { .watch = &a->watch, .file = f };
	struct buf text;
	ow_status status;

	for (size_t i = 0; i < f->rank_count; i++)
		if (f->ranks[i]->count >= STALL_STEPS && f->ranks[i]->marker != STEPS_REPEATED &&
		    (!latest || f->ranks[i]->last_end_ns > latest->last_end_ns))
			latest = f->ranks[i];
	if (!latest || !f->alive || follow_has_ended(&f->follow))
		return OW_OK;
	why.rank = latest;
	why.since_ns = latest->last_end_ns;
	why.stalled_ns = clock_ns(CLOCK_MONOTONIC) - (why.since_ns - follow_wall(&f->follow, 0));
	if (why.stalled_ns < a->options.stall_ns) {
		a->stalled = false;
		return OW_OK;
	}
	if (a->stalled)
		return OW_OK;
	a->stalled = true;
	buf_init(&text, a->mem);
	status = anomaly_explain_stall(&why, &text, err);
	if (status == OW_OK)
		status = explain_hang(&why, &text, &answer, err);
	if (status == OW_OK) {
		save_later(a, "stall", clock_ns(CLOCK_MONOTONIC));
		explain(a, "stall", &text);
		if (answer)
			save_answer(a, answer);
	}
	table_free(answer);
	buf_release(&text);
	return status;
}

ow_status anomaly_turn(struct anomaly_watch *a, bool last, struct ow_error *err)
{
	struct ow_error missing;

	if (!a->opened) {
		ow_status status = watch_add(&a->watch, a->options.recording, &missing);

		if (status == OW_E_NO_MEMORY)
			return error_no_memory(err);
		if (status != OW_OK)
			return OW_OK; /* the recording does not exist yet */
		a->opened = true;
	}
	OW_TRY(last ? watch_turn_now(&a->watch, err) : watch_turn(&a->watch, NULL, err));
	if (a->restarts != recording_of(a)->restarts) {
		a->restarts = recording_of(a)->restarts;
		a->rank_count = 0;
		a->pending = a->stalled = false;
	}
	if (a->options.slowdown > 0)
		OW_TRY(look_for_change(a, err));
	if (a->options.stall_ns > 0)
		OW_TRY(look_for_stall(a, err));
	save_pending(a, last);
	return OW_OK;
}

struct anomaly_thread {
	struct mem mem;
	struct anomaly_watch watch;
	struct ticker *ticker;
};

static bool tick_job(void *arg, bool last)
{
	struct anomaly_thread *t = arg;
	struct ow_error err = { 0 };

	if (anomaly_turn(&t->watch, last, &err) == OW_OK)
		return true;
	report_line(&t->watch, "anomaly detection stopped: %.900s", err.text);
	return false;
}

ow_status anomaly_start(const struct anomaly_options *options, struct anomaly_thread **out,
			struct ow_error *err)
{
	struct anomaly_thread *t = calloc(1, sizeof(*t));
	ow_status status;

	*out = NULL;
	if (!t)
		return error_no_memory(err);
	mem_init(&t->mem, 0);
	status = anomaly_init(&t->watch, &t->mem, options, err);
	if (status == OW_OK) {
		status = ticker_start(tick_job, t, &t->ticker, err);
		if (status == OW_OK) {
			*out = t;
			return OW_OK;
		}
		anomaly_release(&t->watch);
	}
	free(t);
	return status;
}

void anomaly_stop(struct anomaly_thread *t)
{
	if (!t)
		return;
	ticker_stop(t->ticker);
	anomaly_release(&t->watch);
	free(t);
}

struct watched_job {
	uint32_t job;
	bool listed; /* the daemon still lists the job */
	struct anomaly_watch watch;
};

struct anomaly_daemon {
	struct mem mem;
	struct anomaly_options options;
	char socket_path[JOBS_SOCKET_PATH];
	struct watched_job **items;
	size_t count, cap;
	unsigned turns;
	struct ticker *ticker;
};

/*
 * This part asks the daemon for its jobs like any other client and reads their rings on disk, so the daemon neither
 * waits for it nor knows about it.
 */

static void drop_job(struct anomaly_daemon *a, size_t at)
{
	struct ow_error err = { 0 };

	/* if memory runs out nothing is saved */
	(void)!anomaly_turn(&a->items[at]->watch, true, &err);
	anomaly_release(&a->items[at]->watch);
	mem_free(&a->mem, a->items[at], sizeof(*a->items[at]));
	a->items[at] = a->items[--a->count];
}

static ow_status watch_job(struct anomaly_daemon *a, const struct jobs *jobs,
			   const struct job_info *job, struct ow_error *err)
{
	struct anomaly_options options = a->options;
	char prefix[JOBS_PATH + JOBS_NAME + 32];
	struct watched_job *item;
	ow_status status;

	if (!vec_reserve(&a->mem, a->items, a->cap, a->count + 1))
		return error_no_memory(err);
	item = mem_zalloc(&a->mem, sizeof(*item));
	if (!item)
		return error_no_memory(err);
	snprintf(prefix, sizeof(prefix), "%s/%s-%u", jobs->server.folder, job->name, job->id);
	options.recording = job->folder;
	options.prefix = prefix;
	options.job = job->name;
	options.uid = job->uid;
	options.keep_why = true;
	item->job = job->id;
	status = anomaly_init(&item->watch, &a->mem, &options, err);
	if (status != OW_OK) {
		mem_free(&a->mem, item, sizeof(*item));
		return status;
	}
	a->items[a->count++] = item;
	return OW_OK;
}

static struct watched_job *find_watched(const struct anomaly_daemon *a, uint32_t job)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->items[i]->job == job)
			return a->items[i];
	return NULL;
}

static ow_status take_list(struct anomaly_daemon *a, const struct jobs *jobs, struct ow_error *err)
{
	for (size_t i = 0; i < a->count; i++)
		a->items[i]->listed = false;
	for (size_t i = 0; i < jobs->count; i++) {
		struct watched_job *item = find_watched(a, jobs->items[i].id);

		if (jobs->items[i].state != JOB_RUNNING)
			continue;
		if (!item) {
			OW_TRY(watch_job(a, jobs, &jobs->items[i], err));
			item = a->items[a->count - 1];
		}
		item->listed = true;
	}
	for (size_t i = a->count; i-- > 0;)
		if (!a->items[i]->listed)
			drop_job(a, i);
	return OW_OK;
}

/* Asks the daemon for its jobs. A daemon that does not answer has not started yet, or is ending. */
static ow_status ask_daemon(struct anomaly_daemon *a, struct ow_error *err)
{
	struct ow_error silent = { 0 };
	struct jobs jobs;
	ow_status status =
		jobs_list(&jobs, &a->mem, a->socket_path[0] ? a->socket_path : NULL, &silent);

	if (status == OW_OK)
		status = take_list(a, &jobs, err);
	else
		status = status == OW_E_NO_MEMORY ? error_no_memory(err) : OW_OK;
	jobs_release(&jobs);
	return status;
}

static ow_status check_jobs(struct anomaly_daemon *a, unsigned number, struct ow_error *err)
{
	if (number % ASK_TURNS == 0)
		OW_TRY(ask_daemon(a, err));
	for (size_t i = 0; i < a->count; i++)
		OW_TRY(anomaly_turn(&a->items[i]->watch, false, err));
	return OW_OK;
}

static bool tick_daemon(void *arg, bool last)
{
	static const char text[] = "anomaly detection stopped: out of memory";
	struct anomaly_daemon *a = arg;
	struct ow_error err = { 0 };

	if (!last && check_jobs(a, a->turns++, &err) == OW_OK)
		return true;
	if (!last && a->options.message)
		a->options.message(a->options.message_arg, text, sizeof(text) - 1);
	while (a->count)
		drop_job(a, a->count - 1);
	return false;
}

ow_status anomaly_daemon_start(const char *socket_path, const struct anomaly_options *options,
			       struct anomaly_daemon **out, struct ow_error *err)
{
	struct anomaly_daemon *a = calloc(1, sizeof(*a));
	ow_status status;

	*out = NULL;
	if (!a)
		return error_no_memory(err);
	mem_init(&a->mem, 0);
	a->options = *options;
	snprintf(a->socket_path, sizeof(a->socket_path), "%s", socket_path ? socket_path : "");
	status = ticker_start(tick_daemon, a, &a->ticker, err);
	if (status == OW_OK)
		*out = a;
	else
		free(a);
	return status;
}

void anomaly_daemon_stop(struct anomaly_daemon *a)
{
	if (!a)
		return;
	ticker_stop(a->ticker);
	mem_free(&a->mem, a->items, a->cap * sizeof(*a->items));
	free(a);
}
