/*
 * rule_storage_or_gc.c: garbage collection and reading of files in steps, where the recording has events
 * for them. The saving refers to the mean step, by replay without the time of these events.
 */
#include "advise/advice.h"

static const char *const words[] = { "gc.collect",
				     "gc_collect",
				     "Python GC",
				     "GarbageCollect",
				     "garbage collect",
				     "garbage_collect",
				     "built-in function collect",
				     "ReadFile",
				     "read_file",
				     "ReadRecord",
				     "TFRecordDataset",
				     "MatchingFiles",
				     "fsync",
				     NULL };

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("freeze and tune the collector (gc.freeze(), gc.disable() "
			      "in the loop), cache or pack small files"),
		.falsified_by = STR("switch the collector off for one run: if the mean step is not "
				    "shorter, other work hid its cost"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};

	(void)err;
	return advice_report_words(
		a, words, "garbage collection or storage takes %s of the mean step", &report);
}

const struct rule rule_storage_or_gc = {
	.name = "storage_or_gc",
	.summary = "garbage collection and storage in steps",
	.doc = "storage_or_gc",
	.advise = advise,
};
