/*
 * ranks.c: the route of the page Ranks: returns what `opwatch ranks` prints with --json. The files are read again for
 * it, one after the other, when the page first asks; the answer is kept until the files of the page are read again.
 */
#include "page/page_int.h"

#include "opwatch/ranks.h"

static ow_status compare(struct ow_ui *ui, struct buf *to, struct ow_error *err)
{
	struct ow_ranks_options options;
	struct ow_write_options write;
	ow_result *result = NULL;
	ow_status status;

	ow_ranks_options_init(&options);
	ow_write_options_init(&write);
	options.memory_limit = ui->open.memory_limit;
	options.redact = ui->profile->options.redact;
	options.progress = page_going_on;
	options.progress_arg = ui;
	status = ow_ranks(ui->paths, ui->path_count, &options, &result, err);
	if (status == OW_OK)
		status = ow_result_write(result, "json", &write, page_write, to, err);
	ow_result_free(result);
	return status;
}

PAGE_HANDLER(ranks)
{
	struct ow_ui *u = ui;
	struct ow_error err = { 0 };
	ow_status status = OW_OK;
	unsigned epoch;

	(void)request;
	if (!page_ready(u, reply))
		return;
	pthread_mutex_lock(&u->ranks_lock);
	epoch = atomic_load(&u->epoch);
	if (!u->ranks.len || u->ranks_epoch != epoch) {
		buf_clear(&u->ranks);
		status = compare(u, &u->ranks, &err);
		u->ranks_epoch = epoch;
		if (status != OW_OK)
			buf_clear(&u->ranks);
	}
	buf_add_str(&reply->body, buf_str(&u->ranks));
	pthread_mutex_unlock(&u->ranks_lock);
	if (status == OW_E_EMPTY || status == OW_E_UNSUPPORTED)
		page_answer_empty(reply, "ranks", err.text);
	else if (status != OW_OK)
		page_fail(reply, status, &err);
}
