/*
 * claim.c: a lock on the servers by which one push at a time writes a run, and the list of what was published. A push that dies
 * loses its claim after a while. Used by push.c.
 */
#include "push/claim.h"

#include "opwatch_config.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static ow_status insert_state(struct claim *claim, struct click *click, enum claim_state state,
			      struct ow_error *err)
{
	return click_runf(click, NULL, err,
			  "INSERT INTO opwatch_claim SELECT %s, toUInt64(%" PRIu64
			  "), '%s', %s, toUInt64(%ld), now(), toUInt8(%d)",
			  claim->run, claim->push, claim->owner, claim->host, (long)getpid(),
			  (int)state);
}

/* Whether the process of a claim has ended; only processes on this machine can be checked. */
static bool is_dead(const struct claim *claim, struct str host, uint64_t pid)
{
	size_t len = strlen(claim->host);
	struct str ours = str_make(claim->host + 1, len - 2);

	return str_eq(host, ours) &&
	       (pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH));
}

struct claimant {
	struct str owner, host;
	uint64_t pid, age, first, state;
};

static bool next_claimant(struct str *rest, struct claimant *c)
{
	struct str line;

	while (click_line(rest, &line))
		if (click_field(&line, &c->owner) && click_field(&line, &c->host) &&
		    click_field_u64(&line, &c->pid) && click_field_u64(&line, &c->age) &&
		    click_field_u64(&line, &c->first) && click_field_u64(&line, &c->state))
			return true;
	return false;
}

static bool is_before(const struct claimant *a, const struct claimant *b)
{
	return a->first < b->first || (a->first == b->first && str_cmp(a->owner, b->owner) < 0);
}

static bool find_ours(const struct claim *claim, struct str rest, struct claimant *ours)
{
	while (next_claimant(&rest, ours))
		if (str_eq(ours->owner, str_from(claim->owner)))
			return true;
	return false;
}

/* Finds the push that has priority over ours: one that asked earlier or, while we only ask, one that holds the
 * claim. */
static bool find_winner(const struct claim *claim, const struct claimant *ours, struct str rest,
			struct claimant *winner)
{
	struct claimant c;
	bool found = false;

	while (next_claimant(&rest, &c)) {
		if (str_eq(c.owner, ours->owner) || is_dead(claim, c.host, c.pid))
			continue;
		if (!is_before(&c, ours) && (c.state != CLAIM_HELD || ours->state == CLAIM_HELD))
			continue;
		if (!found || is_before(&c, winner))
			*winner = c;
		found = true;
	}
	return found;
}

static ow_status refuse(const struct claimant *c, struct ow_error *err)
{
	return error_set(err, OW_E_PERMISSION,
			 "this run is being pushed from %.*s (process %" PRIu64
			 ", last seen %" PRIu64
			 " s ago); if that was killed, push again in %" PRIu64 " s",
			 STR_ARG(c->host), c->pid, c->age,
			 CLAIM_EXPIRES_S - MIN(c->age, (uint64_t)CLAIM_EXPIRES_S));
}

/*
 * Checks for other pushes. *again is set when a second check may succeed: our row was deleted together with those of a
 * push that just ended, or a push that asked after us holds the claim and may still see us and give up.
 */
static ow_status check_others(const struct claim *claim, bool *again, struct ow_error *err)
{
	struct claimant ours = { 0 }, winner = { 0 };
	struct buf answer;
	ow_status status;

	*again = false;
	buf_init(&answer, claim->home->mem);
	status = click_runf(claim->home, &answer, err,
			    "SELECT owner, any(host), any(pid), "
			    "toUInt64(now() - max(seen)) AS age, "
			    "toUInt64(min(seen)), max(state) AS stage "
			    "FROM opwatch_claim WHERE run = %s GROUP BY owner "
			    "HAVING stage < %d AND age < %d",
			    claim->run, (int)CLAIM_ENDED, CLAIM_EXPIRES_S);
	if (status == OW_OK && !find_ours(claim, buf_str(&answer), &ours)) {
		*again = true;
		status = error_set(err, OW_E_IO, "the claim on this run is not in opwatch_claim");
	} else if (status == OW_OK && find_winner(claim, &ours, buf_str(&answer), &winner)) {
		*again = is_before(&ours, &winner);
		status = refuse(&winner, err);
	}
	buf_release(&answer);
	return status;
}

