/* http.c: see http.h. */
#include "push/http.h"

#include "base/clock.h"
#include "push/curl_api.h"

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

#include <strings.h>
#include <time.h>

struct http {
	struct mem *mem;
	struct arena arena;
	const struct curl_api *curl;
	CURL *easy;
	struct curl_slist *headers, *chunked_headers; /* with user and password */
	char *base;				      /* "http://host:8123" */
	bool loopback;
	struct http_options options;
	/* of the request that runs */
	const struct http_request *request;
	struct http_answer *answer;
	size_t sent;
	bool good, make_failed, too_long, no_memory, silent;
	curl_off_t moved;  /* bytes, in both directions */
	uint64_t moved_ms; /* when that changed */
	char problem[CURL_ERROR_SIZE];
};

/* ---- what libcurl calls ---- */

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

/* libcurl sends a body again when a connection that it kept had been closed meanwhile. */
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
	if (str_starts(line, STR("HTTP/"))) { /* also of a proxy's answer, or 100 Continue */
		long status = 0;

		http->curl->easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
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

/* Called whenever something moves, and about once a second when nothing does. */
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
	return http->silent ||
	       (http->options.cancelled && http->options.cancelled(http->options.cancel_arg));
}

/* ---- making one ---- */

static bool add_header(struct http *http, struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = http->curl->slist_append(*list, line);

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
	good = add_header(http, list, line);
	explicit_bzero(line, size);
	mem_free(http->mem, line, size);
	return good;
}

/* Without Expect: the server would answer it only after a second. */
static bool make_headers(struct http *http, struct curl_slist **list, const struct address *address,
			 const char *password)
{
	return add_header(http, list, "Expect:") &&
	       add_header(http, list, "Content-Type: application/octet-stream") &&
	       add_secret(http, list, "X-ClickHouse-User", address->user) &&
	       (!password || !*password || add_secret(http, list, "X-ClickHouse-Key", password));
}

static void free_headers(struct http *http, struct curl_slist *list)
{
	for (struct curl_slist *at = list; at; at = at->next)
		explicit_bzero(at->data, strlen(at->data));
	http->curl->slist_free_all(list);
}

ow_status http_new(struct http **out, struct mem *mem, const struct address *address,
		   const char *password, const struct http_options *options, struct error *err)
{
	const struct curl_api *curl;
	struct http *http;
	char *place;

	*out = NULL;
	OW_TRY(curl_api_get(&curl, err));
	http = mem_zalloc(mem, sizeof(*http));
	if (!http)
		return error_no_memory(err);
	http->mem = mem;
	http->curl = curl;
	http->options = *options;
	http->loopback = address_is_loopback(address);
	arena_init(&http->arena, mem);
	place = address_place(address, &http->arena);
	http->base = place ? arena_printf(&http->arena, "%s://%s", address->tls ? "https" : "http",
					  place)
			   : NULL;
	http->easy = http->base ? curl->easy_init() : NULL;
	if (!http->easy || !make_headers(http, &http->headers, address, password) ||
	    !make_headers(http, &http->chunked_headers, address, password) ||
	    !add_header(http, &http->chunked_headers, "Transfer-Encoding: chunked")) {
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
		http->curl->easy_cleanup(http->easy);
	free_headers(http, http->headers);
	free_headers(http, http->chunked_headers);
	arena_release(&http->arena);
	mem_free(mem, http, sizeof(*http));
}

/* ---- a request ---- */

/* Where trusted certificates are, as the program curl lets one say it. */
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
	CURLcode (*set)(CURL *, CURLoption, ...) = http->curl->easy_setopt;
	CURL *easy = http->easy;
	const char *file = certificates();

	set(easy, CURLOPT_NOSIGNAL, 1l);
	set(easy, CURLOPT_ERRORBUFFER, http->problem);
	set(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->options.connect_ms);
	set(easy, CURLOPT_TCP_KEEPALIVE, 1l);
	set(easy, CURLOPT_TCP_KEEPIDLE, 30l);
	set(easy, CURLOPT_FOLLOWLOCATION, 0l); /* headers with a password go to nobody else */
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

/* A time-out before there was a connection sent nothing either. */
static enum http_outcome look_closer(const struct http *http, enum http_outcome outcome)
{
	long sent = 0;

	if (outcome != HTTP_BROKEN ||
	    http->curl->easy_getinfo(http->easy, CURLINFO_REQUEST_SIZE, &sent) != CURLE_OK)
		return outcome;
	return sent ? HTTP_BROKEN : HTTP_NOT_REACHED;
}

/* An exception may be told, with a good status, while the server closes the connection on a body that is
 * not read to its end: what was told counts. */
static bool was_told(const struct http_answer *answer)
{
	return answer->status >= 400 && answer->text[0];
}

ow_status http_post(struct http *http, const struct http_request *request,
		    struct http_answer *answer, struct error *err)
{
	const struct curl_api *curl = http->curl;
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
	curl->easy_setopt(http->easy, CURLOPT_FRESH_CONNECT,
			  (long)(request->make || request->once));
	curl->easy_setopt(http->easy, CURLOPT_URL, buf_cstr(&url));
	curl->easy_setopt(http->easy, CURLOPT_HTTPHEADER,
			  request->make ? http->chunked_headers : http->headers);
	curl->easy_setopt(http->easy, CURLOPT_POSTFIELDSIZE_LARGE,
			  request->make ? (curl_off_t)-1 : (curl_off_t)request->body.len);
	code = curl->easy_perform(http->easy);
	curl->easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	answer->outcome = look_closer(http, outcome_of(http, code));
	if (answer->outcome == HTTP_BROKEN && was_told(answer))
		answer->outcome = HTTP_ANSWERED;
	if (http->silent)
		snprintf(answer->text, sizeof(answer->text), "nothing was heard of it for %.0f s",
			 http->options.silence_ms / 1e3);
	else if (answer->outcome != HTTP_ANSWERED)
		snprintf(answer->text, sizeof(answer->text), "%s",
			 http->problem[0] ? http->problem : curl->easy_strerror(code));
	buf_release(&url);
	return OW_OK;
}

#else

ow_status http_new(struct http **out, struct mem *mem, const struct address *address,
		   const char *password, const struct http_options *options, struct error *err)
{
	const struct curl_api *curl;

	(void)mem, (void)address, (void)password, (void)options;
	*out = NULL;
	return curl_api_get(&curl, err);
}

void http_free(struct http *http)
{
	(void)http;
}

ow_status http_post(struct http *http, const struct http_request *request,
		    struct http_answer *answer, struct error *err)
{
	const struct curl_api *curl;

	(void)http, (void)request;
	*answer = (struct http_answer){ .outcome = HTTP_NOT_REACHED };
	return curl_api_get(&curl, err);
}

#endif
