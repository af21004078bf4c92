/*
 * demangle_filt_test.c: the demangler against c++filt of the GNU binutils, on every name of the C++ library and of the files
 * in OPWATCH_DEMANGLE_FILES (separated by colons): libraries of C++ and Rust. Skipped where nm or c++filt is missing.
 *
 * Differences that are intended are taken out first: ">>" has no blank, ABI tags and hashes of crates are not
 * shown, constants of Rust do not say their type, std::string and the streams keep their short names.
 */
#include "base/demangle/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <unistd.h>

static void replace_all(char *text, const char *from, const char *to)
{
	size_t from_len = strlen(from), to_len = strlen(to);

	for (char *at = text; (at = strstr(at, from));) {
		memmove(at + to_len, at + from_len, strlen(at + from_len) + 1);
		memcpy(at, to, to_len);
	}
}

/* Takes out [abi:cxx11] and [0123456789abcdef], and ": u8" behind a constant. */
static void remove_notes(char *text)
{
	static const char *const types[] = { ": usize", ": u8",	   ": u16",  ": u32", ": u64",
					     ": u128",	": i8",	   ": i16",  ": i32", ": i64",
					     ": i128",	": isize", ": bool", ": char" };

	for (char *at = text; (at = strchr(at, '['));) {
		size_t hex = strspn(at + 1, "0123456789abcdef");
		char *end = strchr(at, ']');

		if (end && (strncmp(at, "[abi:", 5) == 0 || (hex > 8 && at + 1 + hex == end)))
			memmove(at, end + 1, strlen(end + 1) + 1);
		else
			at++;
	}
	for (size_t i = 0; i < ARRAY_COUNT(types); i++)
		replace_all(text, types[i], "");
}

static void normalise(char *text)
{
	remove_notes(text);
	replace_all(text, "> >", ">>");
	replace_all(text, "std::basic_string<char, std::char_traits<char>, std::allocator<char>>",
		    "std::string");
	replace_all(text, "std::basic_istream<char, std::char_traits<char>>", "std::istream");
	replace_all(text, "std::basic_ostream<char, std::char_traits<char>>", "std::ostream");
	replace_all(text, "std::basic_iostream<char, std::char_traits<char>>", "std::iostream");
}

struct tally {
	unsigned names, same, left, shown;
};

/* One line of "mangled TAB as c++filt writes it". */
static void compare(struct tally *t, struct mem *mem, char *line)
{
	char *theirs = strchr(line, '\t');
	struct buf out;

	if (!theirs)
		return;
	*theirs++ = '\0';
	theirs[strcspn(theirs, "\n")] = '\0';
	if (strcmp(line, theirs) == 0)
		return;
	t->names++;
	buf_init(&out, mem);
	if (!demangle_name(str_from(line), &out)) {
		t->left++;
		buf_puts(&out, line);
	}
	buf_add_char(&out, '\0');
	normalise(out.ptr);
	normalise(theirs);
	t->same += strcmp(out.ptr, theirs) == 0;
	if (strcmp(out.ptr, theirs) != 0 && t->shown++ < 5)
		print_message("%s\n  c++filt: %s\n  opwatch: %s\n", line, theirs, out.ptr);
	buf_release(&out);
}

static void compare_file(const char *path)
{
	static char line[262144];
	char command[2048];
	struct tally t = { 0 };
	struct mem mem;
	FILE *lines;
	char names[] = "/tmp/opwatch-demangle-XXXXXX";

	close(mkstemp(names));
	snprintf(command, sizeof(command),
		 "nm -D '%s' | awk '{print $NF}' | sed 's/@.*//' | grep -E '^_(Z|R[A-Z])' | sort "
		 "-u >%s; "
		 "c++filt <%s | paste %s -",
		 path, names, names, names);
	mem_init(&mem, 0);
	lines = popen(command, "r");
	assert_non_null(lines);
	while (fgets(line, sizeof(line), lines))
		compare(&t, &mem, line);
	pclose(lines);
	unlink(names);
	print_message("%s: %u names, %u as c++filt writes them, %u left mangled\n", path, t.names,
		      t.same, t.left);
	assert_true(t.same >= t.names / 100 * 97);
	assert_true(t.left <= t.names / 100);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void same_as_cxxfilt(void **state)
{
	char files[4096], *rest = files, *file;
	const char *more = getenv("OPWATCH_DEMANGLE_FILES");
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
	Dl_info info;
	void *symbol = library ? dlsym(library, "_ZTVSt9exception") : NULL;

	(void)state;
	if (system("nm --version >/dev/null 2>&1 && c++filt --version >/dev/null 2>&1") != 0) {
		print_message("nm and c++filt (binutils) are not installed\n");
		skip();
	}
	if (symbol && dladdr(symbol, &info) && info.dli_fname)
		compare_file(info.dli_fname);
	else
		print_message("libstdc++.so.6 is not installed\n");
	if (library)
		dlclose(library);
	snprintf(files, sizeof(files), "%s", more ? more : "");
	while ((file = strsep(&rest, ":")))
		if (*file)
			compare_file(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(same_as_cxxfilt) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
