/*
 * ranks.c: the body of ow_ranks: the recordings of a job's ranks, compared. Files are read by a few threads and freed when their summary is made, so
 * that memory is that of a few files and of the summaries. The work is in src/ranks.
 */
#include "api/api_int.h"

#include "api/ranks.h"
#include "base/parallel.h"
#include "base/pseudonym.h"

#include <math.h>
#include <sys/stat.h>

void ow_ranks_options_init(struct ow_ranks_options *options)
{
	*options = (struct ow_ranks_options){ .size = sizeof(*options) };
}

#define THREADS_MOST 8
#define OPEN_BYTES_MOST ((uint64_t)1 << 30) /* largest size of the files that are open at once */

/* State of several threads that read files. The files are added to the job in the order of the list,
 * whatever ends first. */
struct reading_files {
	const struct ow_ranks_options *options;
	const struct path_list *list;
	struct ranks_job *job;
	atomic_size_t next;
	pthread_mutex_t lock; /* guards all members below, and the job */
	pthread_cond_t turned;
	size_t turn; /* index of the file that is added next */
	size_t skipped;
	struct ow_error first; /* reason why the first file was skipped */
	ow_status status;
	struct ow_error err;
	double parts[THREADS_MOST]; /* part of each thread's file that is read */
	bool cancelled;
};

/* One file of a thread. */
struct reading_file {
	struct reading_files *all;
	unsigned thread;
};

/* Reports the progress of one file as progress of all files. */
static bool on_progress(void *arg, const char *file, uint64_t done, uint64_t total)
{
	const struct reading_file *one = arg;
	struct reading_files *r = one->all;
	double sum = 0;
	bool go_on;

	pthread_mutex_lock(&r->lock);
	r->parts[one->thread] = total ? fmin((double)done / (double)total, 1) : 0;
	for (unsigned i = 0; i < THREADS_MOST; i++)
		sum += r->parts[i];
	r->cancelled |= !r->options->progress(
		r->options->progress_arg, file,
		(uint64_t)(1000.0 * fmin((double)r->turn + sum, (double)r->list->count)),
		(uint64_t)r->list->count * 1000);
	go_on = !r->cancelled && r->status == OW_OK;
	pthread_mutex_unlock(&r->lock);
	return go_on;
}

static ow_status open_file(struct reading_file *one, const char *path, ow_profile **out,
			   struct ow_error *err)
{
	struct ow_open_options open;

	ow_open_options_init(&open);
	open.memory_limit = one->all->options->memory_limit;
	open.infer = false;
	if (one->all->options->progress) {
		open.progress = on_progress;
		open.progress_arg = one;
	}
	return ow_profile_open(&path, 1, &open, out, err);
}

static ow_status add_profile(struct ranks_job *job, ow_profile *p, const char *path,
			     struct ow_error *err)
{
	struct reading reading;
	ow_status status;

	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	status = ranks_add(job, p->m, str_from(path), err);
	return api_read_end(p, &reading, status, err);
}

/* Adds a file when its turn comes. A file in a folder need not be a trace; a file that the user named must
 * be one. */
static void add_in_turn(struct reading_files *r, size_t file, struct ranks_job *part,
			ow_status status, struct ow_error *err)
{
	const struct path *path = &r->list->items[file];

	pthread_mutex_lock(&r->lock);
	while (r->turn != file)
		pthread_cond_wait(&r->turned, &r->lock);
	if (r->status == OW_OK && status == OW_OK)
		status = ranks_join(r->job, part, err);
	if (r->status == OW_OK && status != OW_OK) {
		if (status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED || !path->found) {
			r->status = status;
			r->err = *err;
		} else if (!r->skipped++) {
			r->first = *err;
		}
	}
	r->turn++;
	pthread_cond_broadcast(&r->turned);
	pthread_mutex_unlock(&r->lock);
}

/* Reads a file and keeps its summary only. */
static ow_status read_file(struct reading_file *one, const char *path, struct ranks_job *part,
			   struct ow_error *err)
{
	ow_profile *p = NULL;
	ow_status status = open_file(one, path, &p, err);

	if (status == OW_OK)
		status = add_profile(part, p, path, err);
	ow_profile_free(p);
	return status;
}

static void read_some(void *arg, unsigned thread)
{
	struct reading_files *r = arg;
	struct reading_file one = { r, thread };
	size_t file;

	while ((file = atomic_fetch_add(&r->next, 1)) < r->list->count) {
		struct ow_error err = { 0 };
		struct ranks_job part;
		ow_status status;
		bool stopped;

		pthread_mutex_lock(&r->lock);
		r->parts[thread] = 0;
		stopped = r->status != OW_OK;
		pthread_mutex_unlock(&r->lock);
		ranks_init(&part, r->job->mem);
		status = stopped ? OW_E_INTERRUPTED
				 : read_file(&one, r->list->items[file].name, &part, &err);
		add_in_turn(r, file, &part, status, &err);
		ranks_release(&part);
	}
}

