/*
 * curl_api.h: the functions of libcurl that http.c calls, found when the first server is named: the
 * program starts without it, and whoever pushes nothing need not have it.
 */
#ifndef PUSH_CURL_API_H
#define PUSH_CURL_API_H

#include "base/error.h"

#include "opwatch_config.h"

#if OPWATCH_HAVE_CURL
#include <curl/curl.h>

struct curl_api {
	CURL *(*easy_init)(void);
	CURLcode (*easy_setopt)(CURL *, CURLoption, ...);
	CURLcode (*easy_perform)(CURL *);
	CURLcode (*easy_getinfo)(CURL *, CURLINFO, ...);
	void (*easy_cleanup)(CURL *);
	void (*easy_reset)(CURL *);
	const char *(*easy_strerror)(CURLcode);
	struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
	void (*slist_free_all)(struct curl_slist *);
	CURLcode (*global_init)(long);
};
#else
struct curl_api;
#endif

/* The library, loaded once for the life of the process; OW_E_UNSUPPORTED tells what to install. */
ow_status curl_api_get(const struct curl_api **api, struct error *err);

#endif
