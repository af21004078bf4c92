/*
 * server_test.c: what the server answers and, above all, what it refuses, with requests written byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/str.h"
#include "opwatch_config.h"
#include "serve/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

struct world {
	struct mem mem;
	struct server *server;
	unsigned handled;
	char reply[65536];
};

static void handle_page(void *arg, const struct server_request *request, struct server_reply *reply)
{
	(void)arg;
	(void)request;
	reply->type = "text/html";
	buf_puts(&reply->body, "<html>");
}

static void handle_echo(void *arg, const struct server_request *request, struct server_reply *reply)
{
	struct world *w = arg;
	const char *name = server_param(request, "name");

	w->handled++;
	buf_printf(&reply->body, "%s|%s|%d|", request->path, name ? name : "-",
		   (int)server_param_int(request, "n", -1));
	buf_add_str(&reply->body, request->body);
}

static void handle_failure(void *arg, const struct server_request *request,
			   struct server_reply *reply)
{
	(void)arg;
	(void)request;
	server_fail(reply, 422, "no column \"%s\"", "a<b>");
}

static bool count_down(void *stream, struct buf *to)
{
	int *left = stream;

	buf_printf(to, "data: %d\n\n", *left);
	return --*left > 0;
}

static void handle_stream(void *arg, const struct server_request *request,
			  struct server_reply *reply)
{
	static int left;

	(void)arg;
	(void)request;
	left = 3;
	reply->type = "text/event-stream";
	reply->next = count_down;
	reply->stream = &left;
}

static const struct server_route routes[] = {
	{ SERVER_GET, "/", true, handle_page },
	{ SERVER_GET, "/api/echo", false, handle_echo },
	{ SERVER_POST, "/api/echo", false, handle_echo },
	{ SERVER_GET, "/api/view/", false, handle_echo },
	{ SERVER_GET, "/api/failure", false, handle_failure },
	{ SERVER_GET, "/api/stream", false, handle_stream },
};

static struct world *open_world(const char *socket_path)
{
	static struct world w;
	struct server_options options = { .routes = routes,
					  .route_count = ARRAY_COUNT(routes),
					  .socket = socket_path,
					  .token = TOKEN,
					  .body_max = 1000,
					  .connection_max = 20,
					  .arg = &w };
	struct ow_error err;

	memset(&w, 0, sizeof(w));
	mem_init(&w.mem, 0);
	if (server_start(&options, &w.mem, &w.server, &err) != OW_OK)
		fail_msg("%s", err.text);
	return &w;
}

static void close_world(struct world *w)
{
	server_stop(w->server);
	assert_int_equal(atomic_load(&w->mem.used), 0);
}

static int connect_to(const struct world *w)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(server_port(w->server)),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Reads to the end, for at most 15 s; returns the status of the reply, 0 when there was none. */
static unsigned read_reply(struct world *w, int fd)
{
	size_t len = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, 15000) <= 0)
			break;
		n = read(fd, w->reply + len, sizeof(w->reply) - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	w->reply[len] = 0;
	close(fd);
	return len > 12 ? (unsigned)strtoul(w->reply + 9, NULL, 10) : 0;
}

/* Sends a request: first line, headers that end with CR LF each, body. Host is added unless NULL. */
static unsigned ask(struct world *w, const char *line, const char *host, const char *headers,
		    const char *body)
{
	char text[8192], own[64];
	int fd = connect_to(w), n;

	snprintf(own, sizeof(own), "127.0.0.1:%u", server_port(w->server));
	n = snprintf(text, sizeof(text), "%s HTTP/1.1\r\n%s%s%s%sConnection: close\r\n\r\n%s", line,
		     host ? "Host: " : "", host ? (*host ? host : own) : "", host ? "\r\n" : "",
		     headers, body);
	assert_true(n > 0 && (size_t)n < sizeof(text));
	(void)!write(fd, text, (size_t)n);
	return read_reply(w, fd);
}

#define WITH_TOKEN SERVER_TOKEN_HEADER ": " TOKEN "\r\n"

static const char *body_of(const struct world *w)
{
	const char *end = strstr(w->reply, "\r\n\r\n");

	return end ? end + 4 : "";
}

