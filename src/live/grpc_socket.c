/* grpc_socket.c: see grpc_socket.h. */
#include "live/grpc_socket.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000
#define ASK_MS 200

bool grpc_split_address(const char *address, char host[256], char port[16])
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? (size_t)(colon - address) : 0;

	if (!len || !colon[1] || strlen(colon + 1) >= 16 || len >= 256)
		return false;
	if (address[0] == '[') {
		if (address[len - 1] != ']' || len < 3)
			return false;
		address++;
		len -= 2;
	} else if (memchr(address, ':', len)) {
		return false; /* of the sixth version, without brackets */
	}
	snprintf(host, 256, "%.*s", (int)len, address);
	snprintf(port, 16, "%s", colon + 1);
	return strspn(port, "0123456789") == strlen(port);
}

ow_status grpc_wait(const struct grpc_call *call, int fd, short events, int64_t until_ns,
		    struct error *err)
{
	for (;;) {
		struct pollfd wait = { .fd = fd, .events = events };
		int64_t left_ms = (until_ns - steady_ns()) / 1000000;
		int ready;

		if (call->go_on && !call->go_on(call->arg))
			return error_set(err, OW_E_INTERRUPTED, "interrupted");
		if (left_ms <= 0)
			return OW_E_IO;
		ready = poll(&wait, 1, (int)MIN(left_ms, ASK_MS));
		if (ready > 0)
			return OW_OK;
		if (ready < 0 && errno != EINTR)
			return error_errno(err, errno, "%s", call->address);
	}
}

static ow_status connect_to(const struct grpc_call *call, const struct addrinfo *to,
			    int64_t until_ns, int *fd, struct error *err)
{
	socklen_t len = sizeof(int);
	int code = 0;
	ow_status status;

	*fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, to->ai_protocol);
	if (*fd < 0)
		return error_errno(err, errno, "%s", call->address);
	if (connect(*fd, to->ai_addr, to->ai_addrlen) == 0)
		return OW_OK;
	code = errno;
	status = OW_OK;
	if (code == EINPROGRESS) {
		status = grpc_wait(call, *fd, POLLOUT, until_ns, err);
		if (status == OW_E_IO)
			code = ETIMEDOUT;
		else if (getsockopt(*fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0)
			code = errno;
	}
	if (status != OW_E_INTERRUPTED && !code)
		return OW_OK;
	close(*fd);
	*fd = -1;
	if (status == OW_E_INTERRUPTED)
		return status;
	error_errno(err, code, "%s", call->address);
	return OW_E_IO;
}

ow_status grpc_connect(const struct grpc_call *call, int *fd, struct error *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	int64_t until_ns = steady_ns() + call->connect_ns;
	struct addrinfo *found = NULL;
	char host[256], port[16];
	ow_status status = OW_E_IO;
	int code;

	if (!grpc_split_address(call->address, host, port))
		return error_set(err, OW_E_USAGE, "'%s' is no HOST:PORT such as localhost:6009",
				 call->address);
	code = getaddrinfo(host, port, &hints, &found);
	if (code)
		return error_set(err, OW_E_IO, "%s: %s", call->address,
				 code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
	for (const struct addrinfo *to = found; to && status == OW_E_IO; to = to->ai_next)
		status = connect_to(call, to, until_ns, fd, err);
	freeaddrinfo(found);
	return status;
}
