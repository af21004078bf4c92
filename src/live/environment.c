/* environment.c: see environment.h. */
#include "live/environment.h"

#include "live/proc.h"
#include "live/symbols.h"
#include "wire/ring.h"

#include <unistd.h>

#define VARIABLES 12

struct variable {
	const char *name, *value;
};

/* The value that is there, and ours behind it. */
static const char *extended(struct arena *arena, const char *name, const char *value)
{
	const char *there = getenv(name);

	if (!there || !*there)
		return value;
	if (strstr(there, value)) /* a job that records itself once more */
		return there;
	return arena_printf(arena, "%s:%s", there, value);
}

static bool is_named(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

static char **merge(struct arena *arena, const struct variable *variables, size_t count)
{
	size_t there = 0, at = 0;
	char **env;

	while (environ[there])
		there++;
	env = ARENA_ARRAY(arena, char *, there + count + 1);
	if (!env)
		return NULL;
	for (size_t i = 0; i < there; i++) {
		bool replaced = false;

		for (size_t k = 0; k < count; k++)
			replaced |= is_named(environ[i], variables[k].name);
		if (!replaced)
			env[at++] = environ[i];
	}
	for (size_t k = 0; k < count; k++) {
		env[at] =
			(char *)arena_printf(arena, "%s=%s", variables[k].name, variables[k].value);
		if (!env[at++])
			return NULL;
	}
	return env;
}

/* Of these there can be one only, and the user's own stays. A recorder that was built without that part is none. */
static void add_plugin(struct variable *list, size_t *count, const char *name, const char *recorder,
		       const char *symbol)
{
	const char *there = getenv(name);
	uint64_t offset;

	if ((!there || !*there) && symbol_offset(recorder, symbol, &offset))
		list[(*count)++] = (struct variable){ name, recorder };
}

static unsigned long own_filters(void)
{
	char text[4096];

	return proc_read(getpid(), "status", text, sizeof(text)) > 0 ? ring_filters(text) : 0;
}

char *const *environment_make(struct arena *arena, const char *recorder, const char *socket_path,
			      uint32_t ring_records)
{
	struct variable list[VARIABLES];
	size_t count = 0;

	list[count++] = (struct variable){ "LD_PRELOAD", extended(arena, "LD_PRELOAD", recorder) };
	list[count++] =
		(struct variable){ "OPENCL_LAYERS", extended(arena, "OPENCL_LAYERS", recorder) };
	add_plugin(list, &count, "NCCL_PROFILER_PLUGIN", recorder, "ncclProfiler_v5");
	add_plugin(list, &count, "CUDA_INJECTION64_PATH", recorder, "InitializeInjection");
	list[count++] = (struct variable){ RING_ENV_SOCKET, socket_path };
	list[count++] =
		(struct variable){ RING_ENV_VERSION, arena_printf(arena, "%u", RING_VERSION) };
	list[count++] =
		(struct variable){ RING_ENV_FILTERS, arena_printf(arena, "%lu", own_filters()) };
	if (ring_records)
		list[count++] = (struct variable){ RING_ENV_RECORDS,
						   arena_printf(arena, "%u", ring_records) };
	for (size_t i = 0; i < count; i++)
		if (!list[i].value)
			return NULL;
	return merge(arena, list, count);
}
