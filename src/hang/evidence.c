/*
 * evidence.c: adds rows to struct hang_job (hang.h): processes, groups, operations. Called by the readers of each
 * format and by hang_table. It reads no files and draws no conclusions.
 */
#include "hang/hang.h"

#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>

void hang_init(struct hang_job *job, struct mem *mem)
{
	*job = (struct hang_job){ .mem = mem };
	arena_init(&job->arena, mem);
	map_init(&job->texts, mem);
	/* the map cannot hold number 0, so it is used for the empty text */
	if (!vec_push(mem, job->text_items, job->text_count, job->text_cap, STR("")))
		job->no_memory = true;
}

void hang_release(struct hang_job *job)
{
	struct mem *mem = job->mem;

	vec_free(mem, job->text_items, job->text_cap);
	vec_free(mem, job->processes, job->process_cap);
	vec_free(mem, job->groups, job->group_cap);
	vec_free(mem, job->ops, job->op_cap);
	vec_free(mem, job->progress, job->progress_cap);
	vec_free(mem, job->notes, job->note_cap);
	vec_free(mem, job->unread, job->unread_cap);
	vec_free(mem, job->hidden, job->hidden_cap);
	map_release(&job->texts);
	arena_release(&job->arena);
}

struct str hang_text(struct hang_job *job, struct str text)
{
	uint64_t hash = str_hash(text);
	struct str copy;

	if (!text.len)
		return STR("");
	for (struct map_iter it = map_find(&job->texts, hash); it.value;
	     it = map_next(&job->texts, it))
		if (str_eq(job->text_items[it.value], text))
			return job->text_items[it.value];
	copy = arena_str(&job->arena, text);
	if (!copy.ptr ||
	    !vec_push(job->mem, job->text_items, job->text_count, job->text_cap, copy) ||
	    !map_add(&job->texts, hash, (uint32_t)(job->text_count - 1))) {
		job->no_memory = true;
		return STR("");
	}
	return copy;
}

void hang_note(struct hang_job *job, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!vec_push(job->mem, job->notes, job->note_count, job->note_cap,
		      hang_text(job, str_from(text))))
		job->no_memory = true;
}

void hang_add_unreadable(struct hang_job *job, const char *file, const char *why)
{
	job->files_unreadable++;
	if (!vec_push(job->mem, job->unread, job->unread_count, job->unread_cap,
		      hang_text(job, str_from(file))))
		job->no_memory = true;
	hang_note(job, "%.200s was not read: %.250s", file, why);
}

uint32_t hang_add_process(struct hang_job *job, struct str file)
{
	struct hang_process process = { .rank = HANG_NO_RANK, .file = hang_text(job, file) };

	if (job->process_count >= UINT32_MAX - 1 ||
	    !vec_push(job->mem, job->processes, job->process_count, job->process_cap, process)) {
		job->no_memory = true;
		return UINT32_MAX;
	}
	return (uint32_t)(job->process_count - 1);
}

uint32_t hang_process_of(struct hang_job *job, struct str file, int32_t rank)
{
	uint32_t made;

	for (size_t i = job->process_count; i-- > 0;)
		if (job->processes[i].rank == rank && str_eq(job->processes[i].file, file))
			return (uint32_t)i;
	made = hang_add_process(job, file);
	if (made != UINT32_MAX)
		job->processes[made].rank = rank;
	return made;
}

static bool same_members(const struct hang_group *g, const int32_t *members, size_t count)
{
	if (!g->members || !members)
		return true;
	return g->member_count == count &&
	       (!count || memcmp(g->members, members, count * sizeof(*members)) == 0);
}

uint32_t hang_find_group(struct hang_job *job, struct str name, struct str about,
			 const int32_t *members, size_t count)
{
	struct hang_group group = { .name = hang_text(job, name), .about = hang_text(job, about) };
	size_t at;

	for (at = 0; at < job->group_count; at++)
		if (str_eq(job->groups[at].name, name) &&
		    same_members(&job->groups[at], members, count))
			break;
	if (at == job->group_count &&
	    (at >= UINT32_MAX - 1 ||
	     !vec_push(job->mem, job->groups, job->group_count, job->group_cap, group))) {
		job->no_memory = true;
		return UINT32_MAX;
	}
	if (members && !job->groups[at].members) {
		int32_t *copy = ARENA_ARRAY(&job->arena, int32_t, count + 1);

		if (!copy) {
			job->no_memory = true;
			return UINT32_MAX;
		}
		if (count)
			memcpy(copy, members, count * sizeof(*members));
		job->groups[at].members = copy;
		job->groups[at].member_count = count;
	}
	if (!job->groups[at].about.len)
		job->groups[at].about = group.about;
	return (uint32_t)at;
}

