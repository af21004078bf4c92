/*
 * tf_profiler.c: asks the profiler service of a TensorFlow or JAX job for a trace, and the gRPC client that this
 * needs: one call without TLS over libnghttp2, with a time limit and a limit on the answer. Called by src/api for
 * `opwatch capture`. Without libnghttp2 every call fails with OW_E_UNSUPPORTED. The answer's XSpace is found here
 * but read by src/import.
 */
#include "live/capture/tf_profiler.h"

#include "base/clock.h"
#include "opwatch_config.h"
#include "wire/protobuf/pb_write.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000
#define ASK_MS 200
#define CONNECT_NS ((int64_t)10 * 1000000000)
#define XPLANE_TOOL "xplane.pb"

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
		return false; /* an IPv6 address without brackets */
	}
	snprintf(host, 256, "%.*s", (int)len, address);
	snprintf(port, 16, "%s", colon + 1);
	return strspn(port, "0123456789") == strlen(port);
}

/* Waits for poll events until the time `until_ns`. Returns OW_E_IO without a message if the time
 * is over. */
static ow_status grpc_wait(const struct grpc_call *call, int fd, short events, int64_t until_ns,
			   struct ow_error *err)
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
			    int64_t until_ns, int *fd, struct ow_error *err)
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

/* Returns a connected socket that does not block. */
static ow_status grpc_connect(const struct grpc_call *call, int *fd, struct ow_error *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	int64_t until_ns = steady_ns() + call->connect_ns;
	struct addrinfo *found = NULL;
	char host[256], port[16];
	ow_status status = OW_E_IO;
	int code;

	if (!grpc_split_address(call->address, host, port))
		return error_set(
			err, OW_E_USAGE,
			"'%s' is not an address of the form HOST:PORT, such as localhost:6009",
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

#if OPWATCH_HAVE_NGHTTP2

#include <nghttp2/nghttp2.h>

#define PREFIX_BYTES 5 /* length of the prefix of a message: compression flag and length */
#define WINDOW_BYTES (8 << 20)
#define READ_BYTES ((size_t)256 << 10)

struct grpc {
	const struct grpc_call *call;
	struct ow_error *err;
	nghttp2_session *session;
	struct buf *answer;
	unsigned char head[PREFIX_BYTES]; /* prefix of our message, later of the server's */
	unsigned char prefix[PREFIX_BYTES];
	size_t sent, prefix_len;
	uint64_t expected;	      /* length of the answer's message */
	int http_status, grpc_status; /* status codes; -1: unknown */
	char message[512];
	char foreign[48]; /* content type of an answer that is not gRPC */
	bool packed, too_long, closed;
	bool speaks;	/* the server speaks HTTP/2: a complete frame was received */
	bool leaves;	/* the server accepts no more calls */
	bool was_reset; /* the server reset the stream */
	uint32_t reset_code, leave_code;
	char leave_text[128];
	int fd;
};

static ssize_t on_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t cap,
		       uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct grpc *g = arg;
	size_t total = PREFIX_BYTES + g->call->message.len, len = MIN(cap, total - g->sent);

	(void)session, (void)stream, (void)source;
	for (size_t i = 0; i < len; i++, g->sent++)
		to[i] = g->sent < PREFIX_BYTES
				? g->head[g->sent]
				: (uint8_t)g->call->message.ptr[g->sent - PREFIX_BYTES];
	if (g->sent == total)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* Stores the text of grpc-message, which is percent-encoded. */
static void keep_message(struct grpc *g, struct str text)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len && len + 1 < sizeof(g->message); i++) {
		char hex[3] = { 0 }, *end;
		long code;

		if (text.ptr[i] != '%' || i + 2 >= text.len) {
			g->message[len++] = text.ptr[i];
			continue;
		}
		memcpy(hex, text.ptr + i + 1, 2);
		code = strtol(hex, &end, 16);
		if (*end || code < 32)
			code = ' ';
		g->message[len++] = (char)code;
		i += 2;
	}
	g->message[len] = 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *arg)
{
	struct str key = str_make(name, name_len), text = str_make(value, value_len);
	struct grpc *g = arg;
	int64_t number;

	(void)session, (void)frame, (void)flags;
	if (str_eq(key, STR("grpc-message")))
		keep_message(g, text);
	else if (str_eq(key, STR("content-type")) && !str_starts(text, STR("application/grpc")))
		snprintf(g->foreign, sizeof(g->foreign), "%.*s", STR_ARG(text));
	else if (str_eq(key, STR(":status")) && str_to_i64(text, &number) && number < 1000)
		g->http_status = (int)number;
	else if (str_eq(key, STR("grpc-status")) && str_to_i64(text, &number) && number >= 0 &&
		 number < 1000)
		g->grpc_status = (int)number;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
		   size_t len, void *arg)
{
	struct grpc *g = arg;

	(void)session, (void)flags, (void)stream;
	if (g->foreign[0])
		return 0;
	while (len && g->prefix_len < PREFIX_BYTES) {
		g->prefix[g->prefix_len++] = *bytes++;
		len--;
		if (g->prefix_len < PREFIX_BYTES)
			continue;
		g->packed = g->prefix[0];
		g->expected = (uint64_t)g->prefix[1] << 24 | (uint64_t)g->prefix[2] << 16 |
			      (uint64_t)g->prefix[3] << 8 | g->prefix[4];
	}
	if (g->expected > g->call->answer_limit ||
	    len > g->expected - MIN(g->answer->len, g->expected))
		g->too_long = true;
	else
		buf_add(g->answer, bytes, len);
	return g->too_long || g->answer->failed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* Stores the reason that a server gives, in printable form, because it is shown on a terminal. */
static void keep_reason(struct grpc *g, const nghttp2_goaway *frame)
{
	size_t len = MIN(frame->opaque_data_len, sizeof(g->leave_text) - 1);

	for (size_t i = 0; i < len; i++) {
		char c = (char)frame->opaque_data[i];

		g->leave_text[i] = c < ' ' || c > '~' ? '?' : c;
	}
	g->leave_text[len] = '\0';
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct grpc *g = arg;

	(void)session;
	g->speaks = true;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		g->leaves = true;
		g->leave_code = frame->goaway.error_code;
		keep_reason(g, &frame->goaway);
	}
	if (frame->hd.type == NGHTTP2_RST_STREAM) {
		g->was_reset = true;
		g->reset_code = frame->rst_stream.error_code;
	}
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
	struct grpc *g = arg;

	(void)session, (void)stream, (void)code;
	g->closed = true;
	return 0;
}

