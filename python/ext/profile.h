/*
 * profile.h: declarations shared by profile.c, which makes the type _opwatch.Profile, and the files with some of its
 * methods.
 */
#ifndef PYTHON_EXT_PROFILE_H
#define PYTHON_EXT_PROFILE_H

#include "ext.h"

/* Keeps the profile open while the library reads it; NULL and an exception when it cannot be read. */
struct handle *profile_enter(PyObject *object);
/* Ends a call; true when there is an exception: the one raised in the callback, or the library's error. */
bool profile_leave(struct handle *handle, struct watch *watch, ow_status status,
		   const struct ow_error *err);

/* methods in profile_write.c */
PyObject *profile_timeline(PyObject *object, PyObject *args);
PyObject *profile_timeline_memory(PyObject *object, PyObject *args);
PyObject *profile_info_json(PyObject *object, PyObject *none);
PyObject *profile_tf_profile(PyObject *object, PyObject *none);
PyObject *profile_tf_op_log(PyObject *object, PyObject *none);
/* in ui.c */
PyObject *profile_report(PyObject *object, PyObject *args);

#endif
