/* capture_int.h: between capture_kineto.c, which has the socket itself, and capture_daemon.c, which asks who has it. */
#ifndef API_CAPTURE_INT_H
#define API_CAPTURE_INT_H

#include "api/api_int.h"

struct kineto_request {
	const char *folder; /* a whole path */
	int64_t for_ns, wait_ns;
	const int64_t *pids; /* none: all */
	size_t pid_count;
	ow_line_fn message;
	void *message_arg;
	bool (*go_on)(void *arg); /* or NULL */
	void *go_on_arg;
};

struct kineto_outcome {
	size_t written, gone, waiting;
};

/* OW_E_NOT_FOUND: no daemon serves; OW_E_UNSUPPORTED: it does not have that socket either. */
ow_status capture_through_daemon(const struct kineto_request *request,
				 struct kineto_outcome *outcome, struct error *err);

#endif
