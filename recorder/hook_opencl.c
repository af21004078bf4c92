/*
 * hook_opencl.c: what programs do with OpenCL devices, through the layers of its loader (OPENCL_LAYERS). Calls are
 * recorded as the thread's; what the device did for them when it is done, with its own times, which are moved to the
 * host's clock: a command was queued between the begin and the end of the call.
 *
 * Queues get profiling switched on, which programs may not see; everything else passes through unchanged.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "recorder.h"

#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES 256u

static struct _cl_icd_dispatch ours;
static const struct _cl_icd_dispatch *next;

static struct {
	_Atomic(cl_command_queue) handle;
	_Atomic int64_t offset_ns; /* nanoseconds to add to the device's times; 0 = unknown */
	_Atomic uint32_t recorded; /* generation in which the queue was recorded */
} queues[QUEUES];
static _Atomic uint64_t last_id;

/* A command that has not finished. */
struct command {
	uint64_t id, call_ns;
	uint64_t bytes;
	uint32_t queue;
	enum ring_category category;
	char name[64];
};

static uint32_t queue_number(cl_command_queue queue)
{
	for (uint32_t i = 1; i < QUEUES; i++) {
		cl_command_queue there = atomic_load(&queues[i].handle);

		if (there == queue)
			return i;
		if (!there && atomic_compare_exchange_strong(&queues[i].handle, &there, queue))
			return i;
		if (there == queue)
			return i;
	}
	return 0;
}

static void device_name(cl_command_queue queue, char *name, size_t size)
{
	cl_device_id device = NULL;

	snprintf(name, size, "OpenCL device");
	if (next->clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL) ==
	    CL_SUCCESS)
		next->clGetDeviceInfo(device, CL_DEVICE_NAME, size - 1, name, NULL);
	name[size - 1] = 0;
}

/* Records the name of a queue, once per process. */
static void describe_queue(struct thread *t, uint32_t number, cl_command_queue queue)
{
	char device[128], name[32];

	if (atomic_exchange(&queues[number].recorded, t->generation) == t->generation)
		return;
	device_name(queue, device, sizeof(device));
	snprintf(name, sizeof(name), "queue %u", number);
	push(t, &(struct ring_record){ .start_ns = now_ns(),
				       .kind = RING_QUEUE,
				       .stream = number,
				       .name = text_of(name),
				       .id = text_of(device) });
}

static void record_call(const char *name, enum ring_category category, uint64_t start, uint64_t id,
			uint64_t bytes, cl_command_queue queue)
{
	uint64_t end = now_ns();
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t) {
		uint32_t number = queue ? queue_number(queue) : 0;

		if (number)
			describe_queue(t, number, queue);
		push(t, &(struct ring_record){ .start_ns = start,
					       .dur_ns = ns_since(start, end),
					       .bytes = bytes,
					       .id = id,
					       .stream = number,
					       .kind = RING_SLICE,
					       .category = (uint16_t)category,
					       .name = text_of(name) });
	}
	leave();
}

/* Returns the best known offset: a command cannot be queued before its call began. */
static int64_t offset_of(uint32_t queue, uint64_t call_ns, uint64_t queued_ns)
{
	int64_t seen = atomic_load(&queues[queue].offset_ns), now = (int64_t)(call_ns - queued_ns);

	if (seen && seen >= now)
		return seen;
	atomic_store(&queues[queue].offset_ns, now);
	return now;
}

static void record_done(const struct command *c, uint64_t queued, uint64_t start, uint64_t end)
{
	int64_t offset = offset_of(c->queue, c->call_ns, queued);
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t)
		push(t, &(struct ring_record){ .start_ns = start + (uint64_t)offset,
					       .dur_ns = end - start,
					       .bytes = c->bytes,
					       .id = c->id,
					       .stream = c->queue,
					       .kind = RING_DEVICE,
					       .category = (uint16_t)c->category,
					       .name = text_of(c->name) });
	leave();
}

static void CL_CALLBACK on_done(cl_event event, cl_int status, void *arg)
{
	struct command *c = arg;
	cl_ulong queued = 0, start = 0, end = 0;

	if (status == CL_COMPLETE &&
	    next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof(queued),
					  &queued, NULL) == CL_SUCCESS &&
	    next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
					  NULL) == CL_SUCCESS &&
	    next->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end,
					  NULL) == CL_SUCCESS &&
	    end >= start)
		record_done(c, queued, start, end);
	next->clReleaseEvent(event);
	free(c);
}

/* Follows a queued command. The event belongs to the program, which may release it, or to the
 * recorder. */
static void follow_command(cl_command_queue queue, cl_event event, bool theirs, const char *call,
			   bool waits, enum ring_category category, const char *name,
			   uint64_t bytes, uint64_t start)
{
	uint64_t id = atomic_fetch_add(&last_id, 1) + 1;
	struct command *c = malloc(sizeof(*c));

	if (theirs)
		next->clRetainEvent(event);
	if (c) {
		*c = (struct command){ .id = id,
				       .call_ns = start,
				       .bytes = bytes,
				       .queue = queue_number(queue),
				       .category = category };
		snprintf(c->name, sizeof(c->name), "%s", name);
	}
	if (!c || next->clSetEventCallback(event, CL_COMPLETE, on_done, c) != CL_SUCCESS) {
		free(c);
		next->clReleaseEvent(event);
	}
	record_call(call, waits ? RING_OPENCL_WAIT : RING_OPENCL_CALL, start, id, bytes, queue);
}

