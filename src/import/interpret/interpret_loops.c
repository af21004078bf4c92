/*
 * interpret_loops.c: steps of recordings of running programs that mark none, from what repeats: the calls of a thread that the recorder saw,
 * or else the lines at which its Python stack was sampled. producer_own.c calls it when neither an optimizer nor a loader marks steps.
 * loop.c decides whether there is a loop. A note says which call or function the steps are taken from. Where the repetition is uncertain,
 * it makes no steps and adds no note.
 */
#include "import/interpret/interpret_int.h"
#include "import/interpret/loop.h"
#include "base/vec.h"

#include <math.h>

#define MS ((int64_t)1000000)
#define DEPTH_MAX 64
#define LEAST_REPETITIONS 8u
#define LEAST_SAMPLES 64u
#define INTERVALS 5	  /* least number of sampling intervals in a repetition */
#define SAME_FUNCTION 0.6 /* least part of the samples that must be in one function */

/* Stricter rules for reads of files: many programs read block by block, or in a regular order
 * within microseconds. */
static const struct loop_rules file_rules = { .least = LEAST_REPETITIONS,
					      .least_alone = UINT32_MAX,
					      .shortest_ns = MS,
					      .spread = 0.7,
					      .spread_alone = 0.25,
					      .covered = 1.0 / 3 };
static const struct loop_rules call_rules = { .least = LEAST_REPETITIONS,
					      .least_alone = 16,
					      .shortest_ns = MS / 10,
					      .spread = 0.7,
					      .spread_alone = 0.25,
					      .covered = 1.0 / 3 };

struct called {
	str_id name;
	uint64_t hash;
};

/* Calls of one thread, with the number of each callee. */
struct listed {
	struct interpret *x;
	struct map map;
	struct called *keys;
	size_t key_count, key_cap;
	struct loop_call *calls;
	size_t count, cap;
	bool others;	  /* there are calls other than those of files */
	int64_t interval; /* sampling interval; 0: these are calls */
};

static void listed_release(struct listed *l)
{
	map_release(&l->map);
	vec_free(l->x->mem, l->keys, l->key_cap);
	vec_free(l->x->mem, l->calls, l->cap);
}

/* Returns the number of a callee; UINT32_MAX if memory runs out. */
static uint32_t key_of(struct listed *l, uint64_t hash, str_id name)
{
	for (struct map_iter it = map_find(&l->map, hash); it.value; it = map_next(&l->map, it))
		if (l->keys[it.value - 1].hash == hash)
			return it.value - 1;
	if (!vec_push(l->x->mem, l->keys, l->key_count, l->key_cap,
		      (struct called){ name, hash }) ||
	    !map_add(&l->map, hash, (uint32_t)l->key_count))
		return UINT32_MAX;
	return (uint32_t)l->key_count - 1;
}

static bool add_call(struct listed *l, int64_t begin, int64_t end, uint64_t hash, str_id name)
{
	uint32_t key = key_of(l, hash, name);

	return key != UINT32_MAX && vec_push(l->x->mem, l->calls, l->count, l->cap,
					     (struct loop_call){ begin, end, key });
}

/* Hashes a name without its numbers: "batch 12" and "batch 13" are equal. */
static uint64_t hash_of_name(const struct interpret *x, str_id name)
{
	struct str text = interpret_text(x, name);
	uint64_t hash = 14695981039346656037u;

	while (text.len && text.ptr[text.len - 1] >= '0' && text.ptr[text.len - 1] <= '9')
		text.len--;
	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.ptr[i]) * 1099511628211u;
	return hash;
}

/* Returns the class of a size, because reads of a header and of data differ in size. */
static unsigned size_class(int64_t bytes)
{
	return bytes > 0 ? 64 - (unsigned)__builtin_clzll((unsigned long long)bytes) : 0;
}

enum call_kind { CALL_PLAIN, CALL_READ, CALL_WRITE };

static enum call_kind kind_of(const struct interpret *x, uint32_t event)
{
	struct str category = interpret_text(x, COLUMN_GET(x->m->event.category, event));

	if (str_eq(category, STR("file_read")))
		return CALL_READ;
	return str_starts(category, STR("file_")) ? CALL_WRITE : CALL_PLAIN;
}

/* Lists the outermost calls of a thread. Logs and checkpoints are written now and then, not in each step, so opening
 * and writing files count only if nothing else repeats. Calls that came too fast were only sampled, so their order is
 * unknown, and they are left out.
 */
