/*
 * job_identity.c: finds the name and key of the job that a process belongs to, from its environment, command and
 * control group. Pure functions, called by daemon_jobs.c and jobs.c; they do not look at parent processes or at
 * other jobs.
 */
#include "live/daemon/job_identity.h"

struct str identity_variable(struct str variables, const char *name)
{
	size_t len = strlen(name);
	struct str word;

	while (str_split(&variables, '\0', &word))
		if (word.len > len && memcmp(word.ptr, name, len) == 0 && word.ptr[len] == '=')
			return str_skip(word, len + 1);
	return (struct str){ 0 };
}

int32_t identity_rank(struct str variables)
{
	static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					     "SLURM_PROCID" };
	int64_t number;

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (str_to_i64(identity_variable(variables, names[i]), &number) && number >= 0 &&
		    number < INT32_MAX)
			return (int32_t)number;
	return -1;
}

/* Bytes of a character at the start of valid UTF-8 that changes how a terminal shows others: control characters, those
 * that turn the direction of text (U+202E), and those without width; 0 when it is not one. */
static size_t deceptive_bytes(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;

	if (p[0] < ' ' || p[0] == 127)
		return 1;
	if (s.len >= 2 && ((p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c)))
		return 2;
	if (s.len >= 3 && ((p[0] == 0xe2 && p[1] == 0x80 &&
			    ((p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
			   (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf) ||
			   (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf)))
		return 3;
	return 0;
}

void identity_clean_name(char *to, size_t size, struct str name)
{
	size_t at = 0;

	name = str_trim(name);
	name = str_first(name, utf8_valid_prefix(str_first(name, size - 1)));
	while (name.len) {
		size_t bytes = deceptive_bytes(name);

		to[at++] = bytes || name.ptr[0] == '/' ? '_' : name.ptr[0];
		name = str_skip(name, MAX(bytes, (size_t)1));
	}
	to[at] = '\0';
	if (!at)
		snprintf(to, size, "job");
}

#define NAME_BYTES 128 /* size limit of recorder/process.c */
#define CUT_BYTES (JOBS_NAME - 10)

void identity_job_name(char to[JOBS_NAME], struct str name)
{
	size_t len;

	name = str_trim(str_first(name, NAME_BYTES));
	identity_clean_name(to, JOBS_NAME, name);
	if (name.len < JOBS_NAME)
		return;
	len = utf8_valid_prefix(str_first(str_from(to), CUT_BYTES));
	snprintf(to + len, JOBS_NAME - len, "~%08x", (unsigned)str_hash(name));
}

static struct str base_name(struct str path)
{
	size_t slash = str_rfind_char(path, '/');

	return slash == STR_NONE ? path : str_skip(path, slash + 1);
}

/* Returns whether a program runs other programs, whose names describe the job better. */
static bool is_runner(struct str program)
{
	static const char *const names[] = { "python", "pypy", "sh",	 "bash", "dash",
					     "zsh",    "perl", "ruby",	 "env",	 "nice",
					     "time",   "node", "mpirun", "srun", "julia" };

	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct str name = str_from(names[i]), rest = str_skip(program, name.len);

		if (!str_starts(program, name))
			continue;
		while (rest.len &&
		       ((rest.ptr[0] >= '0' && rest.ptr[0] <= '9') || rest.ptr[0] == '.'))
			rest = str_skip(rest, 1);
		if (!rest.len)
			return true;
	}
	return false;
}

/* Returns the name of the job: "torch.distributed.run" for "python3 -m torch.distributed.run train.py",
 * "train.py" for "python3 train.py". */
static struct str title_of(struct str command)
{
	struct str word, program = { 0 };
	bool module = false;

	while (str_split(&command, '\0', &word)) {
		if (!word.len)
			continue;
		if (module)
			return word;
		if (!program.ptr) {
			program = base_name(word);
			if (!is_runner(program))
				return program;
			continue;
		}
		if (str_eq(word, STR("-c")))
			return program; /* the next word is code, not a name */
		if (str_eq(word, STR("-m")))
			module = true;
		else if (word.ptr[0] != '-')
			return base_name(word);
	}
	return program;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Returns the last run of 32 or more hexadecimal digits, which is how container engines name
 * containers. */
static struct str container_of(const char *cgroup)
{
	struct str found = { 0 };

	for (const char *at = cgroup; *at;) {
		const char *begin = at;

		while (is_hex(*at))
			at++;
		if (at - begin >= 32)
			found = str_make(begin, (size_t)(at - begin));
		else if (at == begin)
			at++;
	}
	return found;
}

/* Finds the Slurm job in a path such as …/slurm/uid_1000/job_4711/step_0/…. */
static struct str slurm_of(const char *cgroup)
{
	const char *slurm = strstr(cgroup, "slurm"), *job = slurm ? strstr(slurm, "/job_") : NULL;
	size_t len;

	if (!job)
		return (struct str){ 0 };
	job += strlen("/job_");
	len = strspn(job, "0123456789");
	return len ? str_make(job, len) : (struct str){ 0 };
}

#define TELL(id, key_format, shown_format, ...)                                                    \
	do {                                                                                       \
		snprintf((id)->key, sizeof((id)->key), key_format, __VA_ARGS__);                   \
		snprintf((id)->shown, sizeof((id)->shown), shown_format, __VA_ARGS__);             \
	} while (0)

static bool find_name(const struct identity_facts *f, struct job_identity *id)
{
	struct str name = identity_variable(f->variables, "OPWATCH_JOB");

	if (!name.len)
		return false;
	id->kind = IDENTITY_NAME;
	identity_job_name(id->name, name);
	TELL(id, "name %s", "name %s", id->name);
	return true;
}

static bool find_slurm(const struct identity_facts *f, struct job_identity *id)
{
	struct str number = identity_variable(f->variables, "SLURM_JOB_ID");

	if (!number.len)
		number = slurm_of(f->cgroup);
	if (!number.len)
		return false;
	number = str_first(number, 40);
	id->kind = IDENTITY_SLURM;
	snprintf(id->name, sizeof(id->name), "slurm-%.*s", STR_ARG(number));
	TELL(id, "slurm %.*s", "slurm %.*s", STR_ARG(number));
	return true;
}

static bool find_master(const struct identity_facts *f, struct job_identity *id)
{
	struct str address = identity_variable(f->variables, "MASTER_ADDR");
	struct str port = identity_variable(f->variables, "MASTER_PORT");

	if (!address.len || identity_rank(f->variables) < 0)
		return false;
	id->kind = IDENTITY_MASTER;
	TELL(id, "master %.*s:%.*s", "master %.*s:%.*s", (int)MIN(address.len, (size_t)64),
	     address.ptr, (int)MIN(port.len, (size_t)8), port.ptr ? port.ptr : "");
	return true;
}

static bool find_mpi(const struct identity_facts *f, struct job_identity *id)
{
	if (!identity_variable(f->variables, "OMPI_COMM_WORLD_RANK").ptr &&
	    !identity_variable(f->variables, "PMI_RANK").ptr)
		return false;
	id->kind = IDENTITY_MPI;
	TELL(id, "mpi %u", "started by process %u", f->parent);
	return true;
}

static bool find_container(const struct identity_facts *f, struct job_identity *id)
{
	struct str theirs = container_of(f->cgroup), ours = container_of(f->our_cgroup);

	if (!theirs.len || str_eq(theirs, ours))
		return false;
	id->kind = IDENTITY_CONTAINER;
	TELL(id, "container %.*s", "container %.*s", (int)MIN(theirs.len, (size_t)64), theirs.ptr);
	return true;
}

void identity_find(const struct identity_facts *f, struct job_identity *id)
{
	struct str title = title_of(f->command);

	*id = (struct job_identity){ .kind = IDENTITY_PROCESS };
	if (!find_name(f, id) && !find_slurm(f, id) && !find_master(f, id) && !find_mpi(f, id) &&
	    !find_container(f, id))
		TELL(id, "process %u", "process %u", f->pid);
	if (!id->name[0])
		identity_clean_name(id->name, sizeof(id->name), title.len ? title : STR("process"));
}