#define TO_DEVICE RING_COPY_TO_DEVICE, "Memcpy HtoD"
#define TO_HOST RING_COPY_TO_HOST, "Memcpy DtoH"
#define ON_DEVICE RING_COPY_DEVICE, "Memcpy DtoD"
#define FILL RING_COPY_DEVICE, "Memset"

/* A wrapper around a call that queues a command. */
#define ENQUEUE(call, blocks, what, bytes, params, args)                                           \
	static cl_int CL_API_CALL my_##call params                                                 \
	{                                                                                          \
		cl_event own = NULL, *where = event ? event : &own;                                \
		uint64_t start = now_ns();                                                         \
		cl_int status = next->call args;                                                   \
                                                                                                   \
		if (status == CL_SUCCESS)                                                          \
			follow_command(queue, *where, event != NULL, #call, blocks, what, bytes,   \
				       start);                                                     \
		return status;                                                                     \
	}

#define WAITS cl_uint wait_count, const cl_event *waits, cl_event *event
#define PASS_WAITS wait_count, waits, where

ENQUEUE(clEnqueueWriteBuffer, blocking, TO_DEVICE, size,
	(cl_command_queue queue, cl_mem to, cl_bool blocking, size_t at, size_t size,
	 const void *from, WAITS),
	(queue, to, blocking, at, size, from, PASS_WAITS))
ENQUEUE(clEnqueueReadBuffer, blocking, TO_HOST, size,
	(cl_command_queue queue, cl_mem from, cl_bool blocking, size_t at, size_t size, void *to,
	 WAITS),
	(queue, from, blocking, at, size, to, PASS_WAITS))
ENQUEUE(clEnqueueWriteBufferRect, blocking, TO_DEVICE, r[0] * r[1] * r[2],
	(cl_command_queue queue, cl_mem to, cl_bool blocking, const size_t *b, const size_t *h,
	 const size_t *r, size_t br, size_t bs, size_t hr, size_t hs, const void *from, WAITS),
	(queue, to, blocking, b, h, r, br, bs, hr, hs, from, PASS_WAITS))
ENQUEUE(clEnqueueReadBufferRect, blocking, TO_HOST, r[0] * r[1] * r[2],
	(cl_command_queue queue, cl_mem from, cl_bool blocking, const size_t *b, const size_t *h,
	 const size_t *r, size_t br, size_t bs, size_t hr, size_t hs, void *to, WAITS),
	(queue, from, blocking, b, h, r, br, bs, hr, hs, to, PASS_WAITS))
ENQUEUE(clEnqueueCopyBuffer, false, ON_DEVICE, size,
	(cl_command_queue queue, cl_mem from, cl_mem to, size_t a, size_t b, size_t size, WAITS),
	(queue, from, to, a, b, size, PASS_WAITS))
ENQUEUE(clEnqueueFillBuffer, false, FILL, size,
	(cl_command_queue queue, cl_mem to, const void *pattern, size_t len, size_t at, size_t size,
	 WAITS),
	(queue, to, pattern, len, at, size, PASS_WAITS))
ENQUEUE(clEnqueueWriteImage, blocking, TO_DEVICE, 0,
	(cl_command_queue queue, cl_mem to, cl_bool blocking, const size_t *o, const size_t *r,
	 size_t row, size_t slice, const void *from, WAITS),
	(queue, to, blocking, o, r, row, slice, from, PASS_WAITS))
ENQUEUE(clEnqueueReadImage, blocking, TO_HOST, 0,
	(cl_command_queue queue, cl_mem from, cl_bool blocking, const size_t *o, const size_t *r,
	 size_t row, size_t slice, void *to, WAITS),
	(queue, from, blocking, o, r, row, slice, to, PASS_WAITS))
ENQUEUE(clEnqueueUnmapMemObject, false, TO_DEVICE, 0,
	(cl_command_queue queue, cl_mem memory, void *mapped, WAITS),
	(queue, memory, mapped, PASS_WAITS))

static void *CL_API_CALL my_clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory,
					       cl_bool blocking, cl_map_flags flags, size_t at,
					       size_t size, WAITS, cl_int *status)
{
	cl_event own = NULL, *where = event ? event : &own;
	uint64_t start = now_ns();
	cl_int result = CL_SUCCESS;
	void *mapped = next->clEnqueueMapBuffer(queue, memory, blocking, flags, at, size,
						PASS_WAITS, &result);

	if (mapped && result == CL_SUCCESS)
		follow_command(queue, *where, event != NULL, "clEnqueueMapBuffer", blocking,
			       TO_HOST, size, start);
	if (status)
		*status = result;
	return mapped;
}

