/*
 * server.c: the checks and the routing of server.h on libmicrohttpd. Without that library, server_start says how to
 * get it.
 */
#include "serve/server.h"

#include "base/json_escape.h"
#include "base/str.h"
#include "opwatch_config.h"

#include <stdarg.h>

#if OPWATCH_HAVE_MICROHTTPD

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LIBRARY "libmicrohttpd.so.12"
#define SILENCE_SECONDS 10u
#define HOSTS_MAX 3

struct server {
	struct mem *mem;
	struct MHD_Daemon *daemon;
	const struct server_route *routes;
	size_t route_count, body_max;
	unsigned wrong_host;
	bool has_secrets; /* a route needs the token */
	void *arg;
	char token[SERVER_TOKEN_TEXT];
	char hosts[HOSTS_MAX][80]; /* values of Host that are ours; empty: not used */
	char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	uint16_t port;
	atomic_bool stopping; /* streams are asked to end */
};

/* One request: lives from the first call for a request to its end. */
struct exchange {
	struct server *server;
	bool judged;
	bool odd_path; /* as it was sent it has an escape or an empty part */
	const struct server_route *route;
	struct buf body;
	unsigned refused; /* status, when the request is not for a handler */
	const char *why;
};

/* Opened when the first server is started: linking it would load a dozen other libraries with every start of opwatch. */
#define FUNCTIONS(F)                                                                               \
	F(MHD_start_daemon)                                                                        \
	F(MHD_stop_daemon)                                                                         \
	F(MHD_lookup_connection_value)                                                             \
	F(MHD_get_connection_values)                                                               \
	F(MHD_get_connection_info)                                                                 \
	F(MHD_create_response_from_buffer)                                                         \
	F(MHD_create_response_from_callback)                                                       \
	F(MHD_add_response_header)                                                                 \
	F(MHD_queue_response)                                                                      \
	F(MHD_destroy_response)

#define MEMBER(name) __typeof__(&name) name;
static struct {
	FUNCTIONS(MEMBER)
} lib;
#undef MEMBER

static pthread_once_t lib_once = PTHREAD_ONCE_INIT;
static bool lib_loaded;

