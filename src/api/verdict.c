/* verdict.c: ow_verdict: one sentence, by way of the view of that name. */
#include "api/api_int.h"

ow_status ow_verdict(ow_profile *p, const struct ow_view_options *options, char *text, size_t size,
		     struct error *err)
{
	const char *sentence;
	ow_result *result;
	struct str shown;
	size_t len;

	if (size)
		*text = '\0';
	OW_TRY(ow_view(p, "verdict", options, &result, err));
	sentence = ow_result_text(result, 0, 0, &len);
	shown = str_make(sentence, len);
	if (size && len >= size)
		shown.len = utf8_valid_prefix(str_first(shown, size - 1));
	if (size) {
		memcpy(text, shown.ptr, shown.len);
		text[shown.len] = '\0';
	}
	ow_result_free(result);
	return OW_OK;
}
