/*
 * hook_marker.c: records where steps begin: each call of the function that --step-marker names. A function of a library is seen through the slots
 * of its callers, as all hooks are (patch.c). A function of the program itself has no slots: its first instructions are moved, and a jump
 * to the wrapper takes their place. That is done before the program begins, when there is one thread, and only where these
 * instructions can run elsewhere and nothing jumps into them; otherwise the function is not seen. For x86-64; elsewhere only Python
 * functions (hook_python.c) and recorded calls mark steps.
 *
 * The wrapper does not know the function's arguments: it saves all registers that may have any, and jumps to the function.
 */
#include "recorder.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char name[RING_MARKER_MAX];
static bool in_program; /* the first instructions of the function were replaced */

const char *marker_name(void)
{
	return name;
}

void marker_called(void)
{
	struct thread *t;

	if (!enter())
		return;
	t = thread_current();
	if (t)
		push(t, &(struct ring_record){ .start_ns = now_ns(),
					       .kind = RING_SLICE,
					       .category = RING_STEP,
					       .name = text_number_cached(t, name) });
	leave();
}

#if defined(__x86_64__)

__attribute__((used, visibility("hidden"))) void *marker_real;
__attribute__((used, visibility("hidden"))) int marker_has_avx;
void my_marker(void);

__asm__(".text\n"
	".p2align 4\n"
	".type my_marker, @function\n"
	"my_marker:\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	push %rdx\n"
	"	push %rcx\n"
	"	push %r8\n"
	"	push %r9\n"
	"	push %rax\n"
	"	push %r10\n"
	"	sub $264, %rsp\n"
	"	cmpl $0, marker_has_avx(%rip)\n"
	"	je 1f\n"
	"	vmovups %ymm0, (%rsp)\n"
	"	vmovups %ymm1, 32(%rsp)\n"
	"	vmovups %ymm2, 64(%rsp)\n"
	"	vmovups %ymm3, 96(%rsp)\n"
	"	vmovups %ymm4, 128(%rsp)\n"
	"	vmovups %ymm5, 160(%rsp)\n"
	"	vmovups %ymm6, 192(%rsp)\n"
	"	vmovups %ymm7, 224(%rsp)\n"
	"	call marker_called\n"
	"	vmovups (%rsp), %ymm0\n"
	"	vmovups 32(%rsp), %ymm1\n"
	"	vmovups 64(%rsp), %ymm2\n"
	"	vmovups 96(%rsp), %ymm3\n"
	"	vmovups 128(%rsp), %ymm4\n"
	"	vmovups 160(%rsp), %ymm5\n"
	"	vmovups 192(%rsp), %ymm6\n"
	"	vmovups 224(%rsp), %ymm7\n"
	"	jmp 2f\n"
	"1:	movups %xmm0, (%rsp)\n"
	"	movups %xmm1, 32(%rsp)\n"
	"	movups %xmm2, 64(%rsp)\n"
	"	movups %xmm3, 96(%rsp)\n"
	"	movups %xmm4, 128(%rsp)\n"
	"	movups %xmm5, 160(%rsp)\n"
	"	movups %xmm6, 192(%rsp)\n"
	"	movups %xmm7, 224(%rsp)\n"
	"	call marker_called\n"
	"	movups (%rsp), %xmm0\n"
	"	movups 32(%rsp), %xmm1\n"
	"	movups 64(%rsp), %xmm2\n"
	"	movups 96(%rsp), %xmm3\n"
	"	movups 128(%rsp), %xmm4\n"
	"	movups 160(%rsp), %xmm5\n"
	"	movups 192(%rsp), %xmm6\n"
	"	movups 224(%rsp), %xmm7\n"
	"2:	add $264, %rsp\n"
	"	pop %r10\n"
	"	pop %rax\n"
	"	pop %r9\n"
	"	pop %r8\n"
	"	pop %rcx\n"
	"	pop %rdx\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	jmp *marker_real(%rip)\n"
	".size my_marker, .-my_marker\n");

struct patch marker_patches[] = {
	{ NULL, NULL, NULL }, /* patch of the marker if it is a function of a library */
	{ NULL, NULL, NULL },
};

static bool is_hooked_already(void)
{
	const struct patch *const tables[] = { file_patches, rights_patches, start_patches };

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct patch *p = tables[i]; p->name; p++)
			if (strcmp(p->name, name) == 0)
				return true;
	return false;
}

#define JUMP_BYTES 5u /* size of the jump instruction: e9 and a distance */
#define MOVED_MAX 32u /* largest number of bytes of moved instructions */
#define CODE_MAX 65536u

