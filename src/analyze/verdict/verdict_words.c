/*
 * verdict_words.c: the words of the verdict for each class of time, and the verdict behind another sentence about the same class: the
 * first finding of the advice (src/api/advise.c) has said what it is then.
 */
#include "analyze/verdict/verdict_int.h"

#define INPUT_MODERATE 5.0
#define INPUT_HIGH 20.0
#define COPY_MODERATE 5.0 /* limit for copies to the host and to the device, in percent */
#define COPY_HIGH 20.0
#define LAUNCH_MODERATE 3.0
#define LAUNCH_HIGH 15.0
#define COMMUNICATION_MODERATE 3.0
#define COMMUNICATION_HIGH 10.0 /* limit for communication without concurrent compute, in percent */
#define OTHER_MODERATE 3.0

const struct verdict_limit verdict_limits[CLASS_COUNT] = {
	[CLASS_INPUT] = { INPUT_MODERATE, INPUT_HIGH, "waits for input", "waits for input", NULL },
	[CLASS_DEVICE_TO_HOST] = { COPY_MODERATE, COPY_HIGH, "copies results to the host",
				   "copies to the host", NULL },
	[CLASS_HOST_TO_DEVICE] = { COPY_MODERATE, COPY_HIGH, "copies data to the device",
				   "copies to the device", NULL },
	[CLASS_LAUNCH] = { LAUNCH_MODERATE, LAUNCH_HIGH, "launches work while the device waits",
			   "launches", "launches work for a device" },
	[CLASS_INITIALISATION] = { OTHER_MODERATE, VERDICT_OTHER_HIGH,
				   "is one-off initialisation while the device waits",
				   "is one-off initialisation", "is one-off initialisation" },
	[CLASS_ALLOCATION] = { OTHER_MODERATE, VERDICT_OTHER_HIGH,
			       "allocates and frees device memory while the device waits",
			       "allocates and frees device memory",
			       "allocates and frees device memory" },
	[CLASS_COMMUNICATION] = { COMMUNICATION_MODERATE, COMMUNICATION_HIGH,
				  "is communication that compute does not hide",
				  "is exposed communication", NULL },
	[CLASS_SYNCHRONISATION] = { OTHER_MODERATE, VERDICT_OTHER_HIGH,
				    "waits to synchronise with an idle device", "synchronises",
				    "waits in synchronisation" },
	[CLASS_HOST] = { OTHER_MODERATE, VERDICT_OTHER_HIGH, "is host code while the device waits",
			 "is host code", "is host code around the operators" },
	[CLASS_RUN_QUEUE] = { OTHER_MODERATE, VERDICT_OTHER_HIGH,
			      "waits for a processor that other threads have",
			      "waits for processors", NULL },
	[CLASS_IDLE] = { OTHER_MODERATE, VERDICT_OTHER_HIGH,
			 "has nothing recorded, neither on the host nor on a device",
			 "has nothing recorded", "has nothing recorded" },
};

/* If `text` begins with the words, moves it behind them and returns true. */
static bool skip_words(struct str *text, const char *words)
{
	if (!words || !str_starts(*text, str_from(words)))
		return false;
	*text = str_skip(*text, strlen(words));
	return true;
}

/* Splits a verdict such as "62 % of a step is exposed communication; …" into its share, "62 % of a step", and the
 * text after the words of the class. */
static bool split_lead(struct str verdict, enum phase_class class, struct str *share,
		       struct str *rest)
{
	static const char *const wholes[] = { " % of a step", " % of the recording" };

	for (size_t i = 0; i < ARRAY_COUNT(wholes); i++) {
		size_t at = str_find(verdict, str_from(wholes[i]));

		if (at == STR_NONE || at > str_find_char(verdict, ';'))
			continue;
		*share = str_first(verdict, at + strlen(wholes[i]));
		*rest = str_skip(verdict, share->len);
		return skip_words(rest, " ") && (skip_words(rest, verdict_limits[class].what) ||
						 skip_words(rest, verdict_limits[class].alone));
	}
	return false;
}

/* Returns a verdict without its last part, such as "…; 9 % is host code.". */
static struct str cut_tail(struct str verdict, enum phase_class class)
{
	size_t at = str_rfind_char(verdict, ';'), percent;
	struct str tail = at == STR_NONE ? STR("") : str_skip(verdict, at);

	percent = str_find(tail, STR(" % "));
	if (percent == STR_NONE)
		return verdict;
	tail = str_skip(tail, percent + strlen(" % "));
	return skip_words(&tail, verdict_limits[class].short_what) && str_eq(tail, STR("."))
		       ? str_first(verdict, at)
		       : verdict;
}

/* Adds "Over 99 % of a step" with a lower-case letter, inside a sentence. */
static void add_share(struct buf *text, struct str share)
{
	if (skip_words(&share, "Over "))
		buf_puts(text, "over ");
	else if (skip_words(&share, "Under "))
		buf_puts(text, "under ");
	buf_add_str(text, share);
}

bool verdict_leads_with(struct str verdict, struct verdict_subject subject)
{
	struct str share, rest;

	return subject.class < CLASS_COUNT && verdict_limits[subject.class].what &&
	       split_lead(verdict, subject.class, &share, &rest);
}

void verdict_after(struct str verdict, struct verdict_subject subject, struct buf *text)
{
	enum phase_class class = subject.class;
	struct str share, rest;

	if (class >= CLASS_COUNT || !verdict_limits[class].what) {
		buf_add_str(text, verdict);
	} else if ((subject.whole || subject.hidden) && split_lead(verdict, class, &share, &rest)) {
		buf_puts(text, subject.whole ? "Now this takes " : "In ");
		add_share(text, share);
		buf_puts(text, subject.whole ? "" : " nothing hides that");
		buf_add_str(text, rest);
	} else {
		rest = subject.whole ? cut_tail(verdict, class) : verdict;
		buf_add_str(text, rest);
		buf_puts(text, rest.len < verdict.len ? "." : "");
	}
}
