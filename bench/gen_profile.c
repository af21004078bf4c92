/*
 * gen_profile.c: writes a synthetic TensorFlow profile of realistic density for the benchmarks.
 *
 *     gen_profile NODES STEPS profile FILE     one ProfileProto
 *     gen_profile NODES STEPS parts DIR        the same model as DIR/graph.pb, DIR/run_meta_0.pb …, DIR/op_log.pb
 *
 * Every fact about a node is a hash of its number, so the two forms agree without keeping the model
 * in memory, and equal arguments give equal bytes. Field numbers are those of TensorFlow 1.15.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct out {
	unsigned char *ptr;
	size_t len, cap;
};

static unsigned char *reserve(struct out *o, size_t more)
{
	if (o->len + more > o->cap) {
		o->cap = (o->len + more) * 2;
		o->ptr = realloc(o->ptr, o->cap);
		if (!o->ptr)
			abort();
	}
	return o->ptr + o->len;
}

static void put_varint(struct out *o, uint64_t v)
{
	unsigned char *p = reserve(o, 10);

	for (; v >= 0x80; v >>= 7, o->len++)
		*p++ = (unsigned char)(v | 0x80);
	*p = (unsigned char)v;
	o->len++;
}

static void put_int(struct out *o, unsigned field, uint64_t v)
{
	put_varint(o, field << 3);
	put_varint(o, v);
}

static void put_text(struct out *o, unsigned field, const char *text)
{
	size_t len = strlen(text);

	put_varint(o, field << 3 | 2);
	put_varint(o, len);
	memcpy(reserve(o, len), text, len);
	o->len += len;
}

/* Writes a sub-message or packed field: open_field, its content, then close_field with the result of open_field. */
static size_t open_field(struct out *o, unsigned field)
{
	put_varint(o, field << 3 | 2);
	return o->len;
}

static void close_field(struct out *o, size_t start)
{
	size_t len = o->len - start, head;

	put_varint(o, len); /* written after the content first, to find its size */
	head = o->len - start - len;
	memmove(o->ptr + start + head, o->ptr + start, len);
	o->len = start;
	put_varint(o, len);
	o->len += len;
}

static void flush(struct out *o, FILE *f)
{
	if (fwrite(o->ptr, 1, o->len, f) != o->len) {
		perror("gen_profile");
		exit(1);
	}
	o->len = 0;
}

static const char *const OPS[] = { "MatMul",
				   "Conv2D",
				   "BiasAdd",
				   "Relu",
				   "AddV2",
				   "Mul",
				   "Sub",
				   "Identity",
				   "Const",
				   "Assign",
				   "ConcatV2",
				   "Reshape",
				   "Softmax",
				   "Sum",
				   "Mean",
				   "MaxPool",
				   "Conv2DBackpropFilter",
				   "Conv2DBackpropInput",
				   "Slice",
				   "VariableV2" };
static const char *const SCOPES[] = { "encoder/stem",
				      "encoder/stage_1/residual_2",
				      "encoder/stage_3/residual_1/bottleneck",
				      "gradients/encoder/stem",
				      "optimizer/update_weights",
				      "reader/decode",
				      "objective/cross_entropy",
				      "decoder/cell/attention" };
static const char *const DEVICES[] = { "/job:worker/replica:0/task:0/device:gpu:0",
				       "/job:worker/replica:0/task:0/device:gpu:1",
				       "/job:worker/replica:0/task:0/device:cpu:0" };
static const char *const HOST = "/job:worker/replica:0/task:0/device:cpu:0";
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
enum { CPU = 2, FILES = 20, FUNCTIONS = 60, LINES = 100, VARIABLE = COUNT(OPS) - 1 };

/* Properties of a node that are derived from a hash; each has its own number, so that the hashes differ. */
enum fact { OP, SCOPE, LAYER, DEVICE, INPUTS, INPUT, DIM, FLOPS, DEPTH, FRAME, BATCH, STEP };

