/*
 * report.c: bodies of the ow_report functions: the page as one HTML file that contains the answers that its pages ask
 * for. The answers come from the handlers of the server, called directly. The timeline gets the tiles that fit, the
 * coarse ones first. A browser runs only our script (its checksum is in the content security policy) and loads nothing.
 */
#include "page/page_int.h"

#include "base/atomic_file.h"
#include "base/json_escape.h"

#include <zlib.h>

#define SIZE_USUAL ((uint64_t)5 << 20)
#define ANSWER_PART 4 /* a single answer may take 1/4 of the report */
#define PARAMS_MOST 8

struct report {
	struct ow_ui *ui;
	struct buf out;
	uint64_t max_bytes;
	bool first; /* no answer was written yet */
};

static void add_base64(struct buf *to, const unsigned char *bytes, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		unsigned left = (unsigned)MIN(len - i, 3u);
		unsigned v = (unsigned)bytes[i] << 16 |
			     (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
			     (left > 2 ? bytes[i + 2] : 0u);
		char four[4] = { digits[v >> 18], digits[v >> 12 & 63],
				 left > 1 ? digits[v >> 6 & 63] : '=',
				 left > 2 ? digits[v & 63] : '=' };

		buf_add(to, four, 4);
	}
}

static const struct page_asset *find_asset(const char *path)
{
	for (size_t i = 0; i < page_asset_count; i++)
		if (strcmp(page_assets[i].path, path) == 0)
			return &page_assets[i];
	return NULL;
}

static void add_checksum(struct buf *to, const struct page_asset *asset)
{
	unsigned char sum[32];

	for (size_t i = 0; i < sizeof(sum); i++) {
		char two[3] = { asset->sha256[2 * i], asset->sha256[2 * i + 1], 0 };

		sum[i] = (unsigned char)strtoul(two, NULL, 16);
	}
	buf_puts(to, "'sha256-");
	add_base64(to, sum, sizeof(sum));
	buf_puts(to, "'");
}

static ow_status add_unpacked(struct buf *to, const struct page_asset *asset, struct ow_error *err)
{
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)asset->bytes,
		       .avail_in = (uInt)asset->len };
	int result;

	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		return error_no_memory(err);
	do {
		if (!buf_reserve(to, 65536)) {
			inflateEnd(&z);
			return error_no_memory(err);
		}
		z.next_out = (unsigned char *)to->ptr + to->len;
		z.avail_out = 65536;
		result = inflate(&z, Z_NO_FLUSH);
		to->len += 65536 - z.avail_out;
	} while (result == Z_OK);
	inflateEnd(&z);
	return result == Z_STREAM_END
		       ? OW_OK
		       : error_set(err, OW_E_INTERNAL, "an embedded file is damaged");
}

/* Adds JSON inside a script element; '<', which occurs only in strings, is escaped. */
static void add_json(struct buf *to, struct str json)
{
	size_t from = 0;

	for (size_t i = 0; i < json.len; i++)
		if (json.ptr[i] == '<') {
			buf_add(to, json.ptr + from, i - from);
			buf_puts(to, "\\u003c");
			from = i + 1;
		}
	buf_add(to, json.ptr + from, json.len - from);
}

typedef void handler(void *ui, const struct server_request *request, struct server_reply *reply);

/* The requests that the pages of a report make, in exactly this spelling. */
static const struct {
	const char *key;
	handler *handle;
} answers[] = {
	{ "/api/state", page_state },
	{ "/api/diff", page_diff },
	{ "/api/diff?frames=1", page_diff },
	{ "/api/view?name=steps&base=1", page_view },
	{ "/api/view?name=verdict", page_view },
	{ "/api/view?name=work", page_view },
	{ "/api/view?name=metrics", page_view },
	{ "/api/view?name=steps", page_view },
	{ "/api/advise", page_advise },
	{ "/api/view?name=lines", page_view },
	{ "/api/view?name=functions", page_view },
	{ "/api/view?name=devices", page_view },
	{ "/api/view?name=notes", page_view },
	{ "/api/view?name=sources", page_view },
	{ "/api/view?name=tracks", page_view },
	{ "/api/view?name=heaps", page_view },
	{ "/api/view?name=memory_time", page_view },
	{ "/api/view?name=memory_peak", page_view },
	{ "/api/view?name=memory_steps", page_view },
	{ "/api/view?name=pipeline", page_view },
	{ "/api/view?name=roofline", page_view },
	{ "/api/view?name=code&max_depth=100&order_by=micros&select=micros", page_view },
	{ "/api/view?name=scope&max_depth=100&order_by=micros&select=micros", page_view },
	{ "/api/view?name=op&select=micros%0Aoccurrence&order_by=micros&max_depth=1000000",
	  page_view },
	{ "/api/view?name=scope&select=micros%0Aoccurrence&order_by=micros&max_depth=6",
	  page_view },
	{ "/api/view?name=op&select=float_ops%0Aoccurrence%0Aparams&order_by=float_ops",
	  page_view },
	{ "/api/view?name=opstats", page_view },
	{ "/api/info", page_info },
};

