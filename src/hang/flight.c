/*
 * flight.c: reads dumps of PyTorch's flight recorder (TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_FR_BUFFER_SIZE), as pickles
 * or as JSON: the last collectives and messages of one process, and the members of its groups. Both formats become the
 * same sequence of tokens, from which take_token makes rows of hang.h. Called by hang_read. If a dump is cut off or
 * damaged, the readable part is used and a note is added. It does not compare dumps; hang_table does.
 */
#include "hang/hang.h"

#include "base/error.h"
#include "wire/json/json_pull.h"
#include "wire/pickle/pickle.h"

#define LEVELS 6u /* nesting levels that have a meaning */
#define KEY_MAX 64u
#define WALK_DEPTH 8u /* a dump is less deep; deeper values are skipped */
/* limit of values of a pickle for each byte: shared values count each time */
#define WALK_STEPS 64u

struct flight_entry {
	struct hang_op op;
	struct str group, about; /* from process_group: name and description */
	int64_t group_id;	 /* pg_id: a number that is valid in this process only */
	bool start_seen;	 /* the entry has a start time, so this dump records starts */
};

struct flight_group {
	struct str name, about;
	int32_t *members;
	size_t count, cap;
	bool used; /* an entry uses the group, so the process is a member */
};

struct flight_status {
	int64_t group_id, entered, completed;
};

struct flight {
	struct hang_job *job;
	struct mem *mem;
	uint32_t depth;
	char keys[LEVELS + 1][KEY_MAX]; /* the current key at each depth */
	uint32_t key_len[LEVELS + 1];
	size_t items[LEVELS + 1]; /* number of values so far in the list at each depth */
	/* The current entry. */
	struct flight_entry entry;
	int64_t in_elements, out_elements, product;
	int64_t collective_seq, message_seq;
	bool in_entry, has_in, has_out, is_message;
	struct buf types, stack;
	uint32_t frames;
	struct str frame_name, frame_file;
	int64_t frame_line;
	/* The results. */
	struct flight_entry *entries;
	size_t entry_count, entry_cap;
	struct flight_group *groups;
	size_t group_count, group_cap;
	struct flight_status *status;
	size_t status_count, status_cap;
	int64_t rank, world, comm_rank, comm_size, comm_rank_of_world, comm_world;
	bool any; /* a known key of a dump was seen */
	bool torn;
	uint64_t odd; /* number of malformed entries */
	const char *damage;
	uint64_t damage_at;
};

static bool key_is(const struct flight *f, uint32_t depth, const char *key)
{
	return strlen(key) == f->key_len[depth] &&
	       memcmp(f->keys[depth], key, f->key_len[depth]) == 0;
}

static bool number_of(struct str text, int64_t *value)
{
	return json_decimal(text, 0, value) != JSON_NOT_A_NUMBER;
}

static void begin_entry(struct flight *f)
{
	f->entry = (struct flight_entry){
		.op = hang_new_op(0, 0), .group = STR(""), .about = STR(""), .group_id = -1
	};
	f->entry.op.order = (int64_t)f->entry_count;
	f->in_elements = f->out_elements = 0;
	f->collective_seq = f->message_seq = HANG_NO_SEQUENCE;
	f->has_in = f->has_out = f->is_message = false;
	f->frames = 0;
	buf_clear(&f->types);
	buf_clear(&f->stack);
	f->in_entry = true;
}

static void end_entry(struct flight *f)
{
	struct hang_op *op = &f->entry.op;

	f->in_entry = false;
	if (!op->name.len) {
		f->odd++;
		return;
	}
	op->elements = f->has_in && f->in_elements ? f->in_elements
		       : f->has_out		   ? f->out_elements
		       : f->has_in		   ? f->in_elements
						   : -1;
	op->message = op->message || f->is_message;
	op->sequence = op->message && f->message_seq > 0 ? f->message_seq : f->collective_seq;
	op->types = hang_text(f->job, buf_str(&f->types));
	op->stack = hang_text(f->job, buf_str(&f->stack));
	if (!vec_push(f->mem, f->entries, f->entry_count, f->entry_cap, f->entry))
		f->job->no_memory = true;
}

