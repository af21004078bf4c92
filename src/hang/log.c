/*
 * log.c: reads logs of training jobs for signs of a hang: PyTorch's watchdog ("Watchdog caught collective operation
 * timeout", "last enqueued work"), torchrun ("exitcode"), exceptions with "[rank3]:" before them, and the calls that
 * NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=COLL lists. Lines of all ranks may be mixed. hang_read calls it for files that
 * have no other known format; other lines are skipped.
 */
#include "hang/hang.h"
#include "hang/lines.h"

#include "base/error.h"

#include <ctype.h>

#define PENDING_NONE SIZE_MAX

/* A communicator of NCCL in one process; its calls refer to it by its pointer only. */
struct log_comm {
	/* process: "host:pid"; pointer: "0x55d0"; id: the commId */
	struct str process, pointer, id;
	int32_t rank; /* rank within the communicator; -1: unknown */
	int64_t size;
	int64_t calls; /* opCount of the last call; -1: none */
	struct str call;
	int64_t elements;
	struct str type;
};

struct log_rank {
	int32_t rank;
	size_t pending; /* index of the last operation that timed out */
};

struct log {
	struct hang_job *job;
	struct str file;
	struct log_comm *comms;
	size_t comm_count, comm_cap;
	struct log_rank *ranks;
	size_t rank_count, rank_cap;
	int32_t report_rank; /* rank that the current lines of torchrun's report are about */
	bool aborted;	     /* the watchdog ended processes, so their end is not a cause */
	bool any;
};

/* The text after `word`; ptr is NULL when the line does not contain it. */
static struct str after(struct str line, const char *word)
{
	size_t at = str_find(line, str_from(word));

	if (at == STR_NONE)
		return (struct str){ 0 };
	return str_skip(line, at + strlen(word));
}

static bool number_after(struct str line, const char *word, int base, int64_t *value)
{
	struct str rest = after(line, word);
	char digits[24];
	size_t len = 0;
	char *end;

	while (len < rest.len && len < sizeof(digits) - 1 &&
	       (isxdigit((unsigned char)rest.ptr[len]) || (!len && rest.ptr[len] == '-'))) {
		digits[len] = rest.ptr[len];
		len++;
	}
	digits[len] = 0;
	*value = strtoll(digits, &end, base);
	return end != digits;
}

static struct str word_after(struct str line, const char *word)
{
	struct str rest = after(line, word);
	size_t len = 0;

	while (len < rest.len && !isspace((unsigned char)rest.ptr[len]) && rest.ptr[len] != ',' &&
	       rest.ptr[len] != ')')
		len++;
	return rest.ptr ? str_first(rest, len) : STR("");
}

static bool valid_rank(int64_t rank)
{
	return rank >= 0 && rank < HANG_RANK_MAX;
}

/* The rank of a line: "[rank3]:" is the rank in the job; "[Rank 3]" the one in the group, which is mostly the same. */
static int32_t rank_of_line(struct str line)
{
	int64_t rank;

	if (number_after(line, "[rank", 10, &rank) && valid_rank(rank))
		return (int32_t)rank;
	if (number_after(line, "[Rank ", 10, &rank) && valid_rank(rank))
		return (int32_t)rank;
	if (str_has(line, STR("[PG ")) && number_after(line, " Rank ", 10, &rank) &&
	    valid_rank(rank))
		return (int32_t)rank;
	return HANG_NO_RANK;
}

/* Reads the group of a line: "[PG ID 0 PG GUID 0(default_pg) Rank 1]", "[PG 0 (default_pg) Rank 3]", "[PG 1 Rank
 * 0]". */
static bool group_of_line(struct str line, struct str *name, struct str *about)
{
	struct str rest = after(line, "[PG "), guid, inside;
	size_t end = rest.ptr ? str_find(rest, STR(" Rank ")) : STR_NONE, open, close;

	if (end == STR_NONE)
		return false;
	inside = str_first(rest, end);
	open = str_find_char(inside, '(');
	close = str_rfind_char(inside, ')');
	*about = open != STR_NONE && close != STR_NONE && close > open
			 ? str_first(str_skip(inside, open + 1), close - open - 1)
			 : STR("");
	inside = str_trim(str_first(inside, open == STR_NONE ? inside.len : open));
	guid = after(inside, "GUID ");
	if (guid.ptr)
		inside = str_trim(guid);
	else if (str_starts(inside, STR("ID ")))
		inside = str_skip(inside, 3);
	*name = inside;
	return true;
}

