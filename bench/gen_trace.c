/*
 * gen_trace.c: writes Chrome traces as large as wanted, as TensorFlow 1 (tf1) or PyTorch (kineto) would:
 * some 6,000 ops with long names, a few of which need escapes, on about a hundred tracks. For bench/trace.
 *
 *     gen_trace tf1|kineto BYTES SEED > FILE
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPS 6000
#define TYPES 32

static const char *const types[TYPES] = { "MatMul",
					  "Conv2D",
					  "BiasAdd",
					  "Relu",
					  "Add",
					  "Mul",
					  "Sub",
					  "Softmax",
					  "GatherV2",
					  "Reshape",
					  "ConcatV2",
					  "Pack",
					  "Cast",
					  "Shape",
					  "Sum",
					  "Mean",
					  "StridedSlice",
					  "Identity",
					  "NoOp",
					  "VariableV2",
					  "Unique",
					  "Transpose",
					  "ExpandDims",
					  "_Send",
					  "_Recv",
					  "MEMCPYHtoD",
					  "MEMCPYDtoH",
					  "ParseExample",
					  "DecodeJpeg",
					  "ResourceApplyAdam",
					  "IteratorGetNext",
					  "ReadVariableOp" };
static const char *const scopes[] = {
	"resnet/block1/unit_2", "resnet/block4/unit_1", "encoder/layer_3/attention",
	"decoder/layer_5/ffn",	"dnn/hiddenlayer_1",	"input_layer/embedding",
	"gradients/loss",	"training/adam",	"head/metrics"
};
static const char *const devices[8] = { "/job:worker/replica:0/task:0/device:CPU:0 Compute",
					"/job:worker/replica:0/task:0/device:CPU:0 Tensors",
					"/job:worker/replica:0/task:0/device:GPU:0 Compute",
					"/job:worker/replica:0/task:0/device:GPU:0 Tensors",
					"/device:GPU:0/stream:all Compute",
					"/device:GPU:0/memcpy Compute",
					"/job:ps/replica:0/task:0/device:CPU:0 Compute",
					"/host:CPU Compute" };

struct op {
	char name[160];
	const char *type;
};

static struct op ops[OPS];
static uint64_t state;
static uint64_t written;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull >> 16;
}

static unsigned below(unsigned limit)
{
	return (unsigned)(next_random() % limit);
}

static void make_ops(void)
{
	for (unsigned i = 0; i < OPS; i++) {
		const char *type = types[below(TYPES)], *scope = scopes[below(9)];
		unsigned kind = below(100);

		ops[i].type = type;
		if (kind < 5)
			snprintf(ops[i].name, sizeof(ops[i].name),
				 "Iterator::Model::Prefetch::ParallelMap::Batch::TFRecord::%u",
				 below(90));
		else if (kind < 8)
			snprintf(ops[i].name, sizeof(ops[i].name),
				 "C:\\\\jobs\\\\%u\\\\\\\"%s\\\"\\tx", below(900), type);
		else if (kind < 10)
			snprintf(ops[i].name, sizeof(ops[i].name), "\\u5c64/%s_%u \xc3\xbc", type,
				 below(900));
		else if (kind < 45)
			snprintf(ops[i].name, sizeof(ops[i].name), "%s/%s_%u", scope, type,
				 below(300));
		else
			snprintf(ops[i].name, sizeof(ops[i].name),
				 "gradients/%s/%s_%u_grad/kernel/part_%u:%s", scope, type,
				 below(300), below(12), type);
	}
}

/* Chooses an op; few ops make most of the runs. */
static const struct op *some_op(void)
{
	double u = (double)(next_random() & 0xffffff) / 0x1000000;

	return &ops[(unsigned)(u * u * u * OPS)];
}

#define EMIT(...)                                                                                  \
	do {                                                                                       \
		int len_ = printf(__VA_ARGS__);                                                    \
		written += len_ > 0 ? (uint64_t)len_ : 0;                                          \
	} while (0)

static void tf1_slice(unsigned pid, unsigned tid, uint64_t ts, uint64_t dur)
{
	const struct op *op = some_op();
	unsigned inputs = below(3);

	EMIT("{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64
	     ",\"dur\":%" PRIu64 ",\"args\":{\"name\":\"%s\",\"op\":\"%s\"",
	     op->type, pid, tid, ts, dur, op->name, op->type);
	for (unsigned i = 0; i < inputs; i++)
		EMIT(",\"input%u\":\"%s\"", i, some_op()->name);
	EMIT("}}");
}

static void tf1_event(uint64_t ts)
{
	static uint64_t flow;
	unsigned kind = below(1000), pid = below(8), tid = below(12);
	uint64_t dur = 1 + below(next_random() % 16 ? 300 : 20000);

	EMIT(",\n");
	if (kind < 880)
		tf1_slice(pid, tid, ts, dur);
	else if (kind < 920)
		EMIT("{\"ph\":\"C\",\"cat\":\"Memory\",\"name\":\"Memory "
		     "GPU_%u_bfc\",\"pid\":%u,\"tid\":0,"
		     "\"ts\":%" PRIu64 ",\"args\":{\"GPU_%u_bfc\":%" PRIu64 "}}",
		     pid & 1, pid, ts, pid & 1, next_random() % 16000000000u);
	else if (kind < 990)
		EMIT("{\"ph\":\"%s\",\"cat\":\"DataFlow\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,"
		     "\"ts\":%" PRIu64 ",\"id\":%" PRIu64 "}",
		     kind < 955 ? "s" : "t", some_op()->name, pid, tid, ts,
		     kind < 955 ? ++flow : flow);
	else
		EMIT("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{"
		     "\"name\":\"worker %u\"}}",
		     pid, tid, tid);
}

