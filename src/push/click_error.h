/*
 * click_error.h: what a server's refusal means: its exception's number and text, whether it may pass, and
 * which words of ours go with it. Used by click.c.
 */
#ifndef PUSH_CLICK_ERROR_H
#define PUSH_CLICK_ERROR_H

#include "push/click.h"

/* Number and text of "Code: 62, e.displayText() = DB::Exception: Syntax error …, e.what() = …" (up to 2019)
 * or "Code: 62. DB::Exception: Syntax error … (SYNTAX_ERROR) (version …)". 0 when it is neither. */
int click_exception(struct str answer, struct str *text);

/* Sets click->code and click->transient from an answer that is not good, and the error. */
ow_status click_failure(struct click *click, const struct http_answer *answer, struct error *err);

#endif
