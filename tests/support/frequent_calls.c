/*
 * frequent_calls.c: calls as fast as they go: files that are opened, read and closed, a file that is read and written through
 * buffers, and a pipe. Prints what it did. For tests/live/sampled_calls_test.py: argument 1 is what (files, buffers, pipe),
 * argument 2 how often, argument 3 a file to work on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long files(long count, const char *path)
{
	char data[200];
	long bytes = 0;

	for (long i = 0; i < count; i++) {
		int fd = open(path, O_RDONLY);

		bytes += read(fd, data, 100 + (size_t)i % 100);
		close(fd);
	}
	return bytes;
}

/* Lines of 25 to 30 bytes, written and then read in four ways. */
static long buffers(long count, const char *path)
{
	char data[100], *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "w");
	long lines = 0;

	for (long i = 0; i < count; i++) {
		int len = snprintf(data, sizeof(data), "line %ld of a text that is read\n", i);

		if (fwrite(data, 1, (size_t)len, f) != (size_t)len)
			return -1;
	}
	fclose(f);
	f = fopen(path, "r");
	while (fgets(data, sizeof(data), f))
		lines++;
	rewind(f);
	while (getline(&line, &size, f) > 0)
		lines++;
	rewind(f);
	while (fread(data, 7, 1, f) == 1)
		;
	fclose(f);
	free(line);
	return lines;
}

static long pipes(long count)
{
	static char data[65536];
	long bytes = 0;
	int ends[2];

	if (pipe(ends) != 0)
		return -1;
	for (long i = 0; i < count; i++) {
		bytes += write(ends[1], data, sizeof(data) / 2);
		bytes += read(ends[0], data, sizeof(data));
	}
	return bytes;
}

int main(int argc, char **argv)
{
	long count = argc > 3 ? atol(argv[2]) : 0, result;

	if (!count)
		return 1;
	result = strcmp(argv[1], "files") == 0	   ? files(count, argv[3])
		 : strcmp(argv[1], "buffers") == 0 ? buffers(count, argv[3])
						   : pipes(count);
	printf("{\"result\": %ld}\n", result);
	return 0;
}
