/*
 * http.h: one connection to a server over HTTP or HTTPS (libcurl). It sends a body while the body is produced and reads
 * an answer while it arrives. Used by one thread at a time. It knows the names of ClickHouse's headers and nothing else
 * about it; other servers get JSON. It never repeats a request: click.h does.
 */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include "base/buf.h"
#include "base/error.h"
#include "push/address.h"

struct http_options {
	uint32_t connect_ms; /* time limit for connecting */
	uint32_t silence_ms; /* time limit without any transfer in either direction */
	/* Called repeatedly; returns false to end the request. May be NULL. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
	/* the server is not ClickHouse: the body is JSON, and the password is sent as a bearer token */
	bool json;
};

struct http;

/* Loads libcurl. OW_E_UNSUPPORTED: it is missing; the message says what to install. */
ow_status http_available(struct ow_error *err);

/* Makes a connection object without connecting. The password may be NULL; only libcurl stores it. */
ow_status http_new(struct http **http, struct mem *mem, const struct address *address,
		   const char *password, const struct http_options *options, struct ow_error *err);
void http_free(struct http *http);

/* Fills `to` with up to `cap` bytes of the body and returns their number: 0 ends the body, HTTP_BODY_FAILED ends the
 * request. */
#define HTTP_BODY_FAILED SIZE_MAX
typedef size_t (*http_body_fn)(void *arg, void *to, size_t cap);

struct http_request {
	const char *target; /* "/?database=x&query=…", encoded */
	struct str body;    /* the body; if `make` is set, that function produces it instead */
	http_body_fn make;
	void *make_arg;
	/* use a new connection: a kept one may be closed, and libcurl would send the body twice */
	bool once;
	struct buf *answer;  /* receives the body of a successful answer */
	size_t answer_limit; /* limit in bytes; a longer answer makes the request fail */
};

enum http_outcome {
	HTTP_ANSWERED, /* the server answered: see `status` */
	HTTP_NOT_REACHED, /* nothing was sent: the host is unknown, refuses connections or has no TLS */
	HTTP_BROKEN,	  /* the connection ended, or went silent, before an answer */
	HTTP_CANCELLED,	  /* http_options.keep_going returned false */
	HTTP_MAKE_FAILED, /* http_request.make returned HTTP_BODY_FAILED */
	HTTP_TOO_LONG,	  /* answer_limit was reached */
	HTTP_NO_MEMORY,	  /* no memory for the answer */
	HTTP_REFUSED_TLS  /* the server's certificate is not trusted */
};

struct http_answer {
	enum http_outcome outcome;
	long status;	    /* HTTP status: 200, … */
	int exception_code; /* value of X-ClickHouse-Exception-Code; 0 when there is none */
	bool is_tsv;	    /* the answer is tab-separated, according to Content-Type */
	/* message: libcurl's reason for a failure, or the body of an answer with an error status */
	char text[1500];
};

/* Sends a request. It fails only if memory runs out; answer->outcome reports everything else. */
ow_status http_post(struct http *http, const struct http_request *request,
		    struct http_answer *answer, struct ow_error *err);

/* Appends text with percent encoding for a URL. */
void http_encode(struct buf *to, struct str text);

#endif