static cl_int CL_API_CALL my_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
						    cl_uint dims, const size_t *offset,
						    const size_t *global, const size_t *local,
						    WAITS)
{
	cl_event own = NULL, *where = event ? event : &own;
	uint64_t start = now_ns();
	cl_int status = next->clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local,
						     PASS_WAITS);
	char name[64] = "kernel";

	if (status != CL_SUCCESS)
		return status;
	if (next->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL) !=
	    CL_SUCCESS)
		snprintf(name, sizeof(name), "kernel"); /* the name is longer than the buffer */
	follow_command(queue, *where, event != NULL, "clEnqueueNDRangeKernel", false, RING_KERNEL,
		       name, 0, start);
	return status;
}

static cl_int CL_API_CALL my_clFinish(cl_command_queue queue)
{
	uint64_t start = now_ns();
	cl_int status = next->clFinish(queue);

	record_call("clFinish", RING_OPENCL_WAIT, start, 0, 0, queue);
	return status;
}

static cl_int CL_API_CALL my_clWaitForEvents(cl_uint count, const cl_event *events)
{
	uint64_t start = now_ns();
	cl_int status = next->clWaitForEvents(count, events);

	record_call("clWaitForEvents", RING_OPENCL_WAIT, start, 0, 0, NULL);
	return status;
}

static cl_int CL_API_CALL my_clBuildProgram(cl_program program, cl_uint count,
					    const cl_device_id *devices, const char *options,
					    void(CL_CALLBACK *notify)(cl_program, void *),
					    void *arg)
{
	uint64_t start = now_ns();
	cl_int status = next->clBuildProgram(program, count, devices, options, notify, arg);

	record_call("clBuildProgram", RING_OPENCL_BUILD, start, 0, 0, NULL);
	return status;
}

/* Forgets an old queue that had the same handle. */
static cl_command_queue forget_old_queue(cl_command_queue queue)
{
	uint32_t number = queue ? queue_number(queue) : 0;

	if (number) {
		atomic_store(&queues[number].offset_ns, 0);
		atomic_store(&queues[number].recorded, 0);
	}
	return queue;
}

static cl_command_queue CL_API_CALL my_clCreateCommandQueue(cl_context context, cl_device_id device,
							    cl_command_queue_properties properties,
							    cl_int *status)
{
	return forget_old_queue(next->clCreateCommandQueue(
		context, device, properties | CL_QUEUE_PROFILING_ENABLE, status));
}

#define PROPERTIES 32

static cl_command_queue CL_API_CALL
my_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
				      const cl_queue_properties *properties, cl_int *status)
{
	cl_queue_properties list[PROPERTIES];
	size_t count = 0;
	bool seen = false;

	for (; properties && properties[count] && count < PROPERTIES - 4; count += 2) {
		list[count] = properties[count];
		list[count + 1] = properties[count + 1];
		if (list[count] == CL_QUEUE_PROPERTIES) {
			list[count + 1] |= CL_QUEUE_PROFILING_ENABLE;
			seen = true;
		}
	}
	if (properties &&
	    properties[count]) /* more properties than our list can hold: passed on unchanged */
		return next->clCreateCommandQueueWithProperties(context, device, properties,
								status);
	if (!seen) {
		list[count++] = CL_QUEUE_PROPERTIES;
		list[count++] = CL_QUEUE_PROFILING_ENABLE;
	}
	list[count] = 0;
	return forget_old_queue(
		next->clCreateCommandQueueWithProperties(context, device, list, status));
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value,
						      size_t *used)
{
	if (what != CL_LAYER_API_VERSION || (value && size < sizeof(cl_layer_api_version)))
		return CL_INVALID_VALUE;
	if (value)
		*(cl_layer_api_version *)value = CL_LAYER_API_VERSION_100;
	if (used)
		*used = sizeof(cl_layer_api_version);
	return CL_SUCCESS;
}

EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries,
						   const struct _cl_icd_dispatch *target,
						   cl_uint *our_entries,
						   const struct _cl_icd_dispatch **layer)
{
	if (!target || !our_entries || !layer || entries < sizeof(ours) / sizeof(void *))
		return CL_INVALID_VALUE;
	next = target;
	ours = *target;
#define WRAP(call) ours.call = my_##call
	WRAP(clEnqueueWriteBuffer);
	WRAP(clEnqueueReadBuffer);
	WRAP(clEnqueueWriteBufferRect);
	WRAP(clEnqueueReadBufferRect);
	WRAP(clEnqueueCopyBuffer);
	WRAP(clEnqueueFillBuffer);
	WRAP(clEnqueueWriteImage);
	WRAP(clEnqueueReadImage);
	WRAP(clEnqueueUnmapMemObject);
	WRAP(clEnqueueMapBuffer);
	WRAP(clEnqueueNDRangeKernel);
	WRAP(clFinish);
	WRAP(clWaitForEvents);
	WRAP(clBuildProgram);
	WRAP(clCreateCommandQueue);
	WRAP(clCreateCommandQueueWithProperties);
#undef WRAP
	*our_entries = sizeof(ours) / sizeof(void *);
	*layer = &ours;
	if (recorder_process)
		hook_report(RING_HOOK_OPENCL, RING_HOOK_ARMED, "OpenCL layer");
	return CL_SUCCESS;
}
