/*
 * gradient.h: which op an op is a gradient of, by TensorFlow's way of naming them. All gradients are
 * created by one line of code; views that go by lines show them beside the op that they belong to.
 */
#ifndef ANALYZE_GRADIENT_H
#define ANALYZE_GRADIENT_H

#include "base/str.h"

/* "…gradients/NAME_grad/…" is a gradient of NAME; tfprof looks for the first of each. */
bool gradient_of(struct str name, struct str *forward);

#endif