struct hang_op hang_new_op(uint32_t process, uint32_t group)
{
	return (struct hang_op){ .process = process,
				 .group = group,
				 .sequence = HANG_NO_SEQUENCE,
				 .from = HANG_NO_RANK,
				 .to = HANG_NO_RANK,
				 .elements = -1,
				 .name = STR(""),
				 .key = STR(""),
				 .types = STR(""),
				 .stack = STR("") };
}

static int32_t number_at(struct str text, size_t at)
{
	int64_t value = 0;
	bool any = false;

	for (; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9'; at++) {
		value = value * 10 + (text.ptr[at] - '0');
		any = true;
		if (value >= HANG_RANK_MAX)
			return HANG_NO_RANK;
	}
	return any ? (int32_t)value : HANG_NO_RANK;
}

/* Reads the ends of a message: in "send 0->1" and "recv 1<-0" the first number is the process itself. */
static void name_ends(struct hang_op *op, struct str rest)
{
	size_t arrow = str_find(rest, STR("->")), back = str_find(rest, STR("<-"));
	int32_t self, other;

	if (arrow == STR_NONE && back == STR_NONE)
		return;
	self = number_at(rest, 0);
	other = number_at(rest, (arrow == STR_NONE ? back : arrow) + 2);
	op->from = arrow == STR_NONE ? other : self;
	op->to = arrow == STR_NONE ? self : other;
	op->message = op->from >= 0 && op->to >= 0;
}

/* Makes a name comparable: letters and digits in lower case, without words that vary between names of the same
 * operation. */
static struct str make_key(struct hang_job *job, struct str name)
{
	static const struct {
		const char *is, *of;
	} same[] = { { "allgatherintotensor", "allgatherbase" },
		     { "reducescattertensor", "reducescatterbase" },
		     { "alltoallbase", "alltoall" } };
	char key[64];
	size_t len = 0;

	for (size_t i = 0; i < name.len && len < sizeof(key); i++)
		if (isalnum((unsigned char)name.ptr[i]))
			key[len++] = (char)tolower((unsigned char)name.ptr[i]);
	for (size_t i = 0; i < ARRAY_COUNT(same); i++)
		if (str_eq(str_make(key, len), str_from(same[i].is)))
			return hang_text(job, str_from(same[i].of));
	return hang_text(job, str_make(key, len));
}

void hang_name_op(struct hang_job *job, struct hang_op *op, struct str name)
{
	static const char *const backends[] = { "nccl:", "gloo:", "xccl:",  "ucc:", "mpi:",
						"hccl:", "rccl:", "c10d::", "nccl" };
	static const struct {
		const char *capitals, *name;
	} names[] = { { "ALLREDUCE", "all_reduce" },
		      { "ALLGATHER", "all_gather" },
		      { "_ALLGATHER_BASE", "_all_gather_base" },
		      { "ALLTOALL", "all_to_all" },
		      { "ALLTOALL_BASE", "all_to_all" },
		      { "AllReduce", "all_reduce" },
		      { "AllGather", "all_gather" },
		      { "ReduceScatter", "reduce_scatter" },
		      { "Broadcast", "broadcast" },
		      { "Reduce", "reduce" } };
	size_t space;
	char lower[64];

	for (size_t i = 0; i < ARRAY_COUNT(backends); i++)
		if (str_starts(name, str_from(backends[i]))) {
			name = str_skip(name, strlen(backends[i]));
			break;
		}
	space = str_find_char(name, ' ');
	if (space != STR_NONE) {
		name_ends(op, str_trim(str_skip(name, space)));
		name = str_first(name, space);
	}
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_eq(name, str_from(names[i].capitals)))
			name = str_from(names[i].name);
	if (name.len && name.len < sizeof(lower)) {
		for (size_t i = 0; i < name.len; i++)
			lower[i] = (char)tolower((unsigned char)name.ptr[i]);
		name = str_make(lower, name.len);
	}
	op->name = hang_text(job, name);
	op->key = make_key(job, name);
}

void hang_add_op(struct hang_job *job, const struct hang_op *op)
{
	if (op->process == UINT32_MAX || op->group == UINT32_MAX)
		return;
	if (!vec_push(job->mem, job->ops, job->op_count, job->op_cap, *op))
		job->no_memory = true;
}

struct hang_progress *hang_progress_of(struct hang_job *job, uint32_t process, uint32_t group)
{
	struct hang_progress made = { process, group, -1, -1 };

	if (process == UINT32_MAX || group == UINT32_MAX)
		return NULL;
	/* entries of a process are adjacent */
	for (size_t i = job->progress_count; i-- > 0;)
		if (job->progress[i].process == process && job->progress[i].group == group)
			return &job->progress[i];
	if (!vec_push(job->mem, job->progress, job->progress_count, job->progress_cap, made)) {
		job->no_memory = true;
		return NULL;
	}
	return &job->progress[job->progress_count - 1];
}

