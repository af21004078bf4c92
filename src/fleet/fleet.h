/*
 * fleet.h: sends what the jobs of this host's daemon do to places outside: roll-ups and anomalies to a ClickHouse server
 * that has all hosts, metrics to a collector of OpenTelemetry, anomalies to an address or a program. It runs in threads
 * beside the daemon, which knows nothing of it, and reads the rings on disk as any client. It listens only where it is asked
 * to, and answers only clients that have the token.
 */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include "base/error.h"
#include "opwatch/live.h"
#include "watch/anomaly.h"

struct fleet_options {
	const char *socket;	/* of the daemon; NULL: as jobs_connect finds it */
	const char *push;	/* clickhouse://…; NULL: none */
	const char *password;	/* of that server; may be NULL */
	const char *otlp;	/* http://HOST:4318/v1/metrics; NULL: none */
	const char *otlp_token; /* may be NULL */
	const char *hook;	/* an address for anomalies; NULL: none */
	const char *hook_token; /* may be NULL */
	const char *program;	/* a program for anomalies; NULL: none */
	const char *listen;	/* HOST:PORT: answer questions about jobs there; NULL: nowhere */
	const char *token;	/* the token that such requests must have */
	int64_t every_ns;	/* how often roll-ups are sent */
	ow_line_fn message;
	void *message_arg;
};

struct fleet;

/* Fails when an option is wrong; a place that cannot be reached is tried again later. */
ow_status fleet_start(const struct fleet_options *options, struct fleet **out,
		      struct ow_error *err);
/* For anomaly_options.event; arg is the struct fleet. */
void fleet_event(void *fleet, const struct anomaly_event *event);
/* Sends what is left, for at most five seconds. NULL is fine. */
void fleet_stop(struct fleet *fleet);

#endif