static struct log_rank *rank_state(struct log *log, int32_t rank)
{
	for (size_t i = 0; i < log->rank_count; i++)
		if (log->ranks[i].rank == rank)
			return &log->ranks[i];
	if (!vec_push(log->job->mem, log->ranks, log->rank_count, log->rank_cap,
		      (struct log_rank){ rank, PENDING_NONE })) {
		log->job->no_memory = true;
		return NULL;
	}
	return &log->ranks[log->rank_count - 1];
}

static void take_timeout(struct log *log, struct str line, int32_t rank)
{
	struct log_rank *state = rank_state(log, rank);
	struct hang_op op;
	int64_t value;

	if (!state || !number_after(line, "SeqNum=", 10, &value))
		return;
	op = hang_new_op(hang_process_of(log->job, log->file, rank),
			 hang_find_group(log->job, STR("0"), STR(""), NULL, 0));
	op.sequence = op.order = value;
	op.state = HANG_STARTED;
	op.timed_out = true;
	hang_name_op(log->job, &op, word_after(line, "OpType="));
	if (number_after(line, "NumelIn=", 10, &value))
		op.elements = value;
	if (number_after(line, "Timeout(ms)=", 10, &value) && value > 0 &&
	    value < INT64_MAX / 1000000)
		op.timeout_ns = value * 1000000;
	log->any = log->aborted = true;
	/* the same time-out is reported several times, and later operations wait for the first */
	if (state->pending != PENDING_NONE && log->job->ops[state->pending].sequence <= op.sequence)
		return;
	if (state->pending != PENDING_NONE) {
		log->job->ops[state->pending] = op;
		return;
	}
	hang_add_op(log->job, &op);
	if (!log->job->no_memory)
		state->pending = log->job->op_count - 1;
}

static void take_progress(struct log *log, struct str line, int32_t rank)
{
	struct log_rank *state = rank_state(log, rank);
	struct str name = STR("0"), about = STR("");
	struct hang_progress *progress;
	int64_t entered = -1, completed = -1, work = -1;
	uint32_t group;

	if (!number_after(line, "ast enqueued NCCL work: ", 10, &entered))
		number_after(line, "ast enqueued work: ", 10, &entered);
	if (!number_after(line, "ast completed NCCL work: ", 10, &completed))
		number_after(line, "ast completed work: ", 10, &completed);
	if (!state || (entered < 0 && completed < 0))
		return;
	log->any = true;
	group_of_line(line, &name, &about);
	group = hang_find_group(log->job, name, about, NULL, 0);
	progress = hang_progress_of(log->job, hang_process_of(log->job, log->file, rank), group);
	if (!progress)
		return;
	progress->entered = MAX(progress->entered, entered);
	progress->completed = MAX(progress->completed, completed);
	if (!number_after(line, "at work: ", 10, &work))
		number_after(line, "at NCCL work: ", 10, &work);
	if (state->pending != PENDING_NONE && log->job->ops[state->pending].sequence == work)
		log->job->ops[state->pending].group = group;
}

static void mark_ended(struct log *log, int64_t rank, const char *why, struct str detail)
{
	uint32_t at =
		valid_rank(rank) ? hang_process_of(log->job, log->file, (int32_t)rank) : UINT32_MAX;
	char text[256];

	if (at == UINT32_MAX || log->job->processes[at].ended)
		return;
	snprintf(text, sizeof(text), "%s%.*s", why, (int)MIN(detail.len, 160u), detail.ptr);
	log->job->processes[at].ended = true;
	log->job->processes[at].ended_why = hang_text(log->job, str_from(text));
	log->any = true;
}

