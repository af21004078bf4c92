/*
 * nccl_driver.c: a fake of NCCL for the recorder's profiler plugin: nccl_driver VERSION COUNT loads the plugin that
 * NCCL_PROFILER_PLUGIN names, takes ncclProfiler_vVERSION and reports COUNT collectives as NCCL does: queued by this
 * thread, ended there before the device begins, and carried out by two channels of about 4 ms that another thread
 * reports. It also sends what a plugin must tolerate: groups, events of other processes, events without parent. Built
 * and run by tests/cli/record_devices_test.py; not part of the product.
 */
#include "nccl_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHANNELS 2
#define ELEMENTS 1000

static void nap(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

/* A device timer that is unrelated to the host's clock. */
static uint64_t timer(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + 123456789012345u;
}

struct work {
	void *context, *parent;
};

#define DRIVE(version, function_name, type_name, queue_type, before_init, after_init)              \
	static const struct nccl_plugin_v##version *plugin_##version;                              \
                                                                                                   \
	static void *proxy_##version(void *arg)                                                    \
	{                                                                                          \
		struct work *w = arg;                                                              \
		void *handles[CHANNELS], *foreign;                                                 \
		struct nccl_event_v##version e;                                                    \
                                                                                                   \
		memset(&e, 0, sizeof(e));                                                          \
		e.type = NCCL_PROXY_OPERATION;                                                     \
		e.proxy.pid = 1;                                                                   \
		e.parent = (void *)8; /* means something in that process only */                   \
		plugin_##version->start(w->context, &foreign, &e);                                 \
		if (foreign)                                                                       \
			exit(5);                                                                   \
		for (int i = 0; i < CHANNELS; i++) {                                               \
			memset(&e, 0, sizeof(e));                                                  \
			e.type = queue_type;                                                       \
			e.parent = w->parent;                                                      \
			if ((queue_type) == NCCL_PROXY_OPERATION)                                  \
				e.proxy.pid = getpid();                                            \
			else if ((version) >= 4)                                                   \
				memcpy((char *)&e.proxy + 8, &(uint64_t){ timer() }, 8);           \
			plugin_##version->start(w->context, &handles[i], &e);                      \
		}                                                                                  \
		nap(4);                                                                            \
		for (int i = 0; i < CHANNELS; i++) {                                               \
			union nccl_state s = { .kernel.timer_ns = timer() };                       \
                                                                                                   \
			if ((version) >= 4 && handles[i])                                          \
				plugin_##version->state(handles[i], NCCL_STATE_KERNEL_STOP, &s);   \
			if (handles[i])                                                            \
				plugin_##version->stop(handles[i]);                                \
		}                                                                                  \
		return NULL;                                                                       \
	}                                                                                          \
                                                                                                   \
	static int drive_##version(void *library, int count)                                       \
	{                                                                                          \
		void *context = NULL, *group, *handle;                                             \
		int mask = 0;                                                                      \
                                                                                                   \
		plugin_##version = dlsym(library, "ncclProfiler_v" #version);                      \
		if (!plugin_##version ||                                                           \
		    plugin_##version->init(&context, before_init & mask after_init) != 0)          \
			return 3;                                                                  \
		if (!(mask & NCCL_COLLECTIVE) || !(mask & (queue_type)))                           \
			return 4;                                                                  \
		for (int i = 0; i < count; i++) {                                                  \
			struct nccl_event_v##version e;                                            \
			struct work w;                                                             \
			pthread_t thread;                                                          \
                                                                                                   \
			memset(&e, 0, sizeof(e));                                                  \
			e.type = NCCL_GROUP;                                                       \
			plugin_##version->start(context, &group, &e);                              \
			memset(&e, 0, sizeof(e));                                                  \
			e.type = i % 4 == 3 ? NCCL_POINT_TO_POINT : NCCL_COLLECTIVE;               \
			e.parent = group;                                                          \
			if (i % 4 == 3) {                                                          \
				e.point.function = function_name(6, "Send");                       \
				e.point.data_type = type_name;                                     \
				e.point.count = ELEMENTS;                                          \
			} else {                                                                   \
				e.collective.function = function_name(4, "AllReduce");             \
				e.collective.data_type = type_name;                                \
				e.collective.count = ELEMENTS;                                     \
				e.collective.channels = CHANNELS;                                  \
			}                                                                          \
			plugin_##version->start(context, &handle, &e);                             \
			if (!handle)                                                               \
				return 6;                                                          \
			if (group)                                                                 \
				plugin_##version->stop(group);                                     \
			plugin_##version->stop(handle);                                            \
			w = (struct work){ context, handle };                                      \
			pthread_create(&thread, NULL, proxy_##version, &w);                        \
			pthread_join(thread, NULL);                                                \
		}                                                                                  \
		return plugin_##version->finalize(context);                                        \
	}

#define NUMBER(number, text) number
#define TEXT(number, text) text
#define NOTHING
#define OF_FOUR , "world", 0xabcdu, 1, 2, 1, NULL
#define OF_FIVE , "world", 1, 2, 1, NULL

DRIVE(1, NUMBER, 7, NCCL_PROXY_OPERATION, NOTHING, NOTHING)
DRIVE(2, TEXT, "ncclFloat32", NCCL_PROXY_OPERATION, NOTHING, NOTHING)
DRIVE(3, TEXT, "ncclFloat32", NCCL_KERNEL_CHANNEL, NOTHING, NOTHING)
DRIVE(4, TEXT, "ncclFloat32", NCCL_KERNEL_CHANNEL, NOTHING, OF_FOUR)
#define FIVE 0xabcdu,
DRIVE(5, TEXT, "ncclFloat32", NCCL_KERNEL_CHANNEL, FIVE, OF_FIVE)

int main(int argc, char **argv)
{
	static int (*const drives[])(void *, int) = { drive_1, drive_2, drive_3, drive_4, drive_5 };
	const char *path = getenv("NCCL_PROFILER_PLUGIN");
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int version = argc > 2 ? atoi(argv[1]) : 0;

	if (!library) {
		fprintf(stderr, "NCCL_PROFILER_PLUGIN=%s: %s\n", path ? path : "", dlerror());
		return 1;
	}
	return version < 1 || version > 5 ? 2 : drives[version - 1](library, atoi(argv[2]));
}
