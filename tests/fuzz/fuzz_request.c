/*
 * fuzz_request.c: the target `request`: the bytes are sent to the server of the web page over a connection, with a small profile behind it. The
 * words @HOST@ and @TOKEN@ stand for what this server accepts, so that changed requests still reach the handlers. An answer that is not HTTP,
 * or none within fifteen seconds, is a bug.
 */
#include "fuzz_entry.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "opwatch/ui.h"

#define PATIENCE_MS 15000

static const char trace[] =
	"{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"GPU\"}],\"traceEvents\":["
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,"
	"\"ts\":0,\"dur\":90},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":5,"
	"\"dur\":20,"
	"\"args\":{\"External id\":5,\"Call stack\":\"train.py(12): forward;model.py(3): f\"}},"
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,"
	"\"ts\":9,\"dur\":4,"
	"\"args\":{\"correlation\":7}},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm<float>\",\"pid\":0,\"tid\":7,\"ts\":20,"
	"\"dur\":30,"
	"\"args\":{\"correlation\":7,\"stream\":7,\"device\":0}},"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm<float>\",\"pid\":0,\"tid\":7,\"ts\":60,"
	"\"dur\":20,"
	"\"args\":{\"correlation\":8,\"stream\":7,\"device\":0}},"
	"{\"ph\":\"C\",\"name\":\"memory\",\"pid\":1,\"ts\":12,\"args\":{\"bytes\":100}}]}";

static struct page {
	ow_profile *profile;
	ow_ui *ui;
	uint16_t port;
	char host[32];
	bool tried;
} page;

static void close_page(void)
{
	ow_ui_close(page.ui);
	ow_profile_free(page.profile);
}

static void open_page(void)
{
	struct ow_file_options file = { .size = sizeof(file), .step = INT64_MIN };
	struct ow_ui_options options;
	struct ow_error err = { 0 };
	const char *port;

	page.tried = true;
	ow_ui_options_init(&options);
	options.daemon_socket = "/nonexistent";
	options.source_dir = "/nonexistent";
	if (ow_profile_new(NULL, &page.profile, &err) != OW_OK ||
	    ow_profile_add_memory(page.profile, "fuzz", trace, sizeof(trace) - 1, &file, NULL,
				  &err) != OW_OK ||
	    ow_profile_freeze(page.profile, &err) != OW_OK)
		abort();
	if (ow_ui_open_profile(page.profile, &options, &page.ui, &err) != OW_OK) {
		fprintf(stderr, "skipped: %s\n", err.text);
		return;
	}
	port = strrchr(ow_ui_address(page.ui), ':') + 1;
	page.port = (uint16_t)strtoul(port, NULL, 10);
	snprintf(page.host, sizeof(page.host), "127.0.0.1:%u", page.port);
	atexit(close_page);
}

/* The request with the words replaced. */
static void write_request(struct buf *to, const char *data, size_t len)
{
	for (size_t i = 0; i < len;) {
		if (len - i >= 6 && memcmp(data + i, "@HOST@", 6) == 0) {
			buf_puts(to, page.host);
			i += 6;
		} else if (len - i >= 7 && memcmp(data + i, "@TOKEN@", 7) == 0) {
			buf_puts(to, ow_ui_token(page.ui));
			i += 7;
		} else {
			buf_add(to, data + i, 1);
			i++;
		}
	}
}

static int connect_page(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(page.port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		abort();
	return fd;
}

/* Reads to the end; false when it does not come, or the begin is not HTTP. */
static bool read_answer(int fd)
{
	char part[65536];
	bool first = true;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, PATIENCE_MS) <= 0)
			return false;
		n = recv(fd, part, sizeof(part), 0);
		if (n <= 0)
			return true; /* also without an answer: the request was not one */
		if (first && memcmp(part, "HTTP/1.", MIN((size_t)n, 7)) != 0)
			return false;
		first = false;
	}
}

ow_status fuzz_request(const void *data, size_t len)
{
	struct buf request;
	struct mem mem;
	size_t sent = 0;
	bool good;
	int fd;

	if (!page.tried)
		open_page();
	if (!page.ui)
		return OW_E_UNSUPPORTED;
	mem_init(&mem, FUZZ_MEMORY_LIMIT);
	buf_init(&request, &mem);
	write_request(&request, data, len);
	fd = connect_page();
	while (!request.failed && sent < request.len) {
		ssize_t n = send(fd, request.ptr + sent, request.len - sent, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		sent += (size_t)n;
	}
	(void)shutdown(fd, SHUT_WR);
	good = read_answer(fd);
	close(fd);
	buf_release(&request);
	return good ? OW_OK : OW_E_INTERNAL;
}
