/*
 * fleet.h: sends data about the jobs of this host's daemon to destinations outside: roll-ups and anomalies to a
 * ClickHouse server for all hosts, metrics to an OpenTelemetry collector, anomalies to a web address or a program. It
 * runs in threads beside the daemon, which does not know about it, and reads the rings on disk like any client. It
 * listens only if asked to, and answers only clients that have the token.
 */
#ifndef FLEET_FLEET_H
#define FLEET_FLEET_H

#include "base/error.h"
#include "opwatch/live.h"
#include "watch/anomaly.h"

struct fleet_options {
	/* path of the daemon's socket; NULL: the path that jobs_connect finds */
	const char *socket;
	const char *push;     /* address of the ClickHouse server, clickhouse://…; NULL: none */
	const char *password; /* password for that server; may be NULL */
	/* address of the collector, http://HOST:4318/v1/metrics; NULL: none */
	const char *otlp;
	const char *otlp_token; /* may be NULL */
	const char *hook;	/* web address that receives anomalies; NULL: none */
	const char *hook_token; /* may be NULL */
	const char *program;	/* program that receives anomalies; NULL: none */
	/* HOST:PORT at which requests about jobs are answered; NULL: none */
	const char *listen;
	const char *token; /* token that these requests must have */
	bool redact;	   /* send pseudonyms instead of names */
	int64_t every_ns;  /* interval between roll-ups */
	ow_line_fn message;
	void *message_arg;
};

struct fleet;

/* Starts the threads. Fails when an option is wrong; a destination that cannot be reached is tried again later. */
ow_status fleet_start(const struct fleet_options *options, struct fleet **out,
		      struct ow_error *err);
/* A function for anomaly_options.event; arg is the struct fleet. */
void fleet_event(void *fleet, const struct anomaly_event *event);
/* Sends the remaining messages, for at most five seconds. NULL is allowed. */
void fleet_stop(struct fleet *fleet);

#endif
