/*
 * metrics_http.h: a page of metrics over HTTP on the loopback address, for Prometheus and its kin: GET /metrics, and
 * nothing else. Nothing blocks: the caller waits for its descriptors together with others.
 */
#ifndef LIVE_METRICS_HTTP_H
#define LIVE_METRICS_HTTP_H

#include "base/buf.h"
#include "base/error.h"

#include <poll.h>

#define METRICS_HTTP_CONNECTIONS 16
#define METRICS_HTTP_FDS (METRICS_HTTP_CONNECTIONS + 1)

struct metrics_connection {
	int fd;
	int64_t since_ns;
	char in[2048];
	size_t in_len;
	struct buf out;
	size_t sent;
};

struct metrics_http {
	struct mem *mem;
	int listener;  /* -1: not open */
	uint32_t port; /* 0: not open */
	struct metrics_connection connections[METRICS_HTTP_CONNECTIONS];
	size_t count;
	bool (*page)(void *arg, struct buf *page); /* false without memory */
	void *arg;
};

/* Port 0: any that is free. */
ow_status metrics_http_open(struct metrics_http *h, struct mem *mem, uint32_t port,
			    struct error *err);
void metrics_http_close(struct metrics_http *h);
/* Descriptors to wait for; how many, at most METRICS_HTTP_FDS. */
size_t metrics_http_poll(const struct metrics_http *h, struct pollfd *fds);
void metrics_http_turn(struct metrics_http *h, const struct pollfd *fds, size_t count,
		       int64_t now_ns);

#endif
