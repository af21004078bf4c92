/*
 * ui.h: the web page: a server inside this process shows a profile in a browser, and a report writes the same page as
 * one HTML file. Part of the public interface; opwatch.h explains the rules for errors, ownership, structs and threads.
 */
#ifndef OPWATCH_UI_H
#define OPWATCH_UI_H

#include "opwatch/opwatch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A running server. It answers on the loopback address only, unless options.listen says otherwise, and only requests
 * that carry its random token. */
typedef struct ow_ui ow_ui;

struct ow_ui_options {
	size_t size;
	const struct ow_open_options *open; /* options for reading the files; NULL = the defaults */
	const char *listen;		    /* IP address to listen on; NULL = 127.0.0.1 */
	uint32_t port;			    /* port to listen on; 0 = any free port */
	const char *socket; /* path of a UNIX socket in place of an address and port */
	/* Folder whose source files the page may show; NULL = the working directory. Only files that the profile names are
	 * shown. */
	const char *source_dir;
	/* Socket of the daemon whose jobs the page lists; NULL = the daemon of the user, otherwise root's. */
	const char *daemon_socket;
	/* For ow_ui_open only: files of another run to compare with; empty = none. */
	struct ow_list base;
	/* For ow_ui_open only: name of the daemon's job whose recording (cut with ow_job_cut) is the only
	 * file; NULL = none. While the page is open, it cuts the recording again, to the same path, so
	 * that the timeline shows new data. */
	const char *job;
	int64_t job_last_ns; /* length of the cut; 0 = up to the end of the job */
};
OW_API void ow_ui_options_init(struct ow_ui_options *options);

/* Starts the server and opens the files in the background: the page is there at once and shows the progress. Without
 * files the page lists the jobs of the daemon. The caller closes *ui. */
OW_API OW_MUST_CHECK ow_status ow_ui_open(const char *const *paths, size_t count,
					  const struct ow_ui_options *options, ow_ui **ui,
					  struct ow_error *err);
/* Starts the server for a frozen profile, which must live until ow_ui_close. */
OW_API OW_MUST_CHECK ow_status ow_ui_open_profile(ow_profile *profile,
						  const struct ow_ui_options *options, ow_ui **ui,
						  struct ow_error *err);
/* Stops the server and frees the profile that it opened. Cancels loading. */
OW_API void ow_ui_close(ow_ui *ui);

/* Returns the address to open in a browser. It contains the token: show it to the user only. Empty for a UNIX socket. */
OW_API const char *ow_ui_address(const ow_ui *ui);
/* Returns the token, which a request carries in the header X-Opwatch-Token. */
OW_API const char *ow_ui_token(const ow_ui *ui);

typedef enum ow_ui_state {
	OW_UI_LOADING,
	OW_UI_READY,
	OW_UI_FAILED, /* the files could not be opened, or the user cancelled */
	OW_UI_JOBS    /* there are no files: the page shows the jobs of the daemon */
} ow_ui_state;
/* Returns the state of loading. If loading failed, *err (may be NULL) is filled. May be called from any
 * thread. */
OW_API ow_ui_state ow_ui_progress(ow_ui *ui, struct ow_error *err);

/* Returns whether this build has the page. If not, *why (may be NULL) says what to install; the string is static. */
OW_API bool ow_ui_available(const char **why);

/* ---- a report ----------------------------------------------------------------------------------- */

struct ow_report_options {
	size_t size;
	/* largest size of the report; 5 MB by default. Data that does not fit is left out, and
	 * the page says so. */
	uint64_t max_bytes;
	const char *title; /* title of the page; NULL = the names of the files */
	/* profile that the page Compare shows as the base; NULL = the page is left out */
	ow_profile *base;
	/* For sides with several runs: the profile of each run, the base's runs first. NULL = base and
	 * profile are one run each. */
	ow_profile *const *runs;
	size_t base_runs, new_runs;
};
OW_API void ow_report_options_init(struct ow_report_options *options);

/* Writes a frozen profile as one HTML file: the page with its data, for readers without opwatch. It opens from disk
 * and loads nothing. The timeline is coarse. */
OW_API OW_MUST_CHECK ow_status ow_report_write(ow_profile *profile,
					       const struct ow_report_options *options,
					       ow_write_fn write, void *arg, struct ow_error *err);
/* Writes the report to a file. On failure an existing file stays as it was. */
OW_API OW_MUST_CHECK ow_status ow_report_write_file(ow_profile *profile,
						    const struct ow_report_options *options,
						    const char *path, struct ow_error *err);

#ifdef __cplusplus
}
#endif
#endif
