/* remote.c: see remote.h. */
#include "cli/remote.h"

#include "cli/piped.h"

static bool is_interrupted(void *arg)
{
	(void)arg;
	return interrupted;
}

ow_remote *remote_open(const struct args *args, const char *address, int *exit_code)
{
	struct ow_remote_options options;
	struct ow_error err = { 0 };
	ow_remote *remote;
	ow_status status;

	ow_remote_options_init(&options);
	options.password_file = args->password_file;
	options.memory_limit = args->open.memory_limit;
	options.cancelled = is_interrupted;
	interrupts_catch(true);
	status = ow_remote_open(address, &options, &remote, &err);
	if (status == OW_OK)
		return remote;
	complain("opwatch: %s\n", err.text);
	*exit_code = status == OW_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	return NULL;
}

static ow_status show_stdout(const struct args *args, ow_result *result, struct ow_error *err)
{
	static struct output_stream out;
	struct ow_write_options write;
	ow_status status;

	ow_write_options_init(&write);
	write.width = args->terminal.out ? args->terminal.width : 0;
	write.colour = args->terminal.colour;
	write.limit = args->options.view.limit;
	output_start(&out, args->terminal.out && args->terminal.in && !args->no_pager,
		     args->terminal.height);
	status = ow_result_write(result, args->sink, &write, output_write, &out, err);
	if (!output_end(&out))
		return output_failure(err);
	return status == OW_E_INTERRUPTED ? OW_OK : status; /* nobody reads on */
}

static ow_status ask_and_show(const struct args *args, ow_remote *remote, const char *text,
			      struct ow_error *err)
{
	ow_result *result;
	ow_status status;

	OW_TRY(ow_remote_query(remote, text, &result, err));
	if (!ow_result_columns(result))
		status = OW_OK; /* a statement without rows */
	else if (args->out_file && !is_standard_output(args->out_file))
		status = ow_result_write_file(result, args->sink, NULL, args->out_file, err);
	else
		status = show_stdout(args, result, err);
	ow_result_free(result);
	return status;
}

int remote_run(struct args *args, const char *text)
{
	struct ow_error err = { 0 };
	int code = EXIT_FAILED;
	ow_remote *remote;
	ow_status status;

	remote = remote_open(args, args->on, &code);
	if (!remote)
		return code;
	status = ask_and_show(args, remote, text, &err);
	ow_remote_free(remote);
	if (status == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err.text);
	return EXIT_FAILED;
}
