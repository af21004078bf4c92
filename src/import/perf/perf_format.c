/*
 * perf_format.c: decodes attributes and samples of perf.data. It skips every part that a sample can have, in the order
 * in which the kernel writes them, to find the parts that are used.
 */
#include "import/perf/perf_format.h"

#include <stdio.h>

const char *perf_type_name(uint32_t type)
{
	static const char *const names[PERF_TYPES] = {
		[1] = "MMAP",
		[2] = "LOST",
		[3] = "COMM",
		[4] = "EXIT",
		[5] = "THROTTLE",
		[6] = "UNTHROTTLE",
		[7] = "FORK",
		[8] = "READ",
		[9] = "SAMPLE",
		[10] = "MMAP2",
		[11] = "AUX",
		[12] = "ITRACE_START",
		[13] = "LOST_SAMPLES",
		[14] = "SWITCH",
		[15] = "SWITCH_CPU_WIDE",
		[16] = "NAMESPACES",
		[17] = "KSYMBOL",
		[18] = "BPF_EVENT",
		[19] = "CGROUP",
		[20] = "TEXT_POKE",
		[21] = "AUX_OUTPUT_HW_ID",
		[64] = "HEADER_ATTR",
		[65] = "HEADER_EVENT_TYPE",
		[66] = "HEADER_TRACING_DATA",
		[67] = "HEADER_BUILD_ID",
		[68] = "FINISHED_ROUND",
		[69] = "ID_INDEX",
		[70] = "AUXTRACE_INFO",
		[71] = "AUXTRACE",
		[72] = "AUXTRACE_ERROR",
		[73] = "THREAD_MAP",
		[74] = "CPU_MAP",
		[75] = "STAT_CONFIG",
		[76] = "STAT",
		[77] = "STAT_ROUND",
		[78] = "EVENT_UPDATE",
		[79] = "TIME_CONV",
		[80] = "HEADER_FEATURE",
		[81] = "COMPRESSED",
		[82] = "FINISHED_INIT",
		[83] = "COMPRESSED2",
	};

	return type < PERF_TYPES ? names[type] : NULL;
}

static const unsigned char *take_bytes(struct perf_bytes *b, uint64_t len)
{
	const unsigned char *p = b->at;

	if (b->bad || len > (uint64_t)(b->end - b->at)) {
		b->bad = true;
		return NULL;
	}
	b->at += len;
	return p;
}

uint32_t perf_take_u32(struct perf_bytes *b)
{
	const unsigned char *p = take_bytes(b, 4);

	return p ? perf_u32(p, b->swap) : 0;
}

uint64_t perf_take_u64(struct perf_bytes *b)
{
	const unsigned char *p = take_bytes(b, 8);

	return p ? perf_u64(p, b->swap) : 0;
}

static void skip_words(struct perf_bytes *b, uint64_t words)
{
	if (words > UINT64_MAX / 8)
		b->bad = true;
	else
		(void)take_bytes(b, words * 8);
}

struct str perf_take_text(struct perf_bytes *b)
{
	size_t left = b->bad ? 0 : (size_t)(b->end - b->at);
	const char *text = (const char *)b->at;
	size_t len = left ? strnlen(text, left) : 0;

	(void)take_bytes(b, MIN(len + 1, left));
	return str_make(len ? text : "", len);
}

/* The flags of a file in the other byte order, whose bit fields begin at the other end of each byte. */
static uint64_t swapped_flags(const unsigned char *p)
{
	uint64_t flags = 0;

	for (unsigned i = 0; i < 8; i++) {
		unsigned char c = p[i], turned = 0;

		for (unsigned k = 0; k < 8; k++)
			turned = (unsigned char)(turned << 1 | (c >> k & 1));
		flags |= (uint64_t)turned << (8 * i);
	}
	return flags;
}

void perf_attr_parse(const unsigned char *p, size_t len, bool swap, struct perf_attr *attr)
{
	unsigned char bytes[136] = { 0 };
	uint32_t own;

	memcpy(bytes, p, MIN(len, sizeof(bytes)));
	own = perf_u32(bytes + 4, swap);
	/* the bytes after the attributes are not part of them */
	if (own >= 64 && own < sizeof(bytes))
		memset(bytes + own, 0, sizeof(bytes) - own);
	*attr = (struct perf_attr){ .type = perf_u32(bytes, swap),
				    .config = perf_u64(bytes + 8, swap),
				    .sample_period = perf_u64(bytes + 16, swap),
				    .sample_type = perf_u64(bytes + 24, swap),
				    .read_format = perf_u64(bytes + 32, swap),
				    .flags = swap ? swapped_flags(bytes + 40)
						  : perf_u64(bytes + 40, false),
				    .branch_sample_type = perf_u64(bytes + 72, swap),
				    .regs_user = perf_u64(bytes + 80, swap),
				    .regs_intr = perf_u64(bytes + 96, swap) };
	perf_attr_lay_out(attr);
}