static void set_state(struct flight *f, struct str text)
{
	if (str_eq(text, STR("completed")))
		f->entry.op.state = HANG_COMPLETED;
	else if (str_eq(text, STR("started")))
		f->entry.op.state = HANG_STARTED;
	else if (str_eq(text, STR("scheduled")))
		f->entry.op.state = HANG_SCHEDULED;
	else
		f->odd++;
}

static void entry_text(struct flight *f, struct str text)
{
	if (key_is(f, 3, "profiling_name"))
		hang_name_op(f->job, &f->entry.op, text);
	else if (key_is(f, 3, "state"))
		set_state(f, text);
	else if (key_is(f, 3, "process_group"))
		f->entry.group = hang_text(f->job, text);
}

static void entry_number(struct flight *f, int64_t value)
{
	struct hang_op *op = &f->entry.op;

	if (key_is(f, 3, "record_id") || (key_is(f, 3, "id") && !op->order))
		op->order = value;
	else if (key_is(f, 3, "pg_id"))
		f->entry.group_id = value;
	else if (key_is(f, 3, "collective_seq_id") || key_is(f, 3, "seq_id"))
		f->collective_seq = value;
	else if (key_is(f, 3, "p2p_seq_id"))
		f->message_seq = value;
	else if (key_is(f, 3, "time_created_ns"))
		op->created_ns = value;
	else if (key_is(f, 3, "time_discovered_started_ns") ||
		 key_is(f, 3, "time_discovered_completed_ns")) {
		op->seen_ns = MAX(op->seen_ns, value);
		f->entry.start_seen |= key_is(f, 3, "time_discovered_started_ns");
	} else if (key_is(f, 3, "timeout_ms") && value > 0 && value < INT64_MAX / 1000000)
		op->timeout_ns = value * 1000000;
}

/* Handles a token of a list or an object inside an entry: depth 4 and deeper. */
static void entry_part(struct flight *f, enum json_token token, struct str text)
{
	int64_t value;

	if (key_is(f, 3, "process_group") && token == TOKEN_STRING && f->depth == 4) {
		if (f->items[4] == 0)
			f->entry.group = hang_text(f->job, text);
		else if (f->items[4] == 1)
			f->entry.about = hang_text(f->job, text);
	} else if (key_is(f, 3, "input_dtypes") && token == TOKEN_STRING && f->depth == 4) {
		if (f->types.len)
			buf_add_char(&f->types, ',');
		buf_add_str(&f->types, text);
	} else if (f->depth == 5 && (key_is(f, 3, "input_sizes") || key_is(f, 3, "output_sizes")) &&
		   token == TOKEN_NUMBER && number_of(text, &value)) {
		if (__builtin_mul_overflow(f->product, value, &f->product))
			f->product = INT64_MAX;
	} else if (f->depth == 5 && key_is(f, 3, "frames")) {
		if (key_is(f, 5, "name") && token == TOKEN_STRING)
			f->frame_name = hang_text(f->job, text);
		else if (key_is(f, 5, "filename") && token == TOKEN_STRING)
			f->frame_file = hang_text(f->job, text);
		else if (key_is(f, 5, "line") && token == TOKEN_NUMBER && number_of(text, &value))
			f->frame_line = value;
	}
}

static void add_frame(struct flight *f)
{
	if (f->frames++ >= HANG_STACK_FRAMES || !f->frame_name.len)
		return;
	buf_printf(&f->stack, "%s%.*s (%.*s:%lld)", f->stack.len ? "\n" : "",
		   (int)MIN(f->frame_name.len, 200u), f->frame_name.ptr,
		   (int)MIN(f->frame_file.len, 300u), f->frame_file.ptr, (long long)f->frame_line);
}

static void add_elements(int64_t *sum, int64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = INT64_MAX;
}

static struct flight_group *last_group(struct flight *f)
{
	return f->group_count ? &f->groups[f->group_count - 1] : NULL;
}

