/*
 * remote_batch_read.c: reads many small pieces of another process's memory with one system call, and moves this
 * thread to the processor on which the other process runs. Used by py_process.c to read stacks that change fast.
 */
#include "live/pystack/remote_batch_read.h"

#include "base/clock.h"
#include "live/proc/proc.h"

#define MERGE_BYTES 2048

bool remote_batch_init(struct remote_batch *s, struct mem *mem)
{
	*s = (struct remote_batch){ .room = mem_alloc(mem, 2 * REMOTE_BATCH_BYTES) };
	return s->room;
}

void remote_batch_release(struct remote_batch *s, struct mem *mem)
{
	if (s->room)
		mem_free(mem, s->room, 2 * REMOTE_BATCH_BYTES);
	*s = (struct remote_batch){ 0 };
}

void remote_batch_begin(struct remote_batch *s)
{
	s->used = s->count = s->once = s->hint = 0;
}

/* Extends the last piece if possible: frames of a thread follow each other from the innermost,
 * at the highest address, downwards. */
static bool extend_last(struct remote_batch *s, uint64_t at, size_t len)
{
	struct remote_part *last = s->count > s->once ? &s->pieces[s->count - 1] : NULL;
	size_t more;

	if (!last || at >= last->at || last->at - at > MERGE_BYTES || last->at - at < len)
		return false;
	more = (size_t)(last->at - at);
	if (more > REMOTE_BATCH_BYTES - s->used)
		return false;
	last->at = at;
	last->len += more;
	s->used += more;
	return true;
}

void remote_batch_want(struct remote_batch *s, uint64_t at, size_t len)
{
	if (extend_last(s, at, len))
		return;
	if (s->count == ARRAY_COUNT(s->pieces) || len > REMOTE_BATCH_BYTES - s->used)
		return;
	s->pieces[s->count++] = (struct remote_part){ .at = at, .len = len };
	s->used += len;
}

/* Returns whether a reading took far longer than usual. The usual time grows slowly and shrinks
 * fast. */
static bool took_too_long(struct remote_batch *s, int64_t ns)
{
	bool longer = s->usual_ns && ns > 3 * s->usual_ns + 8000;

	s->usual_ns += s->usual_ns && ns > s->usual_ns
			       ? MIN((ns - s->usual_ns) / 8, s->usual_ns / 8) + 1
			       : (ns - s->usual_ns) / (s->usual_ns ? 2 : 1);
	return longer;
}

void remote_batch_once(struct remote_batch *s)
{
	s->once = s->count;
}

void remote_batch_read(struct remote_batch *s, struct remote *r)
{
	struct remote_part parts[REMOTE_PARTS];
	unsigned char *to = s->room;
	size_t count = 0;
	int64_t begin;

	for (size_t i = 0; i < s->count; i++) {
		s->pieces[i].to = to;
		parts[count++] = s->pieces[i];
		if (i >= s->once) {
			parts[count] = s->pieces[i];
			parts[count++].to = to + REMOTE_BATCH_BYTES;
		}
		to += s->pieces[i].len;
	}
	begin = steady_ns();
	count = remote_read_parts(r, parts, count);
	s->disturbed = took_too_long(s, steady_ns() - begin);
	s->once = MIN(s->once, count);
	s->count = s->once + (count - s->once) / 2;
}

const unsigned char *remote_batch_again(const struct remote_batch *s, const unsigned char *bytes)
{
	const unsigned char *twice =
		s->once < s->count ? (const unsigned char *)s->pieces[s->once].to : NULL;

	return twice && bytes >= twice && bytes < s->room + REMOTE_BATCH_BYTES
		       ? bytes + REMOTE_BATCH_BYTES
		       : NULL;
}

const unsigned char *remote_batch_get(struct remote_batch *s, struct remote *r, uint64_t at,
				      size_t len, unsigned char *own, uint32_t *piece_number)
{
	for (size_t i = 0; i < s->count; i++) {
		size_t k = s->hint + i < s->count ? s->hint + i : s->hint + i - s->count;
		const struct remote_part *piece = &s->pieces[k];

		if (at >= piece->at && at - piece->at <= piece->len &&
		    piece->len - (size_t)(at - piece->at) >= len) {
			s->hint = k;
			*piece_number = (uint32_t)k + 1;
			return (const unsigned char *)piece->to + (at - piece->at);
		}
	}
	*piece_number = 0;
	return !(at & 7) && remote_read(r, at, own, len) ? own : NULL;
}

static bool find_home(struct cpu_colocate *b)
{
	if (!b->knows_home)
		b->knows_home = sched_getaffinity(0, sizeof(b->home), &b->home) == 0;
	return b->knows_home;
}

static bool is_usual(uint32_t policy)
{
	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

bool cpu_colocate_enter(struct cpu_colocate *b, pid_t pid, pid_t tid)
{
	struct proc_stat stat;
	cpu_set_t there;

	if (b->away || !find_home(b) || !proc_stat_read(pid, tid, &stat) || stat.state != 'R' ||
	    !is_usual(stat.policy) || stat.processor >= CPU_SETSIZE ||
	    !CPU_ISSET(stat.processor,
		       &b->home)) /* the processor is one that opwatch should not use */
		return false;
	CPU_ZERO(&there);
	CPU_SET(stat.processor, &there);
	b->away = sched_setaffinity(0, sizeof(there), &there) == 0;
	return b->away;
}

void cpu_colocate_leave(struct cpu_colocate *b)
{
	if (b->away && sched_setaffinity(0, sizeof(b->home), &b->home) != 0)
		return; /* the next reading tries again */
	b->away = false;
}