static ow_status list_calls(struct listed *l, uint32_t t, bool writes)
{
	struct interpret *x = l->x;
	const struct interpret_track *track = interpret_track(x, t);
	int64_t until = INT64_MIN;

	for (uint32_t e = track->first; e < track->last; e++) {
		int64_t begin = x->m->event.ts_ns[e];
		str_id name = interpret_name(x, e);
		enum call_kind kind = kind_of(x, e);
		uint64_t hash;

		if (begin < until || !interpret_is_slice(x, e) ||
		    COLUMN_GET(x->m->event.runs, e) > 1 || (kind == CALL_WRITE && !writes))
			continue;
		until = interpret_end(x, e);
		l->others |= kind == CALL_PLAIN;
		hash = hash_of_name(x, name);
		if (kind == CALL_READ)
			hash = map_hash_u64(hash, size_class(COLUMN_GET(x->m->event.bytes, e)) + 1);
		if (!add_call(l, begin, until, hash, name))
			return interpret_no_memory(x);
	}
	return OW_OK;
}

struct sampled {
	int64_t ts;
	uint32_t stack;
};

struct samples {
	struct sampled *list;
	size_t count, cap;
};

/* The best loop found so far. */
struct found {
	struct loop loop;
	uint32_t track;
	str_id name;
	double taken_ns;
};

/* How long the thread stayed at a line each time. */
struct stays {
	double sum, shortest;
	size_t count;
};

/* Removes uncertain repetitions from a loop of sampled lines. Between two samples nothing is known: a repetition with a pause as long as the shortest line does not
 * count, nor does one in which a line was missed. Of two lines that take turns, a missed one makes one of two repetitions, which does not
 * show: there, each stay has to be long enough, and about as long as the others. */
static ow_status check_samples(const struct listed *l, const struct samples *samples,
			       struct loop *loop)
{
	struct stays *stays = ARENA_ARRAY(&l->x->scratch, struct stays, l->key_count);
	double least = INFINITY;
	size_t sure = 0, at = 0;

	if (!stays)
		return interpret_no_memory(l->x);
	for (size_t i = 0; i < l->count; i++) {
		const struct loop_call *c = &l->calls[i];
		struct stays *s = &stays[c->key];
		double ns = (double)(c->end - c->begin);

		if (c->begin < loop->starts[0] || c->begin >= loop->starts[loop->steps])
			continue;
		s->shortest = s->count++ ? MIN(s->shortest, ns) : ns;
		s->sum += ns;
	}
	for (size_t i = 0; i < l->key_count; i++)
		if (stays[i].count) {
			double mean = stays[i].sum / (double)stays[i].count;

			least = MIN(least, mean);
			if (loop->length < 3 &&
			    stays[i].shortest < MAX(1.4 * (double)l->interval, mean / 4))
				loop->steps = 0;
		}
	for (uint32_t i = 0; i < loop->steps; i++) {
		bool more = true;

		/* includes the sample after the end: a step that ends in a pause may end anywhere in it */
		while (more && at < samples->count) {
			more = samples->list[at].ts < loop->starts[i + 1];
			if (at && (double)(samples->list[at].ts - samples->list[at - 1].ts) > least)
				loop->usual[i] = false;
			at += more;
		}
		sure += loop->usual[i];
	}
	if (sure < LEAST_REPETITIONS || sure * 4 < loop->steps * (size_t)3)
		loop->steps = 0;
	return OW_OK;
}

static ow_status find_loop(struct listed *l, const struct loop_rules *rules, uint32_t track,
			   const struct samples *samples, struct found *best)
{
	struct loop loop;
	struct loop_calls calls = { l->calls, l->count, (uint32_t)l->key_count };
	double taken;

	if (!loop_find(&l->x->scratch, &calls, rules, &loop))
		return interpret_no_memory(l->x);
	if (!loop.steps)
		return OW_OK;
	taken = (double)loop.starts[loop.steps] - (double)loop.starts[0];
	if (samples)
		OW_TRY(check_samples(l, samples, &loop));
	if (loop.steps && taken > best->taken_ns)
		*best = (struct found){ loop, track, l->keys[loop.key].name, taken };
	return OW_OK;
}