static void begin_group(struct flight *f)
{
	struct flight_group g = { .name = hang_text(f->job, str_make(f->keys[2], f->key_len[2])),
				  .about = STR("") };

	if (!vec_push(f->mem, f->groups, f->group_count, f->group_cap, g))
		f->job->no_memory = true;
}

static void add_member(struct flight *f, int64_t rank)
{
	struct flight_group *g = last_group(f);

	if (!g || rank < 0 || rank >= HANG_RANK_MAX || g->count >= HANG_RANK_MAX)
		f->odd++;
	else if (!vec_push(f->mem, g->members, g->count, g->cap, (int32_t)rank))
		f->job->no_memory = true;
}

/* Reads the members of a group: "[0, 1, 2]". */
static void add_members(struct flight *f, struct str text)
{
	int64_t value = -1;

	for (size_t i = 0; i <= text.len; i++) {
		bool digit = i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9';

		if (digit && value < HANG_RANK_MAX)
			value = MAX(value, 0) * 10 + (text.ptr[i] - '0');
		else if (!digit && value >= 0) {
			add_member(f, value);
			value = -1;
		}
	}
}

static void group_value(struct flight *f, enum json_token token, struct str text)
{
	struct flight_group *g = last_group(f);
	int64_t value;

	if (!g)
		return;
	if (f->depth == 3 && token == TOKEN_STRING) {
		if (key_is(f, 3, "name"))
			g->name = hang_text(f->job, text);
		else if (key_is(f, 3, "desc"))
			g->about = hang_text(f->job, text);
		else if (key_is(f, 3, "ranks"))
			add_members(f, text);
	} else if (f->depth == 4 && key_is(f, 3, "ranks") && number_of(text, &value)) {
		add_member(f, value);
	}
}

static void status_value(struct flight *f, struct str text)
{
	struct flight_status *s = f->status_count ? &f->status[f->status_count - 1] : NULL;
	int64_t value;

	if (f->depth != 3 || !s || !number_of(text, &value))
		return;
	if (key_is(f, 3, "last_enqueued_collective"))
		s->entered = value;
	else if (key_is(f, 3, "last_completed_collective"))
		s->completed = value;
}

static void begin_status(struct flight *f)
{
	struct flight_status s = { -1, -1, -1 };

	if (!number_of(str_make(f->keys[2], f->key_len[2]), &s.group_id))
		s.group_id = -1;
	if (!vec_push(f->mem, f->status, f->status_count, f->status_cap, s))
		f->job->no_memory = true;
}

static void comm_value(struct flight *f, struct str text)
{
	int64_t value;

	if (f->depth != 3 || !number_of(text, &value))
		return;
	if (key_is(f, 3, "rank"))
		f->comm_rank = value;
	else if (key_is(f, 3, "nRanks") || key_is(f, 3, "nranks") || key_is(f, 3, "n_ranks"))
		f->comm_size = value;
}

static void top_value(struct flight *f, struct str text)
{
	int64_t value;

	if (!number_of(text, &value))
		return;
	if (key_is(f, 1, "rank") || key_is(f, 1, "global_rank"))
		f->rank = value;
	else if (key_is(f, 1, "world_size"))
		f->world = value;
}

static void take_scalar(struct flight *f, enum json_token token, struct str text)
{
	int64_t value;

	if (f->depth == 1)
		top_value(f, text);
	else if (key_is(f, 1, "entries") && f->in_entry) {
		if (f->depth > 3)
			entry_part(f, token, text);
		else if (token == TOKEN_STRING)
			entry_text(f, text);
		else if (token == TOKEN_NUMBER && number_of(text, &value))
			entry_number(f, value);
		else if (token == TOKEN_WORD && key_is(f, 3, "is_p2p"))
			f->is_message = str_eq(text, STR("true"));
	} else if (key_is(f, 1, "pg_config"))
		group_value(f, token, text);
	else if (key_is(f, 1, "pg_status"))
		status_value(f, text);
	else if (key_is(f, 1, "nccl_comm_state") || key_is(f, 1, "nccl_comm"))
		comm_value(f, text);
	if (f->depth <= LEVELS)
		f->items[f->depth]++;
}

