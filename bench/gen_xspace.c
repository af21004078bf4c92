/*
 * gen_xspace.c: writes an XSpace as a training run of TensorFlow on GPUs gives it: threads of the executor with ops and
 * their bookkeeping, a Python thread, streams of kernels that belong to ops and steps. For bench/other/xspace.
 *
 *     gen_xspace BYTES [SEED]	→ standard output, about that long
 *
 * Lines are written twice, the first time only to learn how long they are: nothing is kept in memory. Stats and their sizes are those of
 * real files: four or five per event of the
 * host, seven per kernel, some 50 bytes an event.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS 2000
#define GPUS 2
#define HOST_LINES 4
#define STREAMS 2

enum stat {
	STAT_GROUP = 1,
	STAT_ID,
	STAT_ITER,
	STAT_KERNEL,
	STAT_EDGES,
	STAT_CONTROL_EDGES,
	STAT_STEP_NUM,
	STAT_CORRELATION,
	STAT_DETAILS,
	STAT_TF_OP,
	STAT_EAGER,
	STAT_SHAPE,
	STAT_CONSUMER_TYPE,
	STAT_CONSUMER,
	STAT_CONTEXT,
	STAT_DEVICE,
	STAT_OCCUPANCY,
	STAT_NAMES
};

static const char *const stat_names[] = { "",
					  "group_id",
					  "id",
					  "iter_num",
					  "kernel_name",
					  "num_output_edges",
					  "num_output_control_edges",
					  "step_num",
					  "correlation_id",
					  "kernel_details",
					  "tf_op",
					  "is_eager",
					  "shape",
					  "_ct",
					  "_c",
					  "context_id",
					  "device_id",
					  "theoretical_occupancy_pct" };

/* Bytes of a message; only counted while `to` is NULL. */
struct out {
	FILE *to;
	uint64_t size;
};

struct record {
	unsigned char bytes[256];
	size_t len;
};

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16) % below;
}

static void put_varint(struct record *r, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		r->bytes[r->len++] = (unsigned char)(value | 0x80);
	r->bytes[r->len++] = (unsigned char)value;
}

static void put_int(struct record *r, unsigned field, uint64_t value)
{
	put_varint(r, field << 3);
	put_varint(r, value);
}

/* Writes a stat of an event: a number (4) or a reference to a name (7). */
static void put_stat(struct record *r, unsigned stat, unsigned field, uint64_t value)
{
	struct record s = { .len = 0 };

	put_int(&s, 1, stat);
	put_int(&s, field, value);
	put_varint(r, 4 << 3 | 2);
	put_varint(r, s.len);
	memcpy(r->bytes + r->len, s.bytes, s.len);
	r->len += s.len;
}

static void emit(struct out *out, const void *bytes, size_t len)
{
	out->size += len;
	if (out->to && fwrite(bytes, 1, len, out->to) != len)
		exit(1);
}

static void emit_field(struct out *out, unsigned field, const void *bytes, size_t len)
{
	struct record head = { .len = 0 };

	put_varint(&head, field << 3 | 2);
	put_varint(&head, len);
	emit(out, head.bytes, head.len);
	emit(out, bytes, len);
}

static void begin_event(struct record *r, uint64_t entry, uint64_t at, uint64_t dur)
{
	r->len = 0;
	put_int(r, 1, entry);
	put_int(r, 2, at);
	put_int(r, 3, dur);
}

/* Writes a line of the host. Entries of the dictionary: 1 train, 2 Process, 3 Propagate, 4 a launch, then ops; for
 * GPUs 1 … are kernels. */
