/*
 * rule.c: the table of advice rules, and what rules report with. Called by the rules and by the
 * library's advise function. Texts are copied into the findings' arena, so that rules may pass
 * buffers of their own.
 */
#include "advise/rule.h"

#define RULE(name) &rule_##name,
const struct rule *const rules[] = {
#include "advise/rules.def"
};
#undef RULE
const size_t rule_count = ARRAY_COUNT(rules);

ow_status finding_add(struct findings *out, const struct finding *finding)
{
	struct finding copy = *finding;
	void *items = arena_grow(out->arena, out->items, out->count, &out->cap, sizeof(copy));

	if (!items)
		return OW_E_NO_MEMORY;
	out->items = items;
	copy.what = arena_str(out->arena, finding->what);
	copy.where = arena_str(out->arena, finding->where);
	copy.advice = arena_str(out->arena, finding->advice);
	if (!copy.what.ptr || !copy.where.ptr || !copy.advice.ptr)
		return OW_E_NO_MEMORY;
	out->items[out->count++] = copy;
	return OW_OK;
}

ow_status finding_message(struct findings *out, struct str line)
{
	void *messages = arena_grow(out->arena, out->messages, out->message_count,
				    &out->message_cap, sizeof(line));
	struct str copy = arena_str(out->arena, line);

	if (!messages || !copy.ptr)
		return OW_E_NO_MEMORY;
	out->messages = messages;
	out->messages[out->message_count++] = copy;
	return OW_OK;
}

bool rule_is_accelerator(struct str device)
{
	return str_has(device, STR("gpu")) || str_has(device, STR("sycl"));
}
