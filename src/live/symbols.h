/* symbols.h: where a process has its objects (/proc/PID/maps, as text) and where objects have their functions. */
#ifndef LIVE_SYMBOLS_H
#define LIVE_SYMBOLS_H

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

/* The text, ended with NUL, instead of what the buffer held. */
ow_status maps_read(pid_t pid, struct buf *text, struct error *err);
/* The lowest address of the object whose file is called so, and its path. */
bool maps_find_object(const char *text, const char *file_name, uint64_t *base, char *path,
		      size_t size);
/* The mapping that an address is in: its begin, and its path or "". */
bool maps_find_address(const char *text, uint64_t address, uint64_t *low, char *path, size_t size);

/* A function that a shared object of this machine's kind exports. */
bool symbol_offset(const char *path, const char *name, uint64_t *offset);

#endif
