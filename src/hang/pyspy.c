/*
 * pyspy.c: reads the output of `py-spy dump`: the stacks of a process's threads, as text or with --json. The stack of
 * the main thread becomes the stack of a rank. Called by hang_read. The rank is taken from the command line of the
 * process, else from the file's name, which is noted. Local variables are skipped.
 */
#include "hang/hang.h"
#include "hang/lines.h"

#include "base/error.h"
#include "wire/json/json_pull.h"

#define LEVELS 5u
#define KEY_MAX 32u

struct pyspy {
	struct hang_job *job;
	struct str file;
	uint32_t process; /* index of the current process; UINT32_MAX: none yet */
	struct buf stack; /* stack of the current thread */
	uint32_t frames;
	bool main_thread, has_main;
	struct str thread_name;
	size_t processes;
};

bool pyspy_is_dump(struct str head)
{
	struct str text = str_trim(head);

	if (str_starts(text, STR("Process ")) && str_has(head, STR("\nPython v")))
		return true;
	return text.len && text.ptr[0] == '[' && str_has(head, STR("\"thread_id\"")) &&
	       str_has(head, STR("\"frames\"")) && str_has(head, STR("\"owns_gil\""));
}

static void begin_process(struct pyspy *p, struct str command)
{
	struct hang_process *process;

	p->process = hang_add_process(p->job, p->file);
	p->has_main = false;
	if (p->process == UINT32_MAX)
		return;
	process = &p->job->processes[p->process];
	p->processes++;
	process->rank = hang_rank_in(command);
	process->rank_from = RANK_COMMAND;
	if (process->rank < 0) {
		process->rank_from = RANK_FILE_NAME;
		process->rank = hang_rank_of_file(p->file);
	}
}

/* Ends a thread: keeps its stack if it is the main thread, or, without one, the first thread that does something. */
static void end_thread(struct pyspy *p)
{
	struct hang_process *process =
		p->process == UINT32_MAX ? NULL : &p->job->processes[p->process];

	if (process && p->stack.len && !p->has_main && (p->main_thread || !process->stack.len))
		process->stack = hang_text(p->job, buf_str(&p->stack));
	p->has_main = p->has_main || p->main_thread;
	buf_clear(&p->stack);
	p->frames = 0;
	p->main_thread = false;
}

static void add_frame(struct pyspy *p, struct str name, struct str file, int64_t line)
{
	if (p->frames++ >= HANG_STACK_FRAMES || !name.len)
		return;
	buf_printf(&p->stack, "%s%.*s (%.*s", p->stack.len ? "\n" : "", (int)MIN(name.len, 200u),
		   name.ptr, (int)MIN(file.len, 300u), file.ptr);
	if (line > 0)
		buf_printf(&p->stack, ":%lld", (long long)line);
	buf_puts(&p->stack, ")");
}

/* Reads a frame: "    load_batch (train.py:88)". */
static void text_frame(struct pyspy *p, struct str line)
{
	size_t open = str_rfind_char(line, '(');
	struct str name, place;

	if (open == STR_NONE || !open || line.ptr[line.len - 1] != ')')
		return;
	name = str_trim(str_first(line, open));
	place = str_first(str_skip(line, open + 1), line.len - open - 2);
	if (name.len && place.len)
		add_frame(p, name, place, 0);
}

static void text_line(struct pyspy *p, struct str line)
{
	struct str text = str_trim(line);

	if (str_starts(line, STR("Process "))) {
		size_t colon = str_find(line, STR(": "));

		end_thread(p);
		begin_process(p, colon == STR_NONE ? STR("") : str_skip(line, colon + 1));
	} else if (str_starts(line, STR("Thread "))) {
		end_thread(p);
		p->main_thread = str_has(line, STR("\"MainThread\""));
	} else if (str_starts(line, STR("    ")) && line.len > 4 && line.ptr[4] != ' ') {
		text_frame(p, text);
	}
}

static ow_status read_text(struct pyspy *p, const struct input *in, struct ow_error *err)
{
	struct lines lines;
	struct str line;
	ow_status status;

	lines_init(&lines, in, err);
	while (lines_next(&lines, &line))
		text_line(p, line);
	status = lines.window.status;
	lines_release(&lines);
	end_thread(p);
	return status;
}

struct pyspy_json {
	struct pyspy *p;
	char keys[LEVELS + 1][KEY_MAX];
	uint32_t key_len[LEVELS + 1];
	uint32_t depth;
	struct buf name, file, command;
	int64_t line, pid, last_pid;
};

