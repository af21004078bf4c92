/*
 * patch.c: redirects calls of the C library to the recorder's wrappers. In every loaded object, the slots (GOT entries)
 * through which it calls a function are pointed to the wrapper. That works the same whether the recorder was preloaded or
 * attached, and can be undone. Slots that lead elsewhere than the function that all other objects use (an object's own
 * `open`) are left alone. Called by watcher.c when libraries have been loaded.
 *
 * Slots are not remembered, since a library may be unloaded; of an object only that it was visited: large programs have
 * hundreds of objects with hundreds of thousands of slots. Most slots lead to symbols that the object itself defines,
 * which shows without reading the symbol and its name.
 *
 * This reads loaded objects through dl_iterate_phdr, not files: it runs inside other people's programs and cannot use
 * wire/elf/elf_symbols.c, the reader of ELF files.
 */
#include "recorder.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* On other machines the build leaves the recorder out. */
#if defined(__aarch64__)
#define SLOT_JUMP R_AARCH64_JUMP_SLOT
#define SLOT_DATA R_AARCH64_GLOB_DAT
#else
#define SLOT_JUMP R_X86_64_JUMP_SLOT
#define SLOT_DATA R_X86_64_GLOB_DAT
#endif

struct object {
	uintptr_t base, low, high; /* address range of the object */
	uintptr_t relro_low, relro_high;
	const ElfW(Sym) * symbols;
	const char *names;
	uint32_t own; /* number of the first symbol that the object itself defines */
};

/* Objects by where they are. One that is noticed before the loader is asked whether it has finished is complete when
 * it is visited; one that comes later may not be, and is visited again. */
#define KNOWN 4096u

static struct known {
	uintptr_t base; /* address of its headers, because programs may be at 0 */
	bool done;
} * known;
#define KNOWN_BYTES (KNOWN * sizeof(*known))
static uint32_t known_count, patched;
static unsigned long long unloads;

bool patches_begin(void)
{
	return table_ensure(&known, KNOWN_BYTES);
}

static uint32_t known_at(uintptr_t base)
{
	uint32_t at = (uint32_t)((base >> 6) * 2654435761u) % KNOWN;

	while (known[at].base && known[at].base != base)
		at = (at + 1) % KNOWN;
	return at;
}

static void forget_objects(void)
{
	memset(known, 0, KNOWN_BYTES);
	known_count = 0;
	patched = 0;
}

void patches_visit_again(void)
{
	for (uint32_t i = 0; i < KNOWN; i++)
		known[i].done = false;
	patched = 0;
}

static int notice_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t base = (uintptr_t)info->dlpi_phdr;
	uint32_t at;

	(void)size;
	(void)arg;
	if (info->dlpi_subs != unloads) { /* another object may be in its place */
		forget_objects();
		unloads = info->dlpi_subs;
	}
	at = known_at(base);
	if (known[at].base || known_count >= KNOWN / 2)
		return 0;
	known[at].base = base;
	known_count++;
	return 0;
}

void patches_notice(void)
{
	dl_iterate_phdr(notice_object, NULL);
}

static struct patch *const tables[] = { file_patches, rights_patches, start_patches,
					marker_patches };

#define FOR_PATCHES(p)                                                                             \
	for (size_t table = 0; table < sizeof(tables) / sizeof(*tables); table++)                  \
		for (struct patch *p = tables[table]; p->name; p++)

#define PATCHES_MAX 255
#define BUCKETS 1024u

struct patching {
	bool undo;
	/* also patch calls of functions that the object itself defines; not stored */
	bool own_too;
	uint32_t slots; /* number of calls that lead to a wrapper now */
	/* tables for a quick check, because most names are C++ names (_Z…) */
	bool first_letters[256], second_letters[256];
	const struct patch *list[PATCHES_MAX + 1]; /* patches; item 0 is not used */
	uint8_t next[PATCHES_MAX + 1];		   /* next patch in the same bucket, or 0 */
	uint8_t buckets[BUCKETS];
	uint8_t count;
	uintptr_t own; /* an address in the recorder itself */
	long page;
};

/*
 * In a program that is not position-independent and takes a function's address, that address is a stub's within the program, for
 * all objects. The stub jumps through a slot that is patched: as the real function it would lead back to the wrapper. The
 * function itself is then in the first other object that defines it.
 */
#define OBJECTS 64u
#define OBJECT_NAME 256u

struct object_names {
	uint32_t count;
	char names[OBJECTS][OBJECT_NAME];
};

static bool is_stub(const void *function)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	return dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	       symbol->st_shndx == SHN_UNDEF;
}