/* Splits "name=op&select=a%0Ab" in place into names and values, and decodes %0A, the only escape in the list above. */
static size_t split_query(char *query, struct server_param params[PARAMS_MOST])
{
	size_t count = 0;
	char *next = query;

	while (next && *next && count < PARAMS_MOST) {
		char *pair = next, *value = strchr(pair, '='), *to;

		next = strchr(pair, '&');
		if (next)
			*next++ = 0;
		if (!value)
			break;
		*value++ = 0;
		to = value;
		for (char *from = value; *from; from++)
			if (strncmp(from, "%0A", 3) == 0) {
				*to++ = '\n';
				from += 2;
			} else {
				*to++ = *from;
			}
		*to = 0;
		params[count++] = (struct server_param){ pair, value };
	}
	return count;
}

static void add_answer(struct report *r, const char *key, handler *handle)
{
	struct server_reply reply = { .status = 200, .type = "application/json" };
	struct server_param params[PARAMS_MOST];
	struct server_request request = { .params = params };
	char query[200];
	const char *mark = strchr(key, '?');

	snprintf(query, sizeof(query), "%s", mark ? mark + 1 : "");
	request.param_count = split_query(query, params);
	request.path = key;
	buf_init(&reply.body, &r->ui->mem);
	handle(r->ui, &request, &reply);
	if (reply.status == 200 && !reply.body.failed &&
	    reply.body.len < r->max_bytes / ANSWER_PART &&
	    r->out.len + reply.body.len < r->max_bytes * 3 / 4) {
		buf_puts(&r->out, r->first ? "\n" : ",\n");
		json_quote(&r->out, str_from(key));
		buf_puts(&r->out, ": ");
		add_json(&r->out, str_trim(buf_str(&reply.body)));
		r->first = false;
	}
	buf_release(&reply.body);
}

struct chosen {
	struct buf tiles; /* tiles in the form of /api/tiles */
	struct buf names; /* JSON members {"id": "name", …} without braces */
	bool *has_name;
	bool *has_row;
	uint64_t merged;   /* cells of this level that stand for several items */
	uint32_t left_out; /* number of rows left out */
	uint32_t level;	   /* the finest level that is complete */
};

static bool fits(const struct report *r, const struct chosen *c)
{
	/* Leaves some room for rows and the end of the file. */
	return r->out.len + c->tiles.len * 4 / 3 + c->names.len + (64u << 10) < r->max_bytes;
}

/* Collects the names in the tile that was just added, and whether a finer level would show more of it. */
static void look_at_tile(struct report *r, struct chosen *c, size_t at)
{
	const struct model *m = r->ui->profile->m;
	uint32_t head[4], n;

	memcpy(head, c->tiles.ptr + at + 8, sizeof(head));
	n = head[3] < TILE_COUNTER ? head[2] : 0;
	at += 24;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t name, count;

		memcpy(&name, c->tiles.ptr + at + 4 * ((size_t)n + i), 4);
		memcpy(&count, c->tiles.ptr + at + 4 * (2 * (size_t)n + i), 4);
		c->merged += count > 1;
		if (c->has_name[name])
			continue;
		c->has_name[name] = true;
		buf_printf(&c->names, "%s\"%u\": ", c->names.len ? ",\n" : "", name);
		json_quote(&c->names, str_first(model_str(m, (str_id){ name }), 200));
	}
}

