/* findings.h: what the advice rules found, as paragraphs for people. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "cli/words.h"

struct findings_style {
	FILE *to;
	uint32_t width; /* line width; 0 = lines are not broken */
	bool colour;
	/* for the overview: only the most important findings, without repetitions */
	bool brief;
	const char *title; /* title before the first finding, or NULL */
	uint32_t limit;	   /* number of findings to print; 0 = all */
};

/* Writes the result of ow_advise. */
void findings_print(const ow_result *result, const struct findings_style *style);

#endif
