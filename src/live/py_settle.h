/*
 * py_settle.h: reads one thread until what was read is a stack that was there; used by py_process.c alone.
 *
 * A reading is taken when its marks are those of a whole stack (py_walk.h), its inner frames were copied at once, and
 * the outer ones, copied some hundred nanoseconds earlier or later, are those of the reading before, with the same
 * instructions: of two moments with the same outer frames either will do. Adjacent frames are copied within some ten
 * nanoseconds, less than a call takes, unless we are interrupted in between: readings that took longer than usual are
 * not believed. Before 3.11 frames lie here and there; then three readings in a row must agree.
 *
 * A thread that has lost its processor in the middle of a call stays there: many readings in a row are the same, to
 * the instruction, and are believed without the innermost mark.
 */
#ifndef LIVE_PY_SETTLE_H
#define LIVE_PY_SETTLE_H

#include "live/py_walk.h"

/* thread->raw becomes what is accepted. */
enum py_walk_result py_settle(struct py_process *p, struct py_thread *thread, struct py_head *head);

#endif
