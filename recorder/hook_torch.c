/*
 * hook_torch.c: the operators of PyTorch, through the callbacks that its own profiler uses (at::RecordFunction).
 * Neither its headers nor its ABI at build time are needed: two functions are looked up by their C++ names, and the
 * one struct that is passed has been the same from 1.13 on. Unchecked versions are refused.
 *
 * Operators that come too fast to record each are counted, and some are timed: torch_rate.c.
 *
 * Three callbacks, one per scope, so that each knows what it is called for: operators, backward nodes, and ranges
 * such as Optimizer.step, enumerate(DataLoader) and gloo:all_reduce.
 */
#include "recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Layout of at::RecordFunctionCallback, which is passed by value. */
struct callback {
	void *start, *end;
	double probability;
	uint8_t scopes[10];
	uint8_t inputs, outputs, ids;
};
_Static_assert(sizeof(struct callback) == 40, "as at::RecordFunctionCallback");

#define SCOPE_FUNCTION 0
#define SCOPE_BACKWARD 1
#define SCOPE_USER 7

#define OLDEST 113 /* oldest supported version, 1.13: tested */
/* newest supported version, 2.9: the struct was compared with the sources, but not tested */
#define NEWEST 209

static uint64_t (*add_callback)(struct callback);
static void (*remove_callback)(uint64_t);
static const char *(*name_of)(const void *);
static uint64_t handles[3];
static char title[32];
static _Atomic uint32_t armed; /* 0: not yet armed, 1: armed, 2: never */

/* The context that a start callback returns is an object with a virtual destructor: two entries, of which the
 * second one also frees. Contexts are the thread's own and only given back. */
static void destroy_context(struct open_slice *s)
{
	(void)s;
}

static void destroy_and_free_context(struct open_slice *s)
{
	slice_close(s);
}

static void *const vtable[] = { (void *)destroy_context, (void *)destroy_and_free_context };

/* Start callback; std::unique_ptr is returned through a hidden first argument. */
static void *on_start(void **result, const void *function)
{
	struct open_slice *slice = NULL;
	struct thread *t;

	(void)function;
	if (enter()) {
		t = thread_current();
		slice = t ? slice_open(t) : NULL;
		if (slice) {
			slice->vtable = vtable;
			slice->start_ns = now_ns();
		}
		leave();
	}
	*result = slice;
	return result;
}

static void *on_operator_start(void **result, const void *function)
{
	struct open_slice *slice = NULL;
	struct thread *t;

	(void)function;
	if (enter()) {
		t = thread_current();
		slice = t ? slice_open(t) : NULL;
		if (slice) {
			slice->vtable = vtable;
			op_begins(t, slice);
			slice->start_ns = now_ns();
		}
		leave();
	}
	*result = slice;
	return result;
}

static inline void on_end(const void *function, const struct open_slice *slice,
			  enum ring_category category)
{
	struct thread *t;
	const char *name;

	if (!slice || !enter())
		return;
	t = thread_current();
	if (t) {
		uint64_t now = now_ns();

		name = name_of(function);
		push(t, &(struct ring_record){ .start_ns = slice->start_ns,
					       .dur_ns = ns_since(slice->start_ns, now),
					       .kind = slice->thread == t ? RING_SLICE : RING_SPAN,
					       .category = (uint16_t)category,
					       .name = name ? text_number_cached(t, name) : 0 });
	}
	leave();
}

static void on_operator_end(const void *function, const struct open_slice *slice)
{
	struct thread *t;
	uint64_t now;
	const char *name;

	if (!slice)
		return;
	if (!enter()) {
		op_ends(NULL, slice, 0, NULL);
		return;
	}
	t = thread_current();
	now = t ? now_ns() : 0;
	name = t ? name_of(function) : NULL;
	if (!op_ends(t, slice, now, name) && t)
		push(t, &(struct ring_record){ .start_ns = slice->start_ns,
					       .dur_ns = ns_since(slice->start_ns, now),
					       .kind = slice->thread == t ? RING_SLICE : RING_SPAN,
					       .category = RING_OPERATOR,
					       .name = name ? text_number_cached(t, name) : 0 });
	leave();
}

static void on_backward_end(const void *function, const struct open_slice *slice)
{
	on_end(function, slice, RING_BACKWARD);
}

static void on_range_end(const void *function, const struct open_slice *slice)
{
	on_end(function, slice, RING_RANGE);
}

