/*
 * outbox.h: sends messages to a destination that may be slow or away: a queue of limited size and a thread that sends
 * one message after the other, and tries again while the destination is away. Adding a message never waits. When the
 * queue is full the oldest messages are dropped and counted.
 */
#ifndef FLEET_OUTBOX_H
#define FLEET_OUTBOX_H

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "opwatch/opwatch.h"

enum outbox_result {
	OUTBOX_SENT,
	OUTBOX_LATER,  /* the destination is away: the same message is tried again */
	OUTBOX_REFUSED /* the destination will never accept this message: it is dropped */
};
/* Sends one message. `why` receives the reason of a failure. Returns soon after `*stop` has become true. */
typedef enum outbox_result (*outbox_send_fn)(void *arg, uint32_t kind, struct str text,
					     const volatile bool *stop, char why[512]);

struct outbox_options {
	const char *name; /* name of the destination, for messages */
	size_t limit;	  /* limit of bytes in the queue */
	outbox_send_fn send;
	void *arg;
	/* reports that the destination is away, is back, has refused; may be NULL */
	ow_line_fn message;
	void *message_arg;
};

struct outbox_counts {
	uint64_t added, sent, dropped, refused;
};

struct outbox;

ow_status outbox_start(const struct outbox_options *options, struct outbox **out,
		       struct ow_error *err);
/* Adds a message; the text is copied. */
void outbox_add(struct outbox *o, uint32_t kind, struct str text);
void outbox_counts(struct outbox *o, struct outbox_counts *counts);
/* Sends the remaining messages, for at most grace_ns. NULL is allowed. */
void outbox_stop(struct outbox *o, int64_t grace_ns);

#endif