/* ---- cases ---- */

static void answers_routes(void **state)
{
	struct world *w = open_world(NULL);

	(void)state;
	assert_int_equal(ask(w, "GET /", "", "", ""), 200);
	assert_string_equal(body_of(w), "<html>");
	assert_non_null(strstr(w->reply, "Content-Security-Policy: default-src 'none'"));
	assert_non_null(strstr(w->reply, "X-Content-Type-Options: nosniff"));
	assert_null(strstr(w->reply, "Access-Control-Allow"));
	assert_int_equal(ask(w, "GET /api/echo?name=a%20%2Fb&n=12", "", WITH_TOKEN, ""), 200);
	assert_string_equal(body_of(w), "/api/echo|a /b|12|");
	assert_int_equal(ask(w, "GET /api/view/op?n=x", "", WITH_TOKEN, ""), 200);
	assert_string_equal(body_of(w), "/api/view/op|-|-1|");
	assert_int_equal(ask(w, "POST /api/echo", "", WITH_TOKEN "Content-Length: 5\r\n", "hello"),
			 200);
	assert_string_equal(body_of(w), "/api/echo|-|-1|hello");
	assert_int_equal(ask(w, "GET /api/failure", "", WITH_TOKEN, ""), 422);
	assert_string_equal(body_of(w), "{\"error\": \"no column \\\"a<b>\\\"\"}\n");
	close_world(w);
}

static void refuses_requests_without_the_token(void **state)
{
	struct world *w = open_world(NULL);

	(void)state;
	assert_int_equal(ask(w, "GET /api/echo", "", "", ""), 401);
	assert_int_equal(ask(w, "GET /api/nothing", "", "", ""), 401);
	assert_int_equal(ask(w, "POST /api/nothing", "", "", ""), 401);
	assert_int_equal(ask(w, "GET /api/echo", "", SERVER_TOKEN_HEADER ": \r\n", ""), 401);
	assert_int_equal(ask(w, "GET /api/echo?token=" TOKEN, "", "", ""), 401);
	assert_int_equal(ask(w, "GET /api/echo", "", "Cookie: token=" TOKEN "\r\n", ""), 401);
	assert_int_equal(ask(w, "GET /api/echo", "", SERVER_TOKEN_HEADER ": " TOKEN "0\r\n", ""),
			 401);
	assert_int_equal(w->handled, 0);
	close_world(w);
}

static void refuses_other_pages(void **state)
{
	struct world *w = open_world(NULL);
	char origin[128];

	(void)state;
	assert_int_equal(ask(w, "GET /api/echo", "evil.example", WITH_TOKEN, ""), 403);
	assert_int_equal(ask(w, "GET /", "127.0.0.1", "", ""), 403);
	assert_int_equal(ask(w, "GET /", "127.0.0.1.evil.example", "", ""), 403);
	assert_in_set(ask(w, "GET /", NULL, "", ""), ((unsigned long[]){ 400, 403 }), 2);
	assert_int_equal(
		ask(w, "GET /api/echo", "", WITH_TOKEN "Origin: http://evil.example\r\n", ""), 403);
	assert_int_equal(ask(w, "GET /api/echo", "", WITH_TOKEN "Origin: null\r\n", ""), 403);
	assert_int_equal(
		ask(w, "GET /api/echo", "", WITH_TOKEN "Sec-Fetch-Site: cross-site\r\n", ""), 403);
	assert_int_equal(w->handled, 0);
	snprintf(origin, sizeof(origin),
		 WITH_TOKEN "Origin: http://127.0.0.1:%u\r\nSec-Fetch-Site: same-origin\r\n",
		 server_port(w->server));
	assert_int_equal(ask(w, "GET /api/echo", "", origin, ""), 200);
	snprintf(origin, sizeof(origin), WITH_TOKEN "Origin: http://127.0.0.1:%u.evil.example\r\n",
		 server_port(w->server));
	assert_int_equal(ask(w, "GET /api/echo", "", origin, ""), 403);
	close_world(w);
}