static void host_line(struct out *out, unsigned line, uint64_t events, uint64_t events_per_step)
{
	uint64_t at = 0, correlation = line;
	struct record r;

	for (uint64_t i = 0; i < events; i++) {
		uint64_t step = i / events_per_step;
		uint32_t kind = draw(100), dur = (draw(4000) + 200) * 1000;

		if (i % events_per_step == 0 && line == 0) {
			begin_event(&r, 1, at, events_per_step * 2300000);
			put_stat(&r, STAT_GROUP, 4, step);
			put_stat(&r, STAT_STEP_NUM, 4, step);
		} else if (kind < 55) {
			begin_event(&r, 3, at, dur);
			put_stat(&r, STAT_ID, 4, 0xc86fbdf0a4153bdbull);
			put_stat(&r, STAT_KERNEL, 7, 100 + draw(OPS));
			put_stat(&r, STAT_EDGES, 4, draw(4));
			put_stat(&r, STAT_CONTROL_EDGES, 4, draw(4));
			put_stat(&r, STAT_GROUP, 4, step);
		} else if (kind < 76) {
			begin_event(&r, 5 + draw(OPS), at, dur);
			put_stat(&r, STAT_GROUP, 4, step);
			put_stat(&r, STAT_EAGER, 4, 0);
			put_stat(&r, STAT_SHAPE, 7, 100 + draw(OPS));
		} else if (kind < 93) {
			begin_event(&r, 4, at, dur);
			put_stat(&r, STAT_DEVICE, 3, 0);
			put_stat(&r, STAT_CORRELATION, 3, correlation);
			put_stat(&r, STAT_TF_OP, 7, 100 + draw(OPS));
			put_stat(&r, STAT_GROUP, 4, step);
			correlation += HOST_LINES;
		} else {
			begin_event(&r, 2, at, dur);
			put_stat(&r, STAT_ID, 4, 0xc86fbdf0a4153bdbull);
			put_stat(&r, STAT_ITER, 4, 0);
			put_stat(&r, STAT_CONSUMER_TYPE, 4, 1);
			put_stat(&r, STAT_CONSUMER, 3, 0xc86fbdf0a4153bdbull);
			put_stat(&r, STAT_GROUP, 4, step);
		}
		emit_field(out, 4, r.bytes, r.len);
		at += dur + draw(300) * 1000;
	}
}

static void stream_line(struct out *out, unsigned line, uint64_t events, uint64_t events_per_step)
{
	uint64_t at = 5000000, correlation = line;
	struct record r;

	for (uint64_t i = 0; i < events; i++) {
		uint32_t op = draw(OPS), dur = (draw(6000) + 300) * 1000;

		begin_event(&r, 1 + op % 500, at, dur);
		put_stat(&r, STAT_CORRELATION, 3, correlation);
		put_stat(&r, STAT_DETAILS, 7, 100 + OPS + op % 300);
		put_stat(&r, STAT_TF_OP, 7, 100 + op);
		put_stat(&r, STAT_GROUP, 4, i / events_per_step);
		put_stat(&r, STAT_DEVICE, 3, line);
		put_stat(&r, STAT_CONTEXT, 7, 100 + OPS);
		put_stat(&r, STAT_OCCUPANCY, 3, 100);
		emit_field(out, 4, r.bytes, r.len);
		at += dur + draw(900) * 1000;
		correlation += STREAMS * GPUS;
	}
}

static void line_head(struct record *r, unsigned id, const char *name)
{
	r->len = 0;
	put_int(r, 1, id);
	put_varint(r, 2 << 3 | 2);
	put_varint(r, strlen(name));
	memcpy(r->bytes + r->len, name, strlen(name));
	r->len += strlen(name);
	put_int(r, 3, 35487);
}

/* Writes one line, with its length before it. */
static void put_line(struct out *plane, bool device, unsigned line, uint64_t events,
		     uint64_t per_step)
{
	uint64_t kept = seed;
	struct out sizes = { NULL, 0 };
	struct record head, tag = { .len = 0 };
	char name[64];

	snprintf(name, sizeof(name), device ? "Stream #%u(Kernel)" : "tf_Compute/%u", 14 + line);
	line_head(&head, 100 + line, name);
	emit(&sizes, head.bytes, head.len);
	(device ? stream_line : host_line)(&sizes, line, events, per_step);
	put_varint(&tag, 3 << 3 | 2);
	put_varint(&tag, sizes.size);
	emit(plane, tag.bytes, tag.len);
	if (!plane->to) {
		plane->size += sizes.size;
		return;
	}
	seed = kept;
	emit(plane, head.bytes, head.len);
	(device ? stream_line : host_line)(plane, line, events, per_step);
}

