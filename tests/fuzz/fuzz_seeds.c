/*
 * fuzz_seeds.c: runs the fuzzers' seeds without libFuzzer, so that every compiler and sanitizer build
 * meets them in `make test`.
 *
 *     fuzz_seeds TARGET DIRECTORY
 *
 * Each file is loaded as it is, cut short at up to CUTS lengths, with each of up to FLIPS bits turned, and with each of
 * up to FAILURES allocations failing. The only wrong answers are a crash (which the test sees) and OW_E_INTERNAL.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "fuzz_entry.h"

enum { CUTS = 200, FLIPS = 200, FAILURES = 60 };

static const char *target;
static unsigned long loads, bugs;

/* The copy has exactly `len` bytes, so that a sanitizer sees the first byte read beyond them. */
static void load(const unsigned char *data, size_t len, const char *file, const char *what)
{
	unsigned char *copy = malloc(len ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, data, len);
	loads++;
	if (fuzz_run(target, copy, len) == OW_E_INTERNAL) {
		fprintf(stderr, "%s: %s (%zu bytes): internal error\n", file, what, len);
		bugs++;
	}
	free(copy);
}

/* Every second time all that come after it fail, too. */
static void run_failures(const unsigned char *data, size_t len, const char *file)
{
	uint64_t count, step;

	mem_fail_after(UINT64_MAX, false);
	load(data, len, file, "whole");
	count = UINT64_MAX - mem_fail_left();
	step = count / FAILURES | 1;
	for (uint64_t i = 0; i < count; i += step) {
		mem_fail_after(i + 1, i / step % 2);
		load(data, len, file, "with little memory");
	}
	mem_fail_after(0, false);
}

static void run_seed(unsigned char *data, size_t len, const char *file)
{
	uint64_t bits = (uint64_t)len * 8;
	/* Odd steps, so that the places do not keep to the start of a byte or a word. */
	size_t cut_step = len / CUTS | 1;
	uint64_t flip_step = bits / FLIPS | 1;

	run_failures(data, len, file);
	for (size_t cut = 0; cut < len; cut += cut_step)
		load(data, cut, file, "cut short");
	for (uint64_t bit = 0; bit < bits; bit += flip_step) {
		data[bit / 8] ^= (unsigned char)(1u << bit % 8);
		load(data, len, file, "with one bit turned");
		data[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

static int run_file(const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	unsigned char *data;
	size_t len;

	if (!f || fstat(fileno(f), &st)) {
		perror(path);
		return 1;
	}
	data = malloc((size_t)st.st_size + 1);
	len = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
	fclose(f);
	if (!data || len != (size_t)st.st_size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		free(data);
		return 1;
	}
	run_seed(data, len, path);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	int failed = 0;
	DIR *dir;

	if (argc != 3) {
		fprintf(stderr, "usage: fuzz_seeds TARGET DIRECTORY\n");
		return 2;
	}
	target = argv[1];
	dir = opendir(argv[2]);
	if (!dir) {
		perror(argv[2]);
		return 1;
	}
	while ((entry = readdir(dir))) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[2], entry->d_name);
		failed |= run_file(path);
	}
	closedir(dir);
	printf("%s: %lu loads, %lu internal errors\n", target, loads, bugs);
	return failed || bugs || !loads;
}
