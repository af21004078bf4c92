/* scratch.c: see scratch.h. */
#include "cli/scratch.h"

#include "cli/command.h"
#include "cli/signals.h"

#include <errno.h>
#include <unistd.h>

bool scratch_make(struct scratch *scratch, struct arena *arena, const char *name)
{
	const char *base = getenv("TMPDIR");
	char *folder = arena_printf(arena, "%s/opwatch-XXXXXX", base && *base ? base : "/tmp");
	char *path;

	*scratch = (struct scratch){ 0 };
	if (!folder || !mkdtemp(folder)) {
		complain("opwatch: %s: %s\n", folder ? folder : "memory", strerror(errno));
		return false;
	}
	path = arena_printf(arena, "%s/%s", folder, name);
	if (!path) {
		rmdir(folder);
		complain("opwatch: no memory\n");
		return false;
	}
	*scratch = (struct scratch){ folder, path };
	signals_guard_cut(path, folder);
	return true;
}

void scratch_drop(struct scratch *scratch)
{
	if (!scratch->path)
		return;
	unlink(scratch->path);
	rmdir(scratch->folder);
	signals_guard_end();
	*scratch = (struct scratch){ 0 };
}
