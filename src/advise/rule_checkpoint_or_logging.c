/*
 * rule_checkpoint_or_logging.c: checkpoints, summaries and logging in steps. They happen in some steps only: the
 * saving is of the mean step, by replay without the time of these events.
 */
#include "advise/advice.h"

static const char *const words[] = {
	"torch.save", "serialization.py", "save_checkpoint", "save_pretrained", "save_model",
	"async_save", "checkpoint", "Checkpoint", "CHECKPOINT", "SaveV2", "orbax", "WriteSummary",
	"SummaryWriter", "add_scalar", "WriteScalarSummary", "wandb", "tensorboard", "mlflow",
	"log_metrics", "log_dict", "LogMetrics", "logging", "logger", "Logger",
	"built-in function print",
	/* activation checkpointing only recomputes values and writes nothing */
	"-CheckpointFunction", "-CheckpointWrapper", "-checkpoint_wrapper", "-utils/checkpoint",
	"-utils.checkpoint", "-activation_checkpoint", "-checkpoint_sequential", NULL
};

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR("write them in another thread, less often, or asynchronously "
			      "(torch.distributed.checkpoint.async_save, orbax)"),
		.falsified_by = STR("switch it off for one run: if the mean step is not shorter, "
				    "other work hid its cost"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};

	(void)err;
	return advice_report_words(a, words, "checkpoints or logging take %s of the mean step",
				   &report);
}

const struct rule rule_checkpoint_or_logging = {
	.name = "checkpoint_or_logging",
	.summary = "checkpoints and logging in steps",
	.doc = "checkpoint_or_logging",
	.advise = advise,
};
