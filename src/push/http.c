/*
 * http.c: requests to one server, by libcurl, which is loaded when the first server is used: the program starts without
 * it, and users who push nothing need not install it. It reports how much was transferred and why a request ended;
 * click.c decides what to repeat.
 */
#include "push/http.h"

#include "base/clock.h"

#include "opwatch_config.h"

void http_encode(struct buf *to, struct str text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' ||
		    c == '_' || c == '.' || c == '~') {
			buf_add_char(to, (char)c);
			continue;
		}
		buf_add_char(to, '%');
		buf_add_char(to, hex[c >> 4]);
		buf_add_char(to, hex[c & 15]);
	}
}

#if OPWATCH_HAVE_CURL

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <strings.h>
#include <time.h>

/* The functions of libcurl that are called, found by name. */
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

/* Set once, under the pthread_once; constant from then on. libcurl is never unloaded: it keeps process-wide state of its TLS
 * library. */
static struct curl_api loaded;
static char why[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *open_library(void)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so" };
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static void load_library(void)
{
	void *library = open_library();
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{ "curl_easy_init", &loaded.easy_init },
		{ "curl_easy_setopt", &loaded.easy_setopt },
		{ "curl_easy_perform", &loaded.easy_perform },
		{ "curl_easy_getinfo", &loaded.easy_getinfo },
		{ "curl_easy_cleanup", &loaded.easy_cleanup },
		{ "curl_easy_reset", &loaded.easy_reset },
		{ "curl_easy_strerror", &loaded.easy_strerror },
		{ "curl_slist_append", &loaded.slist_append },
		{ "curl_slist_free_all", &loaded.slist_free_all },
		{ "curl_global_init", &loaded.global_init },
	};

	if (!library) {
		snprintf(why, sizeof(why), "libcurl was not found on this machine");
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
		void *symbol = dlsym(library, wanted[i].name);

		if (!symbol) {
			snprintf(why, sizeof(why), "the libcurl on this machine lacks %s",
				 wanted[i].name);
			return;
		}
		memcpy(wanted[i].to, &symbol, sizeof(symbol));
	}
	if (loaded.global_init(CURL_GLOBAL_ALL) != CURLE_OK)
		snprintf(why, sizeof(why), "libcurl could not be started");
}

ow_status http_available(struct ow_error *err)
{
	pthread_once(&once, load_library);
	if (!why[0])
		return OW_OK;
	return error_set(err, OW_E_UNSUPPORTED,
			 "%s; it is needed to talk to a server (Debian: apt install libcurl4)",
			 why);
}

struct http {
	struct mem *mem;
	struct arena arena;
	CURL *easy;
	struct curl_slist *headers, *chunked_headers; /* headers with user and password */
	char *base;				      /* "http://host:8123" */
	bool loopback;
	struct http_options options;
	/* State of the current request. */
	const struct http_request *request;
	struct http_answer *answer;
	size_t sent;
	bool good, make_failed, too_long, no_memory, silent;
	curl_off_t moved;  /* bytes transferred in both directions */
	uint64_t moved_ms; /* time at which `moved` last changed */
	char problem[CURL_ERROR_SIZE];
};

static size_t on_body(char *to, size_t size, size_t count, void *arg)
{
	struct http *http = arg;
	const struct http_request *request = http->request;
	size_t cap = size * count, len;

	if (request->make) {
		len = request->make(request->make_arg, to, cap);
		if (len == HTTP_BODY_FAILED) {
			http->make_failed = true;
			return CURL_READFUNC_ABORT;
		}
		return len;
	}
	len = MIN(cap, request->body.len - http->sent);
	if (len)
		memcpy(to, request->body.ptr + http->sent, len);
	http->sent += len;
	return len;
}

/* Called when libcurl sends a body again, because a connection that it kept had been closed meanwhile. */
static int on_rewind(void *arg, curl_off_t offset, int origin)
{
	struct http *http = arg;

	if (http->request->make || origin != SEEK_SET || offset != 0)
		return CURL_SEEKFUNC_FAIL;
	http->sent = 0;
	return CURL_SEEKFUNC_OK;
}

