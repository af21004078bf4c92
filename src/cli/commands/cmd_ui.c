/*
 * cmd_ui.c: `opwatch ui FILE…`: the web page. Starts the server of the library, prints its address, opens a browser and
 * waits for Ctrl-C. The files load while the page is open already; it shows the progress.
 */
#include "cli/command.h"

#include <opwatch/ui.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct ui_args {
	const char *listen, *socket, *source;
	struct ow_list base;
	uint32_t port;
	bool no_browser;
};

/* The address has the token, and other users see the arguments of programs. So the browser gets a file that only this user
 * can read and that leads to the address. */
static bool write_redirect(const char *path, const char *address)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	fprintf(file,
		"<!doctype html><meta name=\"referrer\" content=\"no-referrer\"><meta "
		"http-equiv=\"refresh\" content=\"0;url=%s\"><a href=\"%s\">opwatch</a>\n",
		address, address);
	return fclose(file) == 0;
}

static bool has_desktop(void)
{
	return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") || getenv("BROWSER");
}

static bool open_browser(const char *file)
{
	const char *const argv[] = { "xdg-open", file, NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = -1;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return false;
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ) ==
	    0)
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void print_address(const struct args *args, const ow_ui *ui)
{
	const struct ui_args *own = args->own;

	if (own->socket)
		printf("The page is on the socket %s. From your computer:\n"
		       "  ssh -N -L 8080:%s HOST\n"
		       "  then open http://localhost:8080/#t=%s\n",
		       own->socket, own->socket, ow_ui_token(ui));
	else
		printf("%s\n", ow_ui_address(ui));
	if (own->listen && strncmp(own->listen, "127.", 4) != 0 && strcmp(own->listen, "::1") != 0)
		complain("opwatch: anyone on the network who sees this address can read the "
			 "profile; the connection is not encrypted\n");
	if (args->terminal.out)
		printf("Ctrl-C ends it.\n");
	fflush(stdout);
}

static void wait_for_signal(ow_ui *ui)
{
	struct timespec pause = { .tv_nsec = 100000000 };
	struct ow_error err = { 0 };
	bool reported = false;

	while (!signals_caught()) {
		nanosleep(&pause, NULL);
		if (!reported && ow_ui_progress(ui, &err) == OW_UI_FAILED) {
			complain("opwatch: %s\n", err.text);
			reported = true; /* the page shows the error, too; it stays until Ctrl-C */
		}
	}
}

static int serve(struct args *args, ow_ui *ui)
{
	const struct ui_args *own = args->own;
	struct scratch redirect = { 0 };

	signals_catch(); /* before another program learns the address and may end this one */
	print_address(args, ui);
	if (!own->no_browser && !own->socket && has_desktop() &&
	    scratch_make(&redirect, args->arena, "opwatch.html") &&
	    (!write_redirect(redirect.path, ow_ui_address(ui)) || !open_browser(redirect.path)))
		complain("opwatch: no browser could be started; open the address above\n");
	wait_for_signal(ui);
	scratch_drop(&redirect);
	ow_ui_close(ui);
	signals_release();
	return EXIT_GOOD;
}

static ow_status start(struct args *args, ow_profile *profile, ow_ui **ui, struct ow_error *err)
{
	const struct ui_args *own = args->own;
	struct ow_ui_options options;

	ow_ui_options_init(&options);
	options.open = &args->input.open;
	options.listen = own->listen;
	options.port = own->port;
	options.socket = own->socket;
	options.source_dir = own->source;
	options.daemon_socket = args->input.socket;
	options.base = own->base;
	options.job = args->input.job;
	options.job_last_ns = args->input.last_ns;
	return profile ? ow_ui_open_profile(profile, &options, ui, err)
		       : ow_ui_open(args->files, args->file_count, &options, ui, err);
}

static int run_ui(struct args *args)
{
	/* Options that need more than opening files: the files are loaded first, with progress
	 * on the terminal. */
	bool load = args->input.format || args->input.checkpoint;
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	ow_status status;
	const char *why;
	ow_ui *ui = NULL;
	int code = EXIT_FAILED;

	if (!ow_ui_available(&why)) {
		complain("opwatch: %s\n", why);
		return EXIT_FAILED;
	}
	if (load) {
		profile = load_advised(args, &code);
		if (!profile)
			return code;
	}
	status = start(args, profile, &ui, &err);
	code = status == OW_OK ? serve(args, ui) : report_error(&err, status);
	ow_profile_free(profile);
	return code;
}

static const struct option options[] = {
	{ "no-browser", STORE_FLAG(struct ui_args, no_browser),
	  .help = "print the address, do not start a browser" },
	{ "listen", STORE_NAME(struct ui_args, listen), .argument = "ADDRESS",
	  .help = "answer on this IP address", .usual = "127.0.0.1" },
	{ "port", STORE_UINT32(struct ui_args, port, 0, 65535), .argument = "N",
	  .help = "answer on this port; 0: any free one" },
	{ "socket", STORE_NAME(struct ui_args, socket), .argument = "PATH",
	  .help = "answer on a UNIX socket instead, for ssh -L" },
	{ "base", STORE_REPEAT(struct ui_args, base), .argument = "FILE",
	  .help = "compare with this file (repeatable)" },
	{ "source", STORE_NAME(struct ui_args, source), .argument = "DIR",
	  .help = "show source files below this folder", .usual = "the working directory" },
	{ "daemon-socket", STORE_TEXT(struct args, input.socket), .argument = "PATH",
	  .help = "the socket of the daemon" },
};

const struct command cmd_ui = {
	.name = "ui",
	.usage = "[FILE…] [--no-browser] [--port N] [--socket PATH]",
	.summary = "show profiles in a browser: timeline, operations, memory, …",
	.help = "Starts a server in this program and opens a browser. The address holds a secret\n"
		"token: only those who have it can see the profile. The page appears at once and\n"
		"shows how far loading is. Without files it shows the jobs of the daemon. Ctrl-C\n"
		"ends it.\n",
	.examples = { "opwatch ui run.opw", "opwatch ui run.opw --no-browser --port 8080" },
	.own = OPTIONS(options),
	.groups = { &input_options },
	.own_size = sizeof(struct ui_args),
	.run = run_ui,
};
