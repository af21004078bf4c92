/*
 * live_blind.c: see live_blind.h. The system counts what a process reads, by whatever means; the recorder counts what passes
 * its hooks. The system's numbers of a process contain those of all children that it has waited for, which are
 * recorded by themselves: these are taken out again.
 */
#include "import/live_blind.h"

#define BLIND_BYTES                                                                                \
	1000000.0 /* less is not worth a word: libraries, what the C library reads for itself */
#define BLIND_SHARE 0.05
/* Heads of libraries, read before a program begins; one that is soon over is never asked. */
#define START_BYTES 8192u

static uint64_t hash_of(uint32_t pid)
{
	return (pid + 1) * 0x9e3779b97f4a7c15u;
}

/* The last of those so far that have this number; NULL when there is none. */
static struct live_job *find_process(struct live_data *d, const struct map *pids, uint32_t pid)
{
	struct live_job *found = NULL;

	for (struct map_iter it = map_find(pids, hash_of(pid)); it.value; it = map_next(pids, it)) {
		struct live_job *job = &d->jobs[it.value - 1];

		if (job->row.pid == pid && (!found || job->row.number > found->row.number))
			found = job;
	}
	return found;
}

/* All that a process has read so far: what it did since the system was asked is known of its hooks only. */
static struct live_reads reads_of(const struct live_job *job)
{
	struct live_reads sum = job->last;

	sum.system += job->counted[RING_READS] - MIN(job->counted[RING_READS], job->last.seen);
	return sum;
}

static void take_from(struct live_reads *from, const struct live_reads *part)
{
	from->system -= MIN(from->system, part->system);
	from->storage -= MIN(from->storage, part->storage);
}

/* A program that another one executed goes on with its numbers. */
static bool is_executed(const struct live_job *job, const struct live_job *before)
{
	return before && before->row.parent == job->row.parent && before->asked &&
	       job->first.system >= before->last.system;
}

/* Processes come in the order in which they began: a parent is the last one of its number that was there before. */
ow_status live_find_waited_for(struct live_data *d)
{
	struct map pids;
	bool good = true;

	map_init(&pids, d->mem);
	for (size_t i = 0; good && i < d->job_count; i++) {
		struct live_job *job = &d->jobs[i], *parent, *before;
		struct live_reads reads;

		if (!job->known)
			continue;
		parent = find_process(d, &pids, job->row.parent);
		before = find_process(d, &pids, job->row.pid);
		good = map_add(&pids, hash_of(job->row.pid), (uint32_t)i + 1);
		if (!parent || !job->ended)
			continue;
		if (is_executed(job, before) && before->ended) {
			reads = reads_of(before);
			take_from(&parent->waited_for, &reads);
		}
		reads = reads_of(job);
		parent->waited_for.system += reads.system + START_BYTES;
		parent->waited_for.storage += reads.storage;
	}
	map_release(&pids);
	return good ? OW_OK : import_no_memory(d->ctx);
}

static double more(uint64_t last, uint64_t first, uint64_t others)
{
	return last > first && last - first > others ? (double)(last - first - others) : 0;
}

void live_add_blind_spots(struct live_data *d, const struct live_job *job)
{
	double system = more(job->last.system, job->first.system, job->waited_for.system);
	double calls = system - more(job->last.seen, job->first.seen, 0);
	double disk = more(job->last.storage, job->first.storage, job->waited_for.storage) -
		      more(job->last.seen_files, job->first.seen_files, 0);
	double mapped = (double)job->counted[RING_MAPPED];

	if (calls >= BLIND_BYTES && calls >= BLIND_SHARE * system)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u: %.1f MB were read by means the recorder does not see: "
			     "system calls that do not go through the C library's functions, "
			     "sendfile, the C library itself, or processes that it started and "
			     "that were not recorded",
			     job->row.pid, calls / 1e6);
	if (disk >= BLIND_BYTES)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u: %.1f MB came from the disk by means the recorder does "
			     "not see: programs and libraries, mapped files%s",
			     job->row.pid, disk / 1e6, job->uses_uring ? ", io_uring" : "");
	if (mapped >= BLIND_BYTES)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u: mapped %.1f MB of files (mmap): what it reads from them "
			     "is not seen, but for the time of the code that does",
			     job->row.pid, mapped / 1e6);
	if (job->uses_uring)
		builder_note(d->b, NOTE_INFO, OW_NO_OFFSET,
			     "process %u: uses io_uring: what it reads and writes by that is not "
			     "seen",
			     job->row.pid);
}
