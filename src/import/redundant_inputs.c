/*
 * redundant_inputs.c: drops inputs that would be counted twice. A directory may hold a run as one profile and, beside it, the
 * parts that the profile was made of: the graph, the statistics of the steps, the log of source lines. Or it holds the
 * XSpace of a host and the trace that a viewer made of it. If both were found (not named by the caller), only the profile is
 * used, with a note. Called after all inputs were recognised and before the first is loaded.
 */
#include "import/importer.h"

#include "base/map.h"

/* "runs/a/" of "runs/a/graph.pb", "x.zip!a/" of "x.zip!a/graph.pb". */
static struct str directory_of(const struct prepared *item)
{
	struct str name = str_from(item->in->name);
	size_t len = name.len;

	while (len && name.ptr[len - 1] != '/' && name.ptr[len - 1] != '!')
		len--;
	return str_first(name, len);
}

/* The name without the part after the host's: "a/host1" for "a/host1.trace.json.gz". */
static struct str host_of(const struct prepared *item, struct str ending)
{
	struct str name = str_from(item->in->name);
	size_t at = str_find(str_skip(name, directory_of(item).len), ending);

	return at == STR_NONE ? name : str_first(name, directory_of(item).len + at);
}

static bool is_whole(const struct prepared *item)
{
	return item->found &&
	       (item->importer->role == ROLE_PROFILE || item->importer == &import_xspace);
}

static bool is_part(const struct prepared *item)
{
	return item->found &&
	       (item->importer == &import_graphdef || item->importer == &import_metagraph ||
		item->importer == &import_trace || item->importer->role == ROLE_RUN ||
		item->importer->role == ROLE_LOG);
}

/* The text that a whole and its parts share: the folder; for an XSpace and its trace the host as well. */
static struct str run_of(const struct prepared *item)
{
	if (item->importer == &import_xspace)
		return host_of(item, STR(".xplane."));
	if (item->importer == &import_trace)
		return host_of(item, STR(".trace."));
	return directory_of(item);
}

/* The profile of this run that was found, or NULL. */
static const struct prepared *whole_of(const struct map *wholes, const struct prepared *items,
				       struct str run)
{
	struct map_iter it = map_find(wholes, str_hash(run));

	for (; it.value; it = map_next(wholes, it))
		if (str_eq(run_of(&items[it.value - 1]), run))
			return &items[it.value - 1];
	return NULL;
}

static bool find_wholes(const struct prepared_list *list, struct map *wholes)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct prepared *item = &list->items[i];

		if (!is_whole(item) || whole_of(wholes, list->items, run_of(item)))
			continue;
		if (!map_add(wholes, str_hash(run_of(item)), (uint32_t)i + 1))
			return false;
	}
	return true;
}

static void note_parts(struct builder *b, const char *part, const char *whole, uint64_t count)
{
	builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, count,
			  "not used: %s: %s in the same folder holds the whole run; name the "
			  "partial files to use them",
			  part, whole);
}

/* The places of the items stay as they are until the end: the map points to them. */
static void set_aside(struct builder *b, struct prepared_list *list, const struct map *wholes)
{
	const char *part = NULL, *whole = NULL;
	uint64_t count = 0;
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct prepared *item = &list->items[i];
		const struct prepared *found;

		found = is_part(item) ? whole_of(wholes, list->items, run_of(item)) : NULL;
		item->part = found != NULL;
		if (!found || count++)
			continue;
		part = item->in->name;
		whole = found->in->name;
	}
	if (!count)
		return;
	note_parts(b, part, whole, count);
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].part)
			import_discard(&list->items[i]);
		else
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
}

ow_status import_drop_redundant(struct builder *b, struct prepared_list *list, struct ow_error *err)
{
	struct map wholes;
	ow_status status = OW_OK;

	map_init(&wholes, list->mem);
	if (!find_wholes(list, &wholes))
		status = error_no_memory(err);
	else if (wholes.count)
		set_aside(b, list, &wholes);
	map_release(&wholes);
	return status;
}
