/*
 * duckdb_lib.c: finds DuckDB's shared library and looks up the functions that we use. Places, in this order: the
 * variable OPWATCH_DUCKDB; beside this program or library, and in the private directory of an installation; the
 * system's linker.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "sql/sql_int.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#define LIBRARY "libduckdb.so"
#define HOW_TO_GET_IT                                                                              \
	"'make setup-sql all' in opwatch's source directory fetches it, or set OPWATCH_DUCKDB to " \
	"the path of " LIBRARY ", version 1.4 or later"

static void *open_library(const char *path)
{
	/* The library's threads and tables outlive a session, so it cannot be unloaded. Lazy binding, because it has
	 * 24,000 calls through names, of which a query needs few: resolving all of them took a fifth of a small
	 * query's time. */
	return dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

/* Tries to open the library at a path relative to a file's folder; links are followed. */
static void *open_beside(const char *file, const char *where, char *path, size_t size)
{
	char real[PATH_MAX];
	char *slash;
	int len;

	if (!realpath(file, real))
		return NULL;
	slash = strrchr(real, '/');
	if (!slash)
		return NULL;
	len = snprintf(path, size, "%.*s/%s%s", (int)(slash - real), real, where, LIBRARY);
	return len > 0 && (size_t)len < size && access(path, R_OK) == 0 ? open_library(path) : NULL;
}

/* Tries to open the library beside the file that contains this code: our library, or the program (whose path is
 * known only as it was called). */
static void *open_own(struct duckdb_lib *lib)
{
	static const char *const places[] = { "", "../lib/opwatch/",
					      "../" OPWATCH_LIBDIR "/opwatch/", "opwatch/" };
	const char *files[2] = { NULL, "/proc/self/exe" };
	Dl_info self;
	void *handle = NULL;

	if (dladdr((void *)(uintptr_t)open_library, &self) && self.dli_fname &&
	    strchr(self.dli_fname, '/'))
		files[0] = self.dli_fname;
	for (size_t f = 0; f < ARRAY_COUNT(files); f++)
		for (size_t i = 0; files[f] && !handle && i < ARRAY_COUNT(places); i++)
			handle = open_beside(files[f], places[i], lib->path, sizeof(lib->path));
	return handle;
}

static void *find_library(struct duckdb_lib *lib, struct ow_error *err)
{
	const char *given = getenv("OPWATCH_DUCKDB");
	void *handle;

	if (given && *given) {
		snprintf(lib->path, sizeof(lib->path), "%s", given);
		handle = open_library(given);
		if (!handle)
			error_set(err, OW_E_UNSUPPORTED, "OPWATCH_DUCKDB: %s", dlerror());
		return handle;
	}
	handle = open_own(lib);
	if (handle)
		return handle;
	snprintf(lib->path, sizeof(lib->path), "%s", LIBRARY);
	handle = open_library(LIBRARY);
	if (!handle)
		error_set(err, OW_E_UNSUPPORTED,
			  "SQL needs DuckDB, and %s was not found; " HOW_TO_GET_IT, LIBRARY);
	return handle;
}

/* Dictionary vectors made through the C interface have no size and no id, so DuckDB hashes every row's text again.
 * With the size it hashes each text once; with an id, too, it looks up each text once, be it in GROUP BY or in a
 * function like LIKE. The member functions that set both are among the library's symbols. They are called only in
 * the version that was tested, and only if the build enables them (OPWATCH_DUCKDB_INTERNALS; the environment
 * variable of that name turns them off with 0). Without them queries have the same results and take longer. That
 * version makes the hashes at their first use without a lock, and threads that share a dictionary would see half of
 * them: scan.c requests them beforehand. */
static void find_dictionary(struct duckdb_lib *lib, void *handle)
{
	lib->dictionary = NULL;
#ifdef OPWATCH_DUCKDB_INTERNALS
	static const char make[] = "_ZN6duckdb6Vector10DictionaryERS0_mRKNS_15SelectionVectorEm",
			  hash[] = "_ZN6duckdb16DictionaryVector15GetCachedHashesERNS_6VectorE",
			  name[] = "_ZN6duckdb6Vector26DebugTransformToDictionaryERS0_m";
	const char *wanted = getenv("OPWATCH_DUCKDB_INTERNALS");

	if (strcmp(lib->library_version(), "v1.4.4") != 0 || (wanted && strcmp(wanted, "0") == 0))
		return;
	lib->hash_dictionary = (__typeof__(lib->hash_dictionary))(uintptr_t)dlsym(handle, hash);
	lib->name_dictionary = (__typeof__(lib->name_dictionary))(uintptr_t)dlsym(handle, name);
	if (lib->hash_dictionary && lib->name_dictionary)
		lib->dictionary = (__typeof__(lib->dictionary))(uintptr_t)dlsym(handle, make);
#else
	(void)handle;
#endif
}

static ow_status load(struct duckdb_lib *lib, struct ow_error *err)
{
	void *handle = find_library(lib, err);
	const char *missing = NULL;

	if (!handle)
		return OW_E_UNSUPPORTED;
#define DUCKDB(name)                                                                               \
	lib->name = (__typeof__(lib->name))(uintptr_t)dlsym(handle, "duckdb_" #name);              \
	if (!lib->name)                                                                            \
		missing = #name;
#include "sql/duckdb_functions.def"
#undef DUCKDB
	if (!missing)
		find_dictionary(lib, handle);
	if (missing)
		return error_set(err, OW_E_UNSUPPORTED,
				 "%s is too old: it has no duckdb_%s; " HOW_TO_GET_IT, lib->path,
				 missing);
	return OW_OK;
}

/* A library is loaded into a process, not into a session, and DuckDB passes only its own handles to our functions.
 * So this is state of the process. It is written once, under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct duckdb_lib loaded;
static bool is_loaded;

ow_status duckdb_lib_load(const struct duckdb_lib **lib, struct ow_error *err)
{
	ow_status status = OW_OK;

	pthread_mutex_lock(&lock);
	if (!is_loaded) {
		status = load(&loaded, err);
		is_loaded = status == OW_OK;
	}
	pthread_mutex_unlock(&lock);
	*lib = &loaded;
	return status;
}

const struct duckdb_lib *duckdb_lib(void)
{
	return &loaded;
}

bool sql_available(char *text, size_t size)
{
	const struct duckdb_lib *lib;
	struct ow_error err = { 0 };

	if (duckdb_lib_load(&lib, &err) != OW_OK) {
		snprintf(text, size, "%s", err.text);
		return false;
	}
	snprintf(text, size, "DuckDB %s (%s)", lib->library_version(), lib->path);
	return true;
}

#endif
