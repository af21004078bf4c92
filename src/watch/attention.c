/* attention.c: see attention.h. */
#include "watch/attention.h"

#include "base/clock.h"
#include "base/error.h"
#include "watch/ticker.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HALF_NS (30 * 1000000000LL) /* a minute around it */
#define QUIET_NS (60 * 1000000000LL)
#define STALL_STEPS 3u /* a job that has made fewer is still starting */

ow_status attention_init(struct attention *a, struct mem *mem,
			 const struct attention_options *options, struct error *err)
{
	const char *texts[] = { options->recording, options->prefix, options->job };
	const char **to[] = { &a->options.recording, &a->options.prefix, &a->options.job };
	size_t at = 0;

	*a = (struct attention){ .mem = mem, .options = *options };
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

void attention_release(struct attention *a)
{
	watch_release(&a->watch);
	mem_free(a->mem, a->ranks, a->rank_cap * sizeof(*a->ranks));
	mem_free(a->mem, a->texts, a->texts_size + 1);
}

/* ---- saying and saving ---- */

static void tell(const struct attention *a, const char *format, ...) OW_PRINTF(2, 3);

static void tell(const struct attention *a, const char *format, ...)
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

static struct follow *recording_of(struct attention *a)
{
	return &a->watch.files[0]->follow;
}

static void save_pending(struct attention *a, bool last)
{
	struct follow *f = recording_of(a);
	struct follow_range range = { .from_ns = a->from_ns, .to_ns = a->to_ns };
	struct error err = { 0 };
	struct stat st;

	if (!a->pending || (!last && !follow_has_ended(f) && clock_ns(CLOCK_MONOTONIC) < a->to_ns))
		return;
	a->pending = false;
	if (!a->options.save)
		return;
	if (a->options.save(f, &range, a->path, &err) != OW_OK) {
		tell(a, "not saved: %.900s", err.text);
		return;
	}
	if (stat(a->path, &st) == 0)
		a->saved_bytes += (uint64_t)st.st_size;
	if (a->options.uid && geteuid() == 0 && lchown(a->path, a->options.uid, (gid_t)-1) != 0)
		tell(a, "%s: only root can read it", a->path);
}

static bool is_full(const struct attention *a)
{
	return a->options.saved_limit && a->saved_bytes >= a->options.saved_limit;
}

/* The minute around a time, once it is over. One at a time: what happens meanwhile is in the same file. */
static void save_later(struct attention *a, const char *kind, int64_t monotonic_ns)
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

/* A sentence, and where the minute goes. */
static void tell_why(struct attention *a, struct buf *why)
{
	if (!buf_cstr(why))
		return;
	if (a->pending)
		tell(a, "%s; the minute around it goes to %s", why->ptr, a->path);
	else if (is_full(a) && !a->full)
		tell(a,
		     "%s; nothing more is saved: what was takes %.1f MB, no more than %.1f MB may",
		     why->ptr, (double)a->saved_bytes / 1e6, (double)a->options.saved_limit / 1e6);
	else
		tell(a, "%s", why->ptr);
	a->full = is_full(a);
}

/* ---- slower ---- */

static struct attention_rank *state_of(struct attention *a, int32_t rank)
{
	void *list = a->ranks;

	for (size_t i = 0; i < a->rank_count; i++)
		if (a->ranks[i].rank == rank)
			return &a->ranks[i];
	if (!mem_grow(a->mem, &list, &a->rank_cap, a->rank_count + 1, sizeof(*a->ranks)))
		return NULL;
	a->ranks = list;
	a->ranks[a->rank_count] = (struct attention_rank){ .rank = rank };
	change_init(&a->ranks[a->rank_count].change, a->options.slowdown);
	return &a->ranks[a->rank_count++];
}

static ow_status on_change(struct attention *a, const struct watch_rank *r, uint64_t number,
			   const struct change_found *found, struct error *err)
{
	struct follow *f = recording_of(a);
	uint64_t first = number - MIN((uint64_t)found->steps_ago, number);
	struct attention_why why = { .watch = &a->watch,
				     .file = a->watch.files[0],
				     .rank = r,
				     .change = *found,
				     .since_ns = watch_step_at(r, first)->start_ns };
	struct buf text;
	ow_status status;

	buf_init(&text, a->mem);
	status = attention_explain_change(&why, &text, err);
	if (status == OW_OK) {
		save_later(a, "slow", why.since_ns - follow_wall(f, 0));
		tell_why(a, &text);
	}
	buf_release(&text);
	return status;
}

/* Ranks that work together become slower together: it is told once. */
static ow_status look_for_change(struct attention *a, struct error *err)
{
	struct watch_file *f = a->watch.files[0];
	bool told = false;

	for (size_t i = 0; i < f->rank_count; i++) {
		const struct watch_rank *r = f->ranks[i];
		struct attention_rank *state = state_of(a, r->rank);

		if (!state)
			return error_no_memory(err);
		if (state->fed > r->count) { /* they were no steps; see watch.c */
			state->fed = 0;
			change_init(&state->change, a->options.slowdown);
		}
		if (r->count - state->fed > WATCH_STEPS)
			state->fed = r->count - WATCH_STEPS;
		for (; state->fed < r->count; state->fed++) {
			const struct watch_step *s = watch_step_at(r, state->fed);
			struct change_found found;

			if (!change_add(&state->change, s->end_ns - s->start_ns, &found) || told)
				continue;
			told = true;
			OW_TRY(on_change(a, r, state->fed, &found, err));
		}
	}
	if (!told)
		return OW_OK;
	for (size_t i = 0; i < a->rank_count; i++)
		if (a->ranks[i].change.count >= CHANGE_LAST + CHANGE_LEAST)
			a->ranks[i].change.count = 0; /* begin anew with the others */
	return OW_OK;
}

/* ---- not at all ---- */

static ow_status look_for_stall(struct attention *a, struct error *err)
{
	struct watch_file *f = a->watch.files[0];
	const struct watch_rank *latest = NULL;
	struct attention_why why = { .watch = &a->watch, .file = f };
	struct buf text;
	ow_status status;

	for (size_t i = 0; i < f->rank_count; i++)
		if (f->ranks[i]->count >= STALL_STEPS &&
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
	status = attention_explain_stall(&why, &text, err);
	if (status == OW_OK) {
		save_later(a, "stall", clock_ns(CLOCK_MONOTONIC));
		tell_why(a, &text);
	}
	buf_release(&text);
	return status;
}

/* ---- turns ---- */

ow_status attention_turn(struct attention *a, bool last, struct error *err)
{
	struct error missing;

	if (!a->opened) {
		ow_status status = watch_add(&a->watch, a->options.recording, &missing);

		if (status == OW_E_NO_MEMORY)
			return error_no_memory(err);
		if (status != OW_OK)
			return OW_OK; /* it is not there yet */
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

/* ---- the thread ---- */

struct attention_thread {
	struct mem mem;
	struct attention attention;
	struct ticker *ticker;
};

static bool tick(void *arg, bool last)
{
	struct attention_thread *t = arg;
	struct error err = { 0 };

	if (attention_turn(&t->attention, last, &err) == OW_OK)
		return true;
	tell(&t->attention, "attention has ended: %.900s", err.text);
	return false;
}

ow_status attention_start(const struct attention_options *options, struct attention_thread **out,
			  struct error *err)
{
	struct attention_thread *t = calloc(1, sizeof(*t));
	ow_status status;

	*out = NULL;
	if (!t)
		return error_no_memory(err);
	mem_init(&t->mem, 0);
	status = attention_init(&t->attention, &t->mem, options, err);
	if (status == OW_OK) {
		status = ticker_start(tick, t, &t->ticker, err);
		if (status == OW_OK) {
			*out = t;
			return OW_OK;
		}
		attention_release(&t->attention);
	}
	free(t);
	return status;
}

void attention_stop(struct attention_thread *t)
{
	if (!t)
		return;
	ticker_stop(t->ticker);
	attention_release(&t->attention);
	free(t);
}
