/*
 * h2_server.h: a small gRPC server for tests, by libnghttp2, on a loopback port and in a separate thread. It answers
 * one call, correctly or with one of the failures below.
 */
#ifndef SUPPORT_H2_SERVER_H
#define SUPPORT_H2_SERVER_H

#include "base/base.h"

#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum h2_way {
	H2_ANSWERS,
	H2_FAILS,   /* answers with a gRPC error status */
	H2_SILENT,  /* accepts the request and never answers */
	H2_CUT,	    /* closes in the middle of the answer */
	H2_ENDS,    /* ends the stream in the middle of the message */
	H2_GARBAGE, /* speaks another protocol */
	H2_404,
	H2_PAGE,    /* is a web server */
	H2_REFUSES, /* resets the stream before any answer */
	H2_RESETS,  /* resets the stream in the middle of an answer */
	H2_LEAVES,  /* sends GOAWAY with a reason, and accepts no request */
	H2_LAST,    /* sends GOAWAY, and answers this request */
	H2_HANGS_UP /* closes the connection without an answer */
};

struct h2_server {
	enum h2_way way;
	const unsigned char *answer; /* the answer, with the five bytes before a message */
	size_t answer_len;
	/* the received request */
	unsigned char request[4096];
	size_t request_len;
	char path[128];
	/* internal state */
	char address[32];
	int listening, fd;
	pthread_t thread;
	size_t sent;
	bool asked, stop;
	int32_t stream;
};

static inline ssize_t h2_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t cap,
			      uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct h2_server *s = arg;
	bool whole = s->way != H2_CUT && s->way != H2_ENDS && s->way != H2_RESETS;
	size_t end = whole ? s->answer_len : s->answer_len / 2;
	size_t len = MIN(cap, end - s->sent);

	(void)source;
	memcpy(to, s->answer + s->sent, len);
	s->sent += len;
	if (s->sent < end)
		return (ssize_t)len;
	if (s->way == H2_CUT) {
		s->stop = true;
		return (ssize_t)len;
	}
	if (s->way == H2_RESETS) {
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
		return len ? (ssize_t)len : NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	nghttp2_nv trailer = { (uint8_t *)(uintptr_t) "grpc-status", (uint8_t *)(uintptr_t) "0", 11,
			       1, 0 };
	nghttp2_submit_trailer(session, stream, &trailer, 1);
	return (ssize_t)len;
}

#define H2_NV(name, value)                                                                         \
	{                                                                                          \
		(uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1,     \
			sizeof(value) - 1, 0                                                       \
	}

static inline void h2_respond(nghttp2_session *session, struct h2_server *s)
{
	static const nghttp2_nv good[] = { H2_NV(":status", "200"),
					   H2_NV("content-type", "application/grpc") };
	static const nghttp2_nv bad[] = { H2_NV(":status", "200"), H2_NV("grpc-status", "14"),
					  H2_NV("grpc-message", "Another%20profiler is%0Aactive") };
	static const nghttp2_nv page[] = { H2_NV(":status", "200"),
					   H2_NV("content-type", "text/html; charset=utf-8") };
	static const nghttp2_nv missing[] = { H2_NV(":status", "404") };
	const nghttp2_data_provider body = { .read_callback = h2_body };

	static const uint8_t why[] = "too_many_pings\x1b[2J";

	if (s->way == H2_SILENT)
		return;
	if (s->way == H2_HANGS_UP) {
		s->stop = true;
		return;
	}
	if (s->way == H2_REFUSES) {
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->stream,
					  NGHTTP2_REFUSED_STREAM);
		return;
	}
	if (s->way == H2_LEAVES || s->way == H2_LAST)
		nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, s->way == H2_LAST ? s->stream : 0,
				      s->way == H2_LAST ? NGHTTP2_NO_ERROR
							: NGHTTP2_ENHANCE_YOUR_CALM,
				      why, sizeof(why) - 1);
	if (s->way == H2_LEAVES)
		return;
	if (s->way == H2_FAILS)
		nghttp2_submit_response(session, s->stream, bad, ARRAY_COUNT(bad), NULL);
	else if (s->way == H2_404)
		nghttp2_submit_response(session, s->stream, missing, ARRAY_COUNT(missing), NULL);
	else
		nghttp2_submit_response(session, s->stream, s->way == H2_PAGE ? page : good,
					ARRAY_COUNT(good), &body);
}

static inline int h2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct h2_server *s = arg;

	if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		s->stream = frame->hd.stream_id;
		s->asked = true;
		h2_respond(session, s);
	}
	return 0;
}

static inline int h2_on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
			     const uint8_t *bytes, size_t len, void *arg)
{
	struct h2_server *s = arg;

	(void)session, (void)flags, (void)stream;
	len = MIN(len, sizeof(s->request) - s->request_len);
	memcpy(s->request + s->request_len, bytes, len);
	s->request_len += len;
	return 0;
}

static inline int h2_on_header(nghttp2_session *session, const nghttp2_frame *frame,
			       const uint8_t *name, size_t name_len, const uint8_t *value,
			       size_t value_len, uint8_t flags, void *arg)
{
	struct h2_server *s = arg;

	(void)session, (void)frame, (void)flags;
	if (name_len == 5 && memcmp(name, ":path", 5) == 0)
		snprintf(s->path, sizeof(s->path), "%.*s", (int)value_len, (const char *)value);
	return 0;
}

static inline bool h2_send(nghttp2_session *session, struct h2_server *s)
{
	const uint8_t *bytes;
	ssize_t len;

	while (!s->stop && (len = nghttp2_session_mem_send(session, &bytes)) > 0)
		while (len > 0) {
			ssize_t done = send(s->fd, bytes, (size_t)len, MSG_NOSIGNAL);

			if (done <= 0)
				return false;
			bytes += done;
			len -= done;
		}
	return !s->stop;
}

static inline void h2_serve(struct h2_server *s)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;
	uint8_t room[16384];
	ssize_t got;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2_on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2_on_data);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_on_header);
	nghttp2_session_server_new(&session, callbacks, s);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
	while (h2_send(session, s) && (got = recv(s->fd, room, sizeof(room), 0)) > 0)
		if (nghttp2_session_mem_recv(session, room, (size_t)got) < 0)
			break;
	nghttp2_session_del(session);
}

static inline void *h2_run(void *arg)
{
	static const char garbage[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
	struct h2_server *s = arg;

	s->fd = accept(s->listening, NULL, NULL);
	if (s->fd < 0)
		return NULL;
	if (s->way != H2_GARBAGE)
		h2_serve(s);
	else if (send(s->fd, garbage, sizeof(garbage) - 1, MSG_NOSIGNAL) > 0)
		shutdown(s->fd, SHUT_WR);
	close(s->fd);
	return NULL;
}

/* Starts the server at s->address; false when there is no loopback. */
static inline bool h2_start(struct h2_server *s)
{
	struct sockaddr_in where = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(where);

	s->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->listening < 0 || bind(s->listening, (struct sockaddr *)&where, len) != 0 ||
	    listen(s->listening, 1) != 0 ||
	    getsockname(s->listening, (struct sockaddr *)&where, &len) != 0)
		return false;
	snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", ntohs(where.sin_port));
	return pthread_create(&s->thread, NULL, h2_run, s) == 0;
}

/* Stops the server, after the call and its connection have ended. */
static inline void h2_stop(struct h2_server *s)
{
	pthread_join(s->thread, NULL);
	close(s->listening);
}

#endif
