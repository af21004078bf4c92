/*
 * nccl_abi.h: the interface between NCCL and its profiler plugins (NCCL_PROFILER_PLUGIN), versions 1 to 5, as far as
 * the recorder uses it: the order and size of members, from NCCL's public description. hook_nccl.c and the program
 * that plays NCCL in tests include it. NCCL asks for the newest version that it knows: 1 is of NCCL 2.23, 2 of 2.24,
 * 3 of 2.26, 4 of 2.27, 5 of 2.28; later ones still take 5.
 */
#ifndef NCCL_ABI_H
#define NCCL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nccl_event_type {
	NCCL_GROUP = 1 << 0,
	NCCL_COLLECTIVE = 1 << 1,
	NCCL_POINT_TO_POINT = 1 << 2,
	NCCL_PROXY_OPERATION = 1 << 3, /* work of a host thread on one channel */
	NCCL_KERNEL_CHANNEL = 1 << 6   /* work of the kernel on one channel; since version 3 */
};

#define NCCL_STATE_KERNEL_STOP 22

/* Description of a proxy operation; the same in all versions. */
struct nccl_proxy {
	int pid; /* process that the parent event belongs to */
	uint8_t channel;
	int peer, steps, chunk_bytes, sends;
};

struct nccl_channel {
	uint8_t channel;
	uint64_t timer_ns; /* time of the device's timer; since version 4 */
};

struct nccl_event_v1 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			const char *communicator;
			uint64_t hash, sequence;
			uint8_t function;
			const void *from;
			void *to;
			size_t count;
			int root;
			uint8_t data_type;
			uint32_t operator;
			size_t traffic_bytes;
			uint8_t channels, warps, algorithm, protocol;
			int collnet, nvls;
		} collective;
		struct {
			const char *communicator;
			uint64_t hash;
			uint8_t function;
			void *buffer;
			uint8_t data_type;
			size_t count;
			int peer;
		} point;
		struct nccl_proxy proxy;
	};
};

/* Fields with which a collective begins since version 2. */
#define NCCL_NAMED_COLLECTIVE                                                                      \
	const char *communicator;                                                                  \
	uint64_t hash, sequence;                                                                   \
	const char *function;                                                                      \
	const void *from;                                                                          \
	void *to;                                                                                  \
	size_t count;                                                                              \
	int root;                                                                                  \
	const char *data_type;

struct nccl_event_v2 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			NCCL_NAMED_COLLECTIVE
			size_t traffic_bytes;
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} collective;
		struct nccl_named_point {
			const char *communicator;
			uint64_t hash;
			const char *function;
			void *buffer;
			const char *data_type;
			size_t count;
			int peer;
		} point;
		struct nccl_proxy proxy;
	};
};

struct nccl_event_v3 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct {
			NCCL_NAMED_COLLECTIVE
			uint8_t channels, warps;
			const char *algorithm, *protocol;
		} collective;
		struct nccl_named_point point;
		struct nccl_proxy proxy;
		struct nccl_channel kernel; /* channel without the timer */
	};
};

struct nccl_collective_v4 {
	uint64_t sequence;
	const char *function;
	const void *from;
	void *to;
	size_t count;
	int root;
	const char *data_type;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
	void *group; /* since version 5 */
};

struct nccl_point_v4 {
	const char *function;
	void *buffer;
	const char *data_type;
	size_t count;
	int peer;
	uint8_t channels;
	void *group; /* since version 5 */
};

struct nccl_event_v4 {
	uint8_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v4 collective;
		struct nccl_point_v4 point;
		struct nccl_proxy proxy;
		struct nccl_channel kernel;
	};
};

struct nccl_event_v5 {
	uint64_t type;
	void *parent;
	int rank;
	union {
		struct nccl_collective_v4 collective;
		struct nccl_point_v4 point;
		struct nccl_proxy proxy;
		struct nccl_channel kernel;
	};
};

/* Arguments of a state change, as far as they are used. */
union nccl_state {
	struct {
		uint64_t timer_ns;
	} kernel;
	uint64_t others[2];
};

/* Functions of the plugin; they return NCCL's results, 0 for success. */
#define NCCL_PLUGIN(version, ...)                                                                  \
	struct nccl_plugin_v##version {                                                            \
		const char *name;                                                                  \
		int (*init)(__VA_ARGS__);                                                          \
		int (*start)(void *context, void **handle,                                         \
			     const struct nccl_event_v##version *event);                           \
		int (*stop)(void *handle);                                                         \
		int (*state)(void *handle, int state, const union nccl_state *with);               \
		int (*finalize)(void *context);                                                    \
	}

NCCL_PLUGIN(1, void **context, int *mask);
NCCL_PLUGIN(2, void **context, int *mask);
NCCL_PLUGIN(3, void **context, int *mask);
NCCL_PLUGIN(4, void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
	    int rank, void *log);
NCCL_PLUGIN(5, void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
	    int rank, void *log);

#endif