static void open_level(struct flight *f)
{
	f->depth++;
	if (f->depth <= LEVELS) {
		f->key_len[f->depth] = 0;
		f->items[f->depth] = 0;
	}
	if (f->depth == 3 && key_is(f, 1, "entries"))
		begin_entry(f);
	else if (f->depth == 3 && key_is(f, 1, "pg_config"))
		begin_group(f);
	else if (f->depth == 3 && key_is(f, 1, "pg_status"))
		begin_status(f);
	else if (f->depth == 3)
		f->comm_rank = f->comm_size = -1;
	else if (f->depth == 5 && f->in_entry) {
		f->product = 1;
		f->frame_name = f->frame_file = STR("");
		f->frame_line = 0;
	}
}

static void close_level(struct flight *f)
{
	if (f->depth == 5 && f->in_entry) {
		if (key_is(f, 3, "input_sizes")) {
			add_elements(&f->in_elements, f->product);
			f->has_in = true;
		} else if (key_is(f, 3, "output_sizes")) {
			add_elements(&f->out_elements, f->product);
			f->has_out = true;
		} else if (key_is(f, 3, "frames"))
			add_frame(f);
	} else if (f->depth == 3 && f->in_entry)
		end_entry(f);
	else if (f->depth == 3 && f->comm_rank >= 0 && f->comm_size > f->comm_world) {
		f->comm_world = f->comm_size;
		f->comm_rank_of_world = f->comm_rank;
	}
	f->depth -= f->depth > 0;
	if (f->depth && f->depth <= LEVELS)
		f->items[f->depth]++;
}

static void take_key(struct flight *f, struct str text)
{
	static const char *const known[] = { "entries", "pg_config", "pg_status" };

	if (!f->depth || f->depth > LEVELS)
		return;
	f->key_len[f->depth] = (uint32_t)MIN(text.len, (size_t)KEY_MAX);
	if (text.len)
		memcpy(f->keys[f->depth], text.ptr, f->key_len[f->depth]);
	for (size_t i = 0; f->depth == 1 && i < ARRAY_COUNT(known); i++)
		f->any = f->any || key_is(f, 1, known[i]);
}

static void take_token(struct flight *f, enum json_token token, struct str text)
{
	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		open_level(f);
	else if (token == TOKEN_CLOSE)
		close_level(f);
	else if (token == TOKEN_KEY)
		take_key(f, text);
	else
		take_scalar(f, token, text);
}

static ow_status feed_json(struct flight *f, const struct input *in, struct ow_error *err)
{
	struct json_pull *pull = mem_zalloc(f->mem, sizeof(*pull));
	struct buf plain;
	enum json_token token;
	ow_status status;

	if (!pull)
		return error_no_memory(err);
	buf_init(&plain, f->mem);
	json_pull_init(pull, in, err);
	while ((token = json_pull_next(pull)) != TOKEN_END && token != TOKEN_DAMAGE) {
		struct str text = pull->text;

		if ((token == TOKEN_STRING || token == TOKEN_KEY) && !json_is_plain(text)) {
			buf_clear(&plain);
			json_decode(text, &plain);
			text = buf_str(&plain);
		}
		take_token(f, token, text);
		if (f->job->no_memory)
			break;
	}
	f->torn = token == TOKEN_DAMAGE || pull->depth > 0;
	f->damage = token == TOKEN_DAMAGE ? "cannot be read as JSON from there on"
					  : "the file ends too early";
	f->damage_at = pull->offset;
	status = pull->window.status;
	/* an error at the end of a cut file is expected */
	if (status != OW_E_NO_MEMORY && status != OW_E_IO)
		status = OW_OK;
	json_pull_release(pull);
	mem_free(f->mem, pull, sizeof(*pull));
	buf_release(&plain);
	return status;
}

struct walk_level {
	struct pickle_value of;
	uint32_t at;
};

