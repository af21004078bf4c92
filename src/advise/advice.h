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

#define TRUSTED_ERROR 0.03 /* a replay with a larger error never gives high confidence */

enum framework { FRAMEWORK_UNKNOWN, FRAMEWORK_TORCH, FRAMEWORK_TENSORFLOW, FRAMEWORK_JAX };
enum confidence { CONFIDENCE_LOW, CONFIDENCE_MEDIUM, CONFIDENCE_HIGH };

extern const char *const severity_names[];
extern const char *const confidence_names[];

/* How the replay changes the nodes of a cost to compute the step without the cost. */
enum effect {
	EFFECT_TIME, /* the nodes take no time */
	EFFECT_WAIT, /* the nodes take no time and wait for nothing */
	/* for copies: the calling thread continues at once; the copy still takes its time */
	EFFECT_UNBLOCK,
	/* host work and launches take no time and have no latency; tiny kernels become part of
	 * the kernel before them */
	EFFECT_LAUNCH,
	EFFECT_SCALE, /* the time of each node is multiplied by its factor */
	/* for kernels: each becomes part of the kernel before it, without a launch and without
	 * the operator that prepares it */
	EFFECT_FUSE
};

struct cost {
	uint32_t *nodes;
	size_t count, cap;
	enum effect effect;
	double *factors; /* factor of each node, for EFFECT_SCALE */
	/* the wait may fall into the step before, so the best steps are judged in pairs */
	bool in_pairs;
};

struct advice_row {
	const struct rule *rule;
	bool checked;
	struct str why_not;
	enum severity severity;
	struct str what, where, advice, falsified_by;
	/* by_mean: the saving is that of the mean step and is not part of the sum */
	bool has_saving, by_mean;
	bool is_bound; /* high_ns is only the bound of the device: a remark, not part of the sum */
	int64_t low_ns, high_ns, after_ns;
	int64_t alone_ns; /* what the replay without this cost alone saves */
	bool has_after;
	enum confidence confidence;
	struct str evidence; /* events and times that show the finding, as JSON */
	/* nodes for the replay of all findings together; count 0 when there are none */
	struct cost cost;
	int64_t share_ns; /* without a replay: the part of the step that the finding is about */
	/* phase class of share_ns; findings about the same class are not added up */
	enum phase_class share_class;
	struct verdict_subject subject;
};

struct advice {
	struct model *m;
	struct arena *arena;  /* memory of the rows and their texts */
	struct arena scratch; /* memory of the running rule; cleared after each rule */
	struct session s;
	struct steady_steps steady;
	bool several_jobs;	       /* the files belong to several jobs: no rule is checked */
	bool has_steps;		       /* the model has steps with classified events */
	int64_t step_ns;	       /* duration of the median steady step; 0 when unknown */
	uint32_t steps;		       /* number of steady steps in the replay */
	int64_t share_ns[CLASS_COUNT]; /* part of each phase class in the median steady step */
	int64_t least_ns[CLASS_COUNT]; /* smallest part of each phase class in a steady step */
	int64_t mean_ns[CLASS_COUNT];  /* part of each phase class in the mean steady step */
	/* ahead.c: mean step of a device whose host runs ahead of it; else 0 */
	int64_t ahead_ns;
	/* for recordings without launches: how long the busiest stream works per step */
	int64_t device_ns;
	uint32_t ahead_steps; /* number of steps that ahead_ns is the mean of */
	enum framework framework;
	struct advice_row *rows;
	size_t row_count, row_cap;
	int64_t if_all_ns; /* predicted step without the costs of all findings that have a saving */
	struct ow_error *err;
	struct advice_settings settings;
	const struct rule *rule; /* rule that is running */
	/* op_has_word: its answers for the words of the running rule, one per op, in `scratch` */
	const char *const *words;
	uint8_t *has_word;
	uint8_t *launches; /* one per node of the replay: 1 if the node starts device work */
	/* one per node: the number of nodes before it that start work or call the device's runtime */
	uint32_t *launch_sum;
};

/* Runs the rules and ranks what they find; names NULL: all of them. `tfprof` receives the messages of tfprof's
 * rules. The caller calls advice_close in any case. */
