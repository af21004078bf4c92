/* Children in new namespaces, one without a view of the recorder's socket, one as process 1 of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(void)
{
	int fd = open("/etc/passwd", O_RDONLY);
	char text[16];

	for (int i = 0; i < 100; i++)
		if (pread(fd, text, sizeof(text), 0) != (ssize_t)sizeof(text))
			return 1;
	return 0;
}

int main(void)
{
	static const int flags[] = { CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWUSER,
				     CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS };

	work();
	for (int i = 0; i < 4; i++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			int result = unshare(flags[i]);

			if (result == 0 && flags[i] == CLONE_NEWNS &&
			    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
				(void)!mount("none", "/tmp", "tmpfs", 0, NULL);
			if (result == 0 && flags[i] == CLONE_NEWPID) {
				child = fork();
				if (child > 0) {
					waitpid(child, &status, 0);
					_exit(WEXITSTATUS(status) + 2);
				}
			}
			_exit(result ? 50 : work());
		}
		waitpid(child, &status, 0);
		printf("%d: %d\n", i, status);
	}
	return 0;
}
