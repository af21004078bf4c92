/* tf_profiler.c: see tf_profiler.h. */
#include "live/tf_profiler.h"

#include "wire/pb_write.h"

#define CONNECT_NS ((int64_t)10 * 1000000000)
#define XPLANE_TOOL "xplane.pb"

/* Fields of ProfileRequest and ProfileOptions. */
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
/* Of ProfileResponse. */
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

/* A file among the answer's; *xspace when it is the one. */
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
			     struct tf_profiler_answer *answer, struct error *err)
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
		return error_set(err, OW_E_CORRUPT, "the answer of %s is no profile",
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
			  struct tf_profiler_answer *answer, struct error *err)
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