/* Errors that other ranks raise because one rank did not arrive are consequences, not the cause. */
static bool is_consequence(struct str text)
{
	static const char *const words[] = { "NCCL",
					     "imeout",
					     "imed out",
					     "DistBackend",
					     "Gloo",
					     "gloo",
					     "Connection",
					     "connection",
					     "SIGTERM",
					     "KeyboardInterrupt",
					     "SignalException",
					     "ChildFailed" };

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (str_has(text, str_from(words[i])))
			return true;
	return false;
}

/* Reads an exception: "[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. …". */
static void take_exception(struct log *log, struct str line, int32_t rank)
{
	struct str text = str_trim(after(line, "]:").ptr ? after(line, "]:") : STR(""));
	size_t colon = str_find_char(text, ':'), name = 0;

	while (name < text.len && (isalnum((unsigned char)text.ptr[name]) ||
				   text.ptr[name] == '_' || text.ptr[name] == '.'))
		name++;
	if (colon != name || !name || is_consequence(text))
		return;
	if (str_ends(str_first(text, name), STR("Error")) ||
	    str_ends(str_first(text, name), STR("Exception")))
		mark_ended(log, rank, "it raised ", text);
}

/* Reads the end of a process: "failed (exitcode: -9) local_rank: 3 (pid: 4113)", and torchrun's report: "  rank
 * : 3 (local_rank: 3)", "  exitcode  : -9". */
static void take_exit(struct log *log, struct str line)
{
	struct str text = str_trim(line);
	int64_t code, rank;
	size_t colon = str_find_char(text, ':');

	if (number_after(line, "failed (exitcode: ", 10, &code) &&
	    number_after(line, "local_rank: ", 10, &rank)) {
		if (code != -6 && code != -15)
			mark_ended(log, rank, "it ended with exit code ",
				   word_after(line, "exitcode: "));
		log->any = true;
		return;
	}
	if (colon == STR_NONE)
		return;
	if (str_starts(text, STR("rank ")) && number_after(text, ": ", 10, &rank) &&
	    str_has(text, STR("local_rank")))
		log->report_rank = valid_rank(rank) ? (int32_t)rank : HANG_NO_RANK;
	else if (str_starts(text, STR("exitcode ")) && log->report_rank >= 0 &&
		 number_after(text, ": ", 10, &code)) {
		if (code != -6 && code != -15 && !(code == 1 && log->aborted))
			mark_ended(log, log->report_rank, "it ended with exit code ",
				   word_after(text, ": "));
		log->report_rank = HANG_NO_RANK;
	}
}

static struct log_comm *comm_of(struct log *log, struct str process, struct str pointer)
{
	struct log_comm comm = { .rank = -1,
				 .calls = -1,
				 .elements = -1,
				 .id = STR(""),
				 .call = STR(""),
				 .type = STR("") };

	for (size_t i = log->comm_count; i-- > 0;)
		if (str_eq(log->comms[i].pointer, pointer) &&
		    str_eq(log->comms[i].process, process))
			return &log->comms[i];
	comm.process = hang_text(log->job, process);
	comm.pointer = hang_text(log->job, pointer);
	if (!vec_push(log->job->mem, log->comms, log->comm_count, log->comm_cap, comm)) {
		log->job->no_memory = true;
		return NULL;
	}
	return &log->comms[log->comm_count - 1];
}

/* The host and process of a line: "host:1763:1801 [3] NCCL INFO …". */
static struct str process_of_line(struct str line, size_t info)
{
	struct str head = str_first(line, info);
	size_t space = str_find_char(head, ' '), last;

	head = str_first(head, space == STR_NONE ? head.len : space);
	last = str_rfind_char(head, ':');
	return last == STR_NONE ? head : str_first(head, last);
}