static uint64_t hash(uint64_t node, enum fact fact, uint64_t index)
{
	uint64_t z = node * 0x9e3779b97f4a7c15u + (uint64_t)fact * 0xd1b54a32d192ed03u + index + 1;

	z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
	z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
	return z ^ z >> 32;
}

static unsigned pick(uint64_t node, enum fact fact, uint64_t index, unsigned below)
{
	return (unsigned)(hash(node, fact, index) % below);
}

static unsigned op_of(uint64_t node)
{
	return pick(node, OP, 0, COUNT(OPS));
}

static unsigned device_of(uint64_t node)
{
	return pick(node, DEVICE, 0, COUNT(DEVICES));
}

static unsigned inputs_of(uint64_t node)
{
	return node ? pick(node, INPUTS, 0, 3) : 0;
}

static const char *name_of(uint64_t node, char buf[static 160])
{
	snprintf(buf, 160, "%s/layer_%u/%s_%" PRIu64, SCOPES[pick(node, SCOPE, 0, COUNT(SCOPES))],
		 pick(node, LAYER, 0, 200), OPS[op_of(node)], node);
	return buf;
}

/* One run of a node. */
struct exec {
	uint64_t start_us, dur_us, stream_dur_us, bytes, address;
};

static struct exec exec_of(uint64_t node, unsigned step)
{
	uint64_t h = hash(node, STEP, step);
	bool slow = (h & 15) == 0; /* a few runs take most of the time */

	return (struct exec){
		.start_us = 1600000000000000 + step * 1000000u + h % 900000,
		.dur_us = 1 + (h >> 20) % (slow ? 20000 : 300),
		.stream_dur_us = 1 + (h >> 24) % (slow ? 40000 : 600),
		.bytes = (h >> 8) % 4000000,
		.address = 0x7f0000000000 + (h >> 30) % 1000000,
	};
}

static void put_code(struct out *o, unsigned field, uint64_t node)
{
	size_t code = open_field(o, field);
	unsigned depth = 6 + pick(node, DEPTH, 0, 8);

	for (unsigned i = 0; i < depth; i++) {
		uint64_t h = hash(node, FRAME, i);
		size_t trace = open_field(o, 1);

		put_int(o, 2, 10 + h % 40 * (i + 1));
		put_int(o, 6, 1 + i * 3 % FILES);
		put_int(o, 7, 1 + FILES + (i * 7 + (h >> 8 & 1)) % FUNCTIONS);
		put_int(o, 8, 1 + FILES + FUNCTIONS + (h >> 16) % LINES);
		close_field(o, trace);
	}
	close_field(o, code);
}

static void put_strings(struct out *o, unsigned field)
{
	for (unsigned id = 1; id <= FILES + FUNCTIONS + LINES; id++) {
		size_t entry = open_field(o, field);
		char text[64];

		if (id <= FILES)
			snprintf(text, sizeof(text), "/home/user/model/part_%u.py", id);
		else if (id <= FILES + FUNCTIONS)
			snprintf(text, sizeof(text), "make_layer_%u", id);
		else
			snprintf(text, sizeof(text), "net = dense(net, units=%u)", id);
		put_int(o, 1, id);
		put_text(o, 2, text);
		close_field(o, entry);
	}
}

static void put_attrs(struct out *o, unsigned field)
{
	size_t attr = open_field(o, field), value;

	put_text(o, 1, "T");
	value = open_field(o, 2);
	put_int(o, 6, 1); /* DT_FLOAT */
	close_field(o, value);
	close_field(o, attr);

	attr = open_field(o, field);
	put_text(o, 1, "data_format");
	value = open_field(o, 2);
	put_text(o, 2, "NHWC");
	close_field(o, value);
	close_field(o, attr);
}