static ow_status add_tile(struct report *r, struct chosen *c, uint32_t row, uint32_t level,
			  uint64_t index, struct ow_error *err)
{
	uint64_t key[3] = { row, level, index };
	size_t from = c->tiles.len;

	OW_TRY(page_add_tile(r->ui, &c->tiles, key, err));
	if (c->tiles.failed)
		return error_no_memory(err);
	look_at_tile(r, c, from);
	return c->names.failed ? error_no_memory(err) : OW_OK;
}

/* Sorts rows: the outermost first, then the busiest. */
static int by_weight(const void *a, const void *b, void *arg)
{
	const struct tiles *tiles = arg;
	const struct tile_row *x = tiles_row(tiles, *(const uint32_t *)a);
	const struct tile_row *y = tiles_row(tiles, *(const uint32_t *)b);

	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	if (x->busy_ns != y->busy_ns)
		return x->busy_ns > y->busy_ns ? -1 : 1;
	return 0;
}

/* Chooses the tiles: the coarsest tile for as many rows as fit; then finer levels, as long as a whole level fits. */
static ow_status choose_tiles(struct report *r, struct chosen *c, const uint32_t *order,
			      uint32_t rows, struct ow_error *err)
{
	uint32_t top = tiles_top_level(r->ui->tiles), held = 0;

	c->level = top;
	for (; held < rows && fits(r, c); held++) {
		OW_TRY(add_tile(r, c, order[held], top, 0, err));
		c->has_row[order[held]] = true;
	}
	c->left_out = rows - held;
	for (uint32_t level = top; held && c->merged && level-- > 0;) {
		uint64_t end = (uint64_t)wrap_sub(tiles_end(r->ui->tiles), r->ui->zero_ns);
		uint64_t last = end >> (level + TILE_BITS);
		size_t tiles = c->tiles.len, names = c->names.len;

		c->merged = 0;
		for (uint64_t index = 0; index <= last; index++)
			for (uint32_t i = 0; i < held; i++) {
				OW_TRY(add_tile(r, c, order[i], level, index, err));
				if (!fits(r, c)) {
					c->tiles.len = tiles;
					c->names.len = names;
					return OW_OK;
				}
			}
		c->level = level;
	}
	return OW_OK;
}

static ow_status add_timeline(struct report *r, struct ow_error *err)
{
	const struct model *m = r->ui->profile->m;
	uint32_t rows = tiles_row_count(r->ui->tiles);
	struct chosen c = { 0 };
	struct server_reply reply = { .status = 200 };
	struct server_request request = { .path = "/api/rows" };
	struct arena arena;
	uint32_t *order;
	ow_status status = OW_OK;

	arena_init(&arena, &r->ui->mem);
	buf_init(&c.tiles, &r->ui->mem);
	buf_init(&c.names, &r->ui->mem);
	buf_init(&reply.body, &r->ui->mem);
	c.has_name = ARENA_ARRAY(&arena, bool, m->strings.count + 1);
	c.has_row = ARENA_ARRAY(&arena, bool, rows + 1);
	order = ARENA_ARRAY(&arena, uint32_t, rows + 1);
	if (!c.has_name || !c.has_row || !order)
		status = error_no_memory(err);
	for (uint32_t i = 0; status == OW_OK && i < rows; i++)
		order[i] = i;
	if (status == OW_OK) {
		qsort_r(order, rows, sizeof(*order), by_weight, r->ui->tiles);
		status = choose_tiles(r, &c, order, rows, err);
	}
	if (status == OW_OK) {
		r->ui->shown_rows = c.has_row;
		page_rows(r->ui, &request, &reply);
		r->ui->shown_rows = NULL;
		buf_puts(&r->out, ",\n\"/api/rows\": ");
		add_json(&r->out, str_trim(buf_str(&reply.body)));
		buf_printf(&r->out, ",\n\"left_out_rows\": %u,\n\"level\": %u,\n\"names\": {",
			   c.left_out, c.level);
		add_json(&r->out, buf_str(&c.names));
		buf_puts(&r->out, "},\n\"tiles\": \"");
		add_base64(&r->out, (const unsigned char *)(c.tiles.ptr ? c.tiles.ptr : ""),
			   c.tiles.len);
		buf_puts(&r->out, "\"");
	}
	buf_release(&reply.body);
	buf_release(&c.names);
	buf_release(&c.tiles);
	arena_release(&arena);
	return status;
}

