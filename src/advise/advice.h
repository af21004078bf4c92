/*
 * advice.h: what the rules of `opwatch advise` work with: the steady steps of a recording, its replay, and a way to report a cost. A rule
 * selects the nodes that a cost is made of; advice.c replays the recording without them, ranks the findings and adds them up. A
 * rule that lacks its data reports why (advice_not_checked).
 *
 * saving_high is the replay with the cost at its floor, saving_low the replay with the cost as in the best step of this
 * recording; both are wider by what the replay may be off. Without a replay the share of the phase is used, and the confidence is at most medium.
 */
#ifndef ADVISE_ADVICE_H
#define ADVISE_ADVICE_H

#include "advise/rule.h"
#include "advise/settings.h"
#include "analyze/verdict/verdict.h"
#include "base/buf.h"
#include "replay/change.h"

enum framework { FRAMEWORK_UNKNOWN, FRAMEWORK_TORCH, FRAMEWORK_TENSORFLOW, FRAMEWORK_JAX };
enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

extern const char *const severity_names[];
extern const char *const confidence_names[];

/* What happens to the nodes of a cost when it is gone. */
enum effect {
	EFFECT_TIME,	/* they take no time */
	EFFECT_WAIT,	/* they take no time and wait for nothing */
	EFFECT_UNBLOCK, /* copies: the calling thread goes on at once; the copy stays */
	EFFECT_LAUNCH, /* host work and launches take no time, and there is no launch latency; tiny kernels are part of the one before */
	EFFECT_SCALE,  /* each takes its factor of the time */
	EFFECT_FUSE /* kernels: part of the one before; no launch, and no operator that prepares it */
};

struct cost {
	uint32_t *nodes;
	size_t count, cap;
	enum effect effect;
	double *factors; /* of EFFECT_SCALE, per node */
	bool in_pairs; /* what a step does not wait for, the step before may have: its best steps are two in a row */
};

struct advice_row {
	const struct rule *rule;
	bool checked;
	struct str why_not;
	enum severity severity;
	struct str what, where, advice, falsified_by;
	bool has_saving, by_mean; /* by_mean: of the mean step, outside the sum */
	bool is_bound; /* the device allows no more than high_ns; a remark, outside the sum */
	int64_t low_ns, high_ns, after_ns;
	bool has_after;
	enum confidence confidence;
	struct str evidence; /* JSON */
	struct cost cost;    /* for the replay of all findings; count 0 when there is none */
	int64_t share_ns;    /* without a replay: a part of the step */
	enum phase_class share_class; /* which part: findings about the same one are not added up */
	struct verdict_subject subject;
};

struct advice {
	struct model *m;
	struct arena *arena;  /* of rows and texts */
	struct arena scratch; /* of one rule; cleared after each */
	struct session s;
	struct steady_steps steady;
	bool several_jobs;	       /* nothing is checked then */
	bool has_steps;		       /* windows with classified events */
	int64_t step_ns;	       /* median steady step; 0 when unknown */
	uint32_t steps;		       /* steady steps in the replay */
	int64_t share_ns[CLASS_COUNT]; /* median steady step: the part of each class */
	int64_t least_ns[CLASS_COUNT]; /* the smallest part of a steady step */
	int64_t mean_ns[CLASS_COUNT];  /* the part of the mean steady step */
	int64_t ahead_ns;     /* ahead.c: the mean step of a device whose host runs ahead; else 0 */
	int64_t device_ns;    /* without launches: how long the busiest stream works per step */
	uint32_t ahead_steps; /* of which it is the mean */
	enum framework framework;
	struct advice_row *rows;
	size_t row_count, row_cap;
	int64_t if_all_ns; /* the step when all findings with a saving are gone */
	struct ow_error *err;
	struct advice_settings settings;
	const struct rule *rule; /* that runs */
	/* op_has_word: what it answered for the words of the running rule, by op, in `scratch` */
	const char *const *words;
	uint8_t *has_word;
	uint8_t *launches; /* per node of the replay: it starts device work */
};

/* Runs the rules and ranks what they find; names NULL: all of them. `tfprof` receives the messages of tfprof's rules. advice_close is due
 * in any case. */
ow_status advice_make(struct model *m, const struct ow_list *names, struct arena *arena,
		      struct advice *a, struct findings *tfprof, struct ow_error *err);
void advice_close(struct advice *a);
/* As a table with the columns and values of the contract. */
ow_status advice_table(struct advice *a, struct table *out, struct ow_error *err);

/* A sentence or two on the first finding, for the verdict; empty where there are no steps. */
void advice_headline(const struct advice *a, char *to, size_t size,
		     struct verdict_subject *subject);
/* Whether most of the step or the recording is not in the files, so findings are about the smaller part. */
bool advice_covers_little(const struct advice *a);
/* Whether the first finding is not of severity high, so other parts of the step are larger. */
bool advice_saves_little(const struct advice *a);

/* ---- replays without a cost, for advice.c (cost.c) ---- */

struct saving {
	int64_t median_ns, mean_ns; /* of the median step, and of the mean step */
	int64_t off_ns; /* how far the first may be off: steps differ, and the replay is a model */
	uint32_t steps; /* that get shorter */
};

void cost_apply(const struct advice *a, struct scenario *scenario, const struct cost *cost,
		double factor);
/* What a step gets shorter when the cost takes this part of its time and all else is as recorded. */
ow_status cost_replay(struct advice *a, const struct cost *cost, double factor, struct saving *out);
/* The cost in the cheapest steady step, or two in a row, as a part of the middle one; 1 with a single step. */
ow_status cost_best_factor(struct advice *a, const struct cost *cost, double *factor);
double replay_margin(const struct advice *a);

