/*
 * server.h: a small HTTP server on the loopback address or a UNIX socket, by libmicrohttpd. It answers an exact list of
 * routes and nothing else. Used by the page (page_int.h), by the daemon's metrics and by its answers to other hosts.
 *
 * What it refuses, before any handler runs: another Host than its own or two of them, another Origin, requests that a browser marks as
 * cross-site, paths that are not in the table to the letter ("//api", "%2e"), bodies above body_max, and, where a route
 * asks for it, requests without the token. It opens no file by a name from a request. Each connection has a thread, so
 * a handler may take its time; there are at most connection_max of them, and a silent one ends after ten seconds.
 */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "base/buf.h"
#include "base/error.h"

#define SERVER_TOKEN_TEXT 33 /* 128 random bits as hexadecimal digits, and a NUL */
#define SERVER_TOKEN_HEADER "X-Opwatch-Token"

enum server_method { SERVER_GET, SERVER_POST };

struct server_param {
	const char *name, *value;
};

struct server_request {
	const char *path;
	struct str body; /* body of a POST request; empty otherwise */
	void *connection;
	/* Parameters of a request that did not come from a connection, for handlers that are called directly. */
	const struct server_param *params;
	size_t param_count;
};

/* Returns a decoded parameter of the query (?name=value); NULL if it is missing. */
const char *server_param(const struct server_request *request, const char *name);
/* Returns a parameter as a number; `otherwise` if it is missing or not a number. */
int64_t server_param_int(const struct server_request *request, const char *name, int64_t otherwise);

/* Returns the user at the other end of a connection within this host; UINT32_MAX, a user without rights,
 * if unknown. */
uint32_t server_user(const struct server_request *request);

/* The answer, which a handler fills. */
struct server_reply {
	unsigned status;  /* HTTP status; 200 unless the handler changes it */
	const char *type; /* content type; must be a literal */
	struct buf body;
	bool packed;	/* the body is already compressed with gzip */
	bool immutable; /* may be cached for ever, because its path names its content */
	/* Used instead of a body, for a reply in parts: next appends new data and returns false at the end. It runs
	 * on the connection's thread and may wait, but not for longer than a second. release is called once, at the
	 * end. */
	bool (*next)(void *stream, struct buf *to);
	void (*release)(void *stream);
	void *stream;
};
/* Answers with an error as {"error": "…"}. */
void server_fail(struct server_reply *reply, unsigned status, const char *format, ...)
	OW_PRINTF(3, 4);

struct server_route {
	enum server_method method;
	const char *path; /* whole path or, with a final slash, the prefix of all paths below it */
	bool open;	  /* needs no token, because it shows no data of the user */
	void (*handle)(void *arg, const struct server_request *request, struct server_reply *reply);
};

struct server_options {
	const char *listen; /* address to listen on; NULL = 127.0.0.1 */
	uint16_t port;	    /* port; 0 = any free one */
	const char *socket; /* path of a UNIX socket instead of an address */
	const char *token;  /* token; NULL: a random one is made */
	size_t body_max;    /* largest body of a request in bytes; 0 = 1 MiB */
	/* largest size of the line and headers of a request and its answer; 0 = 64 KiB */
	size_t head_max;
	unsigned connection_max; /* largest number of connections; 0 = 128 */
	unsigned wrong_host;	 /* status of requests for another Host; 0 = 403 */
	const struct server_route *routes;
	size_t route_count;
	void *arg; /* argument of the handlers */
};

struct server;

ow_status server_start(const struct server_options *options, struct mem *mem, struct server **out,
		       struct ow_error *err);
/* Ends all connections and waits for the handlers. */
void server_stop(struct server *server);

uint16_t server_port(const struct server *server); /* port of the server; 0 for a UNIX socket */
const char *server_token(const struct server *server);

#endif
