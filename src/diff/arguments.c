/*
 * arguments.c: shapes and types of the arguments that operators ran with (run.h): read from the source file, since the
 * model does not keep them, and counted for each cell, so that a comparison shows which call of several changed. run.c
 * calls it for events in steps, up to a number of reads that is cheap even for a large recording. It does not compare
 * anything; rows.c does.
 */
#include "diff/arguments.h"

#include "wire/json/json.h"

/* limit of reads in a run: the first steps show the arguments of an operator */
#define READS_MOST 20000u
#define BYTES_MOST 65536u
#define TEXT_MOST 256u

void arguments_init(struct argument_reader *r, struct model *m, struct diff_run *run,
		    struct arena *scratch)
{
	*r = (struct argument_reader){ .m = m, .run = run, .left = READS_MOST };
	r->text = arena_push(scratch, BYTES_MOST + 16u);
}

/* The text of a member of the arguments; empty if it cannot be read. */
static struct str member_text(struct str args, const char *const *names, size_t count)
{
	struct json_value found = { 0 };

	for (size_t i = 0; i < count && !found.len; i++)
		found = json_find(args, names[i]);
	if (!found.len || !utf8_valid(json_text(found)))
		return STR("");
	return str_first(json_text(found), MIN(found.len, TEXT_MOST));
}

/* Reads the shapes and types of an operator: "[[8, 3, 224, 224], []]", "["float", ""]". The texts are valid until
 * the next call. */
static struct diff_arguments read_arguments(struct argument_reader *r, uint32_t event)
{
	static const char *const shapes[] = { "Input Dims", "Input dims" }, *const types[] = {
		"Input type"
	};
	const struct model *m = r->m;
	uint32_t source = m->track.source[m->event.track[event].v].v;
	uint32_t size = COLUMN_GET(m->event.args_size, event);
	struct ow_error ignored = { 0 };
	struct str args;

	if (!event || !size || size > BYTES_MOST || !r->text || source >= m->input_cap ||
	    !m->inputs[source] ||
	    input_read_at(m->inputs[source], COLUMN_GET(m->event.args_offset, event), r->text, size,
			  &ignored) != OW_OK ||
	    r->text[0] != '{')
		return (struct diff_arguments){ 0 };
	memset(r->text + size, 0, 16);
	args = str_make(r->text, size);
	return (struct diff_arguments){ .shapes = member_text(args, shapes, ARRAY_COUNT(shapes)),
					.types = member_text(args, types, ARRAY_COUNT(types)) };
}

bool arguments_equal(const struct diff_arguments *a, const struct diff_arguments *b)
{
	return str_eq(a->shapes, b->shapes) && str_eq(a->types, b->types);
}

bool arguments_add(struct arena *arena, struct argument_list *list, const struct diff_arguments *a)
{
	struct diff_arguments *grown;

	for (size_t i = 0; i < list->count; i++)
		if (arguments_equal(&list->items[i], a)) {
			list->items[i].count += a->count;
			return true;
		}
	if (list->count == ARGUMENTS_MOST) {
		list->more = true;
		return true;
	}
	grown = arena_grow(arena, list->items, list->count, &list->cap, sizeof(*grown));
	if (!grown)
		return false;
	list->items = grown;
	grown[list->count] = (struct diff_arguments){ arena_str(arena, a->shapes),
						      arena_str(arena, a->types), a->count };
	return grown[list->count++].types.ptr != NULL;
}

ow_status arguments_count(struct argument_reader *r, uint32_t operator, struct argument_list * list,
			  struct ow_error *err)
{
	struct diff_arguments found;

	if (!r->left)
		return OW_OK;
	r->left--;
	found = read_arguments(r, operator);
	found.count = 1;
	if (!found.shapes.len && !found.types.len)
		return OW_OK;
	return arguments_add(&r->run->arena, list, &found) ? OW_OK : error_no_memory(err);
}

void arguments_end_step(struct argument_reader *r)
{
	if (r->left || !r->run->argument_steps)
		r->run->argument_steps++;
}
