/*
 * task_events.c: interprets records of TensorFlow 1 jobs with several tasks (read.h): the task of a device, and which
 * records are messages between tasks. A session records the work of all its tasks, each on the clock of its own host.
 * Called by read.c. RunMetadata has labels "NAME = _Send(TENSOR @RECEIVER)", "NAME = _Recv(TENSOR @SENDER)" and "[12B]
 * TENSOR from SENDER to RECEIVER"; timelines have "TENSOR @DEVICE" as their first input.
 */
#include "ranks/read.h"

#include "wire/json/json.h"
#include "wire/protobuf/pb.h"

#include <stdlib.h>

#define MEGABYTE 1048576.0

struct str task_of_device(struct str device)
{
	size_t at = str_find(device, STR("/task:")), end;

	if (!str_starts(device, STR("/job:")) || at == STR_NONE)
		return STR("");
	for (end = at + 6; end < device.len && device.ptr[end] != '/';)
		end++;
	return str_first(device, end);
}

struct str track_device_name(const struct model *m, uint32_t track)
{
	return model_str(m, m->device.name[m->track.device[track].v]);
}

struct str task_of_track(const struct model *m, uint32_t track)
{
	struct str task = task_of_device(track_device_name(m, track)), only = STR("");

	if (task.len || track_work(m, (track_id){ track }) != WORK_DEVICE)
		return task;
	for (uint32_t t = 1; t < m->track.count; t++) {
		struct str other = task_of_device(track_device_name(m, t));

		if (m->track.source[t].v != m->track.source[track].v || !other.len ||
		    task_is_server(other))
			continue;
		if (only.len && !str_eq(only, other))
			return STR("");
		only = other;
	}
	return only;
}

struct str task_job(struct str task)
{
	struct str name = str_skip(task, MIN(task.len, strlen("/job:")));
	size_t end = str_find_char(name, '/');

	return end == STR_NONE ? name : str_first(name, end);
}

bool task_is_server(struct str task)
{
	char plain[32];

	worker_plain_name(task_job(task), plain, sizeof(plain));
	return strcmp(plain, "ps") == 0 || strstr(plain, "parameterserver");
}

int64_t task_number(struct str task)
{
	size_t at = str_find(task, STR("/task:"));
	int64_t number = 0;

	return at != STR_NONE && str_to_i64(str_skip(task, at + 6), &number) ? number : 0;
}

/* Whether an operation waits for other tasks or for the run to be set up; these are not work. */
static bool is_waiting(struct str type, struct str name)
{
	return str_ends(type, STR("AccumulatorTakeGradient")) || str_eq(type, STR("Barrier")) ||
	       (str_has(type, STR("Dequeue")) && str_has(name, STR("sync_token"))) ||
	       str_eq(name, STR("_SOURCE"));
}

static bool is_input(struct str type)
{
	return str_has(type, STR("Dequeue")) || str_starts(type, STR("Iterator")) ||
	       str_has(type, STR("Reader")) || str_starts(type, STR("Decode"));
}

/* Makes a message between two tasks: the name of its tensor and the devices of both sides make it unique within a
 * run. */
static void set_message(struct task_event *e, enum task_event_kind kind, struct str tensor,
			struct str sender, struct str receiver)
{
	struct str from = task_of_device(sender), to = task_of_device(receiver);

	if (!from.len || !to.len || str_eq(from, to)) {
		/* a copy between devices of one task: its receive only waits for work of the same task */
		e->kind = kind == TASK_SEND ? TASK_WORK : TASK_WAIT;
		return;
	}
	e->kind = kind;
	e->edge = (str_hash(tensor) * 31 + str_hash(sender)) * 31 + str_hash(receiver);
	e->edge |= 1;
}

/* Reads the other side of a _Send or _Recv from "TENSOR @DEVICE". */
static bool read_other_side(struct str text, bool sends, struct str device, struct task_event *e)
{
	size_t at = str_find(text, STR(" @"));
	struct str other;

	if (at == STR_NONE)
		return false;
	other = str_skip(text, at + 2);
	if (str_ends(other, STR(")"))) /* older versions do not write the closing parenthesis */
		other.len--;
	if (sends)
		set_message(e, TASK_SEND, str_first(text, at), device, other);
	else
		set_message(e, TASK_RECEIVE, str_first(text, at), other, device);
	return true;
}