static bool make_session(struct grpc *g)
{
	nghttp2_session_callbacks *callbacks;
	bool good;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		return false;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	good = nghttp2_session_client_new(&g->session, callbacks, g) == 0;
	nghttp2_session_callbacks_del(callbacks);
	return good;
}

static nghttp2_nv make_header(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			     .value = (uint8_t *)(uintptr_t)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

static bool submit_request(struct grpc *g)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	const nghttp2_nv headers[] = {
		make_header(":method", "POST"),
		make_header(":scheme", "http"),
		make_header(":path", g->call->path),
		make_header(":authority", g->call->address),
		make_header("te", "trailers"),
		make_header("content-type", "application/grpc"),
		make_header("user-agent", "opwatch/" OPWATCH_VERSION),
	};
	const nghttp2_data_provider body = { .read_callback = on_body };
	uint32_t len = (uint32_t)g->call->message.len;

	g->head[0] = 0;
	for (int i = 0; i < 4; i++)
		g->head[1 + i] = (unsigned char)(len >> (24 - 8 * i));
	return nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings,
				       ARRAY_COUNT(settings)) == 0 &&
	       nghttp2_session_set_local_window_size(g->session, NGHTTP2_FLAG_NONE, 0,
						     WINDOW_BYTES) == 0 &&
	       nghttp2_submit_request(g->session, NULL, headers, ARRAY_COUNT(headers), &body,
				      NULL) > 0;
}

static ow_status no_grpc(const struct grpc *g)
{
	return error_set(g->err, OW_E_FORMAT,
			 "%s does not speak gRPC without TLS (HTTP/2): is it the port of a "
			 "profiler?",
			 g->call->address);
}

static ow_status report_timeout(const struct grpc *g)
{
	return error_set(g->err, OW_E_IO,
			 "%s accepted the request, but did not finish its answer within %.0f s; "
			 "%zu bytes arrived",
			 g->call->address, (double)g->call->timeout_ns / 1e9, g->answer->len);
}

