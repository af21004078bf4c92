/* watch.c: the bodies of ow_watch_new and its kin; the work is in watch/. */
#include "api/api_int.h"
#include "opwatch/live.h"

#include "live/daemon/jobs.h"
#include "watch/watch.h"

struct ow_watch {
	struct mem mem;
	struct watch w;
	char *step_marker;
	size_t marker_size;
};

void ow_watch_options_init(struct ow_watch_options *options)
{
	*options = (struct ow_watch_options){ .size = sizeof(*options), .span_ns = WATCH_SPAN_NS };
}

const char *ow_phase_name(size_t index)
{
	_Static_assert(OW_PHASES == CLASS_COUNT, "phases");
	return index < CLASS_COUNT ? phase_class_names[phase_class_order[index]] : NULL;
}

ow_status ow_watch_new(const struct ow_watch_options *options, ow_watch **watch,
		       struct ow_error *err)
{
	struct ow_watch_options o;
	ow_watch *made = calloc(1, sizeof(*made));

	error_clear(err);
	*watch = NULL;
	if (!made)
		return error_no_memory(err);
	ow_watch_options_init(&o);
	SIZED_IN(&o, options);
	mem_init(&made->mem, (size_t)o.memory_limit);
	if (o.step_marker) {
		made->marker_size = strlen(o.step_marker) + 1;
		made->step_marker = mem_alloc(&made->mem, made->marker_size);
		if (!made->step_marker) {
			free(made);
			return error_no_memory(err);
		}
		memcpy(made->step_marker, o.step_marker, made->marker_size);
	}
	watch_init(&made->w, &made->mem, o.span_ns, made->step_marker);
	*watch = made;
	return OW_OK;
}

void ow_watch_free(ow_watch *watch)
{
	if (!watch)
		return;
	watch_release(&watch->w);
	mem_free(&watch->mem, watch->step_marker, watch->marker_size);
	free(watch);
}

ow_status ow_watch_add(ow_watch *watch, const char *path, struct ow_error *err)
{
	error_clear(err);
	return watch_add(&watch->w, path, err);
}

static bool is_watched(const struct watch *w, const char *path)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->files[i]->follow.path, path) == 0)
			return true;
	return false;
}

/* Adds a job under the name that the user gave. */
static ow_status add_job(struct watch *w, const struct job_info *job, struct ow_error *err)
{
	struct ow_error gone = { 0 };
	ow_status status;

	if (!job->folder[0] || is_watched(w, job->folder))
		return OW_OK;
	status = watch_add(w, job->folder, &gone);
	if (status == OW_E_NO_MEMORY)
		return error_no_memory(err);
	if (status == OW_OK)
		snprintf(w->files[w->count - 1]->name, sizeof(w->files[0]->name), "%s", job->name);
	return OW_OK;
}

static ow_status add_jobs(struct watch *w, const struct jobs *jobs, const char *name,
			  struct ow_error *err)
{
	const struct job_info *job;

	if (name) {
		OW_TRY(jobs_find(jobs, name, &job, err));
		return add_job(w, job, err);
	}
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->items[i].state != JOB_ENDED)
			OW_TRY(add_job(w, &jobs->items[i], err));
	return OW_OK;
}

ow_status ow_watch_add_jobs(ow_watch *watch, const char *socket, const char *job,
			    struct ow_error *err)
{
	struct jobs jobs;
	ow_status status;

	error_clear(err);
	OW_TRY(jobs_list(&jobs, &watch->mem, socket, err));
	status = add_jobs(&watch->w, &jobs, job, err);
	jobs_release(&jobs);
	return status;
}

ow_status ow_watch_turn(ow_watch *watch, bool *more, struct ow_error *err)
{
	error_clear(err);
	watch->w.job_count = 0;
	OW_TRY(watch_turn(&watch->w, more, err));
	return watch_make_jobs(&watch->w, err);
}

