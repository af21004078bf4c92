/* claim.c: see claim.h. */
#include "push/claim.h"

#include "opwatch_config.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* ---- claims ---- */

static ow_status say(struct claim *claim, struct click *click, bool ended, struct error *err)
{
	return click_runf(click, NULL, err,
			  "INSERT INTO opwatch_claim SELECT %s, toUInt64(%" PRIu64
			  "), '%s', %s, toUInt64(%ld), now(), toUInt8(%d)",
			  claim->run, claim->push, claim->owner, claim->host, (long)getpid(),
			  ended);
}

/* On this machine a process can be asked for. */
static bool is_dead(const struct claim *claim, struct str host, uint64_t pid)
{
	size_t len = strlen(claim->host);
	struct str ours = str_make(claim->host + 1, len - 2);

	return str_eq(host, ours) &&
	       (pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH));
}

/* Rows: owner, host, pid, seconds since it was seen, when first. */
static ow_status look_at_others(const struct claim *claim, struct str rest, struct error *err)
{
	struct str line, owner, host, winner = str_from(claim->owner), winner_host = { 0 };
	uint64_t pid, age, first, ours_first = UINT64_MAX, winner_pid = 0, winner_age = 0;
	struct str all = rest;

	while (click_line(&all, &line))
		if (click_field(&line, &owner) && click_field(&line, &host) &&
		    click_field_u64(&line, &pid) && click_field_u64(&line, &age) &&
		    click_field_u64(&line, &first) && str_eq(owner, str_from(claim->owner)))
			ours_first = first;
	while (click_line(&rest, &line)) {
		if (!click_field(&line, &owner) || !click_field(&line, &host) ||
		    !click_field_u64(&line, &pid) || !click_field_u64(&line, &age) ||
		    !click_field_u64(&line, &first) || str_eq(owner, str_from(claim->owner)) ||
		    is_dead(claim, host, pid))
			continue;
		if (first < ours_first || (first == ours_first && str_cmp(owner, winner) < 0)) {
			winner = owner;
			winner_host = host;
			winner_pid = pid;
			winner_age = age;
		}
	}
	if (!winner_host.ptr)
		return OW_OK;
	return error_set(err, OW_E_PERMISSION,
			 "this run is being pushed from %.*s (process %" PRIu64
			 ", last seen %" PRIu64
			 " s ago); if that was killed, push again in %" PRIu64 " s",
			 STR_ARG(winner_host), winner_pid, winner_age,
			 CLAIM_EXPIRES_S - MIN(winner_age, (uint64_t)CLAIM_EXPIRES_S));
}

static ow_status name_claim(struct claim *claim, struct arena *arena, const char *run,
			    struct error *err)
{
	char host[100] = "";
	struct timespec now;
	struct buf text;

	clock_gettime(CLOCK_REALTIME, &now);
	gethostname(host, sizeof(host) - 1);
	for (char *c = host; *c; c++)
		if (*c == '\'' || *c == '\\' || *c == '\t' || *c == '\n')
			*c = '_';
	snprintf(claim->host, sizeof(claim->host), "'%s'", host);
	snprintf(claim->owner, sizeof(claim->owner), "%lx.%lx-%lx", (long)now.tv_sec,
		 (long)now.tv_nsec, (long)getpid());
	buf_init(&text, arena->mem);
	click_quote(&text, str_from(run));
	claim->run = text.failed ? NULL : arena_cstr(arena, buf_str(&text));
	buf_release(&text);
	return claim->run ? OW_OK : error_no_memory(err);
}

ow_status claim_take(struct claim *claim, struct click *home, struct click *beat,
		     struct arena *arena, const char *run, uint64_t push, struct error *err)
{
	struct buf answer;
	ow_status status;

