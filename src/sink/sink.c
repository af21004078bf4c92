/* sink.c: the table of sinks (outputs), made from sinks.def. Each sink is in sink_<name>.c. */
#include "sink/sink.h"

const struct sink *const sinks[] = {
#define SINK(name) &sink_##name,
#include "sink/sinks.def"
#undef SINK
};
const size_t sink_count = ARRAY_COUNT(sinks);

const struct sink *sink_find(const char *name)
{
	for (size_t i = 0; i < sink_count; i++)
		if (!strcmp(sinks[i]->name, name))
			return sinks[i];
	return NULL;
}