/* Of two Hosts, a proxy may have looked at the other one. */
static void refuses_two_hosts(void **state)
{
	struct world *w = open_world(NULL);
	char both[96];

	(void)state;
	snprintf(both, sizeof(both), WITH_TOKEN "hOST: 127.0.0.1:%u\r\n", server_port(w->server));
	assert_int_equal(ask(w, "GET /api/echo", "", both, ""), 403);
	assert_int_equal(ask(w, "GET /api/echo", "evil.example", both, ""), 403);
	assert_int_equal(ask(w, "GET /api/echo", NULL, both, ""), 200);
	assert_int_equal(w->handled, 1);
	close_world(w);
}

/* A link in a notebook, or the file that starts the browser, leads to the page, and to nothing else. */
static void lets_links_lead_to_the_page(void **state)
{
#define VISIT "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: "
	struct world *w = open_world(NULL);

	(void)state;
	assert_int_equal(ask(w, "GET /", "", VISIT "document\r\n", ""), 200);
	assert_int_equal(ask(w, "GET /", "", VISIT "iframe\r\n", ""), 403);
	assert_int_equal(ask(w, "POST /", "", VISIT "document\r\n", ""), 403);
	assert_int_equal(ask(w, "GET /else", "", VISIT "document\r\n", ""), 403);
	assert_int_equal(ask(w, "GET /api/echo", "", WITH_TOKEN VISIT "document\r\n", ""), 403);
	assert_int_equal(ask(w, "GET /", "evil.example", VISIT "document\r\n", ""), 403);
	assert_int_equal(ask(w, "GET /", "",
			     "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n"
			     "Sec-Fetch-Dest: script\r\n",
			     ""),
			 403);
	assert_int_equal(w->handled, 0);
	close_world(w);
}

static void knows_the_names_of_the_loopback_address(void **state)
{
	static const char *const names[] = { "localhost", "[::1]", "127.0.0.1" };
	struct world *w = open_world(NULL);
	char host[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		snprintf(host, sizeof(host), "%s:%u", names[i], server_port(w->server));
		assert_int_equal(ask(w, "GET /", host, "", ""), 200);
		snprintf(host, sizeof(host), "%s:%u", names[i], server_port(w->server) ^ 1u);
		assert_int_equal(ask(w, "GET /", host, "", ""), 403);
	}
	close_world(w);
}

static void handle_user(void *arg, const struct server_request *request, struct server_reply *reply)
{
	(void)arg;
	buf_printf(&reply->body, "%u", server_user(request));
}

/* As the daemon's metrics are served: for all users, who are known by their connection. */
static void serves_without_secrets(void **state)
{
	static const struct server_route open_routes[] = {
		{ SERVER_GET, "/metrics", true, handle_user },
	};
	struct server_options options = { .routes = open_routes,
					  .route_count = ARRAY_COUNT(open_routes),
					  .head_max = 8192,
					  .wrong_host = 421 };
	static struct world w;
	struct ow_error err;
	char own[32];

	(void)state;
	mem_init(&w.mem, 0);
	assert_int_equal(server_start(&options, &w.mem, &w.server, &err), OW_OK);
	assert_int_equal(ask(&w, "GET /metrics", "", "", ""), 200);
	snprintf(own, sizeof(own), "%u", (unsigned)getuid());
	assert_string_equal(body_of(&w), own);
	assert_int_equal(ask(&w, "HEAD /metrics", "", "", ""), 200);
	assert_string_equal(body_of(&w), "");
	assert_int_equal(ask(&w, "GET /else", "", "", ""), 404);
	assert_int_equal(ask(&w, "GET //metrics", "", "", ""), 404);
	assert_int_equal(ask(&w, "POST /metrics", "", "", ""), 405);
	assert_int_equal(ask(&w, "GET /metrics", "evil.example", "", ""), 421);
	assert_int_equal(ask(&w, "GET /metrics", "", "Origin: http://evil.example\r\n", ""), 403);
	close_world(&w);
	assert_int_equal(server_user(&(struct server_request){ 0 }), UINT32_MAX);
}