	*claim = (struct claim){ .home = home, .beat = beat, .push = push };
	OW_TRY(name_claim(claim, arena, run, err));
	OW_TRY(say(claim, home, false, err));
	buf_init(&answer, home->mem);
	status =
		click_runf(home, &answer, err,
			   "SELECT owner, any(host), any(pid), toUInt64(now() - max(seen)) AS age, "
			   "toUInt64(min(seen)) FROM opwatch_claim WHERE run = %s GROUP BY owner "
			   "HAVING max(ended) = 0 AND age < %d",
			   claim->run, CLAIM_EXPIRES_S);
	if (status == OW_OK)
		status = look_at_others(claim, buf_str(&answer), err);
	buf_release(&answer);
	if (status != OW_OK) {
		struct error ignored = { 0 };

		(void)say(claim, home, true, &ignored);
		return status;
	}
	atomic_store(&claim->last_ms, click_now_ms());
	atomic_store(&claim->next_ms, click_now_ms() + CLAIM_BEAT_MS);
	return OW_OK;
}

bool claim_beat(struct claim *claim)
{
	uint64_t now = click_now_ms();
	struct error ignored = { 0 };

	if (now - MIN(now, atomic_load(&claim->last_ms)) > CLAIM_LOST_MS)
		return false;
	if (now < atomic_load(&claim->next_ms) || atomic_exchange(&claim->busy, true))
		return true;
	if (say(claim, claim->beat, false, &ignored) == OW_OK)
		atomic_store(&claim->last_ms, now);
	atomic_store(&claim->next_ms, click_now_ms() + CLAIM_BEAT_MS);
	atomic_store(&claim->busy, false);
	return true;
}

void claim_end(struct claim *claim, bool done)
{
	struct error ignored = { 0 };

	if (!claim->home)
		return;
	(void)say(claim, claim->beat, true, &ignored);
	if (done)
		(void)claim_forget(claim, claim->push, &ignored);
}

ow_status claim_forget(struct claim *claim, uint64_t push, struct error *err)
{
	return click_runf(claim->home, NULL, err,
			  "ALTER TABLE opwatch_claim DROP PARTITION %" PRIu64, push);
}

ow_status claim_abandoned(struct claim *claim, uint64_t published, uint64_t *pushes, size_t cap,
			  size_t *count, struct error *err)
{
	struct str rest, line;
	struct buf answer;
	ow_status status;

	*count = 0;
	buf_init(&answer, claim->home->mem);
	status = click_runf(claim->home, &answer, err,
			    "SELECT DISTINCT push FROM (SELECT push, run FROM opwatch_claim "
			    "UNION ALL SELECT push, run FROM opwatch_publish) WHERE run = %s AND "
			    "push NOT IN (0, %" PRIu64 ", %" PRIu64 ")",
			    claim->run, claim->push, published);
	for (rest = buf_str(&answer); status == OW_OK && *count < cap && click_line(&rest, &line);)
		*count += click_field_u64(&line, &pushes[*count]);
	buf_release(&answer);
	return status;
}

/* ---- publishing ---- */

ow_status published_find(const struct claim *claim, struct published *published, struct error *err)
{
	struct str line, content;
	struct buf answer;
	ow_status status;

	*published = (struct published){ 0 };
	buf_init(&answer, claim->home->mem);
	status = click_runf(claim->home, &answer, err,
			    "SELECT push, content FROM opwatch_publish WHERE run = %s ORDER BY "
			    "version DESC LIMIT 1",
			    claim->run);
	line = str_trim(buf_str(&answer));
	if (status == OW_OK && line.len && click_field_u64(&line, &published->push) &&
	    click_field(&line, &content))
		snprintf(published->content, sizeof(published->content), "%.*s", STR_ARG(content));
	buf_release(&answer);
	return status;
}

/* Saying it twice does no harm: the same push with a higher version. */
ow_status published_set(const struct claim *claim, struct click *node, uint64_t push,
			const char *content, uint64_t rows, struct error *err)
{
	return click_runf(node, NULL, err,
			  "INSERT INTO opwatch_publish SELECT %s, toUInt64(%" PRIu64
			  "), max(version) + 1, '%s', toUInt64(%" PRIu64 "), '" OPWATCH_VERSION
			  "', now() FROM opwatch_publish WHERE run = %s",
			  claim->run, push, content, rows, claim->run);
}
