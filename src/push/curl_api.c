/* curl_api.c: see curl_api.h. Never unloads: libcurl keeps process-wide state of its TLS library. */
#include "push/curl_api.h"

#if OPWATCH_HAVE_CURL

#include <dlfcn.h>
#include <pthread.h>

/* Set once, under the pthread_once; constant from then on. */
static struct curl_api loaded;
static char why[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *open_library(void)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so" };
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static void load(void)
{
	void *library = open_library();
	const struct {
		const char *name;
		void *to;
	} wanted[] = {
		{ "curl_easy_init", &loaded.easy_init },
		{ "curl_easy_setopt", &loaded.easy_setopt },
		{ "curl_easy_perform", &loaded.easy_perform },
		{ "curl_easy_getinfo", &loaded.easy_getinfo },
		{ "curl_easy_cleanup", &loaded.easy_cleanup },
		{ "curl_easy_reset", &loaded.easy_reset },
		{ "curl_easy_strerror", &loaded.easy_strerror },
		{ "curl_slist_append", &loaded.slist_append },
		{ "curl_slist_free_all", &loaded.slist_free_all },
		{ "curl_global_init", &loaded.global_init },
	};

	if (!library) {
		snprintf(why, sizeof(why), "libcurl was not found on this machine");
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
		void *symbol = dlsym(library, wanted[i].name);

		if (!symbol) {
			snprintf(why, sizeof(why), "the libcurl on this machine lacks %s",
				 wanted[i].name);
			return;
		}
		memcpy(wanted[i].to, &symbol, sizeof(symbol));
	}
	if (loaded.global_init(CURL_GLOBAL_ALL) != CURLE_OK)
		snprintf(why, sizeof(why), "libcurl could not be started");
}

ow_status curl_api_get(const struct curl_api **api, struct error *err)
{
	pthread_once(&once, load);
	*api = &loaded;
	if (!why[0])
		return OW_OK;
	return error_set(err, OW_E_UNSUPPORTED,
			 "%s; it is needed to talk to a server (Debian: apt install libcurl4)",
			 why);
}

#else

ow_status curl_api_get(const struct curl_api **api, struct error *err)
{
	*api = NULL;
	return error_set(err, OW_E_UNSUPPORTED,
			 "this opwatch was built without libcurl and cannot talk to a server; "
			 "install libcurl4-openssl-dev and build again");
}

#endif
