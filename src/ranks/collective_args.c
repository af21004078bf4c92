/*
 * collective_args.c: reads the arguments of a collective: group, sequence number, size, root, and the worker's place in
 * the job (read.h). Called by read.c for kernels of collectives and for the calls that describe them.
 */
#include "ranks/read.h"

#include "base/vec.h"
#include "wire/json/json.h"

#define GROUP_NAME_MOST 160

static bool args_number(struct str args, const char *key, int64_t *value)
{
	struct json_value found = json_find(args, key);

	return (found.kind == JSON_NUMBER || found.kind == JSON_STRING) &&
	       json_decimal(json_text(found), 0, value) == JSON_EXACT;
}

static int64_t element_size(struct str type)
{
	static const struct {
		const char *name;
		int64_t size;
	} types[] = { { "Half", 2 },   { "BFloat16", 2 },      { "Float", 4 },
		      { "Double", 8 }, { "Long", 8 },	       { "Int", 4 },
		      { "Short", 2 },  { "Byte", 1 },	       { "Char", 1 },
		      { "Bool", 1 },   { "Float8_e4m3fn", 1 }, { "float", 4 },
		      { "long", 8 },   { "unsigned char", 1 }, { "signed char", 1 },
		      { "double", 8 }, { "c10::Half", 2 },     { "c10::BFloat16", 2 } };

	for (size_t i = 0; i < ARRAY_COUNT(types); i++)
		if (str_eq(type, str_from(types[i].name)))
			return types[i].size;
	return 1;
}

/* The number of elements of the first tensor in "Input Dims": [[64, 1024], …]; -1 if unknown. */
static int64_t dims_elements(struct str args)
{
	struct json_value dims = json_find(args, "Input Dims"), first, one;
	struct json_reader list;
	int64_t product = 1, n;
	bool any = false;

	if (dims.kind != JSON_ARRAY)
		return -1;
	list = json_over(json_text(dims));
	if (!json_next_element(&list, &first) || first.kind != JSON_ARRAY)
		return -1;
	list = json_over(json_text(first));
	while (json_next_element(&list, &one)) {
		if (one.kind == JSON_ARRAY) { /* a list of tensors: the first one is used */
			list = json_over(json_text(one));
			continue;
		}
		if (json_decimal(json_text(one), 0, &n) != JSON_EXACT || n < 0 ||
		    __builtin_mul_overflow(product, n, &product))
			return -1;
		any = true;
	}
	return any ? product : -1;
}

/* The index of the worker's rank in a list "[0, 4, 8]"; -1 when the rank is not in the list or the list is cut off. */
static int32_t place_in(struct str list, int32_t rank)
{
	int32_t place = 0;
	size_t at = 0;

	if (rank < 0 || str_has(list, STR("...")))
		return -1;
	while (at < list.len) {
		int64_t value = 0;
		bool any = false;

		for (; at < list.len && list.ptr[at] >= '0' && list.ptr[at] <= '9' &&
		       value < INT32_MAX;
		     at++) {
			value = value * 10 + (list.ptr[at] - '0');
			any = true;
		}
		if (any && value == rank)
			return place;
		place += any;
		at += !any;
	}
	return -1;
}

/* Whether a complete list of ranks lacks this one: then the file states a wrong rank for the worker. */
static bool is_elsewhere(struct str list, int32_t rank)
{
	size_t digits = 0;

	for (size_t i = 0; i < list.len; i++)
		digits += list.ptr[i] >= '0' && list.ptr[i] <= '9';
	return digits && !str_has(list, STR("...")) && place_in(list, rank) < 0;
}

/* Sets the pipeline, data or tensor parallel number of a worker from a group description such as
 * "PIPELINE_MODEL_PARALLEL_GROUP" or "mesh_pp": the number is the worker's index in the group. */