static bool header_is(struct str line, const char *name, struct str *value)
{
	size_t len = strlen(name);

	if (line.len <= len || line.ptr[len] != ':' || strncasecmp(line.ptr, name, len) != 0)
		return false;
	*value = str_trim(str_skip(line, len + 1));
	return true;
}

static size_t on_header(char *text, size_t size, size_t count, void *arg)
{
	struct http *http = arg;
	struct str line = str_make(text, size * count), value;
	int64_t code;

	if (header_is(line, "X-ClickHouse-Exception-Code", &value) && str_to_i64(value, &code) &&
	    code > 0 && code < INT32_MAX)
		http->answer->exception_code = (int)code;
	if (header_is(line, "Content-Type", &value))
		http->answer->is_tsv = str_starts(value, STR("text/tab-separated-values"));
	/* a status line: also of a proxy's answer, or 100 Continue */
	if (str_starts(line, STR("HTTP/"))) {
		long status = 0;

		loaded.easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
		http->good = status == 200;
	}
	return line.len;
}

static size_t on_answer(char *text, size_t size, size_t count, void *arg)
{
	struct http *http = arg;
	struct http_answer *answer = http->answer;
	size_t len = size * count, room = sizeof(answer->text) - 1, used;
	struct buf *to = http->request->answer;

	if (!http->good || !to) {
		used = strlen(answer->text);
		memcpy(answer->text + used, text, MIN(len, room - used));
		answer->text[MIN(used + len, room)] = 0;
		return len;
	}
	if (len > http->request->answer_limit - MIN(to->len, http->request->answer_limit)) {
		http->too_long = true;
		return 0;
	}
	buf_add(to, text, len);
	http->no_memory = to->failed;
	return to->failed ? 0 : len;
}

static uint64_t now_ms(void)
{
	return (uint64_t)(steady_ns() / 1000000);
}

/* Called whenever data is transferred, and about once a second otherwise. */
static int on_progress(void *arg, curl_off_t to_get, curl_off_t got, curl_off_t to_send,
		       curl_off_t sent)
{
	struct http *http = arg;
	uint64_t now = now_ms();

	(void)to_get, (void)to_send;
	if (got + sent != http->moved) {
		http->moved = got + sent;
		http->moved_ms = now;
	}
	http->silent = http->options.silence_ms && now - http->moved_ms > http->options.silence_ms;
	return http->silent || (http->options.keep_going &&
				!http->options.keep_going(http->options.keep_going_arg));
}

static bool add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = loaded.slist_append(*list, line);

	if (!longer)
		return false;
	*list = longer;
	return true;
}

static bool add_secret(struct http *http, struct curl_slist **list, const char *name,
		       const char *value)
{
	size_t size = strlen(name) + strlen(value) + 3;
	char *line = mem_alloc(http->mem, size);
	bool good;

	if (!line)
		return false;
	snprintf(line, size, "%s: %s", name, value);
	good = add_header(list, line);
	explicit_bzero(line, size);
	mem_free(http->mem, line, size);
	return good;
}

static bool add_bearer(struct http *http, struct curl_slist **list, const char *token)
{
	size_t size = strlen(token) + 8;
	char *value = mem_alloc(http->mem, size);
	bool good;

	if (!value)
		return false;
	snprintf(value, size, "Bearer %s", token);
	good = add_secret(http, list, "Authorization", value);
	explicit_bzero(value, size);
	mem_free(http->mem, value, size);
	return good;
}

/* Makes the headers. "Expect" is suppressed, because the server would answer it only after a second. */
static bool make_headers(struct http *http, struct curl_slist **list, const struct address *address,
			 const char *password)
{
	if (http->options.json)
		return add_header(list, "Expect:") &&
		       add_header(list, "Content-Type: application/json") &&
		       (!password || !*password || add_bearer(http, list, password));
	return add_header(list, "Expect:") &&
	       add_header(list, "Content-Type: application/octet-stream") &&
	       add_secret(http, list, "X-ClickHouse-User", address->user) &&
	       (!password || !*password || add_secret(http, list, "X-ClickHouse-Key", password));
}

