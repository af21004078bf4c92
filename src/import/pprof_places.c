/*
 * pprof_places.c: addresses of pprof's older forms, see pprof_legacy.h: the map of the process, the names that some
 * writers add, and the frames that come of both. No file is opened: names are those of the profile.
 */
#include "import/pprof_legacy.h"

/* ---- numbers ---- */

static void skip_blanks(struct str *from)
{
	while (from->len && (*from->ptr == ' ' || *from->ptr == '\t'))
		*from = str_skip(*from, 1);
}

bool legacy_take(struct str *from, const char *word)
{
	skip_blanks(from);
	if (!str_starts(*from, str_from(word)))
		return false;
	*from = str_skip(*from, strlen(word));
	return true;
}

bool legacy_take_number(struct str *from, int64_t *value)
{
	size_t len = 0;

	skip_blanks(from);
	while (len < from->len && from->ptr[len] >= '0' && from->ptr[len] <= '9')
		len++;
	if (!len || !str_to_i64(str_first(*from, len), value))
		return false;
	*from = str_skip(*from, len);
	return true;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool legacy_take_bare_hex(struct str *from, uint64_t *value)
{
	size_t len = 0;

	skip_blanks(from);
	for (*value = 0; len < from->len && digit(from->ptr[len]) >= 0; len++) {
		if (*value >> 60)
			return false;
		*value = *value << 4 | (uint64_t)digit(from->ptr[len]);
	}
	*from = str_skip(*from, len);
	return len > 0;
}

bool legacy_take_hex(struct str *from, uint64_t *value)
{
	return legacy_take(from, "0x") && legacy_take_bare_hex(from, value);
}

/* ---- places ---- */

struct legacy_place *legacy_place(struct legacy *l, uint64_t address)
{
	uint64_t hash = map_hash_u64(address, 51);
	void *places = l->places;

	for (struct map_iter it = map_find(&l->by_address, hash); it.value;
	     it = map_next(&l->by_address, it))
		if (l->places[it.value - 1].address == address)
			return &l->places[it.value - 1];
	if (l->place_count >= UINT32_MAX - 1 ||
	    !mem_grow(l->mem, &places, &l->place_cap, l->place_count + 1, sizeof(*l->places)))
		return NULL;
	l->places = places;
	l->places[l->place_count++] = (struct legacy_place){ .address = address };
	if (!map_add(&l->by_address, hash, (uint32_t)l->place_count))
		return NULL;
	return &l->places[l->place_count - 1];
}

ow_status legacy_name(struct legacy *l, uint64_t address, struct str name)
{
	struct legacy_place *p = legacy_place(l, address);

	if (!p)
		return legacy_no_memory(l);
	if (!p->function.v)
		p->function = builder_str(l->b, name);
	return l->b->status;
}

/* "file:12" at the end of a text; the line may be missing or below 1. */
static void set_file(struct legacy *l, struct legacy_place *p, struct str file)
{
	size_t colon = str_rfind_char(file, ':');
	int64_t line = 0;

	if (colon != STR_NONE && str_to_i64(str_skip(file, colon + 1), &line)) {
		file = str_first(file, colon);
		p->line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
	} else {
		size_t slash = str_rfind_char(file, '/'); /* a library: its path says nothing */

		file = slash == STR_NONE ? file : str_skip(file, slash + 1);
	}
	p->file = builder_str(l->b, file);
}

/* "0x12 function (file:12)", "… (/lib/x.so)", "… (generated stub/JIT)" or just what it does: "GC". */
ow_status legacy_method_line(struct legacy *l, struct str line)
{
	struct legacy_place *p;
	size_t open;
	uint64_t address;

	if (!legacy_take_hex(&line, &address))
		return OW_OK;
	line = str_trim(line);
	p = legacy_place(l, address);
	if (!p)
		return legacy_no_memory(l);
	open = str_rfind_char(line, '(');
	if (str_has(line, STR("generated stub/JIT"))) {
		p->function = builder_str(l->b, STR("STUB"));
	} else if (open != STR_NONE && open && line.ptr[line.len - 1] == ')') {
		set_file(l, p, str_first(str_skip(line, open + 1), line.len - open - 2));
		p->function = builder_str(l->b, str_trim(str_first(line, open)));
	} else {
		p->function = builder_str(l->b, line);
	}
	return l->b->status;
}

ow_status legacy_comment_line(struct legacy *l, struct str line)
{
	struct legacy_place *p;
	uint64_t address;
	size_t end, plus;

	if (!legacy_take(&line, "#") || !legacy_take_hex(&line, &address))
		return OW_OK;
	line = str_trim(line);
	end = str_find_char(line, '\t');
	plus = str_rfind_char(str_first(line, MIN(end, line.len)), '+');
	p = legacy_place(l, address);
	if (!p)
		return legacy_no_memory(l);
	if (p->function.v || !line.len) /* the innermost of several comes first */
		return OW_OK;
	p->function = builder_str(l->b, str_first(line, MIN(MIN(end, plus), line.len)));
	if (end != STR_NONE)
		set_file(l, p, str_trim(str_skip(line, end)));
	return l->b->status;
}

/* ---- mappings ---- */

/* "r-xp" and the like. */
static bool take_rights(struct str *from, bool *code)
{
	size_t len = 0;

	skip_blanks(from);
	while (len < from->len && strchr("-rwxps", from->ptr[len]) && from->ptr[len])
		len++;
	if (!len || (len < from->len && from->ptr[len] != ' ' && from->ptr[len] != '\t'))
		return false;
	*code = str_find_char(str_first(*from, len), 'x') != STR_NONE;
	*from = str_skip(*from, len);
	return true;
}

/* The offset, the device, the inode, as in /proc/PID/maps. */
static bool take_details(struct str *from, uint64_t *offset)
{
	struct str at = *from;
	uint64_t major, minor;
	int64_t inode;

	if (!legacy_take_bare_hex(&at, offset) || !legacy_take_bare_hex(&at, &major) ||
	    !legacy_take(&at, ":") || !legacy_take_bare_hex(&at, &minor) ||
	    !legacy_take_number(&at, &inode))
		return false;
	*from = at;
	return true;
}

static bool parse_map(struct str line, struct legacy_map *m, struct str *file, bool *code)
{
	size_t end;

	(void)legacy_take(&line, "0x");
	if (!legacy_take_bare_hex(&line, &m->start))
		return false;
	(void)legacy_take(&line, "-");
	(void)legacy_take(&line, "0x");
	if (!legacy_take_bare_hex(&line, &m->end) || m->end <= m->start)
		return false;
	(void)legacy_take(&line, ":");
	*code = true;
	(void)take_rights(&line, code);
	m->offset = 0;
	if (!take_details(&line, &m->offset)) { /* the brief form: file (@offset) id */
		skip_blanks(&line);
		end = str_find_char(line, ' ');
		*file = str_first(line, MIN(end, line.len));
		line = str_skip(line, file->len);
		if (legacy_take(&line, "(@") && !legacy_take_bare_hex(&line, &m->offset))
			m->offset = 0;
		return true;
	}
	*file = str_trim(line);
	return true;
}

ow_status legacy_map_line(struct legacy *l, struct str line)
{
	struct legacy_map m;
	void *maps = l->maps;
	struct str file;
	bool code;

	if (!parse_map(str_trim(line), &m, &file, &code) || !code)
		return OW_OK;
	if (!mem_grow(l->mem, &maps, &l->map_cap, l->map_count + 1, sizeof(*l->maps)))
		return legacy_no_memory(l);
	l->maps = maps;
	m.file = builder_str(l->b, file);
	l->maps[l->map_count++] = m;
	return l->b->status;
}

/* The first part of a program may be missing: then its offset says where it was. */
static str_id module_of(const struct legacy *l, uint64_t address)
{
	for (size_t i = 0; i < l->map_count; i++)
		if (l->maps[i].start <= address && address < l->maps[i].end)
			return l->maps[i].file;
	for (size_t i = 0; i < l->map_count; i++)
		if (l->maps[i].offset && l->maps[i].offset <= l->maps[i].start &&
		    l->maps[i].start - l->maps[i].offset <= address && address < l->maps[i].start)
			return l->maps[i].file;
	return (str_id){ 0 };
}

frame_id legacy_frame(struct legacy *l, uint64_t address)
{
	struct legacy_place *p = legacy_place(l, address);

	if (!p) {
		legacy_no_memory(l);
		return (frame_id){ 0 };
	}
	if (p->placed)
		return p->frame;
	p->placed = true;
	if (!l->named)
		p->module = module_of(l, address);
	p->frame =
		builder_frame(l->b, &(struct frame_row){ .file = p->file,
							 .function = p->function,
							 .line = p->line,
							 .module = p->module,
							 .address = p->function.v ? 0 : address });
	return p->frame;
}