/* A decoded instruction. */
struct instruction {
	size_t bytes;	 /* length; 0: the instruction must not be moved */
	size_t relative; /* offset of its distance to data; 0: it has none */
};

/* Returns the number of bytes of the operand. */
static size_t operand_bytes(const uint8_t *at)
{
	unsigned mode = at[0] >> 6, base = at[0] & 7;
	size_t bytes = 1;

	if (mode == 3)
		return bytes;
	if (mode == 0 && base == 5) /* the operand is relative to the instruction */
		return 5;
	if (base == 4) {
		bytes++;
		if (mode == 0 && (at[1] & 7) == 5)
			bytes += 4;
	}
	return bytes + (mode == 1 ? 1 : mode == 2 ? 4 : 0);
}

/* Returns whether an instruction has an operand and nothing else. */
static bool is_plain(uint8_t code)
{
	static const uint8_t list[] = { 0x01, 0x03, 0x09, 0x0b, 0x21, 0x23, 0x29, 0x2b,
					0x31, 0x33, 0x38, 0x39, 0x3a, 0x3b, 0x63, 0x84,
					0x85, 0x88, 0x89, 0x8a, 0x8b, 0x8d, 0xd1, 0xd3 };

	return memchr(list, code, sizeof(list)) != NULL;
}

/* Returns whether an instruction after 0x0f has an operand and nothing else. */
static bool is_plain_long(uint8_t code)
{
	static const uint8_t list[] = { 0x10, 0x11, 0x14, 0x16, 0x1e, 0x1f, 0x28, 0x29,
					0x2a, 0x2c, 0x2d, 0x2e, 0x2f, 0x51, 0x54, 0x57,
					0x58, 0x59, 0x5a, 0x5c, 0x5e, 0x6e, 0x6f, 0x7e,
					0x7f, 0xaf, 0xb6, 0xb7, 0xbe, 0xbf, 0xd6, 0xef };

	return memchr(list, code, sizeof(list)) != NULL;
}

/* Returns the number of bytes of the constant after the operand; SIZE_MAX: unknown instruction. */
static size_t constant_bytes(const uint8_t *at, bool half)
{
	switch (*at) {
	case 0x6b:
	case 0x80:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
		return 1;
	case 0x69:
	case 0x81:
	case 0xc7:
		return half ? 2 : 4;
	case 0xf6: /* test has a constant, not and neg have none */
		return at[1] & 0x38 ? 0 : 1;
	case 0xf7:
		return at[1] & 0x38 ? 0 : half ? 2 : 4;
	default:
		return is_plain(*at) ? 0 : SIZE_MAX;
	}
}

/* Decodes an instruction that compilers use at the start of functions and that does not depend
 * on its address. */
static struct instruction decode(const uint8_t *code)
{
	struct instruction none = { 0, 0 }, i = none;
	const uint8_t *at = code;
	bool half = false, large = false;
	size_t constant = 0;

	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) /* the instruction endbr64 */
		return (struct instruction){ 4, 0 };
	while (*at == 0x66 || *at == 0xf2 || *at == 0xf3)
		half |= *at++ == 0x66;
	if ((*at & 0xf0) == 0x40)
		large = (*at++ & 8) != 0;
	i.bytes = (size_t)(at + 1 - code);
	if ((*at >= 0x50 && *at <= 0x5f) || *at == 0x90)
		return i;
	if (*at >= 0xb8 && *at <= 0xbf) {
		i.bytes += large ? 8 : half ? 2 : 4;
		return i;
	}
	if (*at == 0x0f || *at == 0xc5 || *at == 0xc4) {
		if (*at == 0xc4 && (at[1] & 0x1f) != 1)
			return none;
		at += *at == 0x0f ? 1 : *at == 0xc5 ? 2 : 3;
		if (!is_plain_long(*at))
			return none;
	} else {
		constant = constant_bytes(at, half);
		if (constant == SIZE_MAX)
			return none;
	}
	at++;
	if (at[0] >> 6 == 0 && (at[0] & 7) == 5)
		i.relative = (size_t)(at + 1 - code);
	i.bytes = (size_t)(at - code) + operand_bytes(at) + constant;
	return i;
}

/* Whether a byte sequence in the function looks like a jump to a byte after its first and before `moved`. It may find jumps that
 * are none. */