static void load_library(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	lib_loaded = handle != NULL;
#define FIND(name)                                                                                 \
	if (lib_loaded) {                                                                          \
		*(void **)(void *)&lib.name = dlsym(handle, #name);                                \
		lib_loaded = lib.name != NULL;                                                     \
	}
	FUNCTIONS(FIND)
#undef FIND
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return lib.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Takes the same time wherever the texts differ. */
static bool equal_secret(const char *a, const char *b)
{
	size_t len = strlen(b), given = strlen(a);
	unsigned difference = given != len;

	for (size_t i = 0; i < len; i++)
		difference |= (unsigned char)a[i < given ? i : 0] ^ (unsigned char)b[i];
	return !difference;
}

static bool make_token(char token[SERVER_TOKEN_TEXT])
{
	unsigned char bits[(SERVER_TOKEN_TEXT - 1) / 2];

	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return false;
	for (size_t i = 0; i < sizeof(bits); i++)
		snprintf(token + 2 * i, 3, "%02x", bits[i]);
	return true;
}

static const char *connection_param(const struct server_request *request, const char *name)
{
	return lib.MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

static bool is_own_host(const struct server *s, const char *host)
{
	for (int i = 0; i < HOSTS_MAX; i++)
		if (*s->hosts[i] && strcmp(s->hosts[i], host) == 0)
			return true;
	return false;
}

static enum MHD_Result count_host(void *arg, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	unsigned *count = arg;

	(void)kind;
	(void)value;
	*count += strcasecmp(name, "Host") == 0;
	return MHD_YES;
}

/* Exactly one Host, and it names this server: others between the client and us may read another one of two. */
static bool is_for_us(const struct server *s, struct MHD_Connection *connection)
{
	const char *host = header_of(connection, "Host");
	unsigned hosts = 0;

	if (*s->socket)
		return true;
	(void)lib.MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &hosts);
	return hosts == 1 && host && is_own_host(s, host);
}

static bool header_is(struct MHD_Connection *connection, const char *name, const char *value)
{
	const char *text = header_of(connection, name);

	return text && strcmp(text, value) == 0;
}

/* Whether a request comes from a link or a redirection in another page (a notebook, the file that starts the
 * browser) that opens this server in a tab. The other page cannot read the answer. */
static bool is_visit(const struct exchange *x, struct MHD_Connection *connection)
{
	return x->route && x->route->open && x->route->method == SERVER_GET &&
	       header_is(connection, "Sec-Fetch-Mode", "navigate") &&
	       header_is(connection, "Sec-Fetch-Dest", "document");
}

/* A page of another site must neither read nor cause anything here, even if its name was made to point to us. */
static const char *refusal(const struct exchange *x, struct MHD_Connection *connection)
{
	const struct server *s = x->server;
	const char *origin = header_of(connection, "Origin");
	const char *site = header_of(connection, "Sec-Fetch-Site");

	if (origin && (!str_starts(str_from(origin), STR("http://")) ||
		       !is_own_host(s, origin + strlen("http://"))))
		return "requests from other pages are refused";
	if (site && (strcmp(site, "cross-site") == 0 || strcmp(site, "same-site") == 0) &&
	    !is_visit(x, connection))
		return "requests from other pages are refused";
	return NULL;
}

static const struct server_route *find_route(const struct server *s, enum server_method method,
					     const char *path, bool *other_method)
{
	*other_method = false;
	for (size_t i = 0; i < s->route_count; i++) {
		const struct server_route *route = &s->routes[i];
		size_t len = strlen(route->path);
		bool below = len > 1 && route->path[len - 1] == '/';

		if (below ? strncmp(path, route->path, len) != 0 || !path[len]
			  : strcmp(path, route->path) != 0)
			continue;
		if (route->method == method)
			return route;
		*other_method = true;
	}
	return NULL;
}

static void add_headers(struct MHD_Response *response, const struct server_reply *reply)
{
	static const char *const fixed[][2] = {
		{ "Content-Security-Policy",
		  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
		  "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action "
		  "'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Opener-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
	};

	for (size_t i = 0; i < ARRAY_COUNT(fixed); i++)
		(void)lib.MHD_add_response_header(response, fixed[i][0], fixed[i][1]);
	(void)lib.MHD_add_response_header(response, "Content-Type", reply->type);
	(void)lib.MHD_add_response_header(response, "Cache-Control",
					  reply->immutable ? "public, max-age=31536000, immutable"
							   : "no-store");
	if (reply->packed)
		(void)lib.MHD_add_response_header(response, "Content-Encoding", "gzip");
}

/* A reply that goes on: what next appended and was not sent yet. */
struct stream {
	struct server *server;
	bool (*next)(void *stream, struct buf *to);
	void (*release)(void *stream);
	void *arg;
	struct buf pending;
	size_t sent;
	bool ended;
};

static ssize_t read_stream(void *arg, uint64_t position, char *to, size_t max)
{
	struct stream *s = arg;
	size_t n;

	(void)position;
	while (s->sent == s->pending.len) {
		if (s->ended || s->pending.failed || atomic_load(&s->server->stopping))
			return MHD_CONTENT_READER_END_OF_STREAM;
		buf_clear(&s->pending);
		s->sent = 0;
		s->ended = !s->next(s->arg, &s->pending);
	}
	n = MIN(max, s->pending.len - s->sent);
	memcpy(to, s->pending.ptr + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

static void free_stream(void *arg)
{
	struct stream *s = arg;

	if (s->release)
		s->release(s->arg);
	buf_release(&s->pending);
	mem_free(s->server->mem, s, sizeof(*s));
}

static struct MHD_Response *make_response(struct server *s, struct server_reply *reply)
{
	struct stream *stream;

	if (!reply->next)
		return lib.MHD_create_response_from_buffer(reply->body.len,
							   reply->body.ptr ? reply->body.ptr : "",
							   MHD_RESPMEM_MUST_COPY);
	stream = mem_zalloc(s->mem, sizeof(*stream));
	if (!stream) {
		if (reply->release)
			reply->release(reply->stream);
		return NULL;
	}
	*stream = (struct stream){
		.server = s, .next = reply->next, .release = reply->release, .arg = reply->stream
	};
	buf_init(&stream->pending, s->mem);
	return lib.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, stream,
						     free_stream);
}

static enum MHD_Result send_reply(struct server *s, struct MHD_Connection *connection,
				  struct server_reply *reply)
{
	struct MHD_Response *response;
	enum MHD_Result result = MHD_NO;

	if (reply->body.failed)
		server_fail(reply, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "not enough memory for the answer");
	response = make_response(s, reply);
	if (response) {
		add_headers(response, reply);
		result = lib.MHD_queue_response(connection, reply->status, response);
		lib.MHD_destroy_response(response);
	}
	return result;
}

static void judge(struct exchange *x, struct MHD_Connection *connection, const char *path,
		  const char *method)
{
	struct server *s = x->server;
	const char *length = header_of(connection, "Content-Length");
	const char *token = header_of(connection, SERVER_TOKEN_HEADER);
	/* The library leaves out the body of an answer to HEAD. */
	bool other_method = false, get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	bool known = get || strcmp(method, "POST") == 0;

	x->judged = true;
	if (!is_for_us(s, connection)) {
		x->refused = s->wrong_host;
		x->why = "this server does not answer for that host name; use the address it "
			 "printed";
		return;
	}
	if (known && !x->odd_path)
		x->route = find_route(s, get ? SERVER_GET : SERVER_POST, path, &other_method);
	x->why = refusal(x, connection);
	if (x->why) {
		x->refused = MHD_HTTP_FORBIDDEN;
		return;
	}
	/* Without the token the answer does not reveal whether a route exists. */
	if (s->has_secrets && (!x->route || !x->route->open) &&
	    (!token || !equal_secret(token, s->token))) {
		x->refused = MHD_HTTP_UNAUTHORIZED;
		x->why = "the token is missing or wrong; open the address that opwatch printed";
	} else if (!x->route) {
		x->refused =
			other_method || !known ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND;
		x->why = other_method || !known ? "this address does not accept this method"
						: "there is nothing at this address";
	} else if (length && (strlen(length) > 15 || strtoull(length, NULL, 10) > s->body_max)) {
		x->refused = MHD_HTTP_CONTENT_TOO_LARGE;
		x->why = "the body of the request is too large";
	}
}

static enum MHD_Result answer(struct exchange *x, struct MHD_Connection *connection,
			      const char *path)
{
	struct server *s = x->server;
	struct server_reply reply = { .status = MHD_HTTP_OK, .type = "application/json" };
	struct server_request request = { .path = path,
					  .body = buf_str(&x->body),
					  .connection = connection };
	enum MHD_Result result;

	buf_init(&reply.body, s->mem);
	if (x->body.failed)
		server_fail(&reply, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "not enough memory for the request");
	else if (x->refused)
		server_fail(&reply, x->refused, "%s", x->why);
	else
		x->route->handle(s->arg, &request, &reply);
	result = send_reply(s, connection, &reply);
	buf_release(&reply.body);
	return result;
}

/* What on_uri found, before there is an exchange. It allocates nothing: of a request whose headers are wrong, libmicrohttpd may
 * not report the end. */
static char plain_path, odd_path;

/* Called first, with the address as it was sent: paths are compared undecoded, so none with an escape is known. */
static void *on_uri(void *arg, const char *uri, struct MHD_Connection *connection)
{
	struct str path = { uri, strcspn(uri, "?") };

	(void)arg;
	(void)connection;
	return memchr(path.ptr, '%', path.len) || memmem(path.ptr, path.len, "//", 2) ? &odd_path
										      : &plain_path;
}

static struct exchange *new_exchange(struct server *s, bool odd)
{
	struct exchange *x = mem_zalloc(s->mem, sizeof(*x));

	if (!x)
		return NULL;
	x->server = s;
	x->odd_path = odd;
	buf_init(&x->body, s->mem);
	return x;
}

/* libmicrohttpd calls this once with the headers, then with pieces of the body, then for the answer. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state)
{
	struct server *s = arg;
	struct exchange *x;

	(void)version;
	if (*state == &plain_path || *state == &odd_path)
		*state = new_exchange(s, *state == &odd_path);
	x = *state;
	if (!x)
		return MHD_NO; /* no memory */
	if (!x->judged) {
		judge(x, connection, path, method);
		/* A body that will not be read is not waited for. */
		return x->refused ? answer(x, connection, path) : MHD_YES;
	}
	if (*size) {
		if (!x->refused && x->body.len + *size > s->body_max) {
			x->refused = MHD_HTTP_CONTENT_TOO_LARGE;
			x->why = "the body of the request is too large";
		}
		if (!x->refused)
			buf_add(&x->body, data, *size);
		*size = 0;
		return MHD_YES;
	}
	return answer(x, connection, path);
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode why)
{
	struct server *s = arg;
	struct exchange *x = *state;

	(void)connection;
	(void)why;
	if (!x || *state == &plain_path || *state == &odd_path)
		return;
	buf_release(&x->body);
	mem_free(s->mem, x, sizeof(*x));
	*state = NULL;
}

static ow_status open_socket(struct server *s, const char *path, int *fd, struct ow_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t mask;
	int bound;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, OW_E_USAGE, "%s: too long for the name of a socket", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return error_errno(err, errno, "a UNIX socket cannot be opened");
	mask = umask(0177); /* for this user only, from its first moment */
	bound = bind(*fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (bound || listen(*fd, 64)) {
		ow_status status = error_errno(err, errno, "%s: no socket can be made there", path);

		close(*fd);
		return status;
	}
	memcpy(s->socket, path, strlen(path) + 1);
	return OW_OK;
}

static ow_status open_address(struct server *s, const char *listen_at, uint16_t port, int *fd,
			      struct ow_error *err)
{
	const char *text = listen_at ? listen_at : "127.0.0.1";
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;
	bool is_v6 = !is_v4 && inet_pton(AF_INET6, text, &v6.sin6_addr) == 1;
	struct sockaddr *address = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t len = is_v4 ? sizeof(v4) : sizeof(v6);
	int on = 1;

	if (!is_v4 && !is_v6)
		return error_set(err, OW_E_USAGE,
				 "'%s' is not an IP address to listen on; 127.0.0.1 is the default",
				 text);
	*fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return error_errno(err, errno, "a socket cannot be opened");
	(void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(*fd, address, len) || listen(*fd, 64) || getsockname(*fd, address, &len)) {
		ow_status status =
			error_errno(err, errno, "cannot listen on %s port %u", text, port);

		close(*fd);
		return status;
	}
	s->port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
	snprintf(s->hosts[0], sizeof(s->hosts[0]), is_v4 ? "%s:%u" : "[%s]:%u", text, s->port);
	if (!listen_at || strcmp(text, "127.0.0.1") == 0 || strcmp(text, "::1") == 0) {
		snprintf(s->hosts[1], sizeof(s->hosts[1]), "localhost:%u", s->port);
		snprintf(s->hosts[2], sizeof(s->hosts[2]), is_v4 ? "[::1]:%u" : "127.0.0.1:%u",
			 s->port);
	}
	return OW_OK;
}

/* Signals that users send stay with the thread that waits for them. Those of faults are not blocked: models are read
 * under a guard (base/guard.h). */
static struct MHD_Daemon *start_daemon(struct server *s, int fd,
				       const struct server_options *options)
{
	static const int of_faults[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
	struct MHD_Daemon *daemon;
	sigset_t set, before;

	sigfillset(&set);
	for (size_t i = 0; i < ARRAY_COUNT(of_faults); i++)
		sigdelset(&set, of_faults[i]);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	daemon = lib.MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0,
		NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_SECONDS, MHD_OPTION_CONNECTION_LIMIT,
		options->connection_max ? options->connection_max : 128u,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		options->head_max ? options->head_max : (size_t)64 << 10,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_URI_LOG_CALLBACK, on_uri,
		s, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return daemon;
}

/* All that does not need the library. */
static ow_status take_options(struct server *s, const struct server_options *options,
			      struct ow_error *err)
{
	s->routes = options->routes;
	s->route_count = options->route_count;
	s->body_max = options->body_max ? options->body_max : (size_t)1 << 20;
	s->wrong_host = options->wrong_host ? options->wrong_host : MHD_HTTP_FORBIDDEN;
	s->arg = options->arg;
	for (size_t i = 0; i < s->route_count; i++)
		s->has_secrets |= !s->routes[i].open;
	if (options->token && strlen(options->token) < sizeof(s->token))
		memcpy(s->token, options->token, strlen(options->token) + 1);
	else if (!make_token(s->token))
		return error_errno(err, errno, "no random numbers for the token");
	return OW_OK;
}

ow_status server_start(const struct server_options *options, struct mem *mem, struct server **out,
		       struct ow_error *err)
{
	struct server *s = mem_zalloc(mem, sizeof(*s));
	ow_status status;
	int fd = -1;

	*out = NULL;
	if (!s)
		return error_no_memory(err);
	pthread_once(&lib_once, load_library);
	if (!lib_loaded) {
		mem_free(mem, s, sizeof(*s));
		return error_set(err, OW_E_UNSUPPORTED,
				 "the web server needs the library %s: install libmicrohttpd12",
				 LIBRARY);
	}
	s->mem = mem;
	status = take_options(s, options, err);
	if (status == OW_OK)
		status = options->socket
				 ? open_socket(s, options->socket, &fd, err)
				 : open_address(s, options->listen, options->port, &fd, err);
	if (status == OW_OK) {
		s->daemon = start_daemon(s, fd, options);
		if (!s->daemon) {
			close(fd);
			status = error_set(err, OW_E_IO, "the HTTP server could not be started");
		}
	}
	if (status != OW_OK) {
		if (*s->socket)
			unlink(s->socket);
		mem_free(mem, s, sizeof(*s));
		return status;
	}
	*out = s;
	return OW_OK;
}

void server_stop(struct server *s)
{
	if (!s)
		return;
	atomic_store(&s->stopping, true);
	lib.MHD_stop_daemon(s->daemon);
	if (*s->socket)
		unlink(s->socket);
	mem_free(s->mem, s, sizeof(*s));
}

uint16_t server_port(const struct server *s)
{
	return s->port;
}

const char *server_token(const struct server *s)
{
	return s->token;
}

/* From the system's list of connections. Both ends are compared: connections that ended lately are in the list as root's. */
static uint32_t user_of(int fd)
{
	enum { TCP_STATE_TIME_WAIT = 6 };
	struct sockaddr_in peer = { 0 }, own = { 0 };
	socklen_t len = sizeof(peer), own_len = sizeof(own);
	char line[256];
	uint32_t uid = UINT32_MAX;
	FILE *list;

	if (getpeername(fd, (struct sockaddr *)&peer, &len) != 0 || peer.sin_family != AF_INET ||
	    getsockname(fd, (struct sockaddr *)&own, &own_len) != 0)
		return UINT32_MAX;
	list = fopen("/proc/net/tcp", "re");
	while (list && uid == UINT32_MAX && fgets(line, sizeof(line), list)) {
		unsigned from, from_port, to, to_port, state, user;

		if (sscanf(line, " %*u: %8X:%4X %8X:%4X %2X %*8X:%*8X %*2X:%*8X %*8X %u", &from,
			   &from_port, &to, &to_port, &state, &user) == 6 &&
		    from == peer.sin_addr.s_addr && from_port == ntohs(peer.sin_port) &&
		    to == own.sin_addr.s_addr && to_port == ntohs(own.sin_port) &&
		    state != TCP_STATE_TIME_WAIT)
			uid = user;
	}
	if (list)
		fclose(list);
	return uid;
}

uint32_t server_user(const struct server_request *request)
{
	const union MHD_ConnectionInfo *info =
		request->connection ? lib.MHD_get_connection_info(request->connection,
								  MHD_CONNECTION_INFO_CONNECTION_FD)
				    : NULL;

	return info ? user_of(info->connect_fd) : UINT32_MAX;
}

#else

static const char *connection_param(const struct server_request *request, const char *name)
{
	(void)request;
	(void)name;
	return NULL;
}

ow_status server_start(const struct server_options *options, struct mem *mem, struct server **out,
		       struct ow_error *err)
{
	(void)options;
	(void)mem;
	*out = NULL;
	return error_set(err, OW_E_UNSUPPORTED,
			 "this build has no web server: install libmicrohttpd-dev and build again");
}

void server_stop(struct server *server)
{
	(void)server;
}

uint16_t server_port(const struct server *server)
{
	(void)server;
	return 0;
}

const char *server_token(const struct server *server)
{
	(void)server;
	return "";
}

uint32_t server_user(const struct server_request *request)
{
	(void)request;
	return UINT32_MAX;
}

#endif

void server_fail(struct server_reply *reply, unsigned status, const char *format, ...)
{
	char text[OW_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	reply->status = status;
	reply->type = "application/json";
	buf_clear(&reply->body);
	buf_puts(&reply->body, "{\"error\": ");
	json_quote(&reply->body, str_from(text));
	buf_puts(&reply->body, "}\n");
}

const char *server_param(const struct server_request *request, const char *name)
{
	for (size_t i = 0; i < request->param_count; i++)
		if (strcmp(request->params[i].name, name) == 0)
			return request->params[i].value;
	return request->connection ? connection_param(request, name) : NULL;
}

int64_t server_param_int(const struct server_request *request, const char *name, int64_t otherwise)
{
	const char *text = server_param(request, name);
	int64_t number;

	return text && str_to_i64(str_from(text), &number) ? number : otherwise;
}
