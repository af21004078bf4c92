/*
 * progress.c: functions that the library calls back while the GIL is released: progress, which is also where Ctrl-C
 * ends a long call, and the bytes that a sink writes.
 */
#include "ext.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALL_EVERY_NS 20000000

void watch_init(struct watch *watch, PyObject *callable)
{
	memset(watch, 0, sizeof(*watch));
	watch->callable = callable && callable != Py_None ? callable : NULL;
	watch->thread = (unsigned long)pthread_self();
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Calls the user's callable and handles signals; the GIL is held. */
static bool ask(struct watch *watch, const char *file, uint64_t done, uint64_t total)
{
	bool own = watch->thread == (unsigned long)pthread_self();
	PyObject *answer;
	bool go_on = true;

	if (own && PyErr_CheckSignals() != 0)
		return false;
	if (!watch->callable)
		return true;
	answer = PyObject_CallFunction(watch->callable, "sKK", file, (unsigned long long)done,
				       (unsigned long long)total);
	if (!answer)
		return false;
	go_on = answer != Py_False;
	Py_DECREF(answer);
	return go_on;
}

/* Called from any thread, but not often, because taking the GIL costs more than the report. */
bool watch_progress(void *arg, const char *file, uint64_t done, uint64_t total)
{
	struct watch *watch = arg;
	int64_t now = now_ns(), last = atomic_load(&watch->last_ns);
	PyGILState_STATE gil;

	if (atomic_load(&watch->stop))
		return false;
	if ((now - last < CALL_EVERY_NS && done < total) ||
	    !atomic_compare_exchange_strong(&watch->last_ns, &last, now))
		return true;
	gil = PyGILState_Ensure();
	if (!atomic_load(&watch->stop) && !ask(watch, file, done, total)) {
		if (PyErr_Occurred())
			PyErr_Fetch(&watch->type, &watch->value, &watch->trace);
		atomic_store(&watch->stop, true);
	}
	PyGILState_Release(gil);
	return !atomic_load(&watch->stop);
}

bool watch_failed(struct watch *watch)
{
	if (!watch->type)
		return false;
	PyErr_Restore(watch->type, watch->value, watch->trace);
	watch->type = watch->value = watch->trace = NULL;
	return true;
}

bool sink_bytes_write(void *arg, const void *bytes, size_t len)
{
	struct sink_bytes *out = arg;

	if (out->cap - out->len < len) {
		size_t cap = out->cap * 2 > out->len + len ? out->cap * 2 : out->len + len + 4096;
		char *grown = realloc(out->bytes, cap);

		if (!grown) {
			out->no_memory = true;
			return false;
		}
		out->bytes = grown;
		out->cap = cap;
	}
	if (len)
		memcpy(out->bytes + out->len, bytes, len);
	out->len += len;
	return true;
}

void sink_bytes_free(struct sink_bytes *out)
{
	free(out->bytes);
}