static void free_headers(struct curl_slist *list)
{
	for (struct curl_slist *at = list; at; at = at->next)
		explicit_bzero(at->data, strlen(at->data));
	loaded.slist_free_all(list);
}

ow_status http_new(struct http **out, struct mem *mem, const struct address *address,
		   const char *password, const struct http_options *options, struct ow_error *err)
{
	struct http *http;
	char *place;

	*out = NULL;
	OW_TRY(http_available(err));
	http = mem_zalloc(mem, sizeof(*http));
	if (!http)
		return error_no_memory(err);
	http->mem = mem;
	http->options = *options;
	http->loopback = address_is_loopback(address);
	arena_init(&http->arena, mem);
	place = address_place(address, &http->arena);
	http->base = place ? arena_printf(&http->arena, "%s://%s", address->tls ? "https" : "http",
					  place)
			   : NULL;
	http->easy = http->base ? loaded.easy_init() : NULL;
	if (!http->easy || !make_headers(http, &http->headers, address, password) ||
	    !make_headers(http, &http->chunked_headers, address, password) ||
	    !add_header(&http->chunked_headers, "Transfer-Encoding: chunked")) {
		http_free(http);
		return error_no_memory(err);
	}
	*out = http;
	return OW_OK;
}

void http_free(struct http *http)
{
	struct mem *mem;

	if (!http)
		return;
	mem = http->mem;
	if (http->easy)
		loaded.easy_cleanup(http->easy);
	free_headers(http->headers);
	free_headers(http->chunked_headers);
	arena_release(&http->arena);
	mem_free(mem, http, sizeof(*http));
}

/* The file of trusted certificates, from the same environment variables as the program curl. */
static const char *certificates(void)
{
	const char *file = getenv("CURL_CA_BUNDLE");

	if (!file || !*file)
		file = getenv("SSL_CERT_FILE");
	return file && *file ? file : NULL;
}

#define SEND_BYTES (1l << 20)

