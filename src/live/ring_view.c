/* ring_view.c: see ring_view.h. */
#include "live/ring_view.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Memory of at least `least` bytes that nobody can make smaller, or NULL. */
static void *map_sealed(int fd, size_t least, size_t *bytes, struct error *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	void *memory;

	if (fstat(fd, &st) != 0) {
		error_errno(err, errno, "memory of a recorder");
		return NULL;
	}
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || st.st_size < (off_t)least) {
		error_set(err, OW_E_CORRUPT,
			  "what claims to be a recorder's memory is not sealed, or too small");
		return NULL;
	}
	*bytes = (size_t)st.st_size;
	memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory != MAP_FAILED)
		return memory;
	error_errno(err, errno, "memory of a recorder");
	return NULL;
}

ow_status ring_view_open(struct ring_view *v, int fd, struct error *err)
{
	uint32_t capacity = RING_RECORDS_MIN;

	*v = (struct ring_view){ 0 };
	v->ring = map_sealed(fd, (size_t)ring_bytes(RING_RECORDS_MIN), &v->bytes, err);
	if (!v->ring)
		return OW_E_CORRUPT;
	while (capacity < RING_RECORDS_MAX && ring_bytes(capacity * 2) <= v->bytes)
		capacity *= 2;
	v->capacity = capacity;
	v->number = v->ring->number;
	v->next = atomic_load(&v->ring->tail);
	if (memcmp(v->ring->magic, RING_MAGIC, sizeof(v->ring->magic)) == 0 &&
	    v->ring->version == RING_VERSION && v->ring->records == capacity)
		return OW_OK;
	ring_view_close(v);
	return error_set(err, OW_E_CORRUPT, "a ring of a recorder is none, or of another version");
}

void ring_view_empty(struct ring_view *v)
{
	madvise(v->ring, v->bytes, MADV_REMOVE);
}

void ring_view_close(struct ring_view *v)
{
	if (v->ring)
		munmap(v->ring, v->bytes);
	v->ring = NULL;
}

uint32_t ring_view_pending(const struct ring_view *v)
{
	uint64_t head = atomic_load_explicit(&v->ring->head, memory_order_acquire);
	uint64_t waiting = head - v->next;

	return waiting > v->capacity
		       ? 0
		       : (uint32_t)waiting; /* more than fits: no recorder wrote that */
}

void ring_view_copy(const struct ring_view *v, struct ring_record *to, uint32_t count)
{
	const struct ring_record *records = ring_records(v->ring);
	uint32_t at = (uint32_t)v->next & (v->capacity - 1), first = MIN(count, v->capacity - at);

	memcpy(to, records + at, first * sizeof(*to));
	memcpy(to + first, records, (count - first) * sizeof(*to));
}

void ring_view_commit(struct ring_view *v, uint32_t count)
{
	v->next += count;
	atomic_store_explicit(&v->ring->tail, v->next, memory_order_release);
}

ow_status process_view_open(struct process_view *v, int fd, struct error *err)
{
	*v = (struct process_view){ 0 };
	v->process = map_sealed(fd, RING_TEXT_OFFSET, &v->bytes, err);
	if (!v->process)
		return OW_E_CORRUPT;
	if (memcmp(v->process->magic, RING_PROCESS_MAGIC, sizeof(v->process->magic)) != 0) {
		process_view_close(v);
		return error_set(err, OW_E_CORRUPT, "the memory of a recorder is none");
	}
	if (v->process->version != RING_VERSION)
		return error_set(err, OW_E_UNSUPPORTED,
				 "the recorder in the process speaks version %u, this program %u",
				 v->process->version, RING_VERSION);
	v->text_bytes = (uint32_t)MIN(v->bytes - RING_TEXT_OFFSET, (size_t)RING_TEXT_BYTES);
	return OW_OK;
}

void process_view_close(struct process_view *v)
{
	if (v->process)
		munmap(v->process, v->bytes);
	v->process = NULL;
}

struct str process_view_text(const struct process_view *v, uint32_t number, char *to)
{
	const struct ring_text *text;
	uint64_t at = (uint64_t)number * 8;
	uint32_t len;

	if (!number || at + sizeof(*text) > v->text_bytes)
		return (struct str){ 0 };
	text = (const struct ring_text *)(const void *)((const char *)v->process +
							RING_TEXT_OFFSET + at);
	len = *(const volatile uint32_t *)&text->len;
	if (len > RING_TEXT_MAX || at + sizeof(*text) + len > v->text_bytes)
		return (struct str){ 0 };
	memcpy(to, text->bytes, len);
	return str_make(to, len);
}
