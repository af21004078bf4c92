/*
 * worker_facts.c: reads a worker's place in the job (rank, pipeline stage, data and tensor parallel index), its host
 * and its file from the names and facts of a recording, and the kind of collective from a name. Called by read.c. File
 * names do not decide anything here.
 */
#include "ranks/read.h"

size_t worker_plain_name(struct str name, char *to, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < name.len && len + 1 < size; i++) {
		char c = name.ptr[i];

		if (c >= 'A' && c <= 'Z')
			to[len++] = (char)(c - 'A' + 'a');
		else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			to[len++] = c;
	}
	to[len] = '\0';
	return len;
}

enum collective_kind collective_kind_of(struct str name)
{
	static const struct {
		const char *word;
		enum collective_kind kind;
	} words[] = {
		{ "allreduce", COLLECTIVE_ALL_REDUCE },
		{ "allgather", COLLECTIVE_ALL_GATHER },
		{ "reducescatter", COLLECTIVE_REDUCE_SCATTER },
		{ "alltoall", COLLECTIVE_ALL_TO_ALL },
		{ "barrier", COLLECTIVE_BARRIER },
		{ "broadcast", COLLECTIVE_BROADCAST },
		{ "bcast", COLLECTIVE_BROADCAST },
		{ "sendrecv", COLLECTIVE_SEND_RECV },
		{ "collectivepermute", COLLECTIVE_SEND_RECV },
		{ "crossdevicereduce", COLLECTIVE_ALL_REDUCE },
		{ "allsum", COLLECTIVE_ALL_REDUCE },
		{ "reduce", COLLECTIVE_REDUCE },
		{ "gather", COLLECTIVE_GATHER },
		{ "scatter", COLLECTIVE_SCATTER },
		{ "recv", COLLECTIVE_RECV },
		{ "receive", COLLECTIVE_RECV },
		{ "send", COLLECTIVE_SEND },
	};
	char plain[128];

	worker_plain_name(name, plain, sizeof(plain));
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (strstr(plain, words[i].word))
			return words[i].kind;
	return COLLECTIVE_OTHER;
}

/* The number after a word in a text: for "PP rank" in "PP rank 3, TP rank 0" it is 3; -1 if there is none. */
static int32_t number_after(struct str text, const char *word)
{
	size_t at = str_find(text, str_from(word));
	int64_t value = 0;
	bool any = false;

	if (at == STR_NONE)
		return -1;
	for (at += strlen(word);
	     at < text.len && (text.ptr[at] == ' ' || text.ptr[at] == '[' || text.ptr[at] == '=' ||
			       text.ptr[at] == ':' || text.ptr[at] == '_' || text.ptr[at] == '-');)
		at++;
	for (; at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9' && value < 1 << 24;
	     at++) {
		value = value * 10 + (text.ptr[at] - '0');
		any = true;
	}
	return any ? (int32_t)value : -1;
}

static int32_t first_number(struct str text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int32_t number = number_after(text, words[i]);

		if (number >= 0)
			return number;
	}
	return -1;
}

struct worker_place worker_place_of(const struct model *m, uint32_t track)
{
	static const char *const stages[] = { "PP rank", "pp rank",	   "PP_rank",
					      "pp_rank", "pipeline stage", "stage" };
	static const char *const data[] = { "DP rank", "dp rank", "DP_rank", "dp_rank" };
	static const char *const tensors[] = { "TP rank", "tp rank", "TP_rank", "tp_rank" };
	struct str name = model_str(m, m->track.name[track]),
		   process = model_str(m, m->track.process[track]);
	struct worker_place p = { first_number(name, data, ARRAY_COUNT(data)),
				  first_number(name, stages, ARRAY_COUNT(stages)),
				  first_number(name, tensors, ARRAY_COUNT(tensors)) };

	if (p.dp < 0)
		p.dp = first_number(process, data, ARRAY_COUNT(data));
	if (p.stage < 0)
		p.stage = first_number(process, stages, ARRAY_COUNT(stages));
	if (p.tp < 0)
		p.tp = first_number(process, tensors, ARRAY_COUNT(tensors));
	return p;
}

static uint32_t find_fact(const struct model *m, uint32_t source, const char *key)
{
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (m->fact.source[i].v == source &&
		    str_eq(model_str(m, m->fact.key[i]), str_from(key)))
			return i;
	return 0;
}

int64_t worker_fact_number(const struct model *m, uint32_t source, const char *key)
{
	uint32_t fact = find_fact(m, source, key);

	return fact && m->fact.kind[fact] == FACT_INT ? m->fact.number[fact] : -1;
}

/* The host name. Producers call this fact hostname, host_name, hostName, Hostname, host or node. */
struct str worker_host(const struct model *m, uint32_t source)
{
	static const char *const keys[] = { "hostname", "host", "nodename", "node" };

	for (size_t k = 0; k < ARRAY_COUNT(keys); k++)
		for (uint32_t i = 1; i < m->fact.count; i++) {
			char plain[32];

			if (m->fact.source[i].v != source || m->fact.kind[i] != FACT_TEXT ||
			    !model_str(m, m->fact.text[i]).len)
				continue;
			worker_plain_name(model_str(m, m->fact.key[i]), plain, sizeof(plain));
			if (strcmp(plain, keys[k]) == 0)
				return model_str(m, m->fact.text[i]);
		}
	return STR("");
}

int32_t worker_rank(const struct model *m, uint32_t source)
{
	int64_t rank;

	if (!str_eq(model_str(m, m->source.format[source]), STR("trace")))
		return m->source.rank[source];
	rank = worker_fact_number(m, source, "rank");
	return rank >= 0 && rank < INT32_MAX ? (int32_t)rank : -1;
}

uint32_t worker_file(const struct model *m, uint32_t source)
{
	struct str path = model_str(m, m->source.path[source]), other;
	size_t end = str_find_char(path, '!');

	if (!str_eq(model_str(m, m->source.format[source]), STR("live")))
		return source - 1;
	path = end == STR_NONE ? path : str_first(path, end);
	for (uint32_t i = 1; i < source; i++) {
		other = model_str(m, m->source.path[i]);
		if (str_starts(other, path) &&
		    (other.len == path.len || other.ptr[path.len] == '!'))
			return i - 1;
	}
	return source - 1;
}
