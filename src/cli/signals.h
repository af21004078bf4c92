/*
 * signals.h: for commands that leave nothing half-done: a signal sets `interrupted`, the work is undone, and
 * then the signal does what it does to others. What was ignored stays ignored.
 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "base/base.h"

void signals_catch(void);
bool signals_caught(void);
/* They do again what they did. */
void signals_release(void);
/* Does not return when one was caught. */
void signals_pass_on(void);

/* For the time of ow_job_cut, and as long as what it wrote is needed: a signal that ends the program removes the file while
 * it is written, and with a folder, which is ours, also the file and the folder. Who calls signals_catch, or has a
 * handler of another kind, takes over. */
void signals_guard_cut(const char *file, const char *folder);
void signals_guard_end(void);

#endif
