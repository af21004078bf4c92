/*
 * signals.h: for commands that leave nothing half-done: a signal sets `interrupted`, the work is undone, and
 * then the signal does what it does to others. What was ignored stays ignored.
 */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "base/base.h"

void signals_catch(void);
bool signals_caught(void);
/* Does not return when one was caught. */
void signals_pass_on(void);

#endif