static int list_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object_names *list = arg;

	size_t len = info->dlpi_name ? strlen(info->dlpi_name) : 0;

	(void)size;
	if (list->count < OBJECTS && len && len < OBJECT_NAME)
		memcpy(list->names[list->count++], info->dlpi_name, len + 1);
	return 0;
}

static bool are_in_one_object(const void *one, const void *other)
{
	Dl_info x, y;

	return dladdr(one, &x) && dladdr(other, &y) && x.dli_fbase == y.dli_fbase;
}

/* Libraries are asked one by one: the loader's lock is not held while they are listed and opened. */
static void *find_behind_stub(const struct object_names *list, const char *name)
{
	for (uint32_t i = 0; i < list->count; i++) {
		void *library = dlopen(list->names[i], RTLD_NOLOAD | RTLD_LAZY);
		void *function = library ? dlsym(library, name) : NULL;

		if (library)
			dlclose(library);
		if (function && !is_stub(function) &&
		    !are_in_one_object(function, (const void *)&patches_find_real))
			return function;
	}
	return NULL;
}

bool patches_find_real(void)
{
	struct object_names *list = NULL;

	FOR_PATCHES(p)
	if (!p->real) {
		void *real = dlsym(RTLD_DEFAULT, p->name);

		if (real && is_stub(real)) {
			if (!list && (list = table_new(sizeof(*list))) != NULL)
				dl_iterate_phdr(list_object, list);
			real = list ? find_behind_stub(list, p->name) : NULL;
		}
		p->real = real;
	}
	if (list)
		munmap(list, sizeof(*list));
	file_calls_found();
	return true;
}

/* Returns the bucket by the beginning of a name, because names are compared very often. */
static uint32_t bucket_of(const char *name)
{
	uint32_t hash = 0;

	// cppcheck-suppress arrayIndexOutOfBoundsCond
	for (int i = 0; i < 6 && name[i]; i++)
		hash = hash * 31 + (unsigned char)name[i];
	return hash % BUCKETS;
}

static void list_patch(struct patching *w, const struct patch *p)
{
	uint32_t bucket = bucket_of(p->name);

	if (w->count == PATCHES_MAX)
		return;
	w->first_letters[(unsigned char)p->name[0]] = true;
	w->second_letters[(unsigned char)p->name[1]] = true;
	w->list[++w->count] = p;
	w->next[w->count] = w->buckets[bucket];
	w->buckets[bucket] = w->count;
}

static const struct patch *patch_of(const struct patching *w, const char *name)
{
	// cppcheck-suppress arrayIndexOutOfBounds
	if (!w->first_letters[(unsigned char)name[0]] || !w->second_letters[(unsigned char)name[1]])
		return NULL;
	for (uint8_t i = w->buckets[bucket_of(name)]; i; i = w->next[i])
		if (strcmp(w->list[i]->name, name) == 0)
			return w->list[i]->real ? w->list[i] : NULL;
	return NULL;
}

static void write_slot(struct patching *w, const struct object *o, void **slot, void *value)
{
	uintptr_t at = (uintptr_t)slot, page = at & ~((uintptr_t)w->page - 1);
	bool sealed = at >= o->relro_low && at < o->relro_high;

	if (sealed && mprotect((void *)page, (size_t)w->page, PROT_READ | PROT_WRITE) != 0)
		return;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	if (sealed)
		mprotect((void *)page, (size_t)w->page, PROT_READ);
	w->slots++;
}

static void visit_slot(struct patching *w, const struct object *o, const ElfW(Rela) * r)
{
	unsigned type = (unsigned)ELF64_R_TYPE(r->r_info);
	uint32_t number = (uint32_t)ELF64_R_SYM(r->r_info);
	const ElfW(Sym) *symbol = &o->symbols[number];
	const struct patch *p;
	void **slot, *value;
	bool unbound;

	if ((type != SLOT_JUMP && type != SLOT_DATA) ||
	    (!w->own_too && (number >= o->own || symbol->st_shndx != SHN_UNDEF)))
		return;
	p = patch_of(w, o->names + symbol->st_name);
	if (!p)
		return;
	slot = (void **)(o->base + r->r_offset);
	value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	if (w->undo) {
		if (value == p->wrapper)
			write_slot(w, o, slot, p->real);
		return;
	}
	if (value == p->wrapper)
		w->slots++;
	unbound = type == SLOT_JUMP && (uintptr_t)value >= o->low && (uintptr_t)value < o->high;
	if (value == p->real || unbound)
		write_slot(w, o, slot, p->wrapper);
}

static void visit_slots(struct patching *w, const struct object *o, uintptr_t table, size_t bytes)
{
	const ElfW(Rela) *r = (const ElfW(Rela) *)table;

	for (size_t i = 0; table && i < bytes / sizeof(*r); i++)
		visit_slot(w, o, &r[i]);
}

