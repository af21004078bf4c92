/*
 * sql_time.c: loads a trace and asks the same questions of our tables and of DuckDB's own table with the same rows;
 * prints processor and wall time of each, the best of several. For bench/sql; uses the public interface only.
 *
 *     sql_time FILE RUNS	→ lines "NAME cpu S wall S rows N"
 */
#include <opwatch/sql.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct usage {
	double cpu, wall;
};

static struct usage now(void)
{
	struct rusage used;
	struct timespec t;

	getrusage(RUSAGE_SELF, &used);
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (struct usage){
		(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
			(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6,
		(double)t.tv_sec + (double)t.tv_nsec * 1e-9,
	};
}

static void check(ow_status status, const struct ow_error *err)
{
	if (status == OW_OK)
		return;
	fprintf(stderr, "%s: %s\n", ow_status_name(status), err->text);
	exit(1);
}

static void print_usage(const char *name, struct usage from, struct usage to, uint32_t rows)
{
	printf("%s cpu %.4f wall %.4f rows %u\n", name, to.cpu - from.cpu, to.wall - from.wall,
	       rows);
	fflush(stdout);
}

static void ask(ow_sql *sql, const char *name, const char *text, int runs)
{
	struct usage best[2] = { { 1e9, 1e9 }, { 0, 0 } };
	struct ow_error err = { 0 };
	uint32_t rows = 0;

	for (int i = 0; i < runs; i++) {
		struct usage start = now(), end;
		ow_result *result;

		check(ow_sql_query(sql, text, &result, &err), &err);
		end = now();
		rows = ow_result_rows(result);
		ow_result_free(result);
		if (end.cpu - start.cpu < best[0].cpu)
			best[0].cpu = end.cpu - start.cpu;
		if (end.wall - start.wall < best[0].wall)
			best[0].wall = end.wall - start.wall;
	}
	print_usage(name, best[1], best[0], rows);
}

#define GROUP(from, key)                                                                           \
	"SELECT sum(dur) AS total_dur, avg(dur) AS avg_dur, min(dur) AS min_dur, max(dur) AS "     \
	"max_dur, " key " FROM " from " GROUP BY " key " ORDER BY 1 DESC LIMIT 20"

int main(int argc, char **argv)
{
	struct usage start = now(), loaded, opened;
	int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 3;
	const char *files[1] = { argc > 1 ? argv[1] : "" };
	struct ow_error err = { 0 };
	struct ow_run list[3];
	ow_profile *profile;
	ow_sql *sql;

	check(ow_profile_open(files, 1, NULL, &profile, &err), &err);
	loaded = now();
	print_usage("load", start, loaded, 0);
	for (int i = 0; i < 3; i++)
		list[i] = (struct ow_run){ profile, (const char *[]){ "a", "b", "c" }[i] };
	check(ow_sql_open(list, 1, NULL, &sql, &err), &err);
	opened = now();
	print_usage("open", loaded, opened, 0);
	ask(sql, "first_group", GROUP("trace_events", "arg_name"), 1);
	print_usage("load_open_group", start, now(), 0);
	ask(sql, "group", GROUP("trace_events", "arg_name"), runs);
	ask(sql, "group_event", GROUP("event", "op"), runs);
	ask(sql, "make_enum",
	    "CREATE TYPE names AS ENUM (SELECT DISTINCT arg_name FROM trace_events WHERE arg_name "
	    "IS NOT NULL ORDER BY 1); CREATE TABLE native AS SELECT dur, arg_name::names AS "
	    "arg_name FROM trace_events",
	    1);
	ask(sql, "native_enum", GROUP("native", "arg_name"), runs);
	ow_sql_close(sql);
	check(ow_sql_open(list, 3, NULL, &sql, &err), &err);
	ask(sql, "rows", "SELECT count(*) AS n FROM event HAVING n > 10000000", 1);
	ask(sql, "group_10m", GROUP("event", "name"), runs);
	ow_sql_close(sql);
	ow_profile_free(profile);
	return 0;
}
