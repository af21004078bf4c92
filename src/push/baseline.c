/*
 * baseline.c: keeps runs of `opwatch baseline` in a ClickHouse server (baseline.h). The statements work with servers from 18.16 on. Values travel as RowBinary in both directions: a file is bytes,
 * and texts of the user need no quoting.
 */
#include "push/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PART_BYTES (4u << 20)
#define ANSWER_MOST (64u << 20)
#define UNKNOWN_TABLE 60
#define UNKNOWN_DATABASE 81

static const char runs_table[] = "CREATE TABLE IF NOT EXISTS opwatch_baseline (id String, added "
				 "DateTime, added_ns UInt64, commit "
				 "String, host String, file String, configuration String, bytes "
				 "UInt64, parts UInt32) ENGINE = "
				 "MergeTree() ORDER BY (added_ns, id)";
static const char parts_table[] = "CREATE TABLE IF NOT EXISTS opwatch_baseline_part (id String, "
				  "part UInt32, data String) ENGINE = "
				  "MergeTree() PARTITION BY id ORDER BY (id, part)";

static void put_int(struct buf *to, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_add_char(to, (char)(value >> (8 * i)));
}

static void put_text(struct buf *to, struct str text)
{
	size_t len = text.len;

	for (; len >= 0x80; len >>= 7)
		buf_add_char(to, (char)(len | 0x80));
	buf_add_char(to, (char)len);
	buf_add_str(to, text);
}

static void put_known(struct buf *to, const char *text)
{
	put_text(to, text ? str_from(text) : STR(""));
}

/* Removes a text from the front of an answer; false when the answer is cut short. */
static bool take_text(struct str *rest, struct str *text)
{
	uint64_t len = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (!rest->len)
			return false;
		byte = (uint8_t)rest->ptr[0];
		*rest = str_skip(*rest, 1);
		len |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (len > rest->len)
			return false;
		*text = str_first(*rest, (size_t)len);
		*rest = str_skip(*rest, (size_t)len);
		return true;
	}
	return false;
}

struct body {
	struct str rest;
};

static size_t give(void *arg, void *to, size_t cap)
{
	struct body *body = arg;
	size_t len = MIN(cap, body->rest.len);

	memcpy(to, body->rest.ptr, len);
	body->rest = str_skip(body->rest, len);
	return len;
}

static ow_status insert(struct click *click, const char *text, const struct buf *row,
			struct ow_error *err)
{
	struct body body = { buf_str(row) };

	if (row->failed)
		return error_no_memory(err);
	return click_insert(click, str_from(text), NULL, give, &body, err);
}