static ow_status find_in_calls(struct interpret *x, bool writes, struct found *best)
{
	ow_status status = OW_OK;

	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		struct listed l = { .x = x };

		if (x->m->track.kind[t] != TRACK_HOST)
			continue;
		map_init(&l.map, x->mem);
		status = list_calls(&l, t, writes);
		if (status == OW_OK && l.count)
			status = find_loop(&l, l.others ? &call_rules : &file_rules, t, NULL, best);
		listed_release(&l);
	}
	return status;
}

static int by_time(const void *a, const void *b)
{
	const struct sampled *x = a, *y = b;

	return (x->ts > y->ts) - (x->ts < y->ts);
}

static ow_status collect_samples(struct interpret *x, uint32_t track, struct samples *out)
{
	const struct sample_table *s = &x->m->sample;

	for (uint32_t i = 1; i < s->count; i++) {
		if (s->track[i].v != track || !s->stack[i].v || s->ts_ns[i] < 0 ||
		    s->ts_ns[i] > INT64_MAX / 2 ||
		    !str_eq(interpret_text(x, x->m->metric.name[s->metric[i].v]), STR("wall")))
			continue;
		if (!vec_push(x->mem, out->list, out->count, out->cap,
			      (struct sampled){ s->ts_ns[i], s->stack[i].v }))
			return interpret_no_memory(x);
	}
	if (out->count)
		qsort(out->list, out->count, sizeof(*out->list), by_time);
	return OW_OK;
}

/* Returns the frame this many calls below the outermost one; 0 if the stack is not as deep. */
static uint32_t frame_at(const struct model *m, uint32_t stack, uint32_t depth)
{
	uint32_t frames[DEPTH_MAX], count = 0;

	for (; stack; stack = m->stack.parent[stack].v) {
		if (count == DEPTH_MAX) { /* only the outer frames matter */
			memmove(frames, frames + 1, sizeof(frames) - sizeof(*frames));
			count--;
		}
		frames[count++] = m->stack.frame[stack].v;
	}
	return depth < count ? frames[count - 1 - depth] : 0;
}

static bool same_function(const struct model *m, uint32_t a, uint32_t b)
{
	return a && b && m->frame.function[a].v == m->frame.function[b].v &&
	       m->frame.file[a].v == m->frame.file[b].v &&
	       m->frame.function_line[a] == m->frame.function_line[b];
}

/* Finds the function that most samples are in at this depth: one frame of it; 0 for none. Other samples
 * are left out. */
static uint32_t keep_main_function(const struct interpret *x, struct samples *s, uint32_t depth)
{
	uint32_t found = 0;
	size_t lead = 0, kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		uint32_t frame = frame_at(x->m, s->list[i].stack, depth);

		if (!lead)
			found = frame;
		lead = frame == found || same_function(x->m, frame, found) ? lead + 1 : lead - 1;
	}
	for (size_t i = 0; i < s->count; i++)
		if (same_function(x->m, frame_at(x->m, s->list[i].stack, depth), found))
			s->list[kept++] = s->list[i];
	if ((double)kept < SAME_FUNCTION * (double)s->count || kept < LEAST_SAMPLES)
		return 0;
	s->count = kept;
	return found;
}

static int64_t interval_of(const struct samples *s)
{
	return (s->list[s->count - 1].ts - s->list[0].ts) / (int64_t)(s->count - 1);
}

/* Lists the lines at which the function is for at least this part of the time, one after the other, as calls. A line
 * begins halfway between two samples. */
static ow_status list_lines(struct listed *l, const struct samples *s, uint32_t depth, double least)
{
	struct interpret *x = l->x;
	const struct model *m = x->m;
	struct listed all = { .x = x };
	size_t *times = NULL;
	ow_status status = OW_OK;
	struct loop_call *last = NULL;

	map_init(&all.map, x->mem);
	for (size_t i = 0; i < s->count && status == OW_OK; i++) {
		uint32_t frame = frame_at(m, s->list[i].stack, depth);

		if (!add_call(&all, s->list[i].ts, s->list[i].ts, (uint32_t)m->frame.line[frame],
			      m->frame.function[frame]))
			status = interpret_no_memory(x);
	}
	times = ARENA_ARRAY(&x->scratch, size_t, all.key_count + 1);
	if (status == OW_OK && !times)
		status = interpret_no_memory(x);
	for (size_t i = 0; status == OW_OK && i < all.count; i++)
		times[all.calls[i].key]++;
	for (size_t i = 0; status == OW_OK && i < all.count; i++) {
		const struct loop_call *c = &all.calls[i];
		int64_t half = i ? (c->begin - all.calls[i - 1].begin) / 2 : 0;

		if ((double)times[c->key] < least * (double)all.count)
			continue;
		last = l->count ? &l->calls[l->count - 1] : NULL;
		if (last && l->keys[last->key].hash == all.keys[c->key].hash)
			last->end = c->end;
		else if (!add_call(l, c->begin - half, c->end, all.keys[c->key].hash,
				   all.keys[c->key].name))
			status = interpret_no_memory(x);
	}
	listed_release(&all);
	return status;
}

