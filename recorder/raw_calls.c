/*
 * raw_calls.c: which system calls the program's own code makes by raw instructions, as far as its bytes say. No hook sees such a
 * call, and for some it is too late afterwards: the strict mode of seccomp takes the processor's counter away, so that the next
 * hook would end the program; a child under a filter cannot make its ring; root's landlock domain is visible nowhere; a
 * user namespace needs a program of one thread. process.c asks at the start.
 *
 * Only the program itself is looked at, not its libraries. Constant numbers are found in the register of the number just before the
 * instruction, or as arguments of a function that has the instruction. Where a small program has an instruction whose number is not
 * constant, the numbers may be anywhere in it: in its code or among its data. Large programs have the bytes of both by chance.
 */
#include "recorder.h"

#include <link.h>
#include <sys/prctl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>

#define TEXT_MOST ((size_t)16 << 20)
#define SMALL ((size_t)256 << 10) /* bytes of a program, code and data */
#define NEAR 48u		  /* bytes in which the arguments of a call are set */
#define CLOSE 24u		  /* bytes in which its number is */
#define FUNCTION 256u		  /* bytes of a function up to its instruction */

#if defined(__x86_64__)

/* Register numbers as in instructions. */
enum reg { REG_AX = 0, REG_DX = 2, REG_SI = 6, REG_DI = 7 };

/* Registers that hold the number and the first two arguments of a call. */
struct places {
	enum reg number, first, second;
};
static const struct places of_instruction = { REG_AX, REG_DI, REG_SI };
static const struct places of_function = { REG_DI, REG_SI, REG_DX };

static const uint8_t instruction[] = { 0x0f, 0x05 };
enum { CALL = 0xe8, JUMP = 0xe9 };

static const uint32_t no_thread[] = { SYS_landlock_restrict_self, SYS_unshare, SYS_setns };

static bool has_bytes(const uint8_t *from, const uint8_t *to, const uint8_t *bytes, size_t len)
{
	return to > from && memmem(from, (size_t)(to - from), bytes, len);
}

/* Returns whether some of these bytes load the value into the register, as compilers do or with
 * `movq`. */
static bool has_load(const uint8_t *from, const uint8_t *to, enum reg reg, uint32_t value)
{
	uint8_t load[5] = { (uint8_t)(0xb8 | reg) };
	uint8_t load_wide[6] = { 0xc7, (uint8_t)(0xc0 | reg) };

	memcpy(load + 1, &value, sizeof(value));
	memcpy(load_wide + 2, &value, sizeof(value));
	return has_bytes(from, to, load, sizeof(load)) ||
	       has_bytes(from, to, load_wide, sizeof(load_wide));
}

static uint32_t calls_among(const uint8_t *from, const uint8_t *to, const struct places *p)
{
	uint32_t found = 0;

	if (has_load(from, to, p->number, SYS_prctl) &&
	    has_load(from, to, p->first, PR_SET_SECCOMP))
		found |= has_load(from, to, p->second, SECCOMP_MODE_FILTER) ? RAW_FILTER
									    : RAW_STRICT;
	if (has_load(from, to, p->number, SYS_seccomp))
		found |= has_load(from, to, p->first, SECCOMP_SET_MODE_FILTER) ? RAW_FILTER
									       : RAW_STRICT;
	for (size_t i = 0; i < sizeof(no_thread) / sizeof(*no_thread); i++)
		if (has_load(from, to, p->number, no_thread[i]))
			found |= RAW_NO_THREAD;
	return found;
}

/* Returns whether one of these bytes begins a call of a function that contains the instruction. */
static bool calls_raw_function(const uint8_t *text, const uint8_t *end, const uint8_t *from,
			       const uint8_t *to)
{
	for (const uint8_t *at = from; at < to && end - at >= 5; at++) {
		const uint8_t *target = at + 5;
		int32_t distance;

		if (*at != CALL && *at != JUMP)
			continue;
		memcpy(&distance, at + 1, sizeof(distance));
		if (distance < text - target || distance >= end - target)
			continue;
		target += distance;
		if (has_bytes(target, end - target > FUNCTION ? target + FUNCTION : end,
			      instruction, sizeof(instruction)))
			return true;
	}
	return false;
}

/* Finds calls of functions that take the system call number first. */
static uint32_t passed_numbers(const uint8_t *text, const uint8_t *end)
{
	static const uint32_t numbers[] = { SYS_prctl, SYS_seccomp, SYS_landlock_restrict_self,
					    SYS_unshare, SYS_setns };
	uint32_t found = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		uint8_t bytes[5] = { 0xb8 | REG_DI };
		const uint8_t *at = text;

		memcpy(bytes + 1, &numbers[i], sizeof(numbers[i]));
		while ((at = memmem(at, (size_t)(end - at), bytes, sizeof(bytes))) != NULL) {
			const uint8_t *from = at - text > NEAR ? at - NEAR : text;
			const uint8_t *to = end - at > NEAR ? at + NEAR : end;

			if (calls_raw_function(text, end, at, to))
				found |= calls_among(from, to, &of_function);
			at += sizeof(bytes);
		}
	}
	return found;
}