static void knows_paths_to_the_letter(void **state)
{
	static const char *const odd[] = {
		"GET //api/echo",	"GET /api//echo",
		"GET /%61pi/echo",	"GET /api/echo/",
		"GET /api/../api/echo", "GET /api/view/%2e%2e/echo",
		"GET /api/view/",	"GET /api",
		"GET /etc/passwd",	"GET /api/echo%00",
	};
	struct world *w = open_world(NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(odd); i++)
		assert_int_equal(ask(w, odd[i], "", WITH_TOKEN, ""), 404);
	assert_int_equal(ask(w, "POST /api/failure", "", WITH_TOKEN, ""), 405);
	assert_int_equal(ask(w, "DELETE /api/echo", "", WITH_TOKEN, ""), 405);
	assert_int_equal(w->handled, 0);
	close_world(w);
}

static void bounds_bodies(void **state)
{
	struct world *w = open_world(NULL);
	char chunked[3000];

	(void)state;
	assert_int_equal(ask(w, "POST /api/echo", "", WITH_TOKEN "Content-Length: 2000000\r\n", ""),
			 413);
	assert_int_equal(ask(w, "POST /api/echo", "",
			     WITH_TOKEN "Content-Length: 99999999999999999999\r\n", ""),
			 413);
	snprintf(chunked, sizeof(chunked), "7d0\r\n%02000d\r\n0\r\n\r\n", 0);
	assert_int_equal(
		ask(w, "POST /api/echo", "", WITH_TOKEN "Transfer-Encoding: chunked\r\n", chunked),
		413);
	assert_int_equal(w->handled, 0);
	close_world(w);
}

static void bounds_connections(void **state)
{
	struct world *w = open_world(NULL);
	int silent[60];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(silent); i++)
		silent[i] = connect_to(w);
	for (size_t i = 0; i < ARRAY_COUNT(silent); i++)
		close(silent[i]);
	/* Threads of closed connections need a moment to end. */
	for (int i = 0; i < 100 && ask(w, "GET /", "", "", "") != 200; i++)
		usleep(50000);
	assert_int_equal(ask(w, "GET /", "", "", ""), 200);
	close_world(w);
}

static void streams_go_on_until_they_end(void **state)
{
	struct world *w = open_world(NULL);

	(void)state;
	assert_int_equal(ask(w, "GET /api/stream", "", WITH_TOKEN, ""), 200);
	assert_non_null(strstr(w->reply, "data: 3"));
	assert_non_null(strstr(w->reply, "data: 1"));
	close_world(w);
}

static void listens_on_a_private_socket(void **state)
{
	char path[64];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	static const char request[] = "GET /api/echo HTTP/1.1\r\nHost: localhost\r\n" WITH_TOKEN
				      "Connection: close\r\n\r\n";
	struct world *w;
	struct stat st;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/opwatch-server-test-%d", (int)getpid());
	unlink(path);
	w = open_world(path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	(void)!write(fd, request, sizeof(request) - 1);
	assert_int_equal(read_reply(w, fd), 200);
	close_world(w);
	assert_int_equal(access(path, F_OK), -1);
}

static void explains_what_it_cannot_listen_on(void **state)
{
	struct server_options options = { .listen = "example.org" };
	struct server *server;
	struct ow_error err;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(server_start(&options, &mem, &server, &err), OW_E_USAGE);
	assert_non_null(strstr(err.text, "not an IP address"));
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_routes),
		cmocka_unit_test(refuses_requests_without_the_token),
		cmocka_unit_test(refuses_other_pages),
		cmocka_unit_test(refuses_two_hosts),
		cmocka_unit_test(lets_links_lead_to_the_page),
		cmocka_unit_test(knows_the_names_of_the_loopback_address),
		cmocka_unit_test(serves_without_secrets),
		cmocka_unit_test(knows_paths_to_the_letter),
		cmocka_unit_test(bounds_bodies),
		cmocka_unit_test(bounds_connections),
		cmocka_unit_test(streams_go_on_until_they_end),
		cmocka_unit_test(listens_on_a_private_socket),
		cmocka_unit_test(explains_what_it_cannot_listen_on),
	};

	if (!OPWATCH_HAVE_MICROHTTPD) {
		print_message("skipped: built without libmicrohttpd\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