static void kineto_slice(const char *category, const char *name, unsigned pid, unsigned tid,
			 double ts, uint64_t dur)
{
	EMIT("{\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %u, \"tid\": %u,\n"
	     "    \"ts\": %.3f, \"dur\": %" PRIu64 ".%03u,\n    \"args\": {\n      ",
	     category, name, pid, tid, ts, dur, below(1000));
}

static void kineto_event(uint64_t us)
{
	static uint64_t flow;
	unsigned kind = below(1000), pid = below(4), tid = below(12);
	uint64_t dur = 1 + below(next_random() % 16 ? 300 : 20000);
	double ts = (double)(us % 100000000000u) + 0.001 * below(1000);
	const struct op *op = some_op();
	char name[256];

	EMIT(",\n  ");
	if (kind < 400) {
		snprintf(name, sizeof(name), "aten::%s", op->type);
		kineto_slice("cpu_op", name, pid, tid, ts, dur);
		EMIT("\"External id\": %u,\"Record function id\": 0, \"Sequence number\": %u, "
		     "\"Fwd thread id\": %u, "
		     "\"Concrete Inputs\": [\"\", \"\", \"[1, 1]\", \"False\"], \"Input type\": "
		     "[\"c10::Half\", \"float\", "
		     "\"ScalarList\", \"Scalar\"], \"Input Strides\": [[%u, 1], [1], [], []], "
		     "\"Input Dims\": [[%u, %u], [%u], "
		     "[], []], \"Ev Idx\": %u, \"module\": \"%s\"\n    }\n  }",
		     below(1000000), below(100000), below(3), below(4096), below(512), below(4096),
		     below(4096), below(1000000), op->name);
	} else if (kind < 600) {
		snprintf(name, sizeof(name),
			 "void at::native::vectorized_elementwise_kernel<4, "
			 "at::native::%s<float>(at::TensorIteratorBase&)"
			 "::{lambda(float)#%u}, at::detail::Array<char*, %u> >(int, "
			 "at::native::%s, at::detail::Array<char*, 2>)",
			 op->type, below(9), below(4), op->type);
		kineto_slice("kernel", name, pid, 7, ts, dur);
		EMIT("\"External id\": %u, \"queued\": 0, \"device\": %u, \"context\": 1, "
		     "\"stream\": 7, \"correlation\": %u, "
		     "\"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": %.6f, "
		     "\"warps per SM\": %.4f, "
		     "\"grid\": [%u, 1, 1], \"block\": [128, 1, 1], \"est. achieved occupancy "
		     "%%\": %u\n    }\n  }",
		     below(1000000), pid, below(10000000), below(10000) / 97.0, below(10000) / 31.0,
		     below(65536), below(100));
	} else if (kind < 800) {
		kineto_slice("cuda_runtime", "cudaLaunchKernel", pid, tid, ts, dur);
		EMIT("\"External id\": %u, \"cbid\": 211, \"correlation\": %u\n    }\n  }",
		     below(1000000), below(10000000));
	} else if (kind < 960) {
		EMIT("{\n    \"ph\": \"%s\", \"id\": %" PRIu64
		     ", \"pid\": %u, \"tid\": %u, \"ts\": %.3f,\n    \"cat\": \"ac2g\", \"name\": "
		     "\"ac2g\"%s\n  }",
		     kind < 880 ? "s" : "f", kind < 880 ? ++flow : flow, pid, kind < 880 ? tid : 7,
		     ts, kind < 880 ? "" : ", \"bp\": \"e\"");
	} else {
		EMIT("{\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", "
		     "\"name\": \"[memory]\",\n"
		     "    \"pid\": %u, \"tid\": %u,\n    \"ts\": %.3f,\n    \"args\": {\n      "
		     "\"Total Allocated\": %u, "
		     "\"Bytes\": %d, \"Addr\": %" PRIu64
		     ", \"Device Id\": %u, \"Device Type\": 1, \"Ev Idx\": %u\n    }\n  }",
		     pid, tid, ts, below(2000000000), (int)below(1000000) - 500000, next_random(),
		     pid, below(1000000));
	}
}

static void head(int kineto)
{
	if (kineto) {
		EMIT("{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": "
		     "\"GPU\"}],\n"
		     "  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": "
		     "8},\n"
		     "  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": "
		     "1759200000000000000,\n"
		     "  \"traceEvents\": [\n  {}");
		for (unsigned p = 0; p < 4; p++)
			EMIT(",\n  {\"name\": \"process_labels\", \"ph\": \"M\", \"ts\": 0, "
			     "\"pid\": %u, \"tid\": 0, "
			     "\"args\": {\"labels\": \"GPU %u\"}}",
			     p, p);
		return;
	}
	EMIT("{\n\"traceEvents\": [\n{}");
	for (unsigned p = 0; p < 8; p++)
		EMIT(",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":\"%"
		     "s\"}}",
		     p, devices[p]);
}

int main(int argc, char **argv)
{
	uint64_t bytes, ts = 1584128411446459u;
	int kineto;

	if (argc != 4) {
		fprintf(stderr, "usage: gen_trace tf1|kineto BYTES SEED\n");
		return 2;
	}
	kineto = strcmp(argv[1], "kineto") == 0;
	bytes = strtoull(argv[2], NULL, 0);
	state = 0x9e3779b97f4a7c15ull;
	make_ops(); /* the ops are the same in every file */
	state ^= strtoull(argv[3], NULL, 0) * 0x1234567u;
	head(kineto);
	while (written < bytes) {
		ts += below(40);
		if (kineto)
			kineto_event(ts);
		else
			tf1_event(ts);
	}
	EMIT(kineto ? "\n  ],\n  \"traceName\": \"trace.json\"\n}\n" : "\n]\n}\n");
	return 0;
}