ow_status advice_make(struct model *m, const struct ow_list *names, struct arena *arena,
		      struct advice *a, struct findings *tfprof, struct ow_error *err);
void advice_close(struct advice *a);
/* Makes a table of the findings, with the documented columns and values. */
ow_status advice_table(struct advice *a, struct table *out, struct ow_error *err);

/* Writes one or two sentences on the first finding, for the verdict; nothing if there are no
 * steps. */
void advice_headline(const struct advice *a, char *to, size_t size,
		     struct verdict_subject *subject);
/* Returns whether most of the step or of the recording is missing from the files, so that findings cover
 * the smaller part. */
bool advice_covers_little(const struct advice *a);
/* Whether the first finding is not of severity high, so other parts of the step are larger. */
bool advice_saves_little(const struct advice *a);

/* Functions of cost.c that replay the steps without a cost, for advice.c. */

struct saving {
	int64_t median_ns, mean_ns; /* time saved in the median step and in the mean step */
	/* possible error of median_ns, because steps differ and the replay is a model */
	int64_t off_ns;
	uint32_t steps; /* number of steps that get shorter */
};

void cost_apply(const struct advice *a, struct scenario *scenario, const struct cost *cost,
		double factor);
/* Replays the steps with the cost reduced to this part of its time, and returns how much shorter
 * they get. */
void cost_replay(struct advice *a, const struct cost *cost, double factor, struct saving *out);
/* Returns the cost in the cheapest steady step (or in the cheapest two in a row) divided by the cost in
 * the middle one; 1 with a single step. */
ow_status cost_best_factor(struct advice *a, const struct cost *cost, double *factor);
double replay_margin(const struct advice *a);

/* The functions below are for rules. */

static inline bool advice_replays(const struct advice *a)
{
	return a->has_steps && session_replays(&a->s) && a->steps;
}

/* Returns whether a rule can select costs: the graph has nodes, although they may not be replayable. In
 * that case advice_report gives the share of their time. */
static inline bool advice_has_nodes(const struct advice *a)
{
	return a->has_steps && a->s.g.node_count && a->steps;
}

/* Records why the rule reports nothing; arguments as for printf. */
ow_status advice_not_checked(struct advice *a, const char *format, ...) OW_PRINTF(2, 3);
/* Makes a text in the arena of the rows. Without memory its ptr is NULL, which advice_report
 * detects. */
struct str advice_text(struct advice *a, const char *format, ...) OW_PRINTF(2, 3);

ow_status cost_add(struct advice *a, struct cost *cost, uint32_t node);
/* Returns whether a node is in a steady step, so that it counts for advice. */
bool node_is_steady(const struct advice *a, uint32_t node);
/* Returns the median time of the nodes per steady step and their number; means if most steps have none of
 * them. */
int64_t cost_per_step(struct advice *a, const struct cost *cost, double *count);
/* Returns the mean time per steady step in which the nodes run and no device works: the most that they
 * cost, without a replay. */
int64_t cost_idle_per_step(const struct advice *a, const struct cost *cost);
/* Returns the op whose nodes take the most time in sum, and its line, for the column `where`. Python
 * functions have no op: their times are summed by line. */
struct str cost_where(struct advice *a, const struct cost *cost);
/* Returns the same text, and the line alone in *line; empty if it is not known. */
struct str cost_where_line(struct advice *a, const struct cost *cost, struct str *line);
/* Lists the longest nodes of a cost, or the longest events of a phase in the judged steps, as JSON
 * (evidence.c). */
ow_status evidence_of_cost(struct advice *a, const struct cost *cost, struct str *out);
ow_status evidence_of_class(struct advice *a, enum phase_class class, struct str *out);
/* Returns one byte per step: 1 if the step is judged. NULL if memory runs out. */
uint8_t *judged_steps(struct advice *a);
/* For recordings without a replay: returns the costliest op of a phase with its line, or the name of the
 * phase (share_where.c). */
struct str share_where(struct advice *a, enum phase_class class);
/* Returns what makes a stage of an input pipeline cheaper, by the kind of stage that the text names; empty for
 * other stages (rule_slow_input_stage.c). The text is a literal and ends with NUL. */
