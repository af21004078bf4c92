/*
 * raw_calls.c: which system calls the program's own code makes by raw instructions, as far as its bytes say. No hook sees such a
 * call, and for some it is too late afterwards: the strict mode of seccomp takes the processor's counter away, so that the next
 * hook would end the program; root's landlock domain is visible nowhere; a user namespace needs a program of one thread.
 * process.c asks at the start.
 *
 * Only the program itself is looked at, not its libraries, and only constant numbers are found: in the register of the number
 * just before the instruction, or as arguments of a function that has the instruction.
 */
#include "recorder.h"

#include <link.h>
#include <sys/prctl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#define TEXT_MOST ((size_t)16 << 20)
#define NEAR 48u /* bytes in which the arguments of a call are set */

#if defined(__x86_64__)

enum load { LOAD_EAX = 0xb8, LOAD_EDI = 0xbf, LOAD_ESI = 0xbe };

static const uint32_t no_thread[] = { SYS_landlock_restrict_self, SYS_unshare, SYS_setns };

/* Whether some of these bytes put the value into the register. */
static bool has_load(const uint8_t *from, const uint8_t *to, enum load reg, uint32_t value)
{
	uint8_t bytes[5] = { (uint8_t)reg };

	memcpy(bytes + 1, &value, sizeof(value));
	return to > from && memmem(from, (size_t)(to - from), bytes, sizeof(bytes));
}

/* Number and first two arguments are in these registers. */
static uint32_t calls_among(const uint8_t *from, const uint8_t *to, enum load number,
			    enum load first, enum load second)
{
	uint32_t found = 0;

	if (has_load(from, to, number, SYS_prctl) && has_load(from, to, first, PR_SET_SECCOMP) &&
	    (!second || !has_load(from, to, second, SECCOMP_MODE_FILTER)))
		found |= RAW_STRICT;
	if (has_load(from, to, number, SYS_seccomp) &&
	    !has_load(from, to, first, SECCOMP_SET_MODE_FILTER))
		found |= RAW_STRICT;
	for (size_t i = 0; i < sizeof(no_thread) / sizeof(*no_thread); i++)
		if (has_load(from, to, number, no_thread[i]))
			found |= RAW_NO_THREAD;
	return found;
}

/* Whether the instruction is in a function that takes the number first: it moves that from one register to the other. */
static bool takes_number(const uint8_t *from, const uint8_t *to)
{
	static const uint8_t move[] = { 0x89, 0xf8 }; /* edi or rdi to eax or rax */

	return to > from && memmem(from, (size_t)(to - from), move, sizeof(move));
}

/* Calls of such a function. */
static uint32_t passed_numbers(const uint8_t *text, const uint8_t *end)
{
	static const uint32_t numbers[] = { SYS_prctl, SYS_seccomp, SYS_landlock_restrict_self,
					    SYS_unshare, SYS_setns };
	uint32_t found = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		uint8_t bytes[5] = { LOAD_EDI };
		const uint8_t *at = text;

		memcpy(bytes + 1, &numbers[i], sizeof(numbers[i]));
		while ((at = memmem(at, (size_t)(end - at), bytes, sizeof(bytes))) != NULL) {
			const uint8_t *from = at - text > NEAR / 2 ? at - NEAR / 2 : text;
			const uint8_t *to = end - at > NEAR / 2 ? at + NEAR / 2 : end;

			found |= calls_among(from, to, LOAD_EDI, LOAD_ESI, 0);
			at += sizeof(bytes);
		}
	}
	return found;
}

static uint32_t calls_in(const uint8_t *text, size_t len)
{
	static const uint8_t instruction[] = { 0x0f, 0x05 };
	const uint8_t *at = text, *end = text + len;
	uint32_t found = 0;
	bool function = false;

	while ((at = memmem(at, (size_t)(end - at), instruction, sizeof(instruction))) != NULL) {
		const uint8_t *from = at - text > NEAR ? at - NEAR : text;

		found |= calls_among(from, at, LOAD_EAX, LOAD_EDI, LOAD_ESI);
		function |= takes_number(from, at);
		at += sizeof(instruction);
	}
	return function ? found | passed_numbers(text, end) : found;
}

/* The first object is the program. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint32_t *found = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		size_t len = part->p_filesz < TEXT_MOST ? part->p_filesz : TEXT_MOST;

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && (part->p_flags & PF_R))
			*found |= calls_in((const uint8_t *)info->dlpi_addr + part->p_vaddr, len);
	}
	return 1;
}

uint32_t raw_calls(void)
{
	uint32_t found = 0;

	dl_iterate_phdr(look_at_program, &found);
	return found;
}

#else

/* Elsewhere the clock stays, and the numbers are loaded in other ways. */
uint32_t raw_calls(void)
{
	return 0;
}

#endif
