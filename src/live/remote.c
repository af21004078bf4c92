/* remote.c: see remote.h. */
#include "live/remote.h"

#include <errno.h>
#include <sys/uio.h>

_Static_assert(ESRCH == 3, "remote_is_gone");

bool remote_read(struct remote *r, uint64_t at, void *to, size_t len)
{
	const struct remote_part part = { at, to, len };

	return remote_read_parts(r, &part, 1) == 1;
}

size_t remote_read_parts(struct remote *r, const struct remote_part *parts, size_t count)
{
	struct iovec local[REMOTE_PARTS], there[REMOTE_PARTS];
	size_t whole = 0;
	ssize_t got;

	OW_ASSERT(count <= REMOTE_PARTS);
	if (!count)
		return 0;
	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){ parts[i].to, parts[i].len };
		there[i] = (struct iovec){ (void *)(uintptr_t)parts[i].at, parts[i].len };
	}
	r->reads++;
	got = process_vm_readv(r->pid, local, count, there, count, 0);
	if (got < 0) {
		r->failure = errno;
		return 0;
	}
	for (size_t left = (size_t)got; whole < count && left >= parts[whole].len; whole++)
		left -= parts[whole].len;
	if (whole < count)
		r->failure = EFAULT;
	return whole;
}