static void put_entry(struct out *plane, unsigned field, unsigned id, const char *name,
		      const char *display)
{
	struct record value = { .len = 0 }, pair = { .len = 0 };

	put_int(&value, 1, id);
	put_varint(&value, 2 << 3 | 2);
	put_varint(&value, strlen(name));
	memcpy(value.bytes + value.len, name, strlen(name));
	value.len += strlen(name);
	if (display) {
		put_varint(&value, 4 << 3 | 2);
		put_varint(&value, strlen(display));
		memcpy(value.bytes + value.len, display, strlen(display));
		value.len += strlen(display);
	}
	put_int(&pair, 1, id);
	put_varint(&pair, 2 << 3 | 2);
	put_varint(&pair, value.len);
	memcpy(pair.bytes + pair.len, value.bytes, value.len);
	pair.len += value.len;
	emit_field(plane, field, pair.bytes, pair.len);
}

static const char *const types[] = { "MatMul", "Conv2D", "BiasAdd",	   "Relu",
				     "AddV2",  "Mul",	 "ReadVariableOp", "Cast" };

static void put_names(struct out *plane, bool device)
{
	char name[128];

	if (!device) {
		static const char *const first[] = { "train", "ExecutorState::Process",
						     "ExecutorPropagateOutputs", "cuLaunchKernel" };

		for (unsigned i = 0; i < 4; i++)
			put_entry(plane, 4, 1 + i, first[i], NULL);
	}
	for (unsigned i = 0; i < (device ? 500 : OPS); i++) {
		const char *type = types[i % 8];

		if (device)
			snprintf(name, sizeof(name),
				 "void kernel_%u<float, %u>(float const*, float*, int)", i, i % 7);
		else
			snprintf(name, sizeof(name), "model/layer_%u/block_%u/%s_%u:%s", i % 24,
				 i % 5, type, i, type);
		put_entry(plane, 4, device ? 1 + i : 5 + i, name, device ? NULL : type);
	}
	for (unsigned i = 1; i < STAT_NAMES; i++)
		put_entry(plane, 5, i, stat_names[i], NULL);
	for (unsigned i = 0; i < OPS + 300; i++) {
		const char *type = types[i % 8];

		if (i < OPS)
			snprintf(name, sizeof(name), "model/layer_%u/block_%u/%s_%u:%s", i % 24,
				 i % 5, type, i, type);
		else
			snprintf(name, sizeof(name),
				 "regs:%u static_shared:0 dynamic_shared:0 grid:%u,1,1 "
				 "block:256,1,1",
				 i % 255, i);
		put_entry(plane, 5, 100 + i, name, NULL);
	}
}

static void put_fields(struct out *plane, const char *name, bool device, uint64_t events)
{
	unsigned lines = device ? STREAMS : HOST_LINES;

	emit_field(plane, 2, name, strlen(name));
	for (unsigned i = 0; i < lines; i++)
		put_line(plane, device, i, events / lines, device ? 3000 : 8000);
	put_names(plane, device);
}

static void put_plane(struct out *file, const char *name, bool device, uint64_t events)
{
	uint64_t kept = seed;
	struct out sizes = { NULL, 0 };
	struct record tag = { .len = 0 };

	put_fields(&sizes, name, device, events);
	put_varint(&tag, 1 << 3 | 2);
	put_varint(&tag, sizes.size);
	emit(file, tag.bytes, tag.len);
	seed = kept;
	put_fields(file, name, device, events);
}

int main(int argc, char **argv)
{
	struct out file = { stdout, 0 };
	uint64_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, events;
	char name[32];

	if (!bytes) {
		fprintf(stderr, "usage: gen_xspace BYTES [SEED]\n");
		return 2;
	}
	seed = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * 0x9e3779b97f4a7c15ull | 1;
	events = bytes / 49;
	put_plane(&file, "/host:CPU", false, events * 6 / 10);
	for (unsigned i = 0; i < GPUS; i++) {
		snprintf(name, sizeof(name), "/device:GPU:%u", i);
		put_plane(&file, name, true, events * 2 / 10);
	}
	return fflush(stdout) ? 1 : 0;
}
