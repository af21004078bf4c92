/*
 * outbox.c: a queue of messages and the thread that sends them. fleet.c uses one for each destination. It does not know
 * the content of messages. Pauses between attempts grow from one second to thirty.
 */
#include "fleet/outbox.h"

#include "base/parallel.h"
#include "base/clock.h"

#include <pthread.h>
#include <stdarg.h>

#define PAUSE_LEAST_NS 1000000000LL
#define PAUSE_MOST_NS 30000000000LL

struct message {
	struct message *next;
	uint32_t kind;
	size_t len;
	char text[];
};

struct outbox {
	struct outbox_options options;
	char name[128];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct message *first, *last;
	size_t bytes;
	struct outbox_counts counts;
	bool ending;	    /* the thread sends the remaining messages and ends */
	volatile bool stop; /* the thread ends at once */
	bool done;
	/* the destination is away, or refuses messages, and that was reported */
	bool away, refusing;
	uint64_t dropped_before;
};

static void report(const struct outbox *o, const char *format, ...) OW_PRINTF(2, 3);

static void report(const struct outbox *o, const char *format, ...)
{
	char text[1024];
	va_list args;
	int len;

	if (!o->options.message)
		return;
	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len > 0)
		o->options.message(o->options.message_arg, text,
				   MIN((size_t)len, sizeof(text) - 1));
}

/* Removes the first message. The caller holds the lock. */
static struct message *take_first(struct outbox *o)
{
	struct message *m = o->first;

	if (!m)
		return NULL;
	o->first = m->next;
	if (!o->first)
		o->last = NULL;
	o->bytes -= sizeof(*m) + m->len;
	return m;
}

void outbox_add(struct outbox *o, uint32_t kind, struct str text)
{
	size_t size = sizeof(struct message) + text.len;
	struct message *m = size <= o->options.limit ? malloc(size) : NULL;

	pthread_mutex_lock(&o->lock);
	o->counts.added++;
	o->counts.dropped += m == NULL;
	while (m && o->first && o->bytes + size > o->options.limit) {
		free(take_first(o));
		o->counts.dropped++;
	}
	if (m) {
		*m = (struct message){ .kind = kind, .len = text.len };
		if (text.len)
			memcpy(m->text, text.ptr, text.len);
		if (o->last)
			o->last->next = m;
		else
			o->first = m;
		o->last = m;
		o->bytes += size;
		pthread_cond_signal(&o->wake);
	}
	pthread_mutex_unlock(&o->lock);
}

void outbox_counts(struct outbox *o, struct outbox_counts *counts)
{
	pthread_mutex_lock(&o->lock);
	*counts = o->counts;
	pthread_mutex_unlock(&o->lock);
}

/* Waits for some time, or until the thread has to end. The caller holds the lock. */
static void sleep_for(struct outbox *o, int64_t ns)
{
	int64_t until = steady_ns() + ns;
	struct timespec at = { until / 1000000000, until % 1000000000 };

	while (!o->stop && !o->ending && pthread_cond_timedwait(&o->wake, &o->lock, &at) == 0)
		;
}

/* Sends one message. The caller holds the lock, which is released while sending. False: try it again. */
static bool send_one(struct outbox *o, struct message *m)
{
	enum outbox_result result;
	char why[512] = "";

	pthread_mutex_unlock(&o->lock);
	result = o->options.send(o->options.arg, m->kind, str_make(m->text, m->len), &o->stop, why);
	pthread_mutex_lock(&o->lock);
	if (result == OUTBOX_LATER) {
		if (!o->away && !o->stop)
			report(o, "%s: %.400s; trying again", o->name, why);
		o->away = true;
		return false;
	}
	o->counts.sent += result == OUTBOX_SENT;
	o->counts.refused += result == OUTBOX_REFUSED;
	if (result == OUTBOX_REFUSED && !o->refusing) /* reported once, not for each message */
		report(o, "%s: not taken: %.400s", o->name, why);
	o->refusing = result == OUTBOX_REFUSED;
	if (o->away && result == OUTBOX_SENT) {
		report(o, "%s: sending again; %" PRIu64 " messages were dropped meanwhile", o->name,
		       o->counts.dropped - o->dropped_before);
		o->dropped_before = o->counts.dropped;
		o->away = false;
	}
	return true;
}

static void *send_always(void *arg)
{
	struct outbox *o = arg;
	int64_t pause = PAUSE_LEAST_NS;

	pthread_mutex_lock(&o->lock);
	while (!o->stop) {
		struct message *m = take_first(o);

		if (!m && o->ending)
			break;
		if (!m) {
			pthread_cond_wait(&o->wake, &o->lock);
			continue;
		}
		while (!send_one(o, m) && !o->stop) {
			if (o->ending)
				pause = PAUSE_LEAST_NS / 10;
			sleep_for(o, pause);
			/* when the outbox is ending, sleep_for returns at once, so this sleeps */
			if (o->ending && !o->stop) {
				pthread_mutex_unlock(&o->lock);
				nanosleep(&(struct timespec){ .tv_nsec = PAUSE_LEAST_NS / 10 },
					  NULL);
				pthread_mutex_lock(&o->lock);
			}
			pause = MIN(pause * 2, PAUSE_MOST_NS);
		}
		pause = PAUSE_LEAST_NS;
		free(m);
	}
	o->done = true;
	pthread_cond_broadcast(&o->wake);
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

ow_status outbox_start(const struct outbox_options *options, struct outbox **out,
		       struct ow_error *err)
{
	struct outbox *o = calloc(1, sizeof(*o));
	int failed;

	*out = NULL;
	if (!o)
		return error_no_memory(err);
	o->options = *options;
	snprintf(o->name, sizeof(o->name), "%s", options->name);
	pthread_mutex_init(&o->lock, NULL);
	background_cond_init(&o->wake);
	failed = background_start(&o->thread, send_always, o);
	if (failed) {
		free(o);
		return error_errno(err, failed, "cannot start the thread that sends");
	}
	*out = o;
	return OW_OK;
}

void outbox_stop(struct outbox *o, int64_t grace_ns)
{
	int64_t until = steady_ns() + grace_ns;
	struct timespec at = { until / 1000000000, until % 1000000000 };
	struct message *m;

	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->ending = true;
	pthread_cond_broadcast(&o->wake);
	while (!o->done && pthread_cond_timedwait(&o->wake, &o->lock, &at) == 0)
		;
	o->stop = true;
	pthread_cond_broadcast(&o->wake);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	while ((m = take_first(o)) != NULL)
		free(m);
	pthread_cond_destroy(&o->wake);
	pthread_mutex_destroy(&o->lock);
	free(o);
}
