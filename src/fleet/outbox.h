/*
 * outbox.h: messages for a place that may be slow or away: a queue of limited size and a thread that sends them one after
 * the other, and tries again while the place is away. Adding never waits for the place. When the queue is full the oldest
 * messages are dropped and counted.
 */
#ifndef FLEET_OUTBOX_H
#define FLEET_OUTBOX_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "opwatch/opwatch.h"

enum outbox_result {
	OUTBOX_SENT,
	OUTBOX_LATER,  /* the place is away: the same message is tried again */
	OUTBOX_REFUSED /* this message will never be taken: it is dropped */
};
/* Sends one message. `why`: what went wrong. Returns soon after `*stop` has become true. */
typedef enum outbox_result (*outbox_send_fn)(void *arg, uint32_t kind, struct str text,
					     const volatile bool *stop, char why[512]);

struct outbox_options {
	const char *name; /* for messages: who gets them */
	size_t limit;	  /* bytes in the queue */
	outbox_send_fn send;
	void *arg;
	ow_line_fn message; /* the place is away, is back, has refused; may be NULL */
	void *message_arg;
};

struct outbox_counts {
	uint64_t added, sent, dropped, refused;
};

struct outbox;

ow_status outbox_start(const struct outbox_options *options, struct outbox **out,
		       struct ow_error *err);
/* The text is copied. */
void outbox_add(struct outbox *o, uint32_t kind, struct str text);
void outbox_counts(struct outbox *o, struct outbox_counts *counts);
/* Sends what is left for at most so long. NULL is fine. */
void outbox_stop(struct outbox *o, int64_t grace_ns);

#endif