struct str input_stage_advice(struct str stage);
/* Formats a time such as "20.1 ms" into a buffer of the caller. */
#define TIME_TEXT 32
const char *time_text(char to[TIME_TEXT], int64_t ns);

struct report {
	struct str what, where, advice, falsified_by;
	enum confidence most; /* upper limit of the confidence */
	/* nothing shows that the cost occurs in every step, so the finding is only a remark */
	bool maybe_once;
	enum phase_class class
		; /* phase class whose share replaces the cost if there is no replay; CLASS_COUNT: none */
	bool names_share; /* the text `what` names the share of the class, not the cost */
	bool whole_events; /* the evidence are the events of the class, with all that is inside of them */
	uint32_t in_steps; /* number of steps that have a cost of the mean step; 0 = unknown */
};

/* Replays the steps without the cost and adds a row if the saving is worth a remark (1 % of the step). The
 * cost is copied. */
ow_status advice_report(struct advice *a, const struct cost *cost, const struct report *report);
/* Like advice_report, if the floor is the device's theoretical limit: the finding is a remark, because only a trial
 * shows how near a job can get to that limit. */
ow_status advice_report_bound(struct advice *a, const struct cost *cost,
			      const struct report *report);
/* Adds a row with the saving of the mean steady step. `what` contains one %s for the saving. */
ow_status advice_report_mean(struct advice *a, const struct cost *cost, int64_t saving_ns,
			     const char *what, struct report *report);
/* For costs of some steps only: reports host events with one of the words in their name. The list ends
 * with NULL. */
ow_status advice_report_words(struct advice *a, const char *const *words, const char *what,
			      struct report *report);
/* Reports a given part of a step, such as the time of some nodes, without a replay. */
ow_status advice_report_part(struct advice *a, const struct cost *cost, int64_t part_ns,
			     const struct report *report);
/* Adds a row without a replay. The savings are given; negative = unknown. */
ow_status advice_remark(struct advice *a, enum severity severity, int64_t low_ns, int64_t high_ns,
			bool by_mean, const struct report *report, struct str evidence);
/* Returns whether a phase class has a noticeable share in a recording without a replay. */
bool share_is_large(const struct advice *a, enum phase_class class);
/* Returns "5.3 ms of a step", the share of a phase class in the median step; of a class that few steps have "13.1 ms of the mean step". */
struct str advice_share(struct advice *a, enum phase_class class);
/* Reports the share of a phase class in a recording without a replay. */
ow_status advice_report_share(struct advice *a, enum phase_class class,
			      const struct report *report);

/* For recordings without launches: returns whether the host runs ahead of a device, so that slow steps
 * wait for the work of earlier ones (ahead.c). */
static inline bool host_runs_ahead(const struct advice *a)
{
	return a->ahead_ns > 0;
}
/* Detects a host that runs ahead of its device, and then sets the shares of the mean step. */
ow_status ahead_measure(struct advice *a);
/* Returns the time per step that the device spends on a cost if its host runs ahead. */
int64_t cost_ahead_per_step(const struct advice *a, const struct cost *cost);
/* Returns the start of the next work of a device of the source at or after t; INT64_MAX if there
 * is none. */
int64_t device_next(const struct graph *g, source_id source, int64_t t);
/* Returns whether a gap between events has at least that length. The gap may consist of several nodes, one
 * per Python function. */
bool gap_is_long(const struct graph *g, const struct lane *lane, uint32_t node, int64_t least);
/* Returns whether an operator allocates values and computes nothing: moving it to a device saves no time. */
bool only_allocates(struct str name);
/* Returns whether a node is an operator of the framework, not a range or a gap. */
bool node_is_operator(const struct graph *g, uint32_t node);
/* Returns whether the operator of a node starts device work, so that its host time prepares that
 * work. */
bool operator_launches(const struct advice *a, uint32_t node);
/* Adds the host nodes inside events of the steady steps whose names contain one of the words, and with `device` the
 * work that they launch. */
ow_status cost_add_inside(struct advice *a, struct cost *cost, const char *const *words,
			  bool device);
/* Whether an op has one of the words in its name, and none of those after a '-'; the list ends with NULL. Names are searched once per op, not per node. */
bool op_has_word(struct advice *a, op_id op, const char *const *words);

#endif
