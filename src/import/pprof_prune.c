/* pprof_prune.c: see pprof_prune.h. */
#include "import/pprof_prune.h"

#include "base/buf.h"

static void note_invalid(void *arg, struct str pattern, const char *why)
{
	struct pprof_prune *p = arg;

	(void)pattern;
	(void)why;
	p->invalid = true;
}

static ow_status compile(struct pprof_prune *p, struct regex_list *list, struct mem *mem,
			 struct str text, struct error *err)
{
	const char *pattern;
	ow_status status;
	struct buf copy;

	buf_init(&copy, mem);
	buf_add_str(&copy, text);
	pattern = buf_cstr(&copy);
	if (pattern)
		status = regex_list_init(list, mem, &pattern, 1, note_invalid, p, err);
	else
		status = error_no_memory(err);
	buf_release(&copy);
	return status;
}

ow_status pprof_prune_init(struct pprof_prune *p, struct mem *mem, struct str drop, struct str keep,
			   struct error *err)
{
	*p = (struct pprof_prune){ .drop.mem = mem, .keep.mem = mem };
	if (!drop.len)
		return OW_OK;
	OW_TRY(compile(p, &p->drop, mem, drop, err));
	if (keep.len)
		OW_TRY(compile(p, &p->keep, mem, keep, err));
	p->active = !p->invalid;
	return OW_OK;
}

void pprof_prune_release(struct pprof_prune *p)
{
	regex_list_release(&p->drop);
	regex_list_release(&p->keep);
}

/* The name up to its parameters; "(anonymous namespace)" and "operator()" belong to it. */
static struct str plain_name(struct str name)
{
	static const char space[] = "(anonymous namespace)";

	if (str_starts(name, STR(".")))
		name = str_skip(name, 1);
	for (size_t i = 0; i < name.len; i++) {
		struct str rest = str_skip(name, i);

		if (name.ptr[i] != '(')
			continue;
		if (str_starts(rest, str_from(space)))
			i += sizeof(space) - 2;
		else if (str_starts(rest, STR("()")) &&
			 str_ends(str_first(name, i), STR("operator")))
			i++;
		else
			return str_first(name, i);
	}
	return name;
}

bool pprof_prune_drops(struct pprof_prune *p, struct str function)
{
	if (!p->active || !function.len)
		return false;
	function = plain_name(function);
	return regex_match(&p->drop, function) && !regex_match(&p->keep, function);
}
