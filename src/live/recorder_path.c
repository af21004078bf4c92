/* recorder_path.c: where the recorder's library is: where OPWATCH_RECORDER says, beside this program or library, or in
 * the private directory of an installation. */
#include "live/launch.h"

#include "opwatch_config.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define LIBRARY "libopwatch-recorder.so"

static bool is_beside(const char *file, const char *where, char *path, size_t size)
{
	char real[PATH_MAX], found[PATH_MAX + 64];
	char *slash;
	int len;

	if (!realpath(file, real))
		return false;
	slash = strrchr(real, '/');
	if (!slash)
		return false;
	len = snprintf(found, sizeof(found), "%.*s/%s" LIBRARY, (int)(slash - real), real, where);
	if (len <= 0 || (size_t)len >= sizeof(found) || access(found, R_OK) != 0 ||
	    !realpath(found, real))
		return false;
	len = snprintf(path, size, "%s", real);
	return len > 0 && (size_t)len < size;
}

ow_status recorder_find(char *path, size_t size, struct error *err)
{
	static const char *const places[] = { "", "../lib/opwatch/",
					      "../" OPWATCH_LIBDIR "/opwatch/", "opwatch/" };
	const char *given = getenv("OPWATCH_RECORDER");
	const char *files[2] = { NULL, "/proc/self/exe" };
	Dl_info self;

	if (given && *given) {
		char real[PATH_MAX];

		if (!realpath(given, real) || strlen(real) >= size)
			return error_errno(err, errno, "OPWATCH_RECORDER: %s", given);
		snprintf(path, size, "%s", real);
		return OW_OK;
	}
	if (dladdr((void *)(uintptr_t)is_beside, &self) && self.dli_fname &&
	    strchr(self.dli_fname, '/'))
		files[0] = self.dli_fname;
	for (size_t f = 0; f < ARRAY_COUNT(files); f++)
		for (size_t i = 0; files[f] && i < ARRAY_COUNT(places); i++)
			if (is_beside(files[f], places[i], path, size))
				return OW_OK;
	return error_set(err, OW_E_UNSUPPORTED,
			 LIBRARY " was not found beside this program nor in lib/opwatch; set "
				 "OPWATCH_RECORDER to its path");
}