/* Lines with a smaller part of the time are left out, because some repetitions have no sample in
 * them. */
static const double main_lines[] = { 0.08, 0.04, 0.02, 0.01 };

/* Finds, from the outermost call inwards, the first function whose lines repeat. */
static ow_status find_in_samples_of(struct interpret *x, uint32_t track, struct samples *s,
				    struct found *best)
{
	int64_t interval = s->count >= LEAST_SAMPLES ? interval_of(s) : 0;
	struct loop_rules rules = { .least = LEAST_REPETITIONS,
				    .least_alone = UINT32_MAX,
				    .shortest_ns = interval * INTERVALS,
				    .spread = 0.2,
				    .covered = 1.0 / 3 };
	double before = best->taken_ns;
	ow_status status = OW_OK;

	for (uint32_t depth = 0; depth < DEPTH_MAX && interval > 0 && status == OW_OK &&
				 !(best->taken_ns > before) && keep_main_function(x, s, depth);
	     depth++)
		for (size_t i = 0;
		     i < ARRAY_COUNT(main_lines) && status == OW_OK && !(best->taken_ns > before);
		     i++) {
			struct listed l = { .x = x, .interval = interval };

			map_init(&l.map, x->mem);
			status = list_lines(&l, s, depth, main_lines[i]);
			if (status == OW_OK && l.key_count > 1)
				status = find_loop(&l, &rules, track, s, best);
			listed_release(&l);
		}
	return status;
}

static ow_status find_in_samples(struct interpret *x, struct found *best)
{
	ow_status status = OW_OK;

	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		struct samples s = { 0 };

		if (x->m->track.kind[t] != TRACK_HOST || x->m->sample.count <= LEAST_SAMPLES)
			continue;
		status = collect_samples(x, t, &s);
		if (status == OW_OK)
			status = find_in_samples_of(x, t, &s, best);
		vec_free(x->mem, s.list, s.cap);
	}
	return status;
}

static ow_status mark_loop(struct interpret *x, const struct found *f, bool stacks)
{
	struct str name = interpret_text(x, f->name);
	uint32_t steps = 0;

	for (uint32_t i = 0; i < f->loop.steps; i++) {
		if (stacks && !f->loop.usual[i])
			continue;
		steps++;
		OW_TRY(interpret_add_marker(
			x, &(struct interpret_marker){ .start = f->loop.starts[i],
						       .end = f->loop.starts[i + 1],
						       .number = INT64_MIN,
						       .name = f->name }));
	}
	if (stacks)
		builder_note(
			x->b, NOTE_INFO, OW_NO_OFFSET,
			"the program marks no steps: these %u are taken from the repeating Python "
			"stacks in %.*s; sampled stacks show where a step begins to within some "
			"hundredths of a second",
			steps, STR_ARG(name));
	else
		builder_note(
			x->b, NOTE_INFO, OW_NO_OFFSET,
			"the program marks no steps: these %u are taken from the repeating call "
			"%.*s%s of process %u",
			steps, STR_ARG(name), f->loop.length > 1 ? " and those that follow it" : "",
			(uint32_t)x->m->track.pid[f->track]);
	return builder_status(x->b);
}

ow_status interpret_mark_loops(struct interpret *x)
{
	struct found best = { 0 };

	OW_TRY(find_in_calls(x, false, &best));
	if (!best.loop.steps)
		OW_TRY(find_in_calls(x, true, &best));
	if (best.loop.steps)
		return mark_loop(x, &best, false);
	OW_TRY(find_in_samples(x, &best));
	return best.loop.steps ? mark_loop(x, &best, true) : OW_OK;
}
