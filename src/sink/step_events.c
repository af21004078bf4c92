/* step_events.c: see step_events.h. */
#include "sink/step_events.h"

#include "base/buf.h"

static void put_string(struct writer *w, struct str s)
{
	writer_char(w, '"');
	while (s.len) {
		uint32_t code;
		size_t used = utf8_decode(s, &code);

		s = str_skip(s, used);
		if (code == '"' || code == '\\') {
			writer_char(w, '\\');
			writer_char(w, (char)code);
		} else if (code >= ' ' && code <= '~') {
			writer_char(w, (char)code);
		} else if (code == '\n') {
			writer_puts(w, "\\n");
		} else if (code == '\r') {
			writer_puts(w, "\\r");
		} else if (code == '\t') {
			writer_puts(w, "\\t");
		} else if (code == '\f') {
			writer_puts(w, "\\f");
		} else if (code == '\b') {
			writer_puts(w, "\\b");
		} else if (code < 0x10000) {
			writer_printf(w, "\\u%04x", code);
		} else {
			code -= 0x10000;
			writer_printf(w, "\\u%04x\\u%04x", 0xd800 + (code >> 10),
				      0xdc00 + (code & 0x3ff));
		}
	}
	writer_char(w, '"');
}

void events_begin(struct step_events *e, struct mem *mem, const struct out *out, struct error *err)
{
	*e = (struct step_events){ 0 };
	writer_init(&e->w, mem, out, err);
	writer_puts(&e->w, "{\n    \"traceEvents\": [");
}

ow_status events_finish(struct step_events *e)
{
	writer_puts(&e->w, "\n    ]\n}");
	return writer_finish(&e->w);
}

static void open_event(struct step_events *e)
{
	writer_puts(&e->w, e->any ? ",\n        {" : "\n        {");
	e->any = true;
}

void events_close(struct step_events *e)
{
	writer_puts(&e->w, "\n        }");
}

void events_string(struct step_events *e, struct str s)
{
	put_string(&e->w, s);
}

static void put_key(struct step_events *e, const char *key, bool first)
{
	writer_puts(&e->w, first ? "\n            \"" : ",\n            \"");
	writer_puts(&e->w, key);
	writer_puts(&e->w, "\": ");
}

void events_int(struct step_events *e, const char *key, int64_t value)
{
	put_key(e, key, false);
	writer_int(&e->w, value);
}

void events_args(struct step_events *e)
{
	put_key(e, "args", false);
	writer_char(&e->w, '{');
}

void events_arg(struct step_events *e, struct str key, bool first)
{
	writer_puts(&e->w, first ? "\n                " : ",\n                ");
	put_string(&e->w, key);
	writer_puts(&e->w, ": ");
}

void events_args_end(struct step_events *e)
{
	writer_puts(&e->w, "\n            }");
}

void events_open(struct step_events *e, char ph, const char *category, struct str name, int64_t pid,
		 int64_t tid, int64_t ts)
{
	open_event(e);
	put_key(e, "ph", true);
	writer_printf(&e->w, "\"%c\"", ph);
	put_key(e, "cat", false);
	put_string(&e->w, str_from(category));
	put_key(e, "name", false);
	put_string(&e->w, name);
	events_int(e, "pid", pid);
	events_int(e, "tid", tid);
	events_int(e, "ts", ts);
}

void events_process(struct step_events *e, int64_t pid, struct str name, const char *what)
{
	struct buf full;

	buf_init(&full, e->w.mem);
	buf_add_str(&full, name);
	buf_puts(&full, what);
	if (full.failed)
		writer_fail(&e->w, error_no_memory(e->w.err));
	open_event(e);
	put_key(e, "name", true);
	writer_puts(&e->w, "\"process_name\"");
	put_key(e, "ph", false);
	writer_puts(&e->w, "\"M\"");
	events_int(e, "pid", pid);
	events_args(e);
	events_arg(e, STR("name"), true);
	put_string(&e->w, buf_str(&full));
	events_args_end(e);
	events_close(e);
	buf_release(&full);
}