static void take_role(struct worker *w, struct str description, struct str ranks)
{
	char plain[96];
	int32_t place;

	worker_plain_name(description, plain, sizeof(plain));
	place = place_in(ranks, w->rank);
	if (place < 0)
		return;
	if (strstr(plain, "pipeline") || strstr(plain, "meshpp"))
		w->stage = place;
	else if (strstr(plain, "tensormodel") || strstr(plain, "meshtp"))
		w->tp = place;
	else if ((strstr(plain, "dataparallel") && !strstr(plain, "expert")) ||
		 strstr(plain, "meshdp"))
		w->dp = place;
}

/* Stores the name of a group; beyond RANKS_GROUPS_MOST groups names are not kept. */
static void name_group(struct ranks_job *job, uint64_t hash, struct str name,
		       struct str description, struct str ranks)
{
	char text[GROUP_NAME_MOST];
	struct group_name group = { .hash = hash };
	int len;

	for (size_t i = job->group_count; i-- > 0;)
		if (job->groups[i].hash == hash)
			return;
	if (job->group_count >= RANKS_GROUPS_MOST)
		return;
	len = snprintf(text, sizeof(text), "%.*s%s%.*s%s%.*s", (int)MIN(name.len, 60u), name.ptr,
		       description.len ? " " : "", (int)MIN(description.len, 40u),
		       description.len ? description.ptr : "", ranks.len ? " " : "",
		       (int)MIN(ranks.len, 40u), ranks.len ? ranks.ptr : "");
	group.name = arena_str(&job->arena, str_make(text, (size_t)MAX(len, 0)));
	if (group.name.ptr && utf8_valid(group.name))
		(void)vec_push(job->mem, job->groups, job->group_count, job->group_cap, group);
}

void collective_args(struct ranks_job *job, struct worker *w, struct collective *c, struct str args)
{
	struct json_value name = json_find(args, "Collective name"),
			  group = json_find(args, "Process Group Name"),
			  ranks = json_find(args, "Process Group Ranks"),
			  description = json_find(args, "Process Group Description");
	int64_t in = -1, out = -1, number;

	if (name.kind == JSON_STRING && name.len)
		c->kind = (uint8_t)collective_kind_of(json_text(name));
	if (group.kind == JSON_STRING && group.len && !c->group) {
		c->group = str_hash(json_text(group));
		if (ranks.kind == JSON_STRING || ranks.kind == JSON_ARRAY)
			c->group = c->group * 31 + str_hash(json_text(ranks));
		c->group |= 1;
		name_group(job, c->group, json_text(group),
			   description.kind == JSON_STRING ? json_text(description) : STR(""),
			   ranks.kind != JSON_NONE ? json_text(ranks) : STR(""));
	}
	if (ranks.kind != JSON_NONE && w->rank >= 0 && !c->checked) {
		c->checked = true;
		w->strange += is_elsewhere(json_text(ranks), w->rank);
	}
	if (ranks.kind != JSON_NONE && description.kind == JSON_STRING)
		take_role(w, json_text(description), json_text(ranks));
	if (c->seq < 0 && args_number(args, "Seq", &number) && number >= 0)
		c->seq = number;
	if (c->group_size < 0 && args_number(args, "Group size", &number) && number > 0 &&
	    number < INT32_MAX)
		c->group_size = (int32_t)number;
	if (args_number(args, c->kind == COLLECTIVE_SEND ? "Dst Rank" : "Src Rank", &number) &&
	    number >= 0 && number < INT32_MAX)
		c->peer = (int32_t)number;
	if (w->rank < 0 && args_number(args, "Rank", &number) && number >= 0 && number < INT32_MAX)
		w->rank = (int32_t)number;
	args_number(args, "In msg nelems", &in);
	args_number(args, "Out msg nelems", &out);
	if (c->bytes < 0 && MAX(in, out) >= 0 &&
	    __builtin_mul_overflow(MAX(in, out), element_size(json_text(json_find(args, "dtype"))),
				   &c->bytes))
		c->bytes = -1;
	if (c->bytes < 0)
		c->bytes = dims_elements(args);
}
