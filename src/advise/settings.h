/*
 * settings.h: what a user changes about the advice: rules that are muted, and from which part of a step on a saving is medium or high. Read from
 * opwatch.toml, or set by options of the program; the model carries them, so that every reader gives the same advice.
 */
#ifndef ADVISE_SETTINGS_H
#define ADVISE_SETTINGS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

#define SETTINGS_RULES_MOST 64

struct advice_settings {
	const char *muted[SETTINGS_RULES_MOST]; /* names of muted rules, as in rules.def */
	size_t muted_count;
	double remark, medium, high; /* limits of the severities, as parts of a step */
};

#define ADVICE_SETTINGS_DEFAULT                                                                    \
	{                                                                                          \
		.remark = 0.01, .medium = 0.03, .high = 0.10                                       \
	}

/* Parses the text of a settings file; `name` is for messages. Returns OW_E_USAGE with the line and the
 * nearest known name if a key or a rule is unknown. */
ow_status settings_parse(struct advice_settings *s, struct str text, const char *name,
			 struct ow_error *err);
/* Mutes a rule. Returns OW_E_USAGE if no rule has that name. */
ow_status settings_mute(struct advice_settings *s, struct str rule, struct ow_error *err);
/* Checks that remark <= medium <= high and that all are from 0 to 1. */
ow_status settings_check(const struct advice_settings *s, struct ow_error *err);

#endif