static uintptr_t address_in(const struct object *o, uintptr_t value)
{
	/* some loaders leave these addresses relative */
	return value < o->base ? o->base + value : value;
}

/* The hash table for lookups contains only symbols that the object defines, and these come after all others; an empty table gives
 * no information. Programs at fixed addresses may also contain functions of other libraries there, with addresses of their own. */
static uint32_t first_own(const struct object *o, const uint32_t *hash)
{
	uint32_t buckets = hash ? hash[0] : 0;
	const uint32_t *bucket = hash ? hash + 4 + (size_t)hash[2] * 2 : NULL;

	for (uint32_t i = 0; o->base && i < buckets; i++)
		if (bucket[i])
			return hash[1];
	return UINT32_MAX;
}

static void visit_dynamic(struct patching *w, struct object *o, const ElfW(Dyn) * d)
{
	uintptr_t jump = 0, data = 0, hash = 0;
	size_t jump_bytes = 0, data_bytes = 0, relative = 0;
	bool rela = true;

	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			o->symbols = (const ElfW(Sym) *)address_in(o, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			o->names = (const char *)address_in(o, d->d_un.d_ptr);
			break;
		case DT_JMPREL:
			jump = address_in(o, d->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			jump_bytes = d->d_un.d_val;
			break;
		case DT_PLTREL:
			rela = d->d_un.d_val == DT_RELA;
			break;
		case DT_RELA:
			data = address_in(o, d->d_un.d_ptr);
			break;
		case DT_RELASZ:
			data_bytes = d->d_un.d_val;
			break;
		case DT_RELACOUNT:
			relative = d->d_un.d_val * sizeof(ElfW(Rela));
			break;
		case DT_GNU_HASH:
			hash = address_in(o, d->d_un.d_ptr);
			break;
		default:
			break;
		}
	}
	if (!o->symbols || !o->names || !rela)
		return;
	o->own = first_own(o, (const uint32_t *)hash);
	visit_slots(w, o, jump, jump_bytes);
	if (relative < data_bytes) /* relative relocations come first and have no symbol */
		visit_slots(w, o, data + relative, data_bytes - relative);
}

/* Returns whether an object is not patched: the C library, the loader, and objects that the
 * kernel maps. */
static bool is_left_alone(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *base = slash ? slash + 1 : name;

	return strncmp(base, "libc.so", 7) == 0 || strncmp(base, "ld-linux", 8) == 0 ||
	       strncmp(base, "linux-vdso", 10) == 0 || strncmp(base, "libpthread.so", 13) == 0;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct patching *w = arg;
	struct object o = { .base = info->dlpi_addr, .low = UINTPTR_MAX };
	const ElfW(Dyn) *dynamic = NULL;
	uint32_t at = known_at((uintptr_t)info->dlpi_phdr), before = w->slots;

	(void)size;
	if (!w->undo && !w->own_too && known[at].done)
		return 0;
	if (info->dlpi_name && is_left_alone(info->dlpi_name))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + h->p_vaddr;

		if (h->p_type == PT_LOAD) {
			o.low = start < o.low ? start : o.low;
			o.high = start + h->p_memsz > o.high ? start + h->p_memsz : o.high;
		} else if (h->p_type == PT_DYNAMIC) {
			dynamic = (const ElfW(Dyn) *)start;
		} else if (h->p_type == PT_GNU_RELRO) {
			o.relro_low = start & ~((uintptr_t)w->page - 1);
			o.relro_high = start + h->p_memsz;
		}
	}
	if (dynamic && !(w->own >= o.low && w->own < o.high))
		visit_dynamic(w, &o, dynamic);
	if (known[at].base && !w->own_too) {
		known[at].done = true;
		patched += w->slots - before;
	}
	return 0;
}

static void visit_all(bool undo)
{
	struct patching w = { .undo = undo,
			      .own = (uintptr_t)&patches_find_real,
			      .page = sysconf(_SC_PAGESIZE) };

	FOR_PATCHES(p)
	list_patch(&w, p);
	dl_iterate_phdr(visit_object, &w);
}

void patches_redirect(struct patch *table, bool undo)
{
	struct patching w = { .undo = undo,
			      .own_too = true,
			      .own = (uintptr_t)&patches_find_real,
			      .page = sysconf(_SC_PAGESIZE) };

	for (const struct patch *p = table; p->name; p++)
		list_patch(&w, p);
	dl_iterate_phdr(visit_object, &w);
}

uint32_t patches_apply(void)
{
	visit_all(false);
	return patched;
}

void patches_undo(void)
{
	visit_all(true);
	forget_objects();
}