static void take_nccl(struct log *log, struct str line, size_t info)
{
	struct str text = str_skip(line, info + strlen("NCCL INFO ")),
		   process = process_of_line(line, info);
	struct str pointer = word_after(text, "comm ");
	struct log_comm *comm;
	int64_t value;
	size_t colon;

	if (!str_starts(pointer, STR("0x")))
		return;
	if (str_has(text, STR("nranks ")) && str_has(text, STR("Init"))) {
		comm = comm_of(log, process, pointer);
		if (!comm)
			return;
		if (number_after(text, " rank ", 10, &value) && valid_rank(value))
			comm->rank = (int32_t)value;
		if (number_after(text, "nranks ", 10, &value))
			comm->size = value;
		if (word_after(text, "commId ").len)
			comm->id = hang_text(log->job, word_after(text, "commId "));
		return;
	}
	colon = str_find(text, STR(": opCount "));
	if (colon == STR_NONE || !number_after(text, "opCount ", 16, &value))
		return;
	comm = comm_of(log, process, pointer);
	if (!comm)
		return;
	log->any = true;
	if (value < comm->calls)
		return;
	comm->calls = value;
	comm->call = hang_text(log->job, str_first(text, colon));
	comm->elements = number_after(text, " count ", 10, &value) ? value : -1;
	comm->type = hang_text(log->job, word_after(text, "datatype "));
}

/* The rank of a process in the job: its rank in the largest communicator. */
static int32_t rank_of_process(const struct log *log, struct str process, int64_t world)
{
	for (size_t i = 0; i < log->comm_count; i++)
		if (log->comms[i].size == world && str_eq(log->comms[i].process, process))
			return log->comms[i].rank;
	return HANG_NO_RANK;
}

static void add_calls(struct log *log)
{
	int64_t world = 0;
	size_t unknown = 0;

	for (size_t i = 0; i < log->comm_count; i++)
		world = MAX(world, log->comms[i].size);
	for (size_t i = 0; i < log->comm_count && !log->job->no_memory; i++) {
		const struct log_comm *c = &log->comms[i];
		int32_t rank = rank_of_process(log, c->process, world);
		struct hang_progress *progress;
		struct hang_op op;

		if (c->calls < 0)
			continue;
		if (rank < 0) {
			unknown++;
			continue;
		}
		op = hang_new_op(hang_process_of(log->job, log->file, rank),
				 hang_find_group(log->job, c->id.len ? c->id : STR("nccl"), STR(""),
						 NULL, 0));
		op.sequence = op.order = c->calls;
		op.state = HANG_STARTED;
		op.elements = c->elements;
		op.types = c->type;
		hang_name_op(log->job, &op, c->call);
		hang_add_op(log->job, &op);
		progress = hang_progress_of(log->job, op.process, op.group);
		if (progress)
			progress->entered = c->calls;
		if (op.process != UINT32_MAX)
			log->job->processes[op.process].world = world;
		log->job->guessed = true;
	}
	if (unknown)
		hang_note(log->job,
			  "%.*s: calls of %zu communicators were left out: no line says which "
			  "rank they belong to",
			  (int)MIN(log->file.len, 200u), log->file.ptr, unknown);
}

static void take_line(struct log *log, struct str line)
{
	size_t info = str_find(line, STR("NCCL INFO "));
	int32_t rank;

	if (info != STR_NONE) {
		take_nccl(log, line, info);
		return;
	}
	take_exit(log, line);
	rank = rank_of_line(line);
	if (rank < 0)
		return;
	if (str_has(line, STR("Watchdog caught collective operation timeout")))
		take_timeout(log, line, rank);
	else if (str_has(line, STR("ast enqueued ")))
		take_progress(log, line, rank);
	else if (str_has(line, STR("[rank")))
		take_exception(log, line, rank);
}

ow_status hang_log_read(struct hang_job *job, const struct input *in, bool *known,
			struct ow_error *err)
{
	struct log log = { .job = job,
			   .file = hang_text(job, str_from(in->name)),
			   .report_rank = HANG_NO_RANK };
	struct lines lines;
	struct str line;
	ow_status status;

	lines_init(&lines, in, err);
	while (lines_next(&lines, &line) && !job->no_memory)
		take_line(&log, line);
	status = lines.window.status;
	lines_release(&lines);
	add_calls(&log);
	*known = log.any;
	vec_free(job->mem, log.comms, log.comm_cap);
	vec_free(job->mem, log.ranks, log.rank_cap);
	return status;
}