/* Writes a TensorShapeProto as field `field`. */
static void put_shape(struct out *o, unsigned field, const uint64_t *dims, size_t count)
{
	size_t shape = open_field(o, field);

	for (size_t i = 0; i < count; i++) {
		size_t dim = open_field(o, 2);

		put_int(o, 1, dims[i]);
		close_field(o, dim);
	}
	close_field(o, shape);
}

static void variable_dims(uint64_t node, uint64_t dims[2])
{
	dims[0] = 1 + pick(node, DIM, 0, 512);
	dims[1] = 1 + pick(node, DIM, 1, 512);
}

static void output_dims(uint64_t node, uint64_t dims[3])
{
	dims[0] = 32;
	dims[1] = 1 + pick(node, BATCH, 0, 64);
	dims[2] = 64;
}

static void put_packed(struct out *o, unsigned field, const uint64_t *values, size_t count)
{
	size_t start = open_field(o, field);

	for (size_t i = 0; i < count; i++)
		put_varint(o, values[i]);
	close_field(o, start);
}

static void put_exec_time(struct out *o, unsigned field, const char *device, uint64_t start,
			  uint64_t dur)
{
	size_t entry = open_field(o, field), time, tuple;

	put_text(o, 1, device);
	time = open_field(o, 2);
	tuple = open_field(o, 1);
	put_packed(o, 1, (const uint64_t[]){ start, dur }, 2);
	close_field(o, tuple);
	close_field(o, time);
	close_field(o, entry);
}

static void put_exec_memory(struct out *o, const struct exec *e, bool gpu)
{
	size_t memory = open_field(o, 7), entry, value;

	put_int(o, 1, e->start_us + e->dur_us);
	put_int(o, 6, e->bytes);
	put_int(o, 7, e->bytes);
	put_int(o, 8, e->bytes / 3);
	put_int(o, 9, e->bytes / 2);
	if (gpu)
		put_int(o, 10, e->bytes * 40);
	entry = open_field(o, 11);
	put_int(o, 1, 0);
	value = open_field(o, 2);
	put_int(o, 1, e->bytes / 2);
	put_int(o, 2, e->address);
	close_field(o, value);
	close_field(o, entry);
	close_field(o, memory);
}

static void put_exec(struct out *o, uint64_t node, unsigned step)
{
	const char *device = DEVICES[device_of(node)];
	bool gpu = device_of(node) != CPU;
	struct exec e = exec_of(node, step);
	size_t entry = open_field(o, 12), exec;
	uint64_t end = e.start_us + e.dur_us;
	char stream[80];

	snprintf(stream, sizeof(stream), "%s/stream:all", device);
	if (gpu && e.start_us + 20 + e.stream_dur_us > end)
		end = e.start_us + 20 + e.stream_dur_us;
	put_int(o, 1, step);
	exec = open_field(o, 2);
	put_int(o, 1, 1);
	put_int(o, 2, e.start_us);
	put_int(o, 3, end);
	if (gpu)
		put_exec_time(o, 4, stream, e.start_us + 20, e.stream_dur_us);
	put_exec_time(o, 5, device, e.start_us, e.dur_us);
	put_text(o, 6, device);
	if (gpu)
		put_text(o, 6, stream);
	put_exec_memory(o, &e, gpu);
	close_field(o, exec);
	close_field(o, entry);
}