size_t ow_watch_count(const ow_watch *watch)
{
	return watch->w.job_count;
}

bool ow_watch_job(const ow_watch *watch, size_t index, struct ow_job *job)
{
	if (index >= watch->w.job_count)
		return false;
	SIZED_OUT(job, &watch->w.jobs[index]);
	return true;
}

static ow_status check_index(const ow_watch *watch, size_t index, struct ow_error *err)
{
	error_clear(err);
	return index < watch->w.job_count
		       ? OW_OK
		       : error_set(err, OW_E_NOT_FOUND, "there is no job number %zu", index);
}

static struct follow_range last_span(const struct follow *f, int64_t span_ns)
{
	int64_t newest = f->newest_ns, span = MAX(MIN(span_ns, WATCH_KEEP_NS), 0);

	return (struct follow_range){ .from_ns = newest == INT64_MIN ? INT64_MIN : newest - span,
				      .to_ns = INT64_MAX };
}

/* Saves a job with several recordings as one profile. */
static ow_status save_profile(ow_watch *watch, size_t index, int64_t span_ns, const char *path,
			      struct ow_error *err)
{
	ow_profile *profile;
	ow_status status;

	OW_TRY(ow_watch_profile(watch, index, span_ns, &profile, err));
	status = ow_profile_save(profile, path, NULL, err);
	ow_profile_free(profile);
	return status;
}

ow_status ow_watch_save(ow_watch *watch, size_t index, int64_t span_ns, const char *path,
			struct ow_error *err)
{
	struct follow_range range;
	struct follow *f;

	OW_TRY(check_index(watch, index, err));
	if (watch->w.jobs[index].recordings > 1)
		return save_profile(watch, index, span_ns, path, err);
	f = &watch->w.files[watch->w.job_files[index]]->follow;
	if (watch->w.files[watch->w.job_files[index]]->own_steps)
		return error_set(err, OW_E_UNSUPPORTED, "%s is written by its program: copy it",
				 f->path);
	if (f->newest_ns == INT64_MIN && f->newest_sample_ns == INT64_MIN)
		return error_set(err, OW_E_EMPTY, "%s: nothing was recorded yet",
				 watch->w.jobs[index].name);
	range = last_span(f, span_ns);
	return follow_save(f, &range, path, err);
}

static ow_status add_cut(ow_watch *watch, struct watch_file *f, int64_t span_ns, ow_profile *p,
			 struct ow_error *err)
{
	struct follow_range range = last_span(&f->follow, span_ns);

	if (f->own_steps)
		return ow_profile_add_file(p, f->follow.path, NULL, NULL, err);
	OW_TRY(follow_cut_buf(&f->follow, &range, &watch->w.cut, err));
	return ow_profile_add_memory(p, f->follow.path, watch->w.cut.ptr, watch->w.cut.len, NULL,
				     NULL, err);
}

ow_status ow_watch_profile(ow_watch *watch, size_t index, int64_t span_ns, ow_profile **profile,
			   struct ow_error *err)
{
	struct ow_open_options options;
	const struct watch *w = &watch->w;
	const struct watch_file *first;
	ow_status status;

	*profile = NULL;
	OW_TRY(check_index(watch, index, err));
	first = w->files[w->job_files[index]];
	ow_open_options_init(&options);
	options.memory_limit = watch->mem.limit;
	options.step_marker = w->step_marker;
	OW_TRY(ow_profile_new(&options, profile, err));
	status = OW_OK;
	for (size_t i = w->job_files[index]; i < w->count && status == OW_OK; i++)
		if (w->files[i] == first ||
		    (first->group[0] && strcmp(first->group, w->files[i]->group) == 0))
			status = add_cut(watch, w->files[i], span_ns, *profile, err);
	if (status == OW_OK)
		status = ow_profile_freeze(*profile, err);
	if (status != OW_OK) {
		ow_profile_free(*profile);
		*profile = NULL;
	}
	return status;
}
