/*
 * http_server.h: a small HTTP server inside a test program, on a free port of 127.0.0.1. A thread accepts one
 * connection after the other, reads a request (Content-Length or chunked) and calls the test's function, which decides:
 * answer, hang up, stay silent, answer before the body has come. One request per connection.
 */
#ifndef SUPPORT_HTTP_SERVER_H
#define SUPPORT_HTTP_SERVER_H

#include "base/base.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_exchange {
	unsigned number;  /* number of the request, from 0 */
	const char *head; /* request line and headers */
	const char *body; /* the body, followed by a NUL */
	size_t body_len;
	int status;	     /* status of the answer; 200 by default */
	const char *headers; /* additional headers, each with "\r\n"; or NULL */
	char answer[65536];
	bool hang_up;	  /* close the connection without an answer */
	int silence_ms;	  /* wait this long before the answer or hanging up */
	bool before_body; /* decide when only the headers have arrived */
};

struct http_server {
	/* Called when the headers have arrived (body NULL), then, unless it set before_body, with the body. */
	void (*handle)(void *arg, struct http_exchange *exchange);
	void *arg;
	int listener;
	uint16_t port;
	pthread_t thread;
	atomic_bool ending;
	atomic_uint requests;
};

struct http_received {
	char *bytes;
	size_t len, cap;
};

static inline bool http_more(struct http_received *r, int fd)
{
	ssize_t got;

	if (r->cap - r->len < 65536) {
		r->cap = r->cap * 2 + 131072;
		r->bytes = realloc(r->bytes, r->cap);
	}
	got = recv(fd, r->bytes + r->len, r->cap - r->len - 1, 0);
	if (got <= 0)
		return false;
	r->len += (size_t)got;
	r->bytes[r->len] = 0;
	return true;
}

/* Joins the chunks that begin at `at` into a body; false when more data must come. */
static inline bool http_join(struct http_received *r, size_t at, char **body, size_t *body_len)
{
	size_t len = 0;

	*body = malloc(r->len + 1);
	for (;;) {
		char *end = memmem(r->bytes + at, r->len - at, "\r\n", 2);
		size_t size = end ? strtoul(r->bytes + at, NULL, 16) : 0;

		if (!end || r->len - (size_t)(end + 2 - r->bytes) < size + 2) {
			free(*body);
			*body = NULL;
			return false;
		}
		memcpy(*body + len, end + 2, size);
		len += size;
		at = (size_t)(end + 2 - r->bytes) + size + 2;
		if (!size) {
			(*body)[len] = 0;
			*body_len = len;
			return true;
		}
	}
}

static inline bool http_body(struct http_received *r, int fd, size_t at, char **body, size_t *len)
{
	const char *length = strcasestr(r->bytes, "Content-Length:");
	size_t wanted = length && length < r->bytes + at ? strtoul(length + 15, NULL, 10) : 0;

	if (!length) {
		while (!http_join(r, at, body, len))
			if (!http_more(r, fd))
				return false;
		return true;
	}
	while (r->len - at < wanted)
		if (!http_more(r, fd))
			return false;
	*body = malloc(wanted + 1);
	memcpy(*body, r->bytes + at, wanted);
	(*body)[wanted] = 0;
	*len = wanted;
	return true;
}

static inline void http_answer_with(int fd, const struct http_exchange *x)
{
	char head[1024];
	int len = snprintf(head, sizeof(head),
			   "HTTP/1.1 %d x\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n",
			   x->status, strlen(x->answer), x->headers ? x->headers : "");

	if (x->silence_ms)
		usleep((useconds_t)x->silence_ms * 1000);
	if (x->hang_up)
		return;
	(void)!send(fd, head, (size_t)len, MSG_NOSIGNAL);
	(void)!send(fd, x->answer, strlen(x->answer), MSG_NOSIGNAL);
}

static inline void http_serve(struct http_server *server, int fd)
{
	struct http_received r = { 0 };
	struct http_exchange *x = calloc(1, sizeof(*x));
	char *end, *body = NULL, *head;

	do {
		if (!http_more(&r, fd))
			goto out;
		end = strstr(r.bytes, "\r\n\r\n");
	} while (!end);
	head = strndup(r.bytes, (size_t)(end + 4 - r.bytes));
	x->number = atomic_fetch_add(&server->requests, 1);
	x->head = head;
	x->status = 200;
	server->handle(server->arg, x);
	if (!x->before_body && http_body(&r, fd, strlen(head), &body, &x->body_len)) {
		x->body = body;
		server->handle(server->arg, x);
	}
	if (x->before_body || body)
		http_answer_with(fd, x);
	free(head);
	free(body);
out:
	/* Data that the client still sends must not cause a reset that loses the answer. */
	shutdown(fd, SHUT_WR);
	if (!x->hang_up) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 60, 0 },
			   sizeof(struct timeval));
		while (http_more(&r, fd) && r.len < (256u << 20))
			r.len = 0;
	}
	free(r.bytes);
	free(x);
}

static inline void *http_loop(void *arg)
{
	struct http_server *server = arg;

	while (!atomic_load(&server->ending)) {
		int fd = accept(server->listener, NULL, NULL);

		if (fd < 0)
			continue;
		if (!atomic_load(&server->ending))
			http_serve(server, fd);
		close(fd);
	}
	return NULL;
}

static inline void http_server_start(struct http_server *server,
				     void (*handle)(void *, struct http_exchange *), void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);

	memset(server, 0, sizeof(*server));
	server->handle = handle;
	server->arg = arg;
	server->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(server->listener, 16), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&at, &len), 0);
	server->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&server->thread, NULL, http_loop, server), 0);
}

static inline void http_server_end(struct http_server *server)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(server->port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	atomic_store(&server->ending, true);
	(void)connect(fd, (struct sockaddr *)&at, sizeof(at)); /* wakes accept */
	pthread_join(server->thread, NULL);
	close(fd);
	close(server->listener);
}

#endif