static void put_profile_node(struct out *o, uint64_t node, unsigned steps)
{
	size_t entry = open_field(o, 1), body, part, tuple;
	const char *op = OPS[op_of(node)];
	uint64_t dims[3];
	char name[160];

	put_int(o, 1, node);
	body = open_field(o, 2);
	put_text(o, 1, name_of(node, name));
	for (unsigned i = 0; i < inputs_of(node); i++) {
		part = open_field(o, 2);
		put_int(o, 1, i);
		put_int(o, 2, hash(node, INPUT, i) % node);
		close_field(o, part);
	}
	if (op_of(node) == VARIABLE) {
		variable_dims(node, dims);
		put_packed(o, 4, dims, 2);
	}
	put_text(o, 5, DEVICES[device_of(node)]);
	put_text(o, 5, op);
	if (op_of(node) == VARIABLE)
		put_text(o, 5, "_trainable_variables");
	put_text(o, 6, DEVICES[device_of(node)]);
	put_text(o, 7, HOST);
	put_int(o, 8, hash(node, FLOPS, 0) % 100000000);
	put_text(o, 9, op);
	put_code(o, 10, node);
	put_attrs(o, 11);
	for (unsigned step = 0; step < steps; step++)
		put_exec(o, node, step);
	put_int(o, 13, node);
	part = open_field(o, 15);
	put_int(o, 1, 0);
	tuple = open_field(o, 2);
	output_dims(node, dims);
	put_packed(o, 1, dims, 3);
	close_field(o, tuple);
	close_field(o, part);
	close_field(o, body);
	close_field(o, entry);
}

static void write_profile(FILE *f, uint64_t nodes, unsigned steps)
{
	struct out o = { 0 };

	for (uint64_t node = 0; node < nodes; node++) {
		put_profile_node(&o, node, steps);
		flush(&o, f);
	}
	put_int(&o, 2, 1);
	for (unsigned step = 0; step < steps; step++)
		put_int(&o, 3, step);
	put_strings(&o, 4);
	flush(&o, f);
	free(o.ptr);
}

static void write_graph(FILE *f, uint64_t nodes)
{
	struct out o = { 0 };
	uint64_t dims[3];
	char name[160];

	for (uint64_t node = 0; node < nodes; node++) {
		size_t def = open_field(&o, 1), attr, value, list;

		put_text(&o, 1, name_of(node, name));
		put_text(&o, 2, OPS[op_of(node)]);
		for (unsigned i = 0; i < inputs_of(node); i++)
			put_text(&o, 3, name_of(hash(node, INPUT, i) % node, name));
		put_text(&o, 4, DEVICES[device_of(node)]);
		put_attrs(&o, 5);
		attr = open_field(&o, 5);
		put_text(&o, 1, "_output_shapes");
		value = open_field(&o, 2);
		list = open_field(&o, 1);
		output_dims(node, dims);
		put_shape(&o, 7, dims, 3);
		close_field(&o, list);
		close_field(&o, value);
		close_field(&o, attr);
		if (op_of(node) == VARIABLE) {
			attr = open_field(&o, 5);
			put_text(&o, 1, "shape");
			value = open_field(&o, 2);
			variable_dims(node, dims);
			put_shape(&o, 7, dims, 2);
			close_field(&o, value);
			close_field(&o, attr);
		}
		close_field(&o, def);
		flush(&o, f);
	}
	free(o.ptr);
}

/* Writes what the host recorded: times, memory, the output tensor. */
static void put_node_stats(struct out *o, uint64_t node, unsigned step)
{
	bool gpu = device_of(node) != CPU;
	struct exec e = exec_of(node, step);
	size_t stats = open_field(o, 2), part, tensor, allocation;
	uint64_t dims[3];
	char name[160];

	put_text(o, 1, name_of(node, name));
	put_int(o, 2, e.start_us);
	put_int(o, 3, 1);
	put_int(o, 4, e.dur_us);
	put_int(o, 5, e.dur_us + 1);
	part = open_field(o, 6);
	put_text(o, 1, gpu ? "GPU_0_bfc" : "cpu");
	put_int(o, 2, e.bytes);
	put_int(o, 3, e.bytes);
	put_int(o, 4, e.bytes / 3);
	if (gpu)
		put_int(o, 5, e.bytes * 40);
	close_field(o, part);
	part = open_field(o, 7);
	tensor = open_field(o, 3);
	put_int(o, 1, 1);
	output_dims(node, dims);
	put_shape(o, 2, dims, 3);
	allocation = open_field(o, 4);
	put_int(o, 1, e.bytes / 2);
	put_int(o, 2, e.bytes / 2);
	put_text(o, 3, gpu ? "GPU_0_bfc" : "cpu");
	put_int(o, 6, e.address);
	close_field(o, allocation);
	close_field(o, tensor);
	close_field(o, part);
	put_text(o, 8, "label");
	put_int(o, 10, 1 + (uint64_t)pick(node, LAYER, 1, 16));
	close_field(o, stats);
}