static bool is_send(struct str type)
{
	return str_eq(type, STR("_Send")) || str_eq(type, STR("_HostSend"));
}

static bool is_receive(struct str type)
{
	return str_eq(type, STR("_Recv")) || str_eq(type, STR("_HostRecv"));
}

static void set_type(struct task_event *e, struct str type, struct str name, struct str inputs,
		     struct str device)
{
	if ((is_send(type) || is_receive(type)) &&
	    read_other_side(inputs, is_send(type), device, e))
		return;
	if (is_receive(type) || is_waiting(type, name))
		e->kind = TASK_WAIT;
	e->input = is_input(type);
}

/* Reads "[12B] TENSOR from SENDER to RECEIVER", or "[1.5MB] …". */
static void read_transfer(struct str label, struct task_event *e)
{
	size_t open = str_find(label, STR("] ")), from = str_find(label, STR(" from ")),
	       to = str_find(label, STR(" to "));
	char number[32] = "";
	double size;

	e->kind = TASK_WAIT;
	if (open == STR_NONE || from == STR_NONE || to == STR_NONE || from < open + 2 ||
	    to < from + 6 || label.ptr[0] != '[')
		return;
	snprintf(number, sizeof(number), "%.*s", (int)MIN(open - 1, sizeof(number) - 1),
		 label.ptr + 1);
	size = strtod(number, NULL);
	if (strstr(number, "MB"))
		size *= MEGABYTE;
	set_message(e, TASK_RECEIVE, str_make(label.ptr + open + 2, from - open - 2),
		    str_make(label.ptr + from + 6, to - from - 6), str_skip(label, to + 4));
	e->transfer = true;
	e->bytes = size >= 0 && size < 1e15 ? (int64_t)size : -1;
}

/* Reads requested_bytes from NodeOutput → TensorDescription → AllocationDescription. */
static int64_t requested_bytes(struct pb_field output)
{
	static const uint32_t path[] = { PB_TAG(3, PB_BYTES), PB_TAG(4, PB_BYTES) };
	struct pb r = pb_message(&output);
	struct pb_field f;
	size_t depth = 0;

	while (pb_next(&r, &f)) {
		if (depth < ARRAY_COUNT(path) && f.tag == path[depth]) {
			r = pb_message(&f);
			depth++;
		} else if (depth == ARRAY_COUNT(path) && f.tag == PB_TAG(1, PB_VARINT)) {
			return (int64_t)f.value;
		}
	}
	return -1;
}

static void read_record(struct str record, struct str device, struct task_event *e)
{
	struct pb r = pb_over(record.ptr, record.len);
	struct str name = STR(""), label = STR(""), type;
	int64_t bytes = -1;
	size_t equals, open;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(1, PB_BYTES))
			name = pb_str(&f);
		else if (f.tag == PB_TAG(8, PB_BYTES))
			label = pb_str(&f);
		else if (f.tag == PB_TAG(7, PB_BYTES))
			bytes = requested_bytes(f);
	}
	if (str_eq(name, STR("RecvTensor")) || str_eq(name, STR("RecvBuf"))) {
		read_transfer(label, e);
		if (bytes >= 0)
			e->bytes = bytes; /* the exact size, unlike that of the label */
		return;
	}
	equals = str_find(label, STR(" = "));
	type = equals == STR_NONE ? STR("") : str_skip(label, equals + 3);
	open = str_find_char(type, '(');
	if (open == STR_NONE)
		open = type.len;
	set_type(e, str_first(type, open), name, str_skip(type, MIN(open + 1, type.len)), device);
}

static struct str text_of(struct json_value value)
{
	return value.kind == JSON_STRING ? json_text(value) : STR("");
}

static void read_timeline(struct str args, struct str device, struct task_event *e)
{
	struct str type = text_of(json_find(args, "op"));

	/* the timeline does not show which message this is */
	if (str_eq(type, STR("RecvTensor"))) {
		e->kind = TASK_WAIT;
		return;
	}
	set_type(e, type, text_of(json_find(args, "name")), text_of(json_find(args, "input0")),
		 device);
}

struct task_event task_event_of(const struct model *m, uint32_t source, struct str device,
				struct str args)
{
	struct task_event e = { .kind = TASK_WORK, .bytes = -1 };

	if (str_eq(model_str(m, m->source.format[source]), STR("runmeta")))
		read_record(args, device, &e);
	else
		read_timeline(args, device, &e);
	return e;
}
