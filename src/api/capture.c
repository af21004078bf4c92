/*
 * capture.c: the bodies of ow_capture_tf and ow_capture_kineto: traces on demand from TensorFlow, JAX and PyTorch jobs. The
 * protocols are in live/capture; only the file of TensorFlow's answer is made here.
 */
#include "api/api_int.h"
#include "opwatch/record.h"

#include "base/atomic_file.h"
#include "live/capture/kineto.h"
#include "live/capture/tf_profiler.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((int64_t)1000000000)
#define ANSWER_LIMIT ((size_t)2 << 30) /* largest answer that gRPC itself allows */

void ow_capture_options_init(struct ow_capture_options *options)
{
	*options = (struct ow_capture_options){ .size = sizeof(*options),
						.for_ns = 2 * SECOND_NS,
						.wait_ns = 60 * SECOND_NS };
}

static ow_status make_folder(const char *dir, char full[4096], struct ow_error *err)
{
	struct stat st;

	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return error_errno(err, errno, "%s", dir);
	if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
		return error_set(err, OW_E_USAGE, "%s is not a folder", dir);
	if (!realpath(dir, full))
		return error_errno(err, errno, "%s", dir);
	return OW_OK;
}

/* Makes a name such as host_6009.20260131-120000.xplane.pb, without the brackets and colons of
 * addresses. */
static void name_file(const struct ow_capture_options *o, const char *session,
		      struct ow_capture_summary *s)
{
	int len = snprintf(s->path, sizeof(s->path), "%s/", o->dir);
	char *from = s->path + MIN((size_t)len, sizeof(s->path) - 1);

	snprintf(from, sizeof(s->path) - (size_t)(from - s->path), "%s.%s.xplane.pb", o->address,
		 session);
	for (; *from; from++)
		if (*from == ':' || *from == '/')
			*from = '_';
		else if (*from == '[' || *from == ']')
			*from = '-';
}

static ow_status save(struct mem *mem, struct str xspace, struct ow_capture_summary *s,
		      struct ow_error *err)
{
	struct atomic_file file;

	OW_TRY(atomic_open(&file, mem, s->path, err));
	atomic_write(&file, xspace.ptr, xspace.len);
	s->bytes = xspace.len;
	return atomic_finish(&file, OW_OK, err);
}

/* Finds the file that the job wrote itself: in our folder, if the job runs on this machine. */
static ow_status find_saved(const struct tf_profiler_request *r, struct ow_capture_summary *s,
			    struct ow_error *err)
{
	struct path_list found = { 0 };
	struct mem mem;
	char folder[4200];
	struct stat st;
	ow_status status;

	mem_init(&mem, 0);
	snprintf(folder, sizeof(folder), "%s/%s", r->folder, r->session);
	if (stat(folder, &st) == 0) {
		const char *paths[] = { folder };

		status = paths_expand(&found, &mem, paths, 1, err);
		for (size_t i = 0; status == OW_OK && i < found.count; i++)
			if (str_ends(str_from(found.items[i].name), STR(".xplane.pb")) &&
			    stat(found.items[i].name, &st) == 0) {
				snprintf(s->path, sizeof(s->path), "%s", found.items[i].name);
				s->bytes = (uint64_t)st.st_size;
			}
		arena_release(&found.arena);
	}
	if (s->bytes)
		return OW_OK;
	return error_set(err, OW_E_NOT_FOUND,
			 "%s did not send its trace: it saved the trace on its own machine, in %s; "
			 "copy it from there",
			 r->address, folder);
}

static ow_status capture(const struct ow_capture_options *o, struct ow_capture_summary *s,
			 struct mem *mem, struct ow_error *err)
{
	struct tf_profiler_answer answer;
	char folder[4096], session[64];
	struct tf_profiler_request r = { .address = o->address,
					 .for_ns = o->for_ns,
					 .wait_ns = o->wait_ns,
					 .folder = folder,
					 .session = session,
					 .answer_limit = ANSWER_LIMIT,
					 .go_on = o->keep_going,
					 .arg = o->keep_going_arg };
	time_t now = time(NULL);
	struct tm tm = { 0 };
	ow_status status;

	OW_TRY(make_folder(o->dir, folder, err));
	localtime_r(&now, &tm);
	strftime(session, sizeof(session), "%Y%m%d-%H%M%S", &tm);
	name_file(o, session, s);
	buf_init(&answer.bytes, mem);
	status = tf_profiler_ask(&r, &answer, err);
	if (status == OW_OK)
		status = answer.xspace.ptr ? save(mem, answer.xspace, s, err)
					   : find_saved(&r, s, err);
	buf_release(&answer.bytes);
	return status;
}

ow_status ow_capture_tf(const struct ow_capture_options *options,
			struct ow_capture_summary *summary, struct ow_error *err)
{
	struct ow_capture_options full;
	struct ow_capture_summary s = { .size = sizeof(s) };
	struct mem mem;
	ow_status status;

	error_clear(err);
	ow_capture_options_init(&full);
	SIZED_IN(&full, options);
	if (!full.address || !full.dir || full.for_ns < 1000000 || full.wait_ns < 0)
		return error_set(err, OW_E_USAGE,
				 "a capture needs an address, a folder and a time");
	mem_init(&mem, (size_t)full.memory_limit);
	status = capture(&full, &s, &mem, err);
	SIZED_OUT(summary, &s);
	return status;
}

ow_status ow_capture_kineto(const struct ow_capture_options *options, const int64_t *pids,
			    size_t pid_count, ow_line_fn message, void *message_arg,
			    struct ow_error *err)
{
	const struct kineto_choice choice = { pids, pid_count, message, message_arg };
	struct ow_capture_options full;

	error_clear(err);
	ow_capture_options_init(&full);
	SIZED_IN(&full, options);
	if (!full.dir || full.for_ns < 1000000 || full.wait_ns < 0)
		return error_set(err, OW_E_USAGE, "a capture needs a folder and a time");
	return kineto_capture(&full, &choice, err);
}