static bool is_jumped_into(const uint8_t *code, size_t size, size_t moved)
{
	for (size_t i = 0; i + 2 <= size; i++) {
		int64_t to = -1;

		if ((code[i] >= 0x70 && code[i] <= 0x7f) || code[i] == 0xeb ||
		    (code[i] >= 0xe0 && code[i] <= 0xe3))
			to = (int64_t)i + 2 + (int8_t)code[i + 1];
		if (to > 0 && to < (int64_t)moved)
			return true;
		if (i + 5 <= size &&
		    (code[i] == 0xe9 || code[i] == 0xe8 ||
		     (i && code[i - 1] == 0x0f && code[i] >= 0x80 && code[i] <= 0x8f))) {
			int32_t distance;

			memcpy(&distance, code + i + 1, sizeof(distance));
			to = (int64_t)i + 5 + distance;
			if (to > 0 && to < (int64_t)moved)
				return true;
		}
	}
	return false;
}

/* Allocates memory that a jump from the code can reach. */
static uint8_t *page_near(const uint8_t *code, size_t page)
{
	uintptr_t base = (uintptr_t)code & ~((uintptr_t)page - 1);

	for (uintptr_t away = 16 << 20; away < (uintptr_t)1 << 29; away += 16 << 20)
		for (int side = 0; side < 2; side++) {
			uintptr_t at = side ? base - away : base + away;
			void *got;

			if (side && away >= base)
				continue;
			got = mmap((void *)at, page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (got == (void *)at)
				return got;
			if (got != MAP_FAILED)
				munmap(got, page);
		}
	return NULL;
}

/* Writes jmp *0(%rip) and its target. */
static size_t put_jump(uint8_t *at, const void *to)
{
	static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 };

	memcpy(at, jump, sizeof(jump));
	memcpy(at + sizeof(jump), &to, sizeof(to));
	return sizeof(jump) + sizeof(to);
}

/* Copies instructions to memory that is near enough for their distances to data. */
static void move_code(uint8_t *to, const uint8_t *code, size_t bytes)
{
	int64_t away = (int64_t)((uintptr_t)code - (uintptr_t)to);

	memcpy(to, code, bytes);
	for (size_t at = 0; at < bytes; at += decode(code + at).bytes) {
		size_t relative = decode(code + at).relative;
		int32_t distance;

		if (!relative)
			continue;
		memcpy(&distance, code + at + relative, sizeof(distance));
		distance = (int32_t)(distance + away);
		memcpy(to + at + relative, &distance, sizeof(distance));
	}
}

/* Replaces the first instructions of a function of the program, while no other thread runs it. */
static bool replace_begin(uint8_t *code, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), moved = 0, from;
	uint8_t *stub;
	int64_t distance;
	int32_t near;

	while (moved < JUMP_BYTES) {
		size_t bytes = moved + 16 <= size ? decode(code + moved).bytes : 0;

		if (!bytes)
			return false;
		moved += bytes;
	}
	if (moved > MOVED_MAX || size > CODE_MAX || is_jumped_into(code, size, moved))
		return false;
	stub = page_near(code, page);
	if (!stub)
		return false;
	from = put_jump(stub, (void *)my_marker);
	move_code(stub + from, code, moved);
	put_jump(stub + from + moved, code + moved);
	distance = (int64_t)((uintptr_t)stub - ((uintptr_t)code + JUMP_BYTES));
	near = (int32_t)distance;
	if (near != distance || mprotect(stub, page, PROT_READ | PROT_EXEC) != 0 ||
	    mprotect((void *)((uintptr_t)code & ~(page - 1)),
		     ((uintptr_t)code & (page - 1)) + JUMP_BYTES, PROT_READ | PROT_WRITE) != 0) {
		munmap(stub, page);
		return false;
	}
	marker_real = stub + from;
	code[0] = 0xe9;
	memcpy(code + 1, &near, sizeof(near));
	mprotect((void *)((uintptr_t)code & ~(page - 1)),
		 ((uintptr_t)code & (page - 1)) + JUMP_BYTES, PROT_READ | PROT_EXEC);
	return true;
}

struct program {
	uintptr_t base;
	const ElfW(Phdr) * segments;
	int count;
};

static int take_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct program *p = arg;

	(void)size;
	*p = (struct program){ info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };
	return 1; /* the first object is the program */
}

static bool is_code(const struct program *p, uintptr_t at, size_t size)
{
	for (int i = 0; i < p->count; i++) {
		const ElfW(Phdr) *h = &p->segments[i];
		uintptr_t start = p->base + h->p_vaddr;

		if (h->p_type == PT_LOAD && h->p_flags & PF_X && !(h->p_flags & PF_W) &&
		    at >= start && size <= h->p_filesz && at - start <= h->p_filesz - size)
			return true;
	}
	return false;
}

static bool is_within(size_t size, uint64_t offset, uint64_t bytes)
{
	return offset <= size && bytes <= size - offset;
}