/* ---- for rules ---- */

static inline bool advice_replays(const struct advice *a)
{
	return a->has_steps && session_replays(&a->s) && a->steps;
}

/* Whether costs can be selected: nodes are there although they cannot be replayed. advice_report then gives the share of their time. */
static inline bool advice_has_nodes(const struct advice *a)
{
	return a->has_steps && a->s.g.node_count && a->steps;
}

/* Why the rule reports nothing; printf. */
ow_status advice_not_checked(struct advice *a, const char *format, ...) OW_PRINTF(2, 3);
/* A text in the arena of the rows; its ptr is NULL without memory, which advice_report notices. */
struct str advice_text(struct advice *a, const char *format, ...) OW_PRINTF(2, 3);

ow_status cost_add(struct advice *a, struct cost *cost, uint32_t node);
/* Whether a node counts for advice: it is in a steady step. */
bool node_is_steady(const struct advice *a, uint32_t node);
/* Median time per steady step of the nodes, and how many there are; means where most steps have none. */
int64_t cost_per_step(struct advice *a, const struct cost *cost, double *count);
/* Mean time per steady step of the nodes in which no device works: what they cost at most, without a replay. */
int64_t cost_idle_per_step(const struct advice *a, const struct cost *cost);
/* The op with the largest sum, and its line: for `where`. Python functions have no op: their times are summed by line. */
struct str cost_where(struct advice *a, const struct cost *cost);
/* The same, and the line by itself; empty when it is not known. */
struct str cost_where_line(struct advice *a, const struct cost *cost, struct str *line);
/* The longest nodes of a cost, or events of a phase in the steps that are judged, as JSON (evidence.c). */
ow_status evidence_of_cost(struct advice *a, const struct cost *cost, struct str *out);
ow_status evidence_of_class(struct advice *a, enum phase_class class, struct str *out);
/* By step: whether it is judged. NULL without memory. */
uint8_t *judged_steps(struct advice *a);
/* Without a replay: the costliest op of a phase and its line, or the name of the phase (share_where.c). */
struct str share_where(struct advice *a, enum phase_class class);
/* "20.1 ms" in a static buffer of the caller. */
#define TIME_TEXT 32
const char *time_text(char to[TIME_TEXT], int64_t ns);

struct report {
	struct str what, where, advice, falsified_by;
	enum confidence most; /* the confidence is never above this */
	bool maybe_once;      /* nothing shows that it happens in every step: a remark */
	enum phase_class class
		;	  /* its share stands for the cost without a replay; CLASS_COUNT: none */
	bool names_share; /* `what` names the share of the class, not the cost */
};

/* Replays without the cost and adds a row, if that saves something worth a remark (1 % of the step). The cost is copied. */
ow_status advice_report(struct advice *a, const struct cost *cost, const struct report *report);
/* The same where the floor is what the device could do at best: a remark, because only a trial shows how near a job gets to that. */
ow_status advice_report_bound(struct advice *a, const struct cost *cost,
			      const struct report *report);
/* What the mean steady step gets shorter without the cost, by replay; and a row for it. `what` has one %s, the saving. */
ow_status advice_saving_mean(struct advice *a, const struct cost *cost, int64_t *saving_ns);
ow_status advice_report_mean(struct advice *a, const struct cost *cost, int64_t saving_ns,
			     const char *what, struct report *report);
/* For what happens in some steps only: host events with one of the words in their name (the list ends with NULL). */
ow_status advice_report_words(struct advice *a, const char *const *words, const char *what,
			      struct report *report);
/* Without a replay: a part of a step that is given, such as the time of some nodes. */
ow_status advice_report_part(struct advice *a, const struct cost *cost, int64_t part_ns,
			     const struct report *report);
/* A row without a replay: savings are given, or negative = unknown. */
ow_status advice_remark(struct advice *a, enum severity severity, int64_t low_ns, int64_t high_ns,
			bool by_mean, const struct report *report, struct str evidence);
/* Whether a class has a noticeable share where there is no replay. */
bool share_is_large(const struct advice *a, enum phase_class class);
/* For recordings without a replay: the share of a class. */
ow_status advice_report_share(struct advice *a, enum phase_class class,
			      const struct report *report);

/* Without launches: whether the host runs ahead of a device, so its slow steps are those in which it waits for the others (ahead.c). */
static inline bool host_runs_ahead(const struct advice *a)
{
	return a->ahead_ns > 0;
}
/* Finds out, and sets shares of the mean step then. */
ow_status ahead_measure(struct advice *a);
/* What the device spends on a cost per step then. */
int64_t cost_ahead_per_step(const struct advice *a, const struct cost *cost);
/* When a device of the source works next, at or after t; INT64_MAX for never. */
int64_t device_next(const struct graph *g, source_id source, int64_t t);
/* Whether a gap between events is that long; it may be cut into several nodes, one per Python function. */
bool gap_is_long(const struct graph *g, const struct lane *lane, uint32_t node, int64_t least);
/* Whether a node is an operator of the framework, unlike ranges and gaps. */
bool node_is_operator(const struct graph *g, uint32_t node);
/* Whether the operator of a node starts device work: its host time then prepares that work. */
bool operator_launches(const struct advice *a, uint32_t node);
/* Adds the host nodes inside of events of the steady steps that have one of the words in their name, and with `device` what they launch. */
ow_status cost_add_inside(struct advice *a, struct cost *cost, const char *const *words,
			  bool device);
/* Whether an op has one of the words in its name, and none of those after a '-'; the list ends with NULL. Names are searched once per op, not per node. */
bool op_has_word(struct advice *a, op_id op, const char *const *words);

#endif
