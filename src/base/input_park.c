/*
 * input_park.c: inputs that hold no descriptor of their own, for jobs of thousands of ranks. A file on disk is
 * opened again for every read, and must be the one it was; what is in a temporary file moves to one that
 * many inputs share, a part each. import.c and merge/sources.c park what is beyond the first few.
 */
#include "base/input_int.h"
#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

struct input_pool {
	struct mem *mem;
	int fd;
	uint64_t end;
	pthread_mutex_t lock; /* of end */
	atomic_uint users;    /* inputs, and whoever made it */
};

static struct input_pool *pool_new(struct mem *mem, struct error *err)
{
	struct input_pool *pool = mem_zalloc(mem, sizeof(*pool));

	if (!pool) {
		error_no_memory(err);
		return NULL;
	}
	pool->fd = temp_file_open(err);
	if (pool->fd < 0) {
		mem_free(mem, pool, sizeof(*pool));
		return NULL;
	}
	pool->mem = mem;
	pthread_mutex_init(&pool->lock, NULL);
	atomic_init(&pool->users, 1);
	return pool;
}

void input_pool_release(struct input_pool *pool)
{
	if (!pool || atomic_fetch_sub(&pool->users, 1) != 1)
		return;
	close(pool->fd);
	pthread_mutex_destroy(&pool->lock);
	mem_free(pool->mem, pool, sizeof(*pool));
}

static ow_status copy(const struct input *in, int fd, uint64_t to, void *piece, struct error *err)
{
	for (uint64_t at = 0; at < in->size;) {
		size_t len = (size_t)MIN((uint64_t)PIECE, in->size - at);

		OW_TRY(input_read_at(in, at, piece, len, err));
		OW_TRY(temp_file_write(fd, to + at, piece, len, err));
		at += len;
	}
	return OW_OK;
}

static ow_status move_to(struct input *in, struct input_pool *pool, struct error *err)
{
	void *piece = mem_alloc(in->mem, PIECE);
	ow_status status;

	if (!piece)
		return error_no_memory(err);
	pthread_mutex_lock(&pool->lock);
	status = copy(in, pool->fd, pool->end, piece, err);
	if (status == OW_OK) {
		close(in->fd);
		in->fd = pool->fd;
		in->base = pool->end;
		in->pool = pool;
		pool->end += in->size;
		atomic_fetch_add(&pool->users, 1);
	}
	pthread_mutex_unlock(&pool->lock);
	mem_free(in->mem, piece, PIECE);
	return status;
}

ow_status input_park(struct input *in, struct input_pool **pool, struct error *err)
{
	if (in->fd < 0 || in->borrowed || in->pool)
		return OW_OK;
	if (in->regular) {
		close(in->fd);
		in->fd = -1;
		in->parked = true;
		return OW_OK;
	}
	if (!*pool)
		*pool = pool_new(in->mem, err);
	return *pool ? move_to(in, *pool, err) : err ? err->status : OW_E_IO;
}

int input_reopen(const struct input *in, struct error *err)
{
	int fd = open(in->name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		error_errno(err, errno, "%s: was to be read once more", in->name);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (st.st_ino == in->inode && (uint64_t)st.st_size == in->size &&
	    st.st_mtim.tv_sec == in->mtime.tv_sec && st.st_mtim.tv_nsec == in->mtime.tv_nsec)
		return fd;
	close(fd);
	error_set(err, OW_E_IO,
		  "%s: the file was changed while it was in use; open it again when its writer is "
		  "done",
		  in->name);
	return -1;
}
