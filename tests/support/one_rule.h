/*
 * one_rule.h: runs one advice rule on a small model. Included by the unit tests of src/advise, after
 * cmocka.h.
 */
#ifndef SUPPORT_ONE_RULE_H
#define SUPPORT_ONE_RULE_H

#include "advise/rule.h"
#include "support/small_model.h"

/* Freezes the model and runs the rule; the findings are in the arena. */
static inline struct findings one_rule_run(const struct rule *rule, struct small_model *s,
					   struct arena *arena)
{
	struct findings out = { .arena = arena };

	small_freeze(s);
	arena_init(arena, &s->mem);
	assert_int_equal(rule->check(s->m, &out, &s->err), OW_OK);
	return out;
}

static inline void one_rule_close(struct small_model *s, struct arena *arena)
{
	arena_release(arena);
	small_close(s);
}

static inline ow_status one_rule_without(const struct rule *rule, struct small_model *s, uint64_t n,
					 bool sticky)
{
	struct arena arena;
	struct findings out = { .arena = &arena };
	ow_status status;

	arena_init(&arena, &s->mem);
	mem_fail_after(n, sticky);
	status = rule->check(s->m, &out, &s->err);
	mem_fail_after(0, false);
	arena_release(&arena);
	assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
	return status;
}

/* Lets every allocation fail once, alone and with all after it. Closes the model. */
static inline void one_rule_every_failure(const struct rule *rule, struct small_model *s)
{
	uint64_t n = 1;

	small_freeze(s);
	for (; one_rule_without(rule, s, n, true) != OW_OK; n++)
		(void)one_rule_without(rule, s, n, false);
	assert_true(n > 1);
	small_close(s);
}

#endif