static struct str scalar_text(const struct pickle *p, struct pickle_value v, char text[32],
			      enum json_token *token)
{
	*token = TOKEN_NUMBER;
	switch (v.kind) {
	case PICKLE_TEXT:
		*token = TOKEN_STRING;
		return pickle_text(p, v);
	case PICKLE_INT:
		snprintf(text, 32, "%lld", (long long)v.number);
		return str_from(text);
	case PICKLE_REAL:
		snprintf(text, 32, "%.17g", v.real);
		return str_from(text);
	case PICKLE_BOOL:
		*token = TOKEN_WORD;
		return v.number ? STR("true") : STR("false");
	default:
		*token = TOKEN_WORD;
		return STR("null");
	}
}

static bool is_container(struct pickle_value v)
{
	return v.kind == PICKLE_LIST || v.kind == PICKLE_TUPLE || v.kind == PICKLE_SET ||
	       v.kind == PICKLE_DICT;
}

/* Walks through the values of a pickle. Values may contain themselves, so depth and number are limited. */
static void walk_pickle(struct flight *f, const struct pickle *p, uint64_t bytes)
{
	struct walk_level levels[WALK_DEPTH];
	uint32_t depth = 0;
	uint64_t steps = 0, most = (bytes + 1024) * WALK_STEPS;
	char text[32];

	if (!is_container(p->root))
		return;
	levels[depth++] = (struct walk_level){ p->root, 0 };
	take_token(f, TOKEN_OBJECT, STR(""));
	while (depth && !f->job->no_memory) {
		struct walk_level *level = &levels[depth - 1];
		const struct pickle_object *object = pickle_object(p, level->of);
		struct pickle_value v;
		enum json_token token;
		struct str scalar;

		if (level->at >= object->count || object->taken || ++steps > most) {
			take_token(f, TOKEN_CLOSE, STR(""));
			depth--;
			continue;
		}
		v = object->items[level->at++];
		if (level->of.kind == PICKLE_DICT && level->at % 2 == 1) {
			take_token(f, TOKEN_KEY, scalar_text(p, v, text, &token));
			continue;
		}
		if (is_container(v) && depth < WALK_DEPTH) {
			levels[depth++] = (struct walk_level){ v, 0 };
			take_token(f, TOKEN_OBJECT, STR(""));
			continue;
		}
		scalar = scalar_text(p, v, text, &token);
		take_token(f, token, scalar);
	}
	if (steps > most) {
		f->torn = true;
		f->damage = "has too many values";
	}
}

static ow_status feed_pickle(struct flight *f, const struct input *in, struct ow_error *err)
{
	struct pickle p;
	struct ow_error why = { 0 };
	ow_status status;

	pickle_init(&p, in, &why);
	status = pickle_run(&p);
	if (status == OW_OK) {
		f->torn = p.damage || p.truncated;
		f->damage = p.damage ? p.damage : "the file ends too early";
		f->damage_at = p.damage_offset;
		walk_pickle(f, &p, in->size);
	}
	pickle_release(&p);
	return status == OW_OK ? OW_OK : error_set(err, status, "%.900s", why.text);
}

static const struct flight_group *group_named(const struct flight *f, struct str name)
{
	for (size_t i = 0; i < f->group_count; i++)
		if (str_eq(f->groups[i].name, name))
			return &f->groups[i];
	return NULL;
}

static void mark_used_groups(struct flight *f)
{
	const struct str *last = NULL;

	for (size_t i = 0; i < f->entry_count; i++) {
		if (last && str_eq(*last, f->entries[i].group))
			continue;
		last = &f->entries[i].group;
		for (size_t g = 0; g < f->group_count; g++)
			if (str_eq(f->groups[g].name, *last))
				f->groups[g].used = true;
	}
}

/* The rank that is a member of all groups that the process used (or, without `used_only`, lists), if there is only
 * one such rank. */