/*
 * A push inserts "asked", checks for others, inserts "held", and checks again. A push that asked before the second check of
 * another is seen by that check, and the later of the two gives up. A push that asks after that check sees "held". So two
 * pushes never hold the claim. The order only matters for pushes that ask at the same time, and the seconds of the
 * server's clock are enough for that.
 */
static ow_status compete(struct claim *claim, struct ow_error *err)
{
	static const enum claim_state states[] = { CLAIM_ASKED, CLAIM_HELD };
	uint64_t began = click_now_ms();
	ow_status status = OW_OK;
	unsigned attempt = 0;
	bool again;

	for (size_t i = 0; i < ARRAY_COUNT(states) && status == OW_OK; i++)
		do {
			OW_TRY(insert_state(claim, claim->home, states[i], err));
			status = check_others(claim, &again, err);
		} while (again && ++attempt < CLAIM_CHECKS &&
			 click_pause(claim->home, attempt, began));
	return status;
}

static ow_status name_claim(struct claim *claim, struct arena *arena, const char *run,
			    struct ow_error *err)
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
		     struct arena *arena, const char *run, uint64_t push, struct ow_error *err)
{
	ow_status status;

	*claim = (struct claim){ .home = home, .beat = beat, .push = push };
	OW_TRY(name_claim(claim, arena, run, err));
	status = compete(claim, err);
	if (status != OW_OK) {
		struct ow_error ignored = { 0 };

		(void)insert_state(claim, home, CLAIM_ENDED, &ignored);
		return status;
	}
	atomic_store(&claim->last_ms, click_now_ms());
	atomic_store(&claim->next_ms, click_now_ms() + CLAIM_BEAT_MS);
	return OW_OK;
}

bool claim_beat(struct claim *claim)
{
	uint64_t now = click_now_ms();
	struct ow_error ignored = { 0 };

	if (now - MIN(now, atomic_load(&claim->last_ms)) > CLAIM_LOST_MS)
		return false;
	if (now < atomic_load(&claim->next_ms) || atomic_exchange(&claim->busy, true))
		return true;
	if (insert_state(claim, claim->beat, CLAIM_HELD, &ignored) == OW_OK)
		atomic_store(&claim->last_ms, now);
	atomic_store(&claim->next_ms, click_now_ms() + CLAIM_BEAT_MS);
	atomic_store(&claim->busy, false);
	return true;
}

void claim_end(struct claim *claim, bool done)
{
	struct ow_error ignored = { 0 };

	if (!claim->home)
		return;
	(void)insert_state(claim, claim->beat, CLAIM_ENDED, &ignored);
	if (done)
		(void)claim_forget(claim, claim->push, &ignored);
}

ow_status claim_forget(struct claim *claim, uint64_t push, struct ow_error *err)
{
	return click_runf(claim->home, NULL, err,
			  "ALTER TABLE opwatch_claim DROP PARTITION %" PRIu64, push);
}

ow_status claim_abandoned(struct claim *claim, uint64_t published, uint64_t *pushes, size_t cap,
			  size_t *count, struct ow_error *err)
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

ow_status published_find(const struct claim *claim, struct published *published,
			 struct ow_error *err)
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

/* Publishing twice does no harm: the second row has the same push with a higher version. */
ow_status published_set(const struct claim *claim, struct click *node, uint64_t push,
			const char *content, uint64_t rows, struct ow_error *err)
{
	return click_runf(node, NULL, err,
			  "INSERT INTO opwatch_publish SELECT %s, toUInt64(%" PRIu64
			  "), max(version) + 1, '%s', toUInt64(%" PRIu64 "), '" OPWATCH_VERSION
			  "', now() FROM opwatch_publish WHERE run = %s",
			  claim->run, push, content, rows, claim->run);
}
