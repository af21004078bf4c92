/*
 * redact_text.c: hides private texts in a stream of JSON (redact_text.h). It finds strings, and whether they are keys
 * or values, and reads nothing else: text that is not JSON is copied unchanged. Texts are compared as they are written,
 * with their escapes.
 */
#include "merge/redact_text.h"

static const struct {
	const char *key;
	enum redact_rule rule;
} rules[] = {
	{ "name", RULE_NAME },
	{ "ph", RULE_KEEP },
	{ "cat", RULE_KEEP },
	{ "s", RULE_KEEP },
	{ "bp", RULE_KEEP },
	{ "scope", RULE_NAME },
	{ "cname", RULE_KEEP },
	{ "op", RULE_KEEP }, /* "op" is the type of an op */
	{ "Input type", RULE_KEEP },
	{ "dtype", RULE_KEEP },
	{ "Collective name", RULE_KEEP },
	{ "displayTimeUnit", RULE_KEEP },
	{ "deviceProperties", RULE_KEEP_TREE },
	{ "computeProperties", RULE_KEEP_TREE },
	{ "backend", RULE_KEEP },
	{ "opwatch-merge", RULE_HIDE },
	{ "writer", RULE_KEEP },
	{ "align", RULE_KEEP },
};

static enum redact_rule rule_of(struct str key)
{
	for (size_t i = 0; i < ARRAY_COUNT(rules); i++)
		if (str_eq(key, str_from(rules[i].key)))
			return rules[i].rule;
	return RULE_HIDE;
}

/* Whether a key of event arguments is one that frameworks write; any other key may come from a user. */
static bool is_known_key(struct str key)
{
	static const char *const keys[] = {
		"External id",
		"Call stack",
		"Module Hierarchy",
		"Input Dims",
		"Input type",
		"Input Strides",
		"Concrete Inputs",
		"Ev Idx",
		"Record function id",
		"Sequence number",
		"Fwd thread id",
		"Trace name",
		"Trace iteration",
		"Python id",
		"Python parent id",
		"Python module id",
		"Python thread",
		"correlation",
		"stream",
		"device",
		"context",
		"grid",
		"block",
		"bytes",
		"memory bandwidth (GB/s)",
		"queued",
		"registers per thread",
		"shared memory",
		"blocks per SM",
		"warps per SM",
		"est. achieved occupancy %",
		"cbid",
		"Collective name",
		"In msg nelems",
		"Out msg nelems",
		"Group size",
		"dtype",
		"In split size",
		"Out split size",
		"Process Group Name",
		"Process Group Description",
		"Process Group Ranks",
		"Rank",
		"Src Rank",
		"Dst Rank",
		"Addr",
		"Bytes",
		"Device Id",
		"Device Type",
		"Total Allocated",
		"Total Reserved",
		"Ptr",
		"labels",
		"sort_index",
		"snapshot",
		"step",
		"step_num",
		"iter_num",
		"ProfilerStep#",
		"op_name",
		"provider",
		"graph_index",
		"exec_plan_index",
		"activation_size",
		"parameter_size",
		"output_size",
		"hlo_op",
		"hlo_module",
		"long_name",
		"kernel_details",
		"group_id",
		"run_id",
		"program_id",
		"flops",
		"bytes_accessed",
		"model_flops",
		"raw_bytes_accessed",
		"deduplicated_name",
		"tf_op",
		"source",
		"wait for",
		"src",
		"input0",
		"input1",
		"input2",
		"input3",
		"input4",
		"input5",
		"shape",
		"value",
		"finished",
	};

	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		if (str_eq(key, str_from(keys[i])))
			return true;
	return false;
}

/* Whether a key outside of arguments belongs to the trace format or to a program that writes it. */
static bool is_format_key(struct str key)
{
	static const char *const keys[] = {
		/* keys of events */
		"ph",
		"pid",
		"tid",
		"ts",
		"tts",
		"dur",
		"tdur",
		"cat",
		"args",
		"id",
		"id2",
		"local",
		"global",
		"bind_id",
		"bp",
		"s",
		"sf",
		"esf",
		"stack",
		"estack",
		"flow_in",
		"flow_out",
		"use_async_tts",
		"parent",
		"category",
		/* keys of the document */
		"traceEvents",
		"systemTraceEvents",
		"stackFrames",
		"samples",
		"metadata",
		"otherData",
		"displayTimeUnit",
		"schemaVersion",
		"baseTimeNanoseconds",
		"traceName",
		"trace_id",
		"group_trace_id",
		"record_shapes",
		"with_stack",
		"with_flops",
		"with_modules",
		"profile_memory",
		"distributedInfo",
		"rank",
		"world_size",
		"backend",
		"backend_config",
		"nccl_version",
		"pg_count",
		"pg_config",
		"pg_name",
		"pg_desc",
		"pg_size",
		"ranks",
		"host_name",
		"hostname",
		"username",
		"cupti_version",
		"cuda_runtime_version",
		"cuda_driver_version",
		"roctracer_version",
		"hip_runtime_version",
		"hip_driver_version",
		"highres-ticks",
		"beginningOfTime",
		"command_line",
		"version",
		"INFO",
		"WARNING",
		"ERROR",
		/* keys that opwatch writes */
		"files",
		"file",
		"label",
		"events",
		"shift_ns",
		"members",
		"clock_drift_ppm",
		"clock_pieces",
		"pids",
	};

	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		if (str_eq(key, str_from(keys[i])))
			return true;
	return false;
}

