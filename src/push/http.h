/*
 * http.h: one connection to a server over HTTP or HTTPS (libcurl). Sends a body while it is made and reads an answer while it
 * arrives. Used by one thread at a time. Knows the names of ClickHouse's headers and nothing else about it; other servers get JSON. Never repeats a
 * request: click.h does.
 */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include "base/buf.h"
#include "base/error.h"
#include "push/address.h"

struct http_options {
	uint32_t connect_ms; /* how long connecting may take */
	uint32_t silence_ms; /* how long nothing may move in either direction */
	/* Called all the time; returns false to end the request. May be NULL. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
	bool json; /* not ClickHouse: the body is JSON, and the password is the token of a bearer */
};

struct http;

/* Loads libcurl. OW_E_UNSUPPORTED says what to install. */
ow_status http_available(struct ow_error *err);

/* Opens nothing yet. The password may be NULL; it is kept in no place but libcurl's. */
ow_status http_new(struct http **http, struct mem *mem, const struct address *address,
		   const char *password, const struct http_options *options, struct ow_error *err);
void http_free(struct http *http);

/* Fills `to` with up to `cap` bytes of the body and says how many: 0 ends it, HTTP_BODY_FAILED ends
 * everything. */
#define HTTP_BODY_FAILED SIZE_MAX
typedef size_t (*http_body_fn)(void *arg, void *to, size_t cap);

struct http_request {
	const char *target; /* "/?database=x&query=…", encoded */
	struct str body;    /* or, when make is set, what that gives */
	http_body_fn make;
	void *make_arg;
	bool once; /* on a new connection: one that was kept may be dead, and libcurl would send again */
	struct buf *answer;  /* gets the body of a good answer */
	size_t answer_limit; /* bytes; beyond that the request fails */
};

enum http_outcome {
	HTTP_ANSWERED, /* look at status */
	HTTP_NOT_REACHED, /* nothing was sent: the host is unknown, refuses connections or has no TLS */
	HTTP_BROKEN,	  /* the connection ended, or went silent, before an answer */
	HTTP_CANCELLED,	  /* http_options.keep_going returned false */
	HTTP_MAKE_FAILED, /* as http_request.make said */
	HTTP_TOO_LONG,	  /* answer_limit was reached */
	HTTP_NO_MEMORY,	  /* for the answer */
	HTTP_REFUSED_TLS  /* the server's certificate is not trusted */
};

struct http_answer {
	enum http_outcome outcome;
	long status;	    /* 200, … */
	int exception_code; /* of X-ClickHouse-Exception-Code; 0 when there is none */
	bool is_tsv;	    /* tab-separated, as Content-Type says */
	char text
		[1500]; /* why, in the words of the library; or the body of an answer that is not good */
};

/* Fails only without memory; answer->outcome has everything else. */
ow_status http_post(struct http *http, const struct http_request *request,
		    struct http_answer *answer, struct ow_error *err);

/* Appends text encoded for a URL. */
void http_encode(struct buf *to, struct str text);

#endif
