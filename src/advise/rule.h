/*
 * rule.h: what an advice rule is. One file rule_<name>.c exports `const struct rule rule_<name>`; one
 * line RULE(<name>) in rules.def registers it. A rule reads the model and returns findings as data;
 * wording for HTML and the like belongs to sinks. A rule that lacks its data says so (not_checked).
 */
#ifndef ADVISE_RULE_H
#define ADVISE_RULE_H

#include "analyze/view.h"

enum severity { SEVERITY_INFO, SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH };

struct finding {
	enum severity severity;
	struct str what;   /* one line, or the exact lines of tfprof's report */
	struct str where;  /* op, scope, source line or device; may be empty */
	struct str advice; /* text of the change to try */
	int64_t gain_ns;   /* estimated saving per step, 0 when unknown */
	double confidence; /* confidence from 0 to 1 */
};

struct findings {
	struct arena *arena;
	struct finding *items;
	size_t count, cap;
	struct str not_checked; /* why the rule could not run, or empty */
	struct str *messages;	/* lines that tfprof prints on standard error */
	size_t message_count, message_cap;
};

struct advice;

struct rule {
	const char *name;    /* name of the rule in rules.def */
	const char *summary; /* description of the rule in one line */
	const char *checker; /* name of the tfprof checker that the rule reproduces, or NULL */
	const char *doc;     /* name of the rule's page in docs/rules */
	/* Rules of tfprof: report findings with their texts; NULL for other rules. */
	ow_status (*check)(struct model *m, struct findings *out, struct ow_error *err);
	/* For all other rules: adds findings with their savings (advice.h). */
	ow_status (*advise)(struct advice *a, struct ow_error *err);
};

/* Adds a finding; its texts are copied. Returns OW_OK or OW_E_NO_MEMORY. */
ow_status finding_add(struct findings *out, const struct finding *finding);
ow_status finding_message(struct findings *out, struct str line);

/* Returns whether tfprof treats the device as an accelerator: its canonical (lower-case) name
 * contains gpu or sycl. */
bool rule_is_accelerator(struct str device);

#define RULE(name) extern const struct rule rule_##name;
#include "advise/rules.def"
#undef RULE

extern const struct rule *const rules[];
extern const size_t rule_count;

#endif
