/* metrics_http.c: see metrics_http.h. HTTP/1.0 in what it does: one request per connection. */
#include "live/metrics_http.h"

#include "live/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_NS ((int64_t)10000000000)

ow_status metrics_http_open(struct metrics_http *h, struct mem *mem, uint32_t port,
			    struct error *err)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(address);
	ow_status status;

	h->mem = mem;
	h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->listener >= 0)
		setsockopt(h->listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (h->listener >= 0 &&
	    bind(h->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(h->listener, METRICS_HTTP_CONNECTIONS) == 0 &&
	    getsockname(h->listener, (struct sockaddr *)&address, &len) == 0) {
		h->port = ntohs(address.sin_port);
		return OW_OK;
	}
	status = error_errno(err, errno, "port %u of 127.0.0.1, for metrics", port);
	metrics_http_close(h);
	return status;
}

static void hang_up(struct metrics_connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	buf_release(&c->out);
	c->fd = -1;
}

void metrics_http_close(struct metrics_http *h)
{
	for (size_t i = 0; i < h->count; i++)
		hang_up(&h->connections[i]);
	if (h->listener >= 0)
		close(h->listener);
	h->count = 0;
	h->listener = -1;
	h->port = 0;
}

size_t metrics_http_poll(const struct metrics_http *h, struct pollfd *fds)
{
	if (h->listener < 0)
		return 0;
	fds[0] = (struct pollfd){ .fd = h->count < METRICS_HTTP_CONNECTIONS ? h->listener : -1,
				  .events = POLLIN };
	for (size_t i = 0; i < h->count; i++)
		fds[i + 1] =
			(struct pollfd){ .fd = h->connections[i].fd,
					 .events = h->connections[i].out.len ? POLLOUT : POLLIN };
	return h->count + 1;
}

/* ---- one request ---- */

static void put_head(struct buf *to, const char *status, const char *type, size_t len)
{
	buf_printf(to,
		   "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\n\r\n",
		   status, type, len);
}

static void put_text(struct buf *to, const char *status, const char *text)
{
	put_head(to, status, "text/plain; charset=utf-8", strlen(text));
	buf_puts(to, text);
}

static void answer(struct metrics_http *h, struct metrics_connection *c)
{
	struct str request = str_make(c->in, c->in_len), method = { 0 }, path = { 0 };
	bool head;
	struct buf page;

	str_split(&request, ' ', &method);
	str_split(&request, ' ', &path);
	path = str_first(path, MIN(str_find_char(path, '?'), path.len));
	head = str_eq(method, STR("HEAD"));
	if (!head && !str_eq(method, STR("GET"))) {
		put_text(&c->out, "405 Method Not Allowed", "only GET\n");
		return;
	}
	if (!str_eq(path, STR("/metrics"))) {
		put_text(&c->out, "404 Not Found", "only /metrics\n");
		return;
	}
	buf_init(&page, h->mem);
	if (h->page(h->arg, &page) && !page.failed) {
		put_head(&c->out, "200 OK", METRICS_CONTENT_TYPE, page.len);
		if (!head)
			buf_add_str(&c->out, buf_str(&page));
	} else {
		put_text(&c->out, "503 Service Unavailable", "no memory\n");
	}
	buf_release(&page);
}

static void read_request(struct metrics_http *h, struct metrics_connection *c)
{
	ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up(c);
		return;
	}
	c->in_len += (size_t)n;
	if (str_has(str_make(c->in, c->in_len), STR("\r\n\r\n")) ||
	    str_has(str_make(c->in, c->in_len), STR("\n\n")))
		answer(h, c);
	else if (c->in_len == sizeof(c->in))
		put_text(&c->out, "431 Request Header Fields Too Large", "too long\n");
}

static void write_answer(struct metrics_connection *c)
{
	while (c->sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.ptr + c->sent, c->out.len - c->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			break;
		c->sent += (size_t)n;
	}
	hang_up(c);
}

static void accept_one(struct metrics_http *h, int64_t now_ns)
{
	int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct metrics_connection *c;

	if (fd < 0)
		return;
	c = &h->connections[h->count++];
	c->fd = fd;
	c->since_ns = now_ns;
	c->in_len = c->sent = 0;
	buf_init(&c->out, h->mem);
}

void metrics_http_turn(struct metrics_http *h, const struct pollfd *fds, size_t count,
		       int64_t now_ns)
{
	size_t kept = 0, had = h->count;

	for (size_t i = 0; i < had; i++) {
		struct metrics_connection *c = &h->connections[i];

		if (i + 1 < count && fds[i + 1].revents && !c->out.len)
			read_request(h, c);
		if (c->fd >= 0 && (c->out.len || c->out.failed))
			write_answer(c);
		if (c->fd >= 0 && now_ns - c->since_ns > PATIENCE_NS)
			hang_up(c);
		if (c->fd >= 0 && kept++ != i)
			h->connections[kept - 1] = *c;
	}
	h->count = kept;
	if (count && fds[0].revents && h->count < METRICS_HTTP_CONNECTIONS)
		accept_one(h, now_ns);
}