static ow_status make_id(char id[BASELINE_ID + 1], struct ow_error *err)
{
	uint8_t bytes[BASELINE_ID / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return error_errno(err, errno, "the name of a run");
	for (unsigned i = 0; i < sizeof(bytes); i++)
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	return OW_OK;
}

static ssize_t read_part(int fd, char *to, off_t from)
{
	size_t len = 0;

	while (len < PART_BYTES) {
		ssize_t got = pread(fd, to + len, PART_BYTES - len, from + (off_t)len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		len += (size_t)got;
	}
	return (ssize_t)len;
}

static ow_status send_parts(struct click *click, int fd, const char *path, const char *id,
			    uint64_t *bytes, uint32_t *parts, struct ow_error *err)
{
	char *data = mem_alloc(click->mem, PART_BYTES);
	ow_status status = data ? OW_OK : error_no_memory(err);
	ssize_t len = 0;

	for (*bytes = 0, *parts = 0; status == OW_OK; *bytes += (uint64_t)len, ++*parts) {
		struct buf row;

		len = read_part(fd, data, (off_t)*bytes);
		if (len < 0)
			status = error_errno(err, errno, "%s", path);
		if (len <= 0)
			break;
		buf_init(&row, click->mem);
		put_known(&row, id);
		put_int(&row, *parts, 4);
		put_text(&row, str_make(data, (size_t)len));
		status = insert(click,
				"INSERT INTO opwatch_baseline_part (id, part, data) FORMAT "
				"RowBinary",
				&row, err);
		buf_release(&row);
	}
	mem_free(click->mem, data, PART_BYTES);
	return status;
}

static ow_status send_facts(struct click *click, const char *id, const struct baseline_facts *facts,
			    uint64_t bytes, uint32_t parts, struct ow_error *err)
{
	struct timespec now = { 0 };
	struct buf row;
	ow_status status;

	clock_gettime(CLOCK_REALTIME, &now);
	buf_init(&row, click->mem);
	put_known(&row, id);
	put_int(&row, (uint64_t)now.tv_sec, 4);
	put_int(&row, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, 8);
	put_known(&row, facts->commit);
	put_known(&row, facts->host);
	put_known(&row, facts->file);
	put_known(&row, facts->configuration);
	put_int(&row, bytes, 8);
	put_int(&row, parts, 4);
	status = insert(click,
			"INSERT INTO opwatch_baseline (id, added, added_ns, commit, host, file, "
			"configuration, bytes, parts) FORMAT RowBinary",
			&row, err);
	buf_release(&row);
	return status;
}

ow_status baseline_store(struct click *click, const char *path, const struct baseline_facts *facts,
			 char id[BASELINE_ID + 1], struct ow_error *err)
{
	uint64_t bytes;
	uint32_t parts;
	ow_status status;
	int fd;

	OW_TRY(make_id(id, err));
	OW_TRY(click_run(click, str_from(runs_table), CLICK_REPEAT, NULL, err));
	OW_TRY(click_run(click, str_from(parts_table), CLICK_REPEAT, NULL, err));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, errno, "%s", path);
	status = send_parts(click, fd, path, id, &bytes, &parts, err);
	close(fd);
	if (status == OW_OK)
		status = send_facts(click, id, facts, bytes, parts, err);
	return status;
}

static bool has_no_tables(const struct click *click)
{
	return click->code == UNKNOWN_TABLE || click->code == UNKNOWN_DATABASE;
}

ow_status baseline_list(struct click *click, struct buf *answer, struct ow_error *err)
{
	static const char text[] =
		"SELECT id, toString(added) AS added, commit, host, file, configuration, bytes, "
		"parts FROM (SELECT DISTINCT * FROM opwatch_baseline) ORDER BY added_ns, id";
	ow_status status = click_query(click, str_from(text), ANSWER_MOST, answer, err);

	if (status == OW_OK || !has_no_tables(click))
		return status;
	buf_clear(answer);
	error_clear(err);
	return OW_OK;
}

static ow_status write_all(int fd, const char *path, struct str bytes, struct ow_error *err)
{
	while (bytes.len) {
		ssize_t done = write(fd, bytes.ptr, bytes.len);

		if (done < 0 && errno != EINTR)
			return error_errno(err, errno, "%s", path);
		if (done > 0)
			bytes = str_skip(bytes, (size_t)done);
	}
	return OW_OK;
}

static ow_status is_incomplete(const struct click *click, const char *id, struct ow_error *err)
{
	return error_set(err, OW_E_FORMAT,
			 "%s: run %.32s is incomplete: a part is missing; was it removed?",
			 click->place, id);
}

static ow_status fetch_part(struct click *click, const char *id, uint32_t part, struct buf *answer,
			    struct str *data, struct ow_error *err)
{
	char text[256];
	struct str rest;

	snprintf(text, sizeof(text),
		 "SELECT data FROM opwatch_baseline_part WHERE id = '%.32s' AND part = %u LIMIT 1 "
		 "FORMAT RowBinary",
		 id, part);
	OW_TRY(click_query(click, str_from(text), ANSWER_MOST, answer, err));
	rest = buf_str(answer);
	return take_text(&rest, data) && data->len ? OW_OK : is_incomplete(click, id, err);
}

/* Finds the number of bytes and parts of a run. */
static ow_status find_run(struct click *click, const char *id, uint64_t *bytes, uint64_t *parts,
			  struct ow_error *err)
{
	struct buf answer;
	struct str line;
	ow_status status;

	buf_init(&answer, click->mem);
	status = click_runf(click, &answer, err,
			    "SELECT bytes, parts FROM opwatch_baseline WHERE id = '%.32s' LIMIT 1",
			    id);
	line = str_trim(buf_str(&answer));
	if (status == OW_OK && (!click_field_u64(&line, bytes) || !click_field_u64(&line, parts)))
		status = is_incomplete(click, id, err);
	buf_release(&answer);
	return status;
}

ow_status baseline_fetch(struct click *click, const char *id, const char *path,
			 struct ow_error *err)
{
	uint64_t bytes = 0, parts = 0, got = 0;
	struct buf answer;
	ow_status status;
	int fd;

	if (strlen(id) != BASELINE_ID || strspn(id, "0123456789abcdef") != BASELINE_ID)
		return error_set(err, OW_E_USAGE, "'%.40s' is not the id of a run", id);
	OW_TRY(find_run(click, id, &bytes, &parts, err));
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_errno(err, errno, "%s", path);
	buf_init(&answer, click->mem);
	status = OW_OK;
	for (uint32_t i = 0; status == OW_OK && i < parts; i++) {
		struct str data = { 0 };

		status = fetch_part(click, id, i, &answer, &data, err);
		if (status == OW_OK)
			status = write_all(fd, path, data, err);
		got += data.len;
	}
	if (status == OW_OK && got != bytes)
		status = is_incomplete(click, id, err);
	buf_release(&answer);
	close(fd);
	if (status != OW_OK)
		(void)unlink(path);
	return status;
}