/* Finds the only function of that name in the symbol table, which a stripped program lacks. */
static const ElfW(Sym) * find_symbol(const char *file, size_t size)
{
	const ElfW(Ehdr) *head = (const void *)file;
	const ElfW(Shdr) * sections;
	const ElfW(Sym) *found = NULL;

	if (size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_shentsize != sizeof(*sections) || head->e_shoff % 8 ||
	    !is_within(size, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*sections)))
		return NULL;
	sections = (const void *)(file + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum; i++) {
		const ElfW(Shdr) *s = &sections[i], *names;
		const ElfW(Sym) * symbols;

		if (s->sh_type != SHT_SYMTAB || s->sh_link >= head->e_shnum || s->sh_offset % 8 ||
		    !is_within(size, s->sh_offset, s->sh_size))
			continue;
		names = &sections[s->sh_link];
		if (!is_within(size, names->sh_offset, names->sh_size))
			continue;
		symbols = (const void *)(file + s->sh_offset);
		for (size_t k = 0; k < s->sh_size / sizeof(*symbols); k++) {
			const ElfW(Sym) *y = &symbols[k];

			if (ELF64_ST_TYPE(y->st_info) != STT_FUNC || y->st_shndx == SHN_UNDEF ||
			    y->st_name >= names->sh_size ||
			    names->sh_size - y->st_name <= strlen(name) ||
			    strcmp(file + names->sh_offset + y->st_name, name) != 0)
				continue;
			if (found && found->st_value != y->st_value)
				return NULL;
			found = y;
		}
	}
	return found;
}

void marker_patch_program(void)
{
	struct program p = { 0 };
	struct stat st;
	void *file;
	int fd;

	if (!*name || in_program || is_hooked_already())
		return;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	file = fstat(fd, &st) == 0 && st.st_size > 0
		       ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
		       : MAP_FAILED;
	close(fd);
	if (file == MAP_FAILED)
		return;
	dl_iterate_phdr(take_program, &p);
	marker_has_avx = __builtin_cpu_supports("avx");
	{
		const ElfW(Sym) *symbol = find_symbol(file, (size_t)st.st_size);
		uintptr_t at = symbol ? p.base + symbol->st_value : 0;

		if (symbol && symbol->st_size && is_code(&p, at, symbol->st_size))
			in_program = replace_begin((uint8_t *)at, symbol->st_size);
	}
	munmap(file, (size_t)st.st_size);
}

/* State of the search for the library with a given number; keeps its path. */
struct numbered {
	unsigned left;
	char path[4096];
};

static int take_path(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct numbered *n = arg;

	(void)size;
	if (n->left--)
		return 0;
	n->path[0] = '\0';
	if (info->dlpi_name && strlen(info->dlpi_name) < sizeof(n->path))
		memcpy(n->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
	return 1;
}

/* Libraries of modules are not among those that dlsym looks through by itself. The loader must not be called while it goes through its list. */
static void *find_in_libraries(void)
{
	static struct numbered n; /* only one thread at a time runs this */
	void *found = NULL;

	for (unsigned i = 0; !found; i++) {
		void *library;

		n.left = i;
		if (!dl_iterate_phdr(take_path, &n))
			break;
		library = strchr(n.path, '/') ? dlopen(n.path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
		if (!library)
			continue;
		found = dlsym(library, name);
		dlclose(library);
	}
	return found;
}

void marker_find(void)
{
	void *found;

	if (!*name || in_program || marker_patches[0].name || is_hooked_already())
		return;
	found = dlsym(RTLD_DEFAULT, name);
	if (!found)
		found = find_in_libraries();
	if (!found)
		return;
	marker_has_avx = __builtin_cpu_supports("avx");
	marker_real = found;
	marker_patches[0] = (struct patch){ name, (void *)my_marker, found };
	patches_visit_again();
}

void marker_set(const char *text)
{
	if (in_program) /* the replaced instructions stay, and mark steps as before */
		return;
	marker_patches[0] = (struct patch){ NULL, NULL, NULL };
	python_forget_marker();
	name[0] = '\0';
	if (text && strlen(text) < sizeof(name))
		memcpy(name, text, strlen(text) + 1);
}

#else

struct patch marker_patches[] = { { NULL, NULL, NULL } };

void marker_patch_program(void)
{
}

void marker_find(void)
{
}

void marker_set(const char *text)
{
	python_forget_marker();
	name[0] = '\0';
	if (text && strlen(text) < sizeof(name))
		memcpy(name, text, strlen(text) + 1);
}

#endif
