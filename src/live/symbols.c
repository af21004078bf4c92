/* symbols.c: see symbols.h. Sizes in the object's headers are checked against the file before they are used. */
#include "live/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- mappings ---- */

ow_status maps_read(pid_t pid, struct buf *text, struct error *err)
{
	char path[64];
	ssize_t n = 0;
	int fd;

	buf_clear(text);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, errno, "process %d", (int)pid);
	while (buf_reserve(text, (size_t)1 << 16) &&
	       (n = read(fd, text->ptr + text->len, (size_t)1 << 16)) > 0)
		text->len += (size_t)n;
	close(fd);
	if (text->failed || !buf_cstr(text))
		return error_no_memory(err);
	if (n < 0)
		return error_errno(err, errno, "process %d", (int)pid);
	return text->len ? OW_OK : error_set(err, OW_E_NOT_FOUND, "process %d has ended", (int)pid);
}

struct mapping {
	uint64_t low, high;
	const char *path;
	size_t path_len;
};

/* The line at *text, which moves to the next one. */
static bool next_mapping(const char **text, struct mapping *m)
{
	const char *line = *text, *end = strchr(line, '\n');
	size_t len = end ? (size_t)(end - line) : strlen(line), at = 0;
	char *after;

	if (!len)
		return false;
	*text = end ? end + 1 : line + len;
	m->low = strtoull(line, &after, 16);
	m->high = *after == '-' ? strtoull(after + 1, NULL, 16) : m->low;
	for (int field = 0; field < 5; field++) { /* range, rights, offset, device, inode */
		while (at < len && line[at] != ' ')
			at++;
		while (at < len && line[at] == ' ')
			at++;
	}
	m->path = line + at;
	m->path_len = len - at;
	return true;
}

static bool copy_path(const struct mapping *m, char *path, size_t size)
{
	if (m->path_len >= size)
		return false;
	memcpy(path, m->path, m->path_len);
	path[m->path_len] = '\0';
	return true;
}

bool maps_find_object(const char *text, const char *file_name, uint64_t *base, char *path,
		      size_t size)
{
	size_t len = strlen(file_name);
	struct mapping m;

	while (next_mapping(&text, &m))
		if (m.path_len > len && m.path[m.path_len - len - 1] == '/' &&
		    memcmp(m.path + m.path_len - len, file_name, len) == 0) {
			*base = m.low;
			return copy_path(&m, path, size);
		}
	return false;
}

bool maps_find_address(const char *text, uint64_t address, uint64_t *low, char *path, size_t size)
{
	struct mapping m;

	while (next_mapping(&text, &m))
		if (address >= m.low && address < m.high) {
			*low = m.low;
			return copy_path(&m, path, size);
		}
	return false;
}

/* ---- functions ---- */

struct object {
	const char *bytes;
	uint64_t size;
};

static const void *part(const struct object *o, uint64_t offset, uint64_t len)
{
	return offset <= o->size && len <= o->size - offset ? o->bytes + offset : NULL;
}

static bool find_in_table(const struct object *o, const Elf64_Shdr *symbols,
			  const Elf64_Shdr *names, const char *name, uint64_t *offset)
{
	const Elf64_Sym *list = part(o, symbols->sh_offset, symbols->sh_size);
	const char *text = part(o, names->sh_offset, names->sh_size);
	size_t len = strlen(name) + 1;

	if (!list || !text)
		return false;
	for (uint64_t i = 0; i < symbols->sh_size / sizeof(*list); i++) {
		Elf64_Sym s;

		memcpy(&s, &list[i], sizeof(s));
		if (s.st_value && s.st_shndx != SHN_UNDEF && s.st_name < names->sh_size &&
		    names->sh_size - s.st_name >= len && memcmp(text + s.st_name, name, len) == 0) {
			*offset = s.st_value;
			return true;
		}
	}
	return false;
}

static bool find_symbol(const struct object *o, const char *name, uint64_t *offset)
{
	const Elf64_Ehdr *head = part(o, 0, sizeof(*head));
	const Elf64_Shdr *sections;

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	sections = part(o, head->e_shoff, (uint64_t)head->e_shnum * sizeof(*sections));
	for (uint32_t i = 0; sections && i < head->e_shnum; i++)
		if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < head->e_shnum &&
		    find_in_table(o, &sections[i], &sections[sections[i].sh_link], name, offset))
			return true;
	return false;
}

bool symbol_offset(const char *path, const char *name, uint64_t *offset)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct object o = { 0 };
	struct stat st;
	void *map = MAP_FAILED;
	bool found = false;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map != MAP_FAILED) {
		o = (struct object){ map, (uint64_t)st.st_size };
		found = find_symbol(&o, name, offset);
		munmap(map, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	return found;
}