/* Returns the number of threads: one per processor, unless the open files become too large. A memory limit
 * applies to each file. */
static unsigned thread_count(const struct reading_files *r)
{
	uint64_t largest = 1;
	struct stat about;

	if (r->options->memory_limit)
		return 1;
	for (size_t i = 0; i < r->list->count; i++)
		if (stat(r->list->items[i].name, &about) == 0)
			largest = MAX(largest, (uint64_t)MAX(about.st_size, 0));
	return (unsigned)MAX(1, MIN(MIN(parallel_threads(), THREADS_MOST),
				    MIN(OPEN_BYTES_MOST / largest, r->list->count)));
}

static ow_status add_files(struct reading_files *r, struct ow_error *err)
{
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->turned, NULL);
	parallel_run(thread_count(r), read_some, r);
	pthread_cond_destroy(&r->turned);
	pthread_mutex_destroy(&r->lock);
	if (r->status != OW_OK && err)
		*err = r->err;
	return r->status;
}

static bool hide(struct ranks_job *job, struct pseudonyms *names,
		 void (*replace)(struct pseudonyms *, struct str, struct buf *), struct str *text)
{
	struct buf buf;

	if (!text->len)
		return true;
	buf_init(&buf, job->arena.mem);
	replace(names, *text, &buf);
	*text = arena_str(&job->arena, buf_str(&buf));
	if (buf.failed || names->failed)
		text->ptr = NULL;
	buf_release(&buf);
	return text->ptr != NULL;
}

/* Replaces names after the files are read, because collectives are recognised by name, and before
 * sentences are made of them. */
static ow_status hide_names(struct ranks_job *job, struct mem *mem, struct ow_error *err)
{
	struct pseudonyms names;
	ow_status status = pseudonyms_init(&names, mem, err);
	bool good = true;

	for (size_t i = 0; status == OW_OK && i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];

		good = good && hide(job, &names, pseudonym_file, &w->path) &&
		       hide(job, &names, pseudonym_word, &w->host);
		for (size_t k = 0; good && k < w->op_count; k++)
			good = hide(job, &names, pseudonym_name, &w->ops[k].text);
		for (size_t k = 0; good && k < w->line_count; k++)
			good = hide(job, &names, pseudonym_name, &w->lines[k].text);
	}
	pseudonyms_release(&names);
	return status == OW_OK && !good ? error_no_memory(err) : status;
}

ow_status api_ranks_read(struct ranks_job *job, const struct path_list *list,
			 const struct ow_ranks_options *options, size_t *skipped,
			 struct ow_error *err)
{
	struct reading_files r = { .options = options, .list = list, .job = job };

	OW_TRY(add_files(&r, err));
	if (skipped)
		*skipped = r.skipped;
	if (job->worker_count || !r.skipped)
		return OW_OK;
	if (err)
		*err = r.first;
	return r.first.status;
}

static ow_status read_job(struct mem *mem, const char *const *paths, size_t count,
			  const struct ow_ranks_options *options, struct table **out,
			  struct ow_error *err)
{
	struct path_list list = { 0 };
	size_t skipped = 0;
	struct ranks_job job;
	ow_status status;

	ranks_init(&job, mem);
	status = paths_expand(&list, mem, paths, count, err);
	if (status == OW_OK)
		status = api_ranks_read(&job, &list, options, &skipped, err);
	if (status == OW_OK && options->redact)
		status = hide_names(&job, mem, err);
	if (status == OW_OK)
		status = ranks_finish(&job, err);
	if (status == OW_OK) {
		*out = table_new(mem, "ranks", err);
		status = *out ? ranks_table(&job, *out, err) : OW_E_NO_MEMORY;
	}
	if (status == OW_OK)
		table_add_extra(*out, "files_skipped", "%zu", skipped);
	arena_release(&list.arena);
	ranks_release(&job);
	return status;
}

ow_status ow_ranks(const char *const *paths, size_t count, const struct ow_ranks_options *options,
		   ow_result **out, struct ow_error *err)
{
	struct ow_ranks_options full;
	ow_result *result = calloc(1, sizeof(*result));
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!result)
		return error_no_memory(err);
	ow_ranks_options_init(&full);
	SIZED_IN(&full, options);
	mem_init(&result->own, (size_t)full.memory_limit);
	status = read_job(&result->own, paths, count, &full, &result->r, err);
	if (status != OW_OK) {
		ow_result_free(result);
		return status;
	}
	*out = result;
	return OW_OK;
}