/* Writes the reason that the server gave for ending the stream; false if there is none. */
static bool say_why(const struct grpc *g, char *to, size_t size)
{
	if (g->was_reset)
		snprintf(to, size, "it reset the stream (RST_STREAM), %s (%u)",
			 nghttp2_http2_strerror(g->reset_code), g->reset_code);
	else if (g->leaves)
		snprintf(to, size, "it accepts no more calls (GOAWAY), %s (%u)%s%s%s",
			 nghttp2_http2_strerror(g->leave_code), g->leave_code,
			 g->leave_text[0] ? ", '" : "", g->leave_text, g->leave_text[0] ? "'" : "");
	return g->was_reset || g->leaves;
}

static ow_status cut_short(const struct grpc *g)
{
	char why[256];

	if (!say_why(g, why, sizeof(why)))
		snprintf(why, sizeof(why), "did the job end?");
	return error_set(g->err, OW_E_IO,
			 "%s stopped in the middle of its answer: %zu of %" PRIu64
			 " bytes arrived; %s",
			 g->call->address, g->answer->len, g->expected, why);
}

/* Explains a stream that ended before the head of an answer. */
static ow_status no_answer(const struct grpc *g)
{
	char why[256];

	if (!g->speaks)
		return no_grpc(g);
	if (say_why(g, why, sizeof(why)))
		return error_set(g->err, OW_E_IO, "%s refused the call: %s", g->call->address, why);
	return error_set(g->err, OW_E_IO,
			 "%s speaks HTTP/2, but %s without an answer; did the job end, or is it "
			 "another server?",
			 g->call->address, g->closed ? "ended the call" : "closed the connection");
}

static const char *status_name(int status)
{
	static const char *const names[] = { "OK",
					     "CANCELLED",
					     "UNKNOWN",
					     "INVALID_ARGUMENT",
					     "DEADLINE_EXCEEDED",
					     "NOT_FOUND",
					     "ALREADY_EXISTS",
					     "PERMISSION_DENIED",
					     "RESOURCE_EXHAUSTED",
					     "FAILED_PRECONDITION",
					     "ABORTED",
					     "OUT_OF_RANGE",
					     "UNIMPLEMENTED",
					     "INTERNAL",
					     "UNAVAILABLE",
					     "DATA_LOSS",
					     "UNAUTHENTICATED" };

	return (size_t)status < ARRAY_COUNT(names) ? names[status] : "an unknown status";
}

static ow_status failed_call(const struct grpc *g)
{
	return error_set(g->err, OW_E_IO, "%s answers %s (%d): %s%s", g->call->address,
			 status_name(g->grpc_status), g->grpc_status,
			 g->message[0] ? g->message : "without a reason",
			 g->grpc_status == 12 ? "; is it the port of a profiler?" : "");
}

/* Evaluates the answer when the stream has ended. */
static ow_status judge_answer(const struct grpc *g)
{
	if (g->grpc_status > 0)
		return failed_call(g);
	if (g->http_status < 0)
		return no_answer(g);
	if (g->http_status != 200)
		return error_set(g->err, OW_E_FORMAT,
				 "%s answered with HTTP status %d instead of gRPC",
				 g->call->address, g->http_status);
	if (g->foreign[0])
		return error_set(
			g->err, OW_E_FORMAT,
			"%s answered with '%s' instead of gRPC: is it the port of a profiler?",
			g->call->address, g->foreign);
	if (g->grpc_status < 0 || g->prefix_len < PREFIX_BYTES || g->answer->len < g->expected)
		return cut_short(g);
	if (g->packed)
		return error_set(g->err, OW_E_UNSUPPORTED,
				 "%s compressed its answer, although opwatch did not ask for that",
				 g->call->address);
	return OW_OK;
}

/* Explains why libnghttp2 rejected the received bytes. */
static ow_status explain_failure(const struct grpc *g, ssize_t code)
{
	if (g->answer->failed || code == NGHTTP2_ERR_NOMEM)
		return error_no_memory(g->err);
	if (g->too_long)
		return error_set(g->err, OW_E_LIMIT,
				 "the answer of %s is too long: %" PRIu64
				 " bytes; the limit is %zu",
				 g->call->address, g->expected, g->call->answer_limit);
	return no_grpc(g);
}

/* Reads the last bytes of a server that closed the connection, because they may contain the
 * reason. */
