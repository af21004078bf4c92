/* job_identity_test.c: which job a process is of: names, batch systems, ranks, containers; and what jobs are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "live/daemon/job_identity.h"
#include "live/record/collector.h"

#define CONTAINER "0::/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
#define OTHER "0::/docker/ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
#define SLURM "0::/system.slice/slurmstepd.scope/job_815/step_0/user/task_0\n"

/* Texts with NUL between the parts, as string literals. */
#define PARTS(literal) str_make(literal, sizeof(literal) - 1)

static struct job_identity find(struct str variables, struct str command, const char *cgroup)
{
	struct identity_facts facts = { .variables = variables,
					.command = command,
					.cgroup = cgroup,
					.our_cgroup = CONTAINER,
					.uid = 1000,
					.pid = 77,
					.parent = 55 };
	struct job_identity id;

	identity_find(&facts, &id);
	return id;
}

static void takes_the_surest_sign(void **state)
{
	static const struct {
		const char *variables;
		size_t len;
		const char *cgroup, *key;
		enum identity_kind kind;
	} cases[] = {
#define V(text) text, sizeof(text) - 1
		{ V("RANK=1\0OPWATCH_JOB=mine\0SLURM_JOB_ID=4\0"), "", "name mine", IDENTITY_NAME },
		{ V("RANK=1\0SLURM_JOB_ID=4711\0MASTER_ADDR=h\0"), "", "slurm 4711",
		  IDENTITY_SLURM },
		{ V(""), SLURM, "slurm 815", IDENTITY_SLURM },
		{ V("RANK=0\0MASTER_ADDR=10.0.0.1\0MASTER_PORT=29500\0"), "",
		  "master 10.0.0.1:29500", IDENTITY_MASTER },
		{ V("MASTER_ADDR=10.0.0.1\0MASTER_PORT=29500\0"), "", "process 77",
		  IDENTITY_PROCESS },
		{ V("OMPI_COMM_WORLD_RANK=3\0"), "", "mpi 55", IDENTITY_MPI },
		{ V(""), OTHER,
		  "container ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  IDENTITY_CONTAINER },
		{ V(""), CONTAINER, "process 77", IDENTITY_PROCESS },
		{ V("OPWATCH_JOB=\0"), "0::/user.slice\n", "process 77", IDENTITY_PROCESS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct job_identity id = find(str_make(cases[i].variables, cases[i].len),
					      PARTS("x\0"), cases[i].cgroup);

		assert_string_equal(id.key, cases[i].key);
		assert_int_equal(id.kind, cases[i].kind);
	}
}

static void names_jobs_after_what_they_run(void **state)
{
	static const struct {
		const char *command;
		size_t len;
		const char *name;
	} cases[] = {
		{ V("/usr/bin/python3\0/home/me/train.py\0--lr\0001\0"), "train.py" },
		{ V("python3.11\0-u\0-X\0dev\0train.py\0"),
		  "dev" }, /* nobody knows which options take a word */
		{ V("python\0-m\0torch.distributed.run\0train.py\0"), "torch.distributed.run" },
		{ V("python3\0-c\0import torch\0"), "python3" },
		{ V("./a.out\0x\0"), "a.out" },
		{ V("sh\0./run.sh\0"), "run.sh" },
		{ V("python3\0"), "python3" },
		{ V(""), "process" },
		{ V("bad\nname\0"), "bad_name" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct job_identity id =
			find(PARTS(""), str_make(cases[i].command, cases[i].len), "");

		assert_string_equal(id.name, cases[i].name);
	}
}

static void cleans_names(void **state)
{
	char name[8], longer[32];

	(void)state;
	identity_clean_name(name, sizeof(name), STR("  ../a\x01 "));
	assert_string_equal(name, ".._a_");
	identity_clean_name(name, sizeof(name), STR("äöüß"));
	assert_string_equal(name, "äöü");
	identity_clean_name(longer, sizeof(longer),
			    STR("a\xe2\x80\xae"
				"b\xe2\x81\xa6"
				"c\xef\xbb\xbf"
				"d\xc2\x9b"
				"e"));
	assert_string_equal(longer, "a_b_c_d_e");
	identity_clean_name(name, sizeof(name), STR(""));
	assert_string_equal(name, "job");
}

static void finds_ranks(void **state)
{
	(void)state;
	assert_int_equal(identity_rank(PARTS("WORLD_SIZE=2\0RANK=1\0SLURM_PROCID=7\0")), 1);
	assert_int_equal(identity_rank(PARTS("LOCAL_RANK=1\0")), -1);
	assert_int_equal(identity_rank(PARTS("RANK=x\0SLURM_PROCID=7\0")), 7);
	assert_int_equal(identity_rank(PARTS("RANK=-3\0")), -1);
	assert_int_equal(identity_rank((struct str){ 0 }), -1);
}

/* ---- steps ---- */

/* Two that begin alike are two jobs, and each is found again by the name that it was given, or is shown with. */
static void long_names_stay_apart(void **state)
{
	char one[201], name[2][JOBS_NAME], again[JOBS_NAME], variables[256];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int len;

		memset(one, 'x', sizeof(one) - 1);
		one[sizeof(one) - 1] = '\0';
		one[100] = (char)('a' + i);
		identity_job_name(name[i], str_from(one));
		assert_int_equal(strlen(name[i]), JOBS_NAME - 1);
		identity_job_name(again, str_from(name[i]));
		assert_string_equal(again, name[i]);
		len = snprintf(variables, sizeof(variables), "OPWATCH_JOB=%.128s", one);
		assert_string_equal(
			find(str_make(variables, (size_t)len + 1), (struct str){ 0 }, "").name,
			name[i]);
	}
	assert_string_not_equal(name[0], name[1]);
	for (size_t i = 0; i < sizeof(one) - 1; i += 2)
		memcpy(one + i, "\xc3\xa4", 2);
	identity_job_name(name[0], str_from(one));
	assert_int_equal(utf8_valid_prefix(str_from(name[0])), strlen(name[0]));
	identity_job_name(name[0], str_from("short"));
	assert_string_equal(name[0], "short");
}

static void measures_steps(void **state)
{
	struct step_meter m = { 0 };

	(void)state;
	assert_int_equal(step_mark_of(STR("Optimizer.step#SGD.step")), STEP_MARK_OPTIMIZER);
	assert_int_equal(step_mark_of(STR("enumerate(DataLoader)#x.__next__")), STEP_MARK_LOADER);
	assert_int_equal(step_mark_of(STR("aten::mm")), STEP_MARK_NONE);
	assert_int_equal(step_meter_median(&m), 0);
	for (int64_t i = 0; i < 100; i++)
		step_meter_see(&m, STEP_MARK_LOADER, 1000 + i * 50, 10);
	assert_int_equal(step_meter_count(&m), 99);
	assert_int_equal(step_meter_median(&m), 50);
	for (int64_t i = 0; i < 3; i++) /* what counts from now on; ends 30, 90, 150 later */
		step_meter_see(&m, STEP_MARK_OPTIMIZER, 2000 + i * 60, 30);
	assert_int_equal(step_meter_count(&m), 3);
	assert_int_equal(step_meter_median(&m), 60);
	step_meter_see(&m, STEP_MARK_OPTIMIZER, 1000, 30); /* the clock goes back */
	assert_int_equal(step_meter_count(&m), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_surest_sign),
		cmocka_unit_test(names_jobs_after_what_they_run),
		cmocka_unit_test(cleans_names),
		cmocka_unit_test(long_names_stay_apart),
		cmocka_unit_test(finds_ranks),
		cmocka_unit_test(measures_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
