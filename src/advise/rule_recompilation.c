/*
 * rule_recompilation.c: compilation in steady steps: programs that are compiled again because shapes or
 * types change. The saving refers to the mean step, by replay without the time of these events.
 */
#include "advise/advice.h"

/* Names of functions that compile. Calls of compiled code also pass through frames of the
 * compiler; they do not count. */
static const char *const words[] = { "backend_compile",
				     "XlaCompile",
				     "compile_or_get_cached",
				     "CompileToLocalExecutable",
				     "XlaCompilationCache",
				     "convert_frame",
				     "dynamo_timed",
				     "entire_frame_compile",
				     "call_user_compiler",
				     "fx_codegen_and_compile",
				     "compile_inner",
				     "inductor_compile",
				     "CachingAutotuner.benchmark",
				     "nvrtcCompileProgram",
				     "-eval_frame",
				     NULL };

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct report report = {
		.advice = STR(
			"keep shapes and types the same from step to step: pad batches, mark "
			"dynamic shapes (torch.compile(dynamic=True)), static arguments for jit"),
		.falsified_by = STR("log recompilations (TORCH_LOGS=recompiles, jax_log_compiles): "
				    "if the log has none, these events are not recompilations"),
		.most = CONFIDENCE_MEDIUM,
		.class = CLASS_COUNT
	};

	(void)err;
	return advice_report_words(a, words, "steady steps compile: %s per mean step", &report);
}

const struct rule rule_recompilation = {
	.name = "recompilation",
	.summary = "compilation in steady steps",
	.doc = "recompilation",
	.advise = advise,
};