static void set_connection(struct http *http)
{
	CURLcode (*set)(CURL *, CURLoption, ...) = loaded.easy_setopt;
	CURL *easy = http->easy;
	const char *file = certificates();

	set(easy, CURLOPT_NOSIGNAL, 1l);
	set(easy, CURLOPT_ERRORBUFFER, http->problem);
	set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->options.connect_ms);
	set(easy, CURLOPT_TCP_KEEPALIVE, 1l);
	set(easy, CURLOPT_TCP_KEEPIDLE, 30l);
	/* headers with a password must go to this server only */
	set(easy, CURLOPT_FOLLOWLOCATION, 0l);
	set(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	set(easy, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BYTES);
	if (http->loopback)
		set(easy, CURLOPT_NOPROXY, "*");
	if (file)
		set(easy, CURLOPT_CAINFO, file);
	set(easy, CURLOPT_NOPROGRESS, 0l);
	set(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	set(easy, CURLOPT_XFERINFODATA, http);
	set(easy, CURLOPT_READFUNCTION, on_body);
	set(easy, CURLOPT_READDATA, http);
	set(easy, CURLOPT_SEEKFUNCTION, on_rewind);
	set(easy, CURLOPT_SEEKDATA, http);
	set(easy, CURLOPT_HEADERFUNCTION, on_header);
	set(easy, CURLOPT_HEADERDATA, http);
	set(easy, CURLOPT_WRITEFUNCTION, on_answer);
	set(easy, CURLOPT_WRITEDATA, http);
	set(easy, CURLOPT_POST, 1l);
}

static enum http_outcome outcome_of(const struct http *http, CURLcode code)
{
	if (http->make_failed)
		return HTTP_MAKE_FAILED;
	if (http->too_long)
		return HTTP_TOO_LONG;
	if (http->no_memory)
		return HTTP_NO_MEMORY;
	switch (code) {
	case CURLE_OK:
		return HTTP_ANSWERED;
	case CURLE_ABORTED_BY_CALLBACK:
		return http->silent ? HTTP_BROKEN : HTTP_CANCELLED;
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
		return HTTP_NOT_REACHED;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return HTTP_REFUSED_TLS;
	default:
		return HTTP_BROKEN;
	}
}

/* Corrects an outcome: if the time-out came before there was a connection, nothing was sent. */
static enum http_outcome look_closer(const struct http *http, enum http_outcome outcome)
{
	long sent = 0;

	if (outcome != HTTP_BROKEN ||
	    loaded.easy_getinfo(http->easy, CURLINFO_REQUEST_SIZE, &sent) != CURLE_OK)
		return outcome;
	return sent ? HTTP_BROKEN : HTTP_NOT_REACHED;
}

/* Whether the answer is an exception. The server may send one with a good status and close the connection before it
 * has read the whole body; then the exception counts. */
static bool is_exception(const struct http_answer *answer)
{
	return answer->status >= 400 && answer->text[0];
}

ow_status http_post(struct http *http, const struct http_request *request,
		    struct http_answer *answer, struct ow_error *err)
{
	struct buf url;
	CURLcode code;

	*answer = (struct http_answer){ 0 };
	buf_init(&url, http->mem);
	buf_printf(&url, "%s%s", http->base, request->target);
	if (!buf_cstr(&url)) {
		buf_release(&url);
		return error_no_memory(err);
	}
	http->request = request;
	http->answer = answer;
	http->sent = 0;
	http->good = http->make_failed = http->silent = false;
	http->too_long = http->no_memory = false;
	http->moved = 0;
	http->moved_ms = now_ms();
	http->problem[0] = 0;
	set_connection(http);
	loaded.easy_setopt(http->easy, CURLOPT_FRESH_CONNECT,
			   (long)(request->make || request->once));
	loaded.easy_setopt(http->easy, CURLOPT_URL, buf_cstr(&url));
	loaded.easy_setopt(http->easy, CURLOPT_HTTPHEADER,
			   request->make ? http->chunked_headers : http->headers);
	loaded.easy_setopt(http->easy, CURLOPT_POSTFIELDSIZE_LARGE,
			   request->make ? (curl_off_t)-1 : (curl_off_t)request->body.len);
	code = loaded.easy_perform(http->easy);
	loaded.easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	answer->outcome = look_closer(http, outcome_of(http, code));
	if (answer->outcome == HTTP_BROKEN && is_exception(answer))
		answer->outcome = HTTP_ANSWERED;
	if (http->silent)
		snprintf(answer->text, sizeof(answer->text), "it did not respond for %.0f s",
			 http->options.silence_ms / 1e3);
	else if (answer->outcome != HTTP_ANSWERED)
		snprintf(answer->text, sizeof(answer->text), "%s",
			 http->problem[0] ? http->problem : loaded.easy_strerror(code));
	buf_release(&url);
	return OW_OK;
}

#else

ow_status http_available(struct ow_error *err)
{
	return error_set(err, OW_E_UNSUPPORTED,
			 "this opwatch was built without libcurl and cannot talk to a server; "
			 "install libcurl4-openssl-dev and build again");
}

ow_status http_new(struct http **out, struct mem *mem, const struct address *address,
		   const char *password, const struct http_options *options, struct ow_error *err)
{
	(void)mem, (void)address, (void)password, (void)options;
	*out = NULL;
	return http_available(err);
}

void http_free(struct http *http)
{
	(void)http;
}

ow_status http_post(struct http *http, const struct http_request *request,
		    struct http_answer *answer, struct ow_error *err)
{
	(void)http, (void)request;
	*answer = (struct http_answer){ .outcome = HTTP_NOT_REACHED };
	return http_available(err);
}

#endif