/* Whether a text is a number or truth value: 12, 0x7f, -1.5e3, true. The letters of "facade" are digits only after
 * 0x. */
static bool is_number(struct str text)
{
	bool hex = str_starts(text, STR("0x")), digits = false;

	if (str_eq(text, STR("true")) || str_eq(text, STR("false")))
		return true;
	if (hex)
		text = str_skip(text, 2);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c >= '0' && c <= '9')
			digits = true;
		else if (!c || !(strchr("+-. ,()[]", c) || (hex && strchr("abcdefABCDEF", c)) ||
				 (digits && (c == 'e' || c == 'E'))))
			return false;
	}
	return str_find_char(text, ' ') == STR_NONE || text.ptr[0] == '(' || text.ptr[0] == '[';
}

static void put_value(struct redact_text *r, struct str text, enum redact_rule rule)
{
	if (!text.len || rule >= RULE_KEEP || is_number(text) ||
	    (rule == RULE_NAME && pseudonym_is_library_name(text)))
		buf_add_str(&r->out, text);
	else if (rule == RULE_NAME)
		pseudonym_name(&r->names, text, &r->out);
	else if (str_find_char(text, '/') != STR_NONE)
		pseudonym_path(&r->names, text, &r->out);
	else
		pseudonym_word(&r->names, text, &r->out);
}

static void end_text(struct redact_text *r)
{
	struct redact_level *level = &r->levels[MIN(r->depth, REDACT_DEPTH - 1)];
	struct str text = buf_str(&r->text);
	bool known = r->depth < REDACT_DEPTH;

	if (known && level->object && !r->value) {
		bool above = r->depth && r->levels[r->depth - 1].rule == RULE_KEEP_TREE;

		level->rule = (uint8_t)(above ? RULE_KEEP_TREE : rule_of(text));
		if (level->rule == RULE_HIDE &&
		    !(r->args_depth ? is_known_key(text) : is_format_key(text)))
			put_value(r, text, RULE_HIDE);
		else
			buf_add_str(&r->out, text);
		if (!r->args_depth && str_eq(text, STR("args")))
			r->args_depth = r->depth + 1;
	} else {
		put_value(r, text, known ? (enum redact_rule)level->rule : RULE_HIDE);
	}
	buf_add_char(&r->out, '"');
}

static void open_level(struct redact_text *r, bool object)
{
	uint8_t rule = r->depth < REDACT_DEPTH ? r->levels[r->depth].rule : RULE_HIDE;

	r->depth++;
	r->value = !object;
	if (r->depth < REDACT_DEPTH) /* elements of a list get the rule of the list's key */
		r->levels[r->depth] =
			(struct redact_level){ object,
					       rule == RULE_KEEP && object ? RULE_HIDE : rule };
}

static void take_char(struct redact_text *r, char c)
{
	switch (c) {
	case '"':
		r->in_text = true;
		buf_clear(&r->text);
		break;
	case '{':
	case '[':
		open_level(r, c == '{');
		break;
	case '}':
	case ']':
		r->depth -= r->depth > 0;
		if (r->depth < r->args_depth)
			r->args_depth = 0;
		break;
	case ':':
		r->value = true;
		break;
	case ',':
		r->value = r->depth >= REDACT_DEPTH || !r->levels[r->depth].object;
		break;
	default:
		break;
	}
	buf_add_char(&r->out, c);
}

static void take_text(struct redact_text *r, char c)
{
	if (c == '"' && !r->escaped) {
		r->in_text = false;
		end_text(r);
		return;
	}
	r->escaped = c == '\\' && !r->escaped;
	buf_add_char(&r->text, c);
}

ow_status redact_text_add(struct redact_text *r, struct str bytes, struct ow_error *err)
{
	for (size_t i = 0; i < bytes.len; i++) {
		if (r->in_text)
			take_text(r, bytes.ptr[i]);
		else
			take_char(r, bytes.ptr[i]);
	}
	if (r->out.failed || r->text.failed || r->names.failed)
		return error_no_memory(err);
	return OW_OK;
}

ow_status redact_text_init(struct redact_text *r, struct mem *mem, struct ow_error *err)
{
	memset(r, 0, sizeof(*r));
	buf_init(&r->out, mem);
	buf_init(&r->text, mem);
	r->value = true;
	return pseudonyms_init(&r->names, mem, err);
}

void redact_text_release(struct redact_text *r)
{
	pseudonyms_release(&r->names);
	buf_release(&r->out);
	buf_release(&r->text);
}
