/* disk_ring.c: see disk_ring.h. */
#include "live/disk_ring.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

void disk_ring_path(const struct disk_ring *ring, uint32_t number, char *path, size_t size)
{
	snprintf(path, size, "%s/%06u.opw", ring->folder, number);
}

/* The number of a file; 0 when it is none of ours. */
static uint32_t number_of(const char *name)
{
	char again[32];
	unsigned long number = strtoul(name, NULL, 10);

	if (!number || number > INT32_MAX)
		return 0;
	snprintf(again, sizeof(again), "%06lu.opw", number);
	return strcmp(again, name) == 0 ? (uint32_t)number : 0;
}

/* The lowest and the highest number. */
static ow_status find_range(struct disk_ring *ring, struct error *err)
{
	const struct dirent *entry;
	DIR *dir = opendir(ring->folder);

	if (!dir)
		return error_errno(err, errno, "%s", ring->folder);
	while ((entry = readdir(dir)) != NULL) {
		uint32_t number = number_of(entry->d_name);

		if (!number)
			continue;
		ring->first = ring->first ? MIN(ring->first, number) : number;
		ring->last = MAX(ring->last, number);
	}
	closedir(dir);
	return OW_OK;
}

static uint64_t size_of(const struct disk_ring *ring, uint32_t number)
{
	char path[JOBS_PATH + 32];
	struct stat st;

	disk_ring_path(ring, number, path, sizeof(path));
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static bool reserve(struct disk_ring *ring, size_t count)
{
	void *sizes = ring->sizes;

	if (!mem_grow(ring->mem, &sizes, &ring->cap, count, sizeof(*ring->sizes)))
		return false;
	ring->sizes = sizes;
	return true;
}

static size_t count_of(const struct disk_ring *ring)
{
	return ring->first ? ring->last - ring->first + 1 : 0;
}

ow_status disk_ring_open(struct disk_ring *ring, struct mem *mem, const char *folder,
			 struct error *err)
{
	*ring = (struct disk_ring){ .mem = mem };
	snprintf(ring->folder, sizeof(ring->folder), "%s", folder);
	OW_TRY(find_range(ring, err));
	if (count_of(ring) > 65536) /* somebody else's files: only the last ones can be ours */
		ring->first = ring->last;
	if (!reserve(ring, count_of(ring) + 1)) {
		disk_ring_release(ring);
		return error_no_memory(err);
	}
	for (uint32_t i = 0; i < count_of(ring); i++) {
		ring->sizes[i] = size_of(ring, ring->first + i);
		ring->bytes += ring->sizes[i];
	}
	return OW_OK;
}

void disk_ring_release(struct disk_ring *ring)
{
	mem_free(ring->mem, ring->sizes, ring->cap * sizeof(*ring->sizes));
	ring->sizes = NULL;
	ring->cap = 0;
}

void disk_ring_rest(struct disk_ring *ring, uint64_t size)
{
	if (!ring->first)
		return;
	ring->bytes += size - ring->sizes[ring->last - ring->first];
	ring->sizes[ring->last - ring->first] = size;
}

ow_status disk_ring_next(struct disk_ring *ring, uint64_t size, char *path, size_t path_size,
			 struct error *err)
{
	if (!reserve(ring, count_of(ring) + 1))
		return error_no_memory(err);
	if (size)
		disk_ring_rest(ring, size);
	ring->last++;
	ring->first = ring->first ? ring->first : ring->last;
	ring->sizes[ring->last - ring->first] = 0;
	disk_ring_path(ring, ring->last, path, path_size);
	return OW_OK;
}

uint32_t disk_ring_trim(struct disk_ring *ring, uint64_t more, uint64_t limit)
{
	char path[JOBS_PATH + 32];
	uint32_t dropped = 0;

	while (count_of(ring) > 1 &&
	       (ring->bytes + more > limit || count_of(ring) > (size_t)DISK_RING_FILES * 4)) {
		disk_ring_path(ring, ring->first, path, sizeof(path));
		if (unlink(path) != 0 && errno != ENOENT)
			break;
		ring->bytes -= ring->sizes[0];
		memmove(ring->sizes, ring->sizes + 1, (count_of(ring) - 1) * sizeof(*ring->sizes));
		ring->first++;
		dropped++;
	}
	return dropped;
}

void disk_ring_remove(struct disk_ring *ring)
{
	char path[JOBS_PATH + 32];

	for (uint32_t i = ring->first; ring->first && i <= ring->last; i++) {
		disk_ring_path(ring, i, path, sizeof(path));
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/about", ring->folder);
	unlink(path);
	rmdir(ring->folder);
	ring->first = ring->last = 0;
	ring->bytes = 0;
}