static bool key_is(const struct pyspy_json *j, uint32_t depth, const char *key)
{
	return j->key_len[depth] == strlen(key) &&
	       memcmp(j->keys[depth], key, j->key_len[depth]) == 0;
}

static void json_scalar(struct pyspy_json *j, struct str text)
{
	int64_t value = 0;
	bool number = json_decimal(text, 0, &value) != JSON_NOT_A_NUMBER;

	if (j->depth == 2 && key_is(j, 2, "thread_name"))
		j->p->main_thread = str_eq(text, STR("MainThread"));
	else if (j->depth == 2 && key_is(j, 2, "pid") && number)
		j->pid = value;
	else if (j->depth == 3 && key_is(j, 2, "process_info") && key_is(j, 3, "command_line")) {
		buf_clear(&j->command);
		json_decode(text, &j->command);
	} else if (j->depth == 4 && key_is(j, 2, "frames")) {
		struct buf *to = key_is(j, 4, "name")		  ? &j->name
				 : key_is(j, 4, "short_filename") ? &j->file
								  : NULL;

		if (to) {
			buf_clear(to);
			json_decode(text, to);
		} else if (key_is(j, 4, "filename") && !j->file.len)
			json_decode(text, &j->file);
		else if (key_is(j, 4, "line") && number)
			j->line = value;
	}
}

static void json_close(struct pyspy_json *j)
{
	if (j->depth == 4 && key_is(j, 2, "frames"))
		add_frame(j->p, buf_str(&j->name), buf_str(&j->file), j->line);
	else if (j->depth == 2) {
		if (j->p->process == UINT32_MAX || j->pid != j->last_pid)
			begin_process(j->p, buf_str(&j->command));
		j->last_pid = j->pid;
		end_thread(j->p);
	}
	j->depth -= j->depth > 0;
}

static void json_open(struct pyspy_json *j)
{
	j->depth++;
	if (j->depth <= LEVELS)
		j->key_len[j->depth] = 0;
	if (j->depth == 4) {
		buf_clear(&j->name);
		buf_clear(&j->file);
		j->line = 0;
	}
}

static void json_token(struct pyspy_json *j, enum json_token token, struct str text)
{
	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		json_open(j);
	else if (token == TOKEN_CLOSE)
		json_close(j);
	else if (token == TOKEN_KEY && j->depth <= LEVELS) {
		j->key_len[j->depth] = (uint32_t)MIN(text.len, (size_t)KEY_MAX);
		if (text.len)
			memcpy(j->keys[j->depth], text.ptr, j->key_len[j->depth]);
	} else if (token != TOKEN_KEY)
		json_scalar(j, text);
}

static ow_status read_json(struct pyspy *p, const struct input *in, struct ow_error *err)
{
	struct json_pull *pull = mem_zalloc(p->job->mem, sizeof(*pull));
	struct pyspy_json j = { .p = p, .last_pid = -1 };
	enum json_token token;
	bool failed;

	if (!pull)
		return error_no_memory(err);
	buf_init(&j.name, p->job->mem);
	buf_init(&j.file, p->job->mem);
	buf_init(&j.command, p->job->mem);
	json_pull_init(pull, in, err);
	while ((token = json_pull_next(pull)) != TOKEN_END && token != TOKEN_DAMAGE)
		json_token(&j, token, pull->text);
	if (token == TOKEN_DAMAGE || pull->depth) {
		p->job->files_torn++;
		hang_note(p->job, "%.200s is damaged at byte %llu: what comes before was used",
			  in->name, (unsigned long long)pull->offset);
	}
	failed = j.name.failed || j.file.failed || j.command.failed;
	json_pull_release(pull);
	mem_free(p->job->mem, pull, sizeof(*pull));
	buf_release(&j.name);
	buf_release(&j.file);
	buf_release(&j.command);
	error_clear(err);
	return failed ? error_no_memory(err) : OW_OK;
}

ow_status pyspy_read(struct hang_job *job, const struct input *in, struct str head,
		     struct ow_error *err)
{
	struct pyspy p = { .job = job, .file = str_from(in->name), .process = UINT32_MAX };
	ow_status status;

	buf_init(&p.stack, job->mem);
	status = str_trim(head).ptr[0] == '[' ? read_json(&p, in, err) : read_text(&p, in, err);
	if (status == OW_OK && p.stack.failed)
		status = error_no_memory(err);
	buf_release(&p.stack);
	/* several processes in one file: the rank in its name belongs to none of them */
	if (p.processes > 1)
		for (size_t i = job->process_count - p.processes; i < job->process_count; i++)
			if (job->processes[i].rank_from == RANK_FILE_NAME)
				job->processes[i].rank = HANG_NO_RANK;
	return status;
}