static int32_t rank_of_members(const struct flight *f, bool used_only)
{
	int32_t most = -1, found = HANG_NO_RANK;
	size_t groups = 0, many = 0;
	uint32_t *in; /* for each rank: number of groups that it is a member of */

	for (size_t i = 0; i < f->group_count; i++) {
		groups += (f->groups[i].used || !used_only) && f->groups[i].count > 0;
		for (size_t k = 0; (f->groups[i].used || !used_only) && k < f->groups[i].count; k++)
			most = MAX(most, f->groups[i].members[k]);
	}
	in = most < 0 ? NULL : mem_zalloc(f->mem, ((size_t)most + 1) * sizeof(*in));
	if (!in)
		return HANG_NO_RANK;
	for (size_t i = 0; i < f->group_count; i++)
		for (size_t k = 0; (f->groups[i].used || !used_only) && k < f->groups[i].count; k++)
			in[f->groups[i].members[k]]++;
	for (int32_t r = 0; r <= most; r++)
		if (in[r] >= groups) {
			found = r;
			many++;
		}
	mem_free(f->mem, in, ((size_t)most + 1) * sizeof(*in));
	return many == 1 ? found : HANG_NO_RANK;
}

/* The rank of the process according to its sends and receives, which name it as a member of the group. */
static int32_t rank_of_messages(const struct flight *f)
{
	int32_t found = HANG_NO_RANK;

	for (size_t i = 0; i < f->entry_count; i++) {
		const struct hang_op *op = &f->entries[i].op;
		const struct flight_group *g =
			op->message ? group_named(f, f->entries[i].group) : NULL;
		bool sends = str_starts(op->key, STR("send")) || str_starts(op->key, STR("isend"));
		int32_t self = sends ? op->from : op->to;

		if (!g || self < 0 || (size_t)self >= g->count)
			continue;
		if (found != HANG_NO_RANK && found != g->members[self])
			return HANG_NO_RANK;
		found = g->members[self];
	}
	return found;
}

static void find_rank(struct flight *f, struct hang_process *process)
{
	int32_t by_name = hang_rank_of_file(process->file), by_message = rank_of_messages(f);
	int32_t by_members;

	process->rank_from = RANK_GIVEN;
	if (f->rank >= 0 && f->rank < HANG_RANK_MAX)
		process->rank = (int32_t)f->rank;
	else if (f->comm_rank_of_world >= 0 && f->comm_rank_of_world < HANG_RANK_MAX &&
		 f->comm_world == process->world && process->world)
		process->rank = (int32_t)f->comm_rank_of_world;
	else {
		mark_used_groups(f);
		by_members = by_message >= 0 ? by_message : rank_of_members(f, true);
		process->rank_from = by_members >= 0 ? RANK_MEMBER : RANK_GROUPS;
		process->rank = by_members >= 0 ? by_members : rank_of_members(f, false);
	}
	if (process->rank < 0) {
		process->rank_from = RANK_FILE_NAME;
		process->rank = by_name;
	} else if (by_name >= 0 && by_name != process->rank)
		hang_note(f->job,
			  "%.*s is the dump of rank %d according to its content, unlike its name",
			  (int)MIN(process->file.len, 200u), process->file.ptr, (int)process->rank);
}

static uint32_t group_of_entry(struct flight *f, const struct flight_entry *e)
{
	const struct flight_group *g = group_named(f, e->group);
	struct str name = e->group;
	char number[32];

	if (!name.len) {
		snprintf(number, sizeof(number), "%lld", (long long)e->group_id);
		name = str_from(number);
		g = g ? g : group_named(f, name);
	}
	return hang_find_group(f->job, name,
			       e->about.len ? e->about
			       : g	    ? g->about
					    : STR(""),
			       g && g->count ? g->members : NULL, g ? g->count : 0);
}

/* Adds the entries as operations; entries of one group mostly follow each other. */
static void add_entries(struct flight *f, uint32_t at)
{
	struct hang_process *process = &f->job->processes[at];
	struct str last_name = { 0 };
	uint32_t group = UINT32_MAX;
	bool completed = false;

	for (size_t i = 0; i < f->entry_count; i++) {
		struct flight_entry *e = &f->entries[i];
		struct hang_op *op = &e->op;

		if (group == UINT32_MAX || !str_eq(last_name, e->group))
			group = group_of_entry(f, e);
		last_name = e->group;
		op->process = at;
		op->group = group;
		completed = completed || op->state == HANG_COMPLETED;
		process->starts_known = process->starts_known || e->start_seen ||
					op->state == HANG_STARTED ||
					(op->seen_ns && op->state != HANG_COMPLETED);
		process->last_ns = MAX(process->last_ns, MAX(op->created_ns, op->seen_ns));
		for (size_t s = 0; s < f->status_count; s++)
			if (f->status[s].group_id == e->group_id && e->group_id >= 0) {
				struct hang_progress *progress =
					hang_progress_of(f->job, at, group);

				if (progress) {
					progress->entered = f->status[s].entered;
					progress->completed = f->status[s].completed;
				}
				f->status[s].group_id = -2;
			}
		hang_add_op(f->job, op);
	}
	process->only_active = f->entry_count && !completed;
}