int32_t hang_rank_in(struct str command)
{
	static const char *const words[] = { "--rank=",	      "--rank ",       "--local_rank=",
					     "--local-rank=", "--local_rank ", "--local-rank ",
					     "--node-rank=",  " RANK=" };

	for (size_t i = 0; i < 2; i++) {
		size_t at = str_find(command, str_from(words[i]));

		if (at != STR_NONE)
			return number_at(command, at + strlen(words[i]));
	}
	for (size_t i = 2; i < ARRAY_COUNT(words); i++) {
		size_t at = str_find(command, str_from(words[i]));

		if (at != STR_NONE && !str_starts(str_from(words[i]), STR("--node")))
			return number_at(command, at + strlen(words[i]));
	}
	return HANG_NO_RANK;
}

int32_t hang_rank_of_file(struct str file)
{
	size_t slash = str_rfind_char(file, '/'), end, begin;
	struct str name = slash == STR_NONE ? file : str_skip(file, slash + 1);
	size_t word = str_find(name, STR("rank"));

	if (word != STR_NONE) {
		word += 4;
		while (word < name.len &&
		       (name.ptr[word] == '_' || name.ptr[word] == '-' || name.ptr[word] == '.'))
			word++;
		if (number_at(name, word) >= 0)
			return number_at(name, word);
	}
	for (end = name.len; end && !isdigit((unsigned char)name.ptr[end - 1]); end--)
		;
	for (begin = end; begin && isdigit((unsigned char)name.ptr[begin - 1]); begin--)
		;
	return begin == end ? HANG_NO_RANK : number_at(str_first(name, end), begin);
}

bool hang_is_collective_call(struct str function, struct str file)
{
	static const char *const calls[] = { "all_reduce",
					     "all_gather",
					     "broadcast",
					     "barrier",
					     "reduce_scatter",
					     "all_to_all",
					     "_all_gather_base",
					     "_reduce_scatter_base",
					     "all_gather_into_tensor",
					     "gather",
					     "scatter",
					     "reduce",
					     "send",
					     "recv",
					     "all_gather_object",
					     "broadcast_object_list",
					     "monitored_barrier",
					     "reduce_scatter_tensor",
					     "all_to_all_single",
					     "batch_isend_irecv",
					     "all_reduce_coalesced",
					     "gather_object",
					     "scatter_object_list",
					     "isend",
					     "irecv",
					     "_verify_params_across_processes" };
	static const char *const natives[] = { "ncclAllReduce", "ncclAllGather", "ncclReduce",
					       "ncclBroadcast", "ncclSend",	 "ncclRecv",
					       "MPI_Allreduce", "MPI_Barrier",	 "MPI_Bcast",
					       "MPI_Allgather", "gloo::",	 "c10d::" };

	for (size_t i = 0; i < ARRAY_COUNT(natives); i++)
		if (str_starts(function, str_from(natives[i])))
			return true;
	if (!str_has(file, STR("distributed")) && !str_has(file, STR("c10d")) &&
	    !str_has(file, STR("horovod")) && !str_has(file, STR("mpi4py")))
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
		if (str_eq(function, str_from(calls[i])))
			return true;
	return false;
}

bool hang_is_waiting_call(struct str function, struct str file)
{
	static const char *const calls[] = { "backward", "synchronize", "_run_backward" };

	for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
		if (str_eq(function, str_from(calls[i])) && str_has(file, STR("torch")))
			return true;
	return false;
}

/* Whether a file's beginning is text: not JSON, and not binary. */
static bool is_text(struct str head)
{
	struct str text = str_trim(head);

	return text.len && text.ptr[0] != '{' && str_find_char(head, '\0') == STR_NONE &&
	       !str_starts(text, STR("[{"));
}

ow_status hang_read(struct hang_job *job, const struct input *in, bool *known, struct ow_error *err)
{
	ow_status status;
	char head[32768];
	size_t len = (size_t)MIN(in->size, (uint64_t)sizeof(head));

	*known = true;
	OW_TRY(input_read_at(in, 0, head, len, err));
	if (flight_is_dump(in, str_make(head, len)))
		status = flight_read(job, in, str_make(head, len), err);
	else if (pyspy_is_dump(str_make(head, len)))
		status = pyspy_read(job, in, str_make(head, len), err);
	else if (!is_text(str_make(head, len))) {
		*known = false;
		return OW_OK;
	} else
		status = hang_log_read(job, in, known, err);
	if (status == OW_OK && job->no_memory)
		return error_no_memory(err);
	if (status == OW_OK && *known)
		job->files_read++;
	return status;
}