/* Parses a version: 113 for "1.13…"; 0 if the text is not a version. */
static unsigned parse_version(const char *text)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10), minor;

	if (end == text || *end != '.' || major > 9)
		return 0;
	text = end + 1;
	minor = strtoul(text, &end, 10);
	return end == text || minor > 99 ? 0 : (unsigned)(major * 100 + minor);
}

/* Reads the version next to torch/lib/libtorch_cpu.so: torch/version.py has __version__ =
 * '2.1.0+cpu'. */
static unsigned version_beside(const char *library)
{
	char path[4096], text[1024];
	const char *slash = strrchr(library, '/'), *found;
	ssize_t len;
	int fd;

	if (!slash || snprintf(path, sizeof(path), "%.*s/../version.py", (int)(slash - library),
			       library) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (len <= 0)
		return 0;
	text[len] = 0;
	found = strstr(text, "__version__ = '");
	return found ? parse_version(found + strlen("__version__ = '")) : 0;
}

/* Finds the version in the name, as distributions write it: libtorch_cpu.so.1.13. */
static unsigned version_of(const char *library)
{
	const char *suffix = strstr(library, "libtorch_cpu.so.");

	return suffix ? parse_version(suffix + strlen("libtorch_cpu.so."))
		      : version_beside(library);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, "/libtorch_cpu.so"))
		return 0;
	snprintf(arg, 4096, "%s", info->dlpi_name);
	return 1;
}

/* Reports that operators are not recorded. Steps and waits for batches are still seen through
 * the interpreter. */
static void refuse_torch(const char *why, unsigned version)
{
	char text[240];

	snprintf(text, sizeof(text),
		 "PyTorch %u.%u: %s; its operators are not recorded, but its steps (through hooks "
		 "of its optimizers) and Python stacks are",
		 version / 100, version % 100, why);
	python_want_optimizers();
	hook_report(RING_HOOK_TORCH, RING_HOOK_UNKNOWN, text);
	atomic_store(&armed, 2);
}

static void register_all(void)
{
	static const struct {
		int scope;
		void *start, *end;
	} kinds[] = { { SCOPE_FUNCTION, (void *)on_operator_start, (void *)on_operator_end },
		      { SCOPE_BACKWARD, (void *)on_start, (void *)on_backward_end },
		      { SCOPE_USER, (void *)on_start, (void *)on_range_end } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct callback c = { .start = kinds[i].start,
				      .end = kinds[i].end,
				      .probability = 1.0 };

		c.scopes[kinds[i].scope] = 1;
		handles[i] = add_callback(c);
	}
}

/* Runs on the watcher's stack, or at the program's start. */
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wstack-usage="
#endif
void torch_arm(void)
{
	char path[4096] = "";
	void *library;
	unsigned version;

	if (atomic_load(&armed) ==
	    1) /* a child has its parent's callbacks, but its own shared memory */
		hook_report(RING_HOOK_TORCH, RING_HOOK_ARMED, title);
	if (atomic_load(&armed) || !dl_iterate_phdr(find_library, path))
		return;
	library = dlopen(path, RTLD_NOLOAD | RTLD_NOW);
	if (!library)
		return;
	version = version_of(path);
	*(void **)&add_callback =
		dlsym(library, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
	*(void **)&remove_callback = dlsym(library, "_ZN2at14removeCallbackEm");
	*(void **)&name_of = dlsym(library, "_ZNK2at14RecordFunction4nameEv");
	if (version >= OLDEST && version <= NEWEST && add_callback && remove_callback && name_of)
		op_rate_arm(library);
	dlclose(library);
	if (version < OLDEST || version > NEWEST) {
		refuse_torch("the recorder does not know this version", version);
		return;
	}
	if (!add_callback || !remove_callback || !name_of) {
		refuse_torch("its profiling functions were not found", version);
		return;
	}
	register_all();
	snprintf(title, sizeof(title), "PyTorch %u.%u", version / 100, version % 100);
	hook_report(RING_HOOK_TORCH, RING_HOOK_ARMED, title);
	atomic_store(&armed, 1);
}
#pragma GCC diagnostic pop

void torch_remove(void)
{
	if (atomic_load(&armed) != 1)
		return;
	op_rate_remove();
	for (size_t i = 0; i < sizeof(handles) / sizeof(*handles); i++)
		remove_callback(handles[i]);
	hook_report(RING_HOOK_TORCH, RING_HOOK_REMOVED, NULL);
	atomic_store(&armed, 0);
}