/* Writes what the GPU's own tracer recorded: times only, under the name "node:Op". */
static void put_stream_stats(struct out *o, uint64_t node, unsigned step)
{
	struct exec e = exec_of(node, step);
	size_t stats = open_field(o, 2);
	char name[160], full[200];

	snprintf(full, sizeof(full), "%s:%s", name_of(node, name), OPS[op_of(node)]);
	put_text(o, 1, full);
	put_int(o, 2, e.start_us + 20);
	put_int(o, 4, e.stream_dur_us);
	put_int(o, 5, e.stream_dur_us);
	close_field(o, stats);
}

static void write_run_metadata(FILE *f, uint64_t nodes, unsigned step)
{
	struct out o = { 0 };
	size_t step_stats = open_field(&o, 1);

	for (unsigned device = 0; device < COUNT(DEVICES); device++) {
		for (int stream = 0; stream < (device == CPU ? 1 : 2); stream++) {
			size_t dev_stats = open_field(&o, 1);
			char name[80];

			snprintf(name, sizeof(name), "%s%s", DEVICES[device],
				 stream ? "/stream:all" : "");
			put_text(&o, 1, name);
			for (uint64_t node = 0; node < nodes; node++) {
				if (device_of(node) != device)
					continue;
				if (stream)
					put_stream_stats(&o, node, step);
				else
					put_node_stats(&o, node, step);
			}
			close_field(&o, dev_stats);
		}
	}
	close_field(&o, step_stats);
	flush(&o, f);
	free(o.ptr);
}

static void write_op_log(FILE *f, uint64_t nodes)
{
	struct out o = { 0 };
	char name[160];

	for (uint64_t node = 0; node < nodes; node++) {
		size_t entry = open_field(&o, 1);

		put_text(&o, 1, name_of(node, name));
		put_int(&o, 2, hash(node, FLOPS, 0) % 100000000);
		if (op_of(node) == VARIABLE)
			put_text(&o, 3, "_trainable_variables");
		put_code(&o, 4, node);
		close_field(&o, entry);
		flush(&o, f);
	}
	put_strings(&o, 2);
	flush(&o, f);
	free(o.ptr);
}

static FILE *create(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s%s", dir ? dir : "", dir ? "/" : "", name);
	f = fopen(path, "wb");
	if (!f) {
		perror(path);
		exit(1);
	}
	return f;
}

static void finish(FILE *f)
{
	if (fclose(f)) {
		perror("gen_profile");
		exit(1);
	}
}

static void write_parts(const char *dir, uint64_t nodes, unsigned steps)
{
	FILE *f = create(dir, "graph.pb");

	write_graph(f, nodes);
	finish(f);
	for (unsigned step = 0; step < steps; step++) {
		char name[40];

		snprintf(name, sizeof(name), "run_meta_%u.pb", step);
		f = create(dir, name);
		write_run_metadata(f, nodes, step);
		finish(f);
	}
	f = create(dir, "op_log.pb");
	write_op_log(f, nodes);
	finish(f);
}

int main(int argc, char **argv)
{
	uint64_t nodes = argc == 5 ? strtoull(argv[1], NULL, 10) : 0;
	unsigned steps = argc == 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (nodes && !strcmp(argv[3], "parts")) {
		write_parts(argv[4], nodes, steps);
	} else if (nodes && !strcmp(argv[3], "profile")) {
		FILE *f = create(NULL, argv[4]);

		write_profile(f, nodes, steps);
		finish(f);
	} else {
		fprintf(stderr, "usage: gen_profile NODES STEPS profile FILE | parts DIR\n");
		return 2;
	}
	return 0;
}