static void hear_last(const struct grpc *g)
{
	unsigned char room[4096];
	ssize_t got;

	do
		got = recv(g->fd, room, sizeof(room), MSG_DONTWAIT);
	while (got > 0 && nghttp2_session_mem_recv(g->session, room, (size_t)got) >= 0);
}

static ow_status send_all(struct grpc *g, int64_t until_ns)
{
	const uint8_t *bytes;
	ssize_t len;

	while ((len = nghttp2_session_mem_send(g->session, &bytes)) > 0)
		while (len > 0) {
			ssize_t done = send(g->fd, bytes, (size_t)len, MSG_NOSIGNAL);

			if (done > 0) {
				bytes += done;
				len -= done;
			} else if (errno == EAGAIN) {
				ow_status status =
					grpc_wait(g->call, g->fd, POLLOUT, until_ns, g->err);

				if (status != OW_OK)
					return status == OW_E_IO ? report_timeout(g) : status;
			} else if (errno != EINTR) {
				hear_last(g);
				return g->http_status < 0 ? no_answer(g) : cut_short(g);
			}
		}
	return len < 0 ? explain_failure(g, len) : OW_OK;
}

static ow_status receive_frames(struct grpc *g, unsigned char *room, int64_t until_ns)
{
	ow_status status = grpc_wait(g->call, g->fd, POLLIN, until_ns, g->err);
	ssize_t got, used;

	if (status != OW_OK)
		return status == OW_E_IO ? report_timeout(g) : status;
	got = recv(g->fd, room, READ_BYTES, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return OW_OK;
	if (got <= 0)
		return g->http_status < 0 ? no_answer(g) : cut_short(g);
	used = nghttp2_session_mem_recv(g->session, room, (size_t)got);
	return used < 0 ? explain_failure(g, used) : OW_OK;
}

static ow_status exchange_frames(struct grpc *g)
{
	int64_t until_ns = steady_ns() + g->call->timeout_ns;
	unsigned char *room = mem_alloc(g->answer->mem, READ_BYTES);
	ow_status status = OW_OK;

	if (!room)
		return error_no_memory(g->err);
	if (!make_session(g) || !submit_request(g))
		status = error_no_memory(g->err);
	while (status == OW_OK && !g->closed) {
		status = send_all(g, until_ns);
		if (status == OW_OK && !nghttp2_session_want_read(g->session))
			break;
		if (status == OW_OK)
			status = receive_frames(g, room, until_ns);
	}
	nghttp2_session_del(g->session);
	mem_free(g->answer->mem, room, READ_BYTES);
	return status == OW_OK ? judge_answer(g) : status;
}

ow_status grpc_call(const struct grpc_call *call, struct buf *answer, struct ow_error *err)
{
	struct grpc g = { .call = call,
			  .err = err,
			  .answer = answer,
			  .http_status = -1,
			  .grpc_status = -1,
			  .fd = -1 };
	ow_status status;

	buf_clear(answer);
	OW_TRY(grpc_connect(call, &g.fd, err));
	status = exchange_frames(&g);
	close(g.fd);
	return status;
}

#else

ow_status grpc_call(const struct grpc_call *call, struct buf *answer, struct ow_error *err)
{
	(void)call, (void)answer;
	return error_set(err, OW_E_UNSUPPORTED,
			 "this opwatch was built without libnghttp2 and cannot call a profiler; "
			 "install libnghttp2-dev and build again");
}

#endif

/* Field numbers of ProfileRequest and ProfileOptions. */
enum {
	REQUEST_DURATION_MS = 1,
	REQUEST_TOOLS = 3,
	REQUEST_OPTIONS = 4,
	REQUEST_FOLDER = 5,
	REQUEST_SESSION = 6,
	REQUEST_HOST = 7,
	REQUEST_EMIT_XSPACE = 9,

	OPTIONS_DATASET_OPS = 1,
	OPTIONS_HOST_LEVEL = 2,
	OPTIONS_DEVICE_LEVEL = 3,
	OPTIONS_PYTHON_LEVEL = 4,
	OPTIONS_VERSION = 5,
	OPTIONS_HLO_PROTO = 7,
	OPTIONS_DURATION_MS = 9,
};
/* Field numbers of ProfileResponse. */
enum { RESPONSE_TOOL_DATA = 6, RESPONSE_EMPTY_TRACE = 7, RESPONSE_XSPACE = 8 };
enum { TOOL_NAME = 1, TOOL_DATA = 2 };

static void put_request(struct buf *to, const struct tf_profiler_request *request)
{
	uint64_t ms = (uint64_t)(request->for_ns / 1000000);
	char host[256], port[16];
	size_t options;

	pb_put_varint(to, REQUEST_DURATION_MS, ms);
	pb_put_str(to, REQUEST_TOOLS, STR(XPLANE_TOOL));
	options = pb_begin(to, REQUEST_OPTIONS);
	pb_put_varint(to, OPTIONS_DATASET_OPS, 1);
	pb_put_varint(to, OPTIONS_HOST_LEVEL, 2);
	pb_put_varint(to, OPTIONS_DEVICE_LEVEL, 1);
	pb_put_varint(to, OPTIONS_PYTHON_LEVEL, 0);
	pb_put_varint(to, OPTIONS_VERSION, 1);
	pb_put_varint(to, OPTIONS_HLO_PROTO, 1);
	pb_put_varint(to, OPTIONS_DURATION_MS, ms);
	pb_end(to, options);
	pb_put_str(to, REQUEST_FOLDER, str_from(request->folder));
	pb_put_str(to, REQUEST_SESSION, str_from(request->session));
	if (grpc_split_address(request->address, host, port))
		pb_put_str(to, REQUEST_HOST, str_from(host));
	pb_put_varint(to, REQUEST_EMIT_XSPACE, 1);
}

/* Reads one file of the answer; sets *xspace if it is the XSpace. */
static bool read_tool(struct pb tool, struct str *xspace)
{
	struct str name = { 0 }, data = { 0 };
	struct pb_field f;

	while (pb_next(&tool, &f))
		if (f.tag == PB_TAG(TOOL_NAME, PB_BYTES))
			name = pb_str(&f);
		else if (f.tag == PB_TAG(TOOL_DATA, PB_BYTES))
			data = pb_str(&f);
	if (tool.problem)
		return false;
	if (str_ends(name, STR(XPLANE_TOOL)) && data.len)
		*xspace = data;
	return true;
}

static ow_status read_answer(const struct tf_profiler_request *request,
			     struct tf_profiler_answer *answer, struct ow_error *err)
{
	struct str bytes = buf_str(&answer->bytes);
	struct pb r = pb_over(bytes.ptr, bytes.len);
	bool empty = false, good = true;
	struct pb_field f;

	while (good && pb_next(&r, &f))
		switch (f.tag) {
		case PB_TAG(RESPONSE_XSPACE, PB_BYTES):
			answer->xspace = pb_str(&f);
			break;
		case PB_TAG(RESPONSE_TOOL_DATA, PB_BYTES):
			good = read_tool(pb_message(&f), &answer->xspace);
			break;
		case PB_TAG(RESPONSE_EMPTY_TRACE, PB_VARINT):
			empty = f.value;
			break;
		default:
			break;
		}
	if (!good || r.problem)
		return error_set(err, OW_E_CORRUPT, "the answer of %s is not a profile",
				 request->address);
	if (empty && !answer->xspace.len)
		return error_set(
			err, OW_E_EMPTY,
			"%s recorded nothing in %.1f s: nothing ran, or another profiler is "
			"active in the job",
			request->address, (double)request->for_ns / 1e9);
	return OW_OK;
}

ow_status tf_profiler_ask(const struct tf_profiler_request *request,
			  struct tf_profiler_answer *answer, struct ow_error *err)
{
	struct grpc_call call = { .address = request->address,
				  .path = "/tensorflow.ProfilerService/Profile",
				  .connect_ns = CONNECT_NS,
				  .timeout_ns = request->for_ns + request->wait_ns,
				  .answer_limit = request->answer_limit,
				  .go_on = request->go_on,
				  .arg = request->arg };
	struct buf message;
	ow_status status;

	answer->xspace = (struct str){ 0 };
	buf_init(&message, answer->bytes.mem);
	put_request(&message, request);
	call.message = buf_str(&message);
	status = message.failed ? error_no_memory(err) : grpc_call(&call, &answer->bytes, err);
	buf_release(&message);
	OW_TRY(status);
	return read_answer(request, answer, err);
}
