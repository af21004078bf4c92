/* findings.h: what the advice rules found, as paragraphs for people. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "cli/words.h"

struct findings_style {
	FILE *to;
	uint32_t width; /* 0 = lines are not broken */
	bool colour;
	bool brief;	   /* for the overview: what matters most, without what it says anyway */
	const char *title; /* written before the first finding, or NULL */
	uint32_t limit;	   /* findings; 0 = all */
};

/* Writes the result of ow_advise. */
void findings_print(const ow_result *result, const struct findings_style *style);

#endif