static void add_to_job(struct flight *f, const struct input *in)
{
	uint32_t at = hang_add_process(f->job, str_from(in->name));
	struct hang_process *process;

	if (at == UINT32_MAX)
		return;
	process = &f->job->processes[at];
	process->has_ops = true;
	process->torn = f->torn;
	process->world = f->world > 0 ? f->world : 0;
	if (in->regular)
		process->written_ns = (int64_t)in->mtime.tv_sec * 1000000000 + in->mtime.tv_nsec;
	for (size_t i = 0; i < f->group_count; i++) {
		process->world = MAX(process->world, (int64_t)f->groups[i].count);
		hang_find_group(f->job, f->groups[i].name, f->groups[i].about,
				f->groups[i].count ? f->groups[i].members : NULL,
				f->groups[i].count);
	}
	find_rank(f, process);
	add_entries(f, at);
	if (f->torn) {
		f->job->files_torn++;
		hang_note(f->job, "%.200s is damaged at byte %llu (%.100s): %zu entries were read",
			  in->name, (unsigned long long)f->damage_at, f->damage, f->entry_count);
	}
	if (f->odd)
		hang_note(f->job, "%.200s: %llu values do not belong in a dump and were ignored",
			  in->name, (unsigned long long)f->odd);
}

bool flight_is_dump(const struct input *in, struct str head)
{
	static const char *const words[] = { "pg_config", "pg_status", "collective_seq_id",
					     "profiling_name", "time_created_ns" };
	struct str text = str_trim(head);
	bool kind = text.len && (text.ptr[0] == '{' || (unsigned char)head.ptr[0] == 0x80 ||
				 str_starts(head, STR("(d")) || str_starts(head, STR("}")));

	(void)in;
	for (size_t i = 0; kind && i < ARRAY_COUNT(words); i++)
		if (str_has(head, str_from(words[i])))
			return true;
	return false;
}

ow_status flight_read(struct hang_job *job, const struct input *in, struct str head,
		      struct ow_error *err)
{
	struct flight *f = mem_zalloc(job->mem, sizeof(*f));
	ow_status status;

	if (!f)
		return error_no_memory(err);
	f->job = job;
	f->mem = job->mem;
	f->rank = f->comm_rank = f->comm_rank_of_world = -1;
	f->frame_name = f->frame_file = STR("");
	buf_init(&f->types, job->mem);
	buf_init(&f->stack, job->mem);
	status = str_trim(head).ptr[0] == '{' ? feed_json(f, in, err) : feed_pickle(f, in, err);
	if (status == OW_OK && (job->no_memory || f->types.failed || f->stack.failed))
		status = error_no_memory(err);
	if (status == OW_OK && !f->entry_count && !f->group_count)
		status = error_at(err, OW_E_CORRUPT, f->damage_at,
				  "a flight recorder dump without entries and groups%s%s",
				  f->torn ? ": " : "", f->torn ? f->damage : "");
	if (status == OW_OK)
		add_to_job(f, in);
	for (size_t i = 0; i < f->group_count; i++)
		vec_free(f->mem, f->groups[i].members, f->groups[i].cap);
	vec_free(f->mem, f->entries, f->entry_cap);
	vec_free(f->mem, f->groups, f->group_cap);
	vec_free(f->mem, f->status, f->status_cap);
	buf_release(&f->types);
	buf_release(&f->stack);
	mem_free(job->mem, f, sizeof(*f));
	return status;
}
