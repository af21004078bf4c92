/*
 * ext.h: declarations that the files of the extension module _opwatch share. The module calls the public headers for
 * Python and does nothing else; the package's Python files define the interface. It is written against the limited API
 * of CPython 3.8, so that one build serves every later version. The GIL is released around every call of the library
 * that may take long.
 */
#ifndef EXT_EXT_H
#define EXT_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <opwatch/opwatch.h>
#include <opwatch/record.h>
#include <opwatch/sql.h>

#include <stdatomic.h>

/* Runs a statement that calls the library without holding the GIL. */
#define WITHOUT_GIL(statement)                                                                     \
	do {                                                                                       \
		PyThreadState *state_ = PyEval_SaveThread();                                       \
		statement;                                                                         \
		PyEval_RestoreThread(state_);                                                      \
	} while (0)

/* module.c: raises opwatch.Error or one of its subclasses, and returns NULL. */
PyObject *raise_status(const struct ow_error *err);

/* options.c: converts keyword arguments to one of the option structs of the public headers. */
enum field_kind {
	FIELD_BOOL,
	FIELD_INT32,
	FIELD_UINT32,
	FIELD_INT64,
	FIELD_UINT64,
	FIELD_TEXT, /* None or str */
	FIELD_LIST, /* a str, or an iterable of them */
	FIELD_ALIGN
};
struct field {
	const char *name;
	enum field_kind kind;
	size_t offset;
};
/* Fills an option struct. Texts live as long as `keep`, a list that the caller makes and drops after the call.
 * False: an exception is set. `options` may be NULL or None. */
bool fields_fill(const struct field *fields, void *to, PyObject *options, PyObject *keep);
/* Converts paths to the file system encoding. */
bool paths_fill(struct ow_list *list, PyObject *value, PyObject *keep);
bool list_fill(struct ow_list *list, PyObject *value, const char *name, PyObject *keep);
extern const struct field open_fields[], view_fields[], write_fields[], timeline_fields[],
	merge_fields[], sql_fields[], ask_fields[], export_fields[], hang_fields[], ranks_fields[];
/* The names of the fields in a table, as a tuple. */
PyObject *field_names(const struct field *fields);

/* progress.c: called back while the library works: for Ctrl-C, and for the user's own callable. */
struct watch {
	PyObject *callable;		/* may be NULL */
	PyObject *type, *value, *trace; /* the exception that the callable raised */
	/* the thread that made the call: only this thread handles signals */
	unsigned long thread;
	_Atomic int64_t last_ns;
	_Atomic bool stop;
};
void watch_init(struct watch *watch, PyObject *callable);
bool watch_progress(void *arg, const char *file, uint64_t done, uint64_t total);
/* Called after the library call: true, with an exception set, when the callback ended it. */
bool watch_failed(struct watch *watch);

/* A library profile, shared by the Python profile and the results made from it: it is freed with the last of them, so
 * that results outlive close(). References are counted without the GIL, because results that were passed on through
 * Arrow may end in threads of other libraries.
 */
struct handle {
	ow_profile *profile;
	struct watch watch; /* state of the call that loads; the library keeps its address */
	bool loading;	    /* a thread is loading */
	size_t asking;	    /* number of threads that read the profile */
	atomic_size_t refs;
};
void handle_take(struct handle *handle);
/* Drops a reference; freeing the last one takes time, so call it WITHOUT_GIL. */
void handle_drop(struct handle *handle);

/* Collects the bytes that a sink writes, for a str or bytes object. */
struct sink_bytes {
	char *bytes;
	size_t len, cap;
	bool no_memory;
};
bool sink_bytes_write(void *arg, const void *bytes, size_t len);
void sink_bytes_free(struct sink_bytes *out);

/* Each function adds its type to the module; returns the type, a new reference, or NULL. */
PyObject *profile_type_add(PyObject *module);
PyObject *result_type_add(PyObject *module);
PyObject *recorder_type_add(PyObject *module);
PyObject *sql_type_add(PyObject *module);
PyObject *ui_type_add(PyObject *module);
/* The handle, borrowed, of a _opwatch.Profile that is open and not being loaded; NULL and an exception for anything
 * else. */
struct handle *profile_handle(PyObject *object);
/* Makes a Result object; takes ownership of the result, also on failure. handle NULL: the result does not belong to
 * a profile. */
PyObject *result_wrap(struct handle *handle, ow_result *result);

PyObject *merge_files(PyObject *self, PyObject *args);
PyObject *diff_profiles(PyObject *self, PyObject *args);
PyObject *hang_files(PyObject *self, PyObject *args);
PyObject *ranks_files(PyObject *self, PyObject *args);

/* tables.c: the profiles that are runs of a query or an export. */
struct run_handles {
	struct handle **handles;
	size_t count;
};
/* Converts a list of (name, Profile) to an array that the caller frees; NULL and an exception on failure. Texts live
 * as long as `keep`; the handles are held, also on failure, until runs_drop. */
struct ow_run *runs_take(PyObject *list, struct run_handles *to, PyObject *keep);
void runs_drop(struct run_handles *runs);
/* Named queries, and tables as files. */
PyObject *ask_query(PyObject *self, PyObject *args);
PyObject *list_queries(PyObject *self, PyObject *args);
PyObject *export_tables(PyObject *self, PyObject *args);

#endif
