/*
 * words.c: the dictionaries of the model's enums, as constant tables: code 0 is NULL, code n + 1 the enum's
 * n-th value; phases that are not known are NULL. The words are those of model/names.h and the views.
 */
#include "analyze/steps/phases.h"
#include "base/str.h"
#include "relation/columns.h"

#define NOTHING                                                                                    \
	{                                                                                          \
		NULL, 0                                                                            \
	}
#define WORD(literal)                                                                              \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}
#define WORDS(name, ...)                                                                           \
	static const struct str name##_texts[] = { NOTHING, __VA_ARGS__ };                         \
	const struct table_dict words_##name = { name##_texts, ARRAY_COUNT(name##_texts) }

WORDS(device_kind, WORD("unknown"), WORD("cpu"), WORD("gpu"), WORD("tpu"), WORD("other"));
WORDS(track_kind, WORD("other"), WORD("host"), WORD("device"), WORD("accelerator"), WORD("stream"),
      WORD("copy"), WORD("loader"), WORD("communication"), WORD("derived"), WORD("span"),
      WORD("frames"), WORD("async"));
WORDS(event_phase, WORD("input"), WORD("host"), WORD("launch"), WORD("host_to_device"),
      WORD("compute"), WORD("device_to_host"), WORD("communication"), WORD("synchronisation"),
      WORD("idle"), WORD("allocation"), WORD("initialisation"));
WORDS(link_kind, WORD("flow"), WORD("launch"), WORD("forward_backward"), WORD("message"),
      WORD("wait"));
WORDS(heap_kind, WORD("alloc"), WORD("free"), WORD("existing"), WORD("segment_alloc"),
      WORD("segment_free"), WORD("segment_map"), WORD("segment_unmap"), WORD("segment_existing"),
      WORD("free_requested"), WORD("out_of_memory"), WORD("snapshot"), WORD("total"));
WORDS(fact_kind, WORD("object"), WORD("list"), WORD("int"), WORD("real"), WORD("text"),
      WORD("bool"), WORD("micros"), WORD("null"));
WORDS(note_kind, WORD("info"), WORD("repaired"), WORD("dropped"), WORD("damaged"),
      WORD("truncated"), WORD("missing"));
WORDS(severity, WORD("info"), WORD("low"), WORD("medium"), WORD("high"));
/* In the order of enum phase_class. */
WORDS(phase_class, WORD("compute"), WORD("communication"), WORD("device_to_host"),
      WORD("host_to_device"), WORD("input"), WORD("synchronisation"), WORD("initialisation"),
      WORD("allocation"), WORD("launch"), WORD("host"), WORD("run_queue"), WORD("idle"));

/* Letters of trace events, by their code in ASCII; NULL for other codes. */
static const struct str letter_texts[128] = {
	['A'] = WORD("A"), ['B'] = WORD("B"), ['C'] = WORD("C"), ['D'] = WORD("D"),
	['E'] = WORD("E"), ['F'] = WORD("F"), ['G'] = WORD("G"), ['H'] = WORD("H"),
	['I'] = WORD("I"), ['J'] = WORD("J"), ['K'] = WORD("K"), ['L'] = WORD("L"),
	['M'] = WORD("M"), ['N'] = WORD("N"), ['O'] = WORD("O"), ['P'] = WORD("P"),
	['Q'] = WORD("Q"), ['R'] = WORD("R"), ['S'] = WORD("S"), ['T'] = WORD("T"),
	['U'] = WORD("U"), ['V'] = WORD("V"), ['W'] = WORD("W"), ['X'] = WORD("X"),
	['Y'] = WORD("Y"), ['Z'] = WORD("Z"), ['a'] = WORD("a"), ['b'] = WORD("b"),
	['c'] = WORD("c"), ['d'] = WORD("d"), ['e'] = WORD("e"), ['f'] = WORD("f"),
	['g'] = WORD("g"), ['h'] = WORD("h"), ['i'] = WORD("i"), ['j'] = WORD("j"),
	['k'] = WORD("k"), ['l'] = WORD("l"), ['m'] = WORD("m"), ['n'] = WORD("n"),
	['o'] = WORD("o"), ['p'] = WORD("p"), ['q'] = WORD("q"), ['r'] = WORD("r"),
	['s'] = WORD("s"), ['t'] = WORD("t"), ['u'] = WORD("u"), ['v'] = WORD("v"),
	['w'] = WORD("w"), ['x'] = WORD("x"), ['y'] = WORD("y"), ['z'] = WORD("z"),
	['('] = WORD("("), [')'] = WORD(")"), ['='] = WORD("="),
};
const struct table_dict words_letters = { letter_texts, ARRAY_COUNT(letter_texts) };

const struct table_dict *words_of(const char *doc)
{
	static const struct {
		const char *doc;
		const struct table_dict *words;
	} enums[] = {
		{ "enum device_kind", &words_device_kind },
		{ "enum track_kind", &words_track_kind },
		{ "enum event_phase", &words_event_phase },
		{ "enum link_kind", &words_link_kind },
		{ "enum heap_kind", &words_heap_kind },
		{ "enum fact_kind", &words_fact_kind },
		{ "enum note_kind", &words_note_kind },
	};

	for (size_t i = 0; i < ARRAY_COUNT(enums); i++)
		if (strcmp(doc, enums[i].doc) == 0)
			return enums[i].words;
	return NULL;
}