static void add_text(struct buf *to, struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '<' || c == '>' || c == '&' || c == '"')
			buf_printf(to, "&#%d;", c);
		else
			buf_add_char(to, c);
	}
}

static ow_status make_report(struct report *r, const char *title, struct ow_error *err)
{
	const struct page_asset *js = find_asset("/app.js"), *css = find_asset("/app.css");
	struct buf *to = &r->out;
	ow_status status;

	if (!js || !css) {
		const char *why;

		ow_ui_available(&why);
		return error_set(err, OW_E_UNSUPPORTED, "%s", why);
	}
	buf_puts(to, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		     "script-src ");
	add_checksum(to, js);
	buf_puts(to, "; style-src ");
	add_checksum(to, css);
	buf_puts(to, "; connect-src 'none'; base-uri 'none'; form-action 'none'\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width, "
		     "initial-scale=1\">\n<title>");
	add_text(to, str_from(title));
	buf_puts(to, "</title>\n<style>");
	OW_TRY(add_unpacked(to, css, err));
	buf_puts(to, "</style></head><body><div id=\"app\"><noscript>This report needs "
		     "JavaScript.</noscript></div>\n<script type=\"application/json\" "
		     "id=\"opwatch-report\">{");
	for (size_t i = 0; i < ARRAY_COUNT(answers); i++)
		if (r->ui->base || !strstr(answers[i].key, "base=1"))
			add_answer(r, answers[i].key, answers[i].handle);
	r->max_bytes = r->max_bytes > (js->len * 5) ? r->max_bytes - js->len * 4 : r->max_bytes;
	OW_TRY(add_timeline(r, err));
	buf_puts(to, "}\n</script>\n<script>");
	status = add_unpacked(to, js, err);
	buf_puts(to, "</script>\n</body></html>\n");
	return status != OW_OK ? status : to->failed ? error_no_memory(err) : OW_OK;
}

void ow_report_options_init(struct ow_report_options *options)
{
	*options = (struct ow_report_options){ .size = sizeof(*options), .max_bytes = SIZE_USUAL };
}

/* Checks the comparison. If it was asked for and cannot be made, that is an error, because users would miss it in
 * the report. */
static ow_status check_comparison(const struct ow_report_options *options, struct ow_error *err)
{
	ow_result *result = NULL;

	OW_TRY(api_check_frozen(options->base, err));
	OW_TRY(ow_diff(options->runs, options->base_runs, options->runs + options->base_runs,
		       options->new_runs, NULL, &result, err));
	ow_result_free(result);
	return OW_OK;
}

ow_status ow_report_write(ow_profile *profile, const struct ow_report_options *options,
			  ow_write_fn write, void *arg, struct ow_error *err)
{
	struct ow_report_options full;
	struct report r = { .first = true };
	ow_profile *sides[2] = { NULL, profile };
	ow_status status;

	error_clear(err);
	OW_TRY(api_check_frozen(profile, err));
	ow_report_options_init(&full);
	SIZED_IN(&full, options);
	if (full.base && !full.runs) {
		sides[0] = full.base;
		full.runs = sides;
		full.base_runs = full.new_runs = 1;
	}
	if (full.base)
		OW_TRY(check_comparison(&full, err));
	r.max_bytes = full.max_bytes ? full.max_bytes : SIZE_USUAL;
	r.ui = page_new(profile, full.base, err);
	if (!r.ui)
		return err ? err->status : OW_E_NO_MEMORY;
	r.ui->given = full.runs;
	r.ui->given_base = full.base_runs;
	r.ui->given_new = full.new_runs;
	buf_init(&r.out, &r.ui->mem);
	status = make_report(&r,
			     full.title		? full.title
			     : r.ui->path_count ? r.ui->paths[0]
						: "opwatch",
			     err);
	if (status == OW_OK && !write(arg, r.out.ptr, r.out.len))
		status = error_set(err, OW_E_INTERRUPTED, "the output was stopped");
	buf_release(&r.out);
	page_free(r.ui);
	return status;
}

ow_status ow_report_write_file(ow_profile *profile, const struct ow_report_options *options,
			       const char *path, struct ow_error *err)
{
	struct atomic_file file;

	error_clear(err);
	OW_TRY(atomic_open(&file, &profile->mem, path, err));
	return atomic_finish(&file,
			     ow_report_write(profile, options, api_write_to_file, &file, err), err);
}