/* Whether some of these bytes set the register of the number to a constant. */
static bool has_number(const uint8_t *from, const uint8_t *to)
{
	for (const uint8_t *at = from; to - at >= 2; at++) {
		bool load = at[0] == (0xb8 | REG_AX) && to - at >= 5;
		bool load_wide = at[0] == 0xc7 && at[1] == 0xc0 && to - at >= 6;
		bool clear = (at[0] == 0x31 || at[0] == 0x33) && at[1] == 0xc0;

		if (load || load_wide || clear)
			return true;
	}
	return false;
}

/* Whether these bytes are part of an address or a constant of another instruction, as far as the bytes before them show: an address
 * relative to this one, a distance on the stack, a call, a jump, a load. */
static bool is_part_of_other(const uint8_t *text, const uint8_t *at)
{
	for (size_t k = 1; k <= 3 && at - text >= (ptrdiff_t)k + 2; k++) {
		uint8_t last = at[-(ptrdiff_t)k], before = at[-(ptrdiff_t)k - 1];
		bool short_distance = (before & 0xc7) == 0x45;

		if ((last & 0xc7) == 0x05 || last == CALL || last == JUMP ||
		    ((last & 0xf8) == 0xb8 && !short_distance) ||
		    (before == 0x0f && (last & 0xf0) == 0x80) ||
		    ((last & 0xc0) == 0x80 && (before & 0xf8) == 0x88) ||
		    ((last & 0xc0) == 0xc0 && (before == 0xc7 || before == 0x81)))
			return true;
	}
	return false;
}

/* State of the search through the program's parts. */
struct look {
	uint32_t found;
	bool variable; /* an instruction whose number is not constant */
	/* Values among the constants of its code, or in its data. */
	bool has_prctl, has_set_seccomp, has_seccomp;
};

static void look_at_code(struct look *l, const uint8_t *text, size_t len)
{
	const uint8_t *at = text, *end = text + len;
	bool some = false;

	while ((at = memmem(at, (size_t)(end - at), instruction, sizeof(instruction))) != NULL) {
		const uint8_t *from = at - text > NEAR ? at - NEAR : text;

		l->found |= calls_among(from, at, &of_instruction);
		l->variable |= !is_part_of_other(text, at) &&
			       !has_number(at - from > CLOSE ? at - CLOSE : from, at);
		some = true;
		at += sizeof(instruction);
	}
	if (some)
		l->found |= passed_numbers(text, end);
}

static void note_value(struct look *l, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	l->has_prctl |= value == SYS_prctl;
	l->has_seccomp |= value == SYS_seccomp;
	l->has_set_seccomp |= value == PR_SET_SECCOMP;
}

/* Constants that instructions load or store: into a register, or to where a short distance or the instruction's own address leads. */
static void look_for_constants(struct look *l, const uint8_t *code, size_t len)
{
	for (size_t i = 6; i + sizeof(uint32_t) <= len; i++) {
		const uint8_t *at = code + i;

		if ((at[-1] & 0xf8) == 0xb8 || (at[-2] == 0xc7 && (at[-1] & 0xf8) == 0xc0) ||
		    (at[-3] == 0xc7 && (at[-2] & 0xf8) == 0x40) || at[-6] == 0xc7)
			note_value(l, at);
	}
}

static void look_at_data(struct look *l, const uint8_t *data, size_t len)
{
	for (size_t i = -(uintptr_t)data % sizeof(uint32_t); i + sizeof(uint32_t) <= len;
	     i += sizeof(uint32_t))
		note_value(l, data + i);
}

static const uint8_t *part_of(const struct dl_phdr_info *info, int i)
{
	const ElfW(Phdr) *part = &info->dlpi_phdr[i];

	if (part->p_type != PT_LOAD || !(part->p_flags & PF_R))
		return NULL;
	return (const uint8_t *)info->dlpi_addr + part->p_vaddr;
}

/* Searches the data for the mode of a seccomp filter, which may be in a variable: a hook would not survive the
 * strict mode. */
static void look_for_variables(struct look *l, const struct dl_phdr_info *info)
{
	size_t all = 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
		all += part_of(info, i) ? info->dlpi_phdr[i].p_filesz : 0;
	if (!l->variable || all > SMALL)
		return;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (!part_of(info, i))
			continue;
		if (part->p_flags & PF_X)
			look_for_constants(l, part_of(info, i), part->p_filesz);
		else if (part->p_offset) /* the first one has the linker's tables */
			look_at_data(l, part_of(info, i), part->p_filesz);
	}
	if (l->has_seccomp || (l->has_prctl && l->has_set_seccomp))
		l->found |= RAW_STRICT;
}

/* Examines the first object, which is the program. */
static int look_at_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct look *l = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		size_t len = info->dlpi_phdr[i].p_filesz;

		if (part_of(info, i) && (info->dlpi_phdr[i].p_flags & PF_X))
			look_at_code(l, part_of(info, i), len < TEXT_MOST ? len : TEXT_MOST);
	}
	look_for_variables(l, info);
	return 1;
}

uint32_t raw_calls(void)
{
	struct look l = { 0 };

	dl_iterate_phdr(look_at_program, &l);
	return l.found;
}

#else

/* On other machines nothing is detected: the clock stays available, and numbers are loaded in
 * other ways. */
uint32_t raw_calls(void)
{
	return 0;
}

#endif