static bool has_bit(const struct perf_attr *attr, unsigned bit)
{
	return attr->sample_type >> bit & 1;
}

void perf_attr_lay_out(struct perf_attr *attr)
{
	struct perf_layout *l = &attr->layout;
	uint8_t stream = PERF_ABSENT;
	const struct {
		unsigned bit;
		uint8_t *place;
	} order[] = { { SAMPLE_IDENTIFIER, &l->id }, { SAMPLE_IP, &l->ip },
		      { SAMPLE_TID, &l->tid },	     { SAMPLE_TIME, &l->time },
		      { SAMPLE_ADDR, &l->addr },     { SAMPLE_ID, &l->id },
		      { SAMPLE_STREAM_ID, &stream }, { SAMPLE_CPU, &l->cpu },
		      { SAMPLE_PERIOD, &l->period } };

	memset(l, PERF_ABSENT, sizeof(*l));
	l->size = 0;
	for (size_t i = 0; i < ARRAY_COUNT(order); i++)
		if (has_bit(attr, order[i].bit)) {
			if (*order[i].place == PERF_ABSENT) /* an id may be present twice */
				*order[i].place = l->size;
			l->size += 8;
		}
}

void perf_attr_name(const struct perf_attr *attr, char name[40])
{
	static const char *const hardware[] = { "cycles",
						"instructions",
						"cache-references",
						"cache-misses",
						"branches",
						"branch-misses",
						"bus-cycles",
						"stalled-cycles-frontend",
						"stalled-cycles-backend",
						"ref-cycles" };
	static const char *const software[] = {
		"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
		"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
		"emulation-faults", "dummy",	    "bpf-output"
	};
	uint64_t config = attr->config & UINT32_MAX; /* the upper half is the kind of core */

	if (attr->type == 0 && config < ARRAY_COUNT(hardware))
		snprintf(name, 40, "%s", hardware[config]);
	else if (attr->type == 1 && config < ARRAY_COUNT(software))
		snprintf(name, 40, "%s", software[config]);
	else
		snprintf(name, 40, "event %u/0x%" PRIx64, attr->type, attr->config);
}

size_t perf_take_values(const struct perf_attr *attr, struct perf_bytes *b,
			struct perf_value *values, size_t max)
{
	uint64_t format = attr->read_format, count = 1;
	uint64_t times = (format & 1) + (format >> 1 & 1);
	bool group = format & PERF_READ_GROUP;

	if (group) {
		count = perf_take_u64(b);
		skip_words(b, times);
	}
	if (count > (uint64_t)(b->end - b->at) / 8)
		b->bad = true;
	for (uint64_t i = 0; i < count && !b->bad; i++) {
		struct perf_value value = { .value = perf_take_u64(b) };

		if (!group)
			skip_words(b, times);
		value.id = format >> 2 & 1 ? perf_take_u64(b) : 0;
		skip_words(b, format >> 4 & 1);
		if (i < max)
			values[i] = value;
	}
	return b->bad || count > max ? 0 : (size_t)count;
}

bool perf_sample_rest(const struct perf_attr *attr, struct perf_bytes b,
		      const unsigned char **chain, uint64_t *count)
{
	*count = 0;
	if (has_bit(attr, SAMPLE_READ))
		(void)perf_take_values(attr, &b, NULL, 0);
	if (!has_bit(attr, SAMPLE_CALLCHAIN))
		return !b.bad;
	*count = perf_take_u64(&b);
	if (b.bad || *count > (uint64_t)(b.end - b.at) / 8)
		return false;
	*chain = b.at;
	return true;
}

struct perf_trailer perf_trailer_of(const struct perf_attr *attr, const unsigned char *body,
				    size_t len, bool swap)
{
	static const unsigned bits[] = { SAMPLE_TID,	   SAMPLE_TIME, SAMPLE_ID,
					 SAMPLE_STREAM_ID, SAMPLE_CPU,	SAMPLE_IDENTIFIER };
	struct perf_trailer out = { .pid = -1, .tid = -1 };
	struct perf_bytes b = { body + len, body + len, swap, false };
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_COUNT(bits); i++)
		size += has_bit(attr, bits[i]) ? 8 : 0;
	if (!(attr->flags & PERF_FLAG_SAMPLE_ID_ALL) || size > len)
		return out;
	b.at -= size;
	if (has_bit(attr, SAMPLE_TID)) {
		out.pid = (int32_t)perf_take_u32(&b);
		out.tid = (int32_t)perf_take_u32(&b);
	}
	out.time = has_bit(attr, SAMPLE_TIME) ? perf_take_u64(&b) : 0;
	out.id = has_bit(attr, SAMPLE_ID) ? perf_take_u64(&b) : 0;
	if (has_bit(attr, SAMPLE_IDENTIFIER))
		out.id = perf_u64(body + len - 8, swap);
	return out;
}
