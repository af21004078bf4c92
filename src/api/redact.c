/* redact.c: hides names in a profile that is to be shared; called by the freeze. */
#include "api/api_int.h"

#include "model/redact.h"

/* A checkpoint's names and values would give away what the model no longer tells. */
ow_status api_redact(ow_profile *p, struct error *err)
{
	if (p->has_checkpoint)
		checkpoint_close(&p->checkpoint);
	p->has_checkpoint = false;
	return model_redact(p->m, err);
}
