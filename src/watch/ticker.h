/* ticker.h: a thread that does something twice a second, and a last time when it is stopped; for attention.c and attend.c. */
#ifndef WATCH_TICKER_H
#define WATCH_TICKER_H

#include "base/error.h"

struct ticker;

/* False: not any more. */
typedef bool (*ticker_fn)(void *arg, bool last);

/* Signals are the business of other threads. */
ow_status ticker_start(ticker_fn tick, void *arg, struct ticker **out, struct error *err);
/* Returns when the last tick has. */
void ticker_stop(struct ticker *ticker);

#endif
