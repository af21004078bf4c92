/*
 * http.h: one connection to a server over HTTP or HTTPS (libcurl): a request with a body that is sent while
 * it is made, an answer that is taken while it comes. Used by one thread at a time. Knows what ClickHouse's
 * headers are called and nothing else of it; never repeats anything (click.h does).
 */
#ifndef PUSH_HTTP_H
#define PUSH_HTTP_H

#include "base/buf.h"
#include "base/error.h"
#include "push/address.h"

struct http_options {
	uint32_t connect_ms; /* how long connecting may take */
	uint32_t silence_ms; /* how long nothing may move in either direction */
	/* Asked all the time; true ends the request. May be NULL. */
	bool (*cancelled)(void *arg);
	void *cancel_arg;
};

struct http;

/* Opens nothing yet. The password may be NULL; it is kept in no place but libcurl's. */
ow_status http_new(struct http **http, struct mem *mem, const struct address *address,
		   const char *password, const struct http_options *options, struct error *err);
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
	HTTP_ANSWERED,	  /* look at status */
	HTTP_NOT_REACHED, /* nothing was sent: no such host, nobody listens, no TLS */
	HTTP_BROKEN,	  /* the connection ended, or went silent, before an answer */
	HTTP_CANCELLED,	  /* as http_options.cancelled said */
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

/* Fails only without memory; everything else is told by the outcome. */
ow_status http_post(struct http *http, const struct http_request *request,
		    struct http_answer *answer, struct error *err);

/* Appends text encoded for a URL. */
void http_encode(struct buf *to, struct str text);

#endif
