/*
 * interpret_flops.c: computes float operations and bytes of PyTorch's matrix products and convolutions, from the shapes
 * among the arguments of their operators (record_shapes). They count for the longest kernel that an operator launches,
 * apart from copies and casts, and for a gradient for the two longest; or for the operator itself if no device was
 * recorded; an op gets the mean of its runs. producer_kineto.c calls it when links and ops are known. Only operators
 * that do the work themselves are used, so that nothing counts twice. A convolution needs the size of its result, which
 * follows from padding, stride and dilation: older traces do not have these, and then nothing is computed.
 */
#include "import/interpret/interpret_int.h"

#include "base/vec.h"

#define DIMS_MAX 8
#define INPUTS_MAX 8
#define SIZE_LIMIT 1e15 /* largest size of a dimension */

enum formula { PRODUCT, CONVOLUTION, CONVOLUTION_BACKWARD, CONVOLUTION_BACKWARD_INPUT };

/* first: index of the input that is the left matrix, the image, or the gradient of the result. lists: index at which
 * padding, stride and dilation begin. */
static const struct {
	const char *name;
	enum formula formula;
	uint8_t first, lists;
} operators[] = {
	{ "aten::mm", PRODUCT, 0, 0 },
	{ "aten::addmm", PRODUCT, 1, 0 },
	{ "aten::bmm", PRODUCT, 0, 0 },
	{ "aten::baddbmm", PRODUCT, 1, 0 },
	{ "aten::_scaled_mm", PRODUCT, 0, 0 },
	{ "aten::cudnn_convolution", CONVOLUTION, 0, 2 },
	{ "aten::miopen_convolution", CONVOLUTION, 0, 3 },
	{ "aten::mkldnn_convolution", CONVOLUTION, 0, 3 },
	{ "aten::convolution_backward", CONVOLUTION_BACKWARD, 0, 0 },
	{ "aten::cudnn_convolution_backward_input", CONVOLUTION_BACKWARD_INPUT, 1, 0 },
};

struct tensor {
	uint32_t rank;
	int64_t dims[DIMS_MAX];
	double elements, bytes;
};

/* One run of a matrix product or convolution. */
struct product {
	uint32_t event;
	uint32_t work[2]; /* the op's two longest kernels; 0 = none */
	double flops, bytes;
	bool backward; /* two products: the gradients of the image and of the weights */
};

struct call {
	uint32_t event, product;
};

/* The class of a name, so that each name is parsed once and not once per event. */
enum name_kind {
	NAME_NEW,
	NAME_HELPER,
	NAME_OTHER,
	NAME_OPERATOR /* this value + the operator's number */
};

struct flops {
	struct interpret *x;
	uint8_t *kinds; /* for each string: an enum name_kind */
	struct product *list;
	size_t count, cap;
	struct call *calls;
	size_t call_count, call_cap;
};

static uint32_t read_numbers(struct str text, int64_t *to, uint32_t max)
{
	struct json_reader r = json_over(text);
	struct json_value value;
	uint32_t count = 0;

	while (count < max && json_next_element(&r, &value))
		if (!interpret_number(value, &to[count++]))
			return 0;
	return count;
}

/* Returns the size of an element of a type as PyTorch names it. */
static double element_size(struct str type)
{
	static const struct {
		const char *type;
		double size;
	} sizes[] = { { "double", 8 },	     { "long", 8 },   { "Half", 2 },
		      { "BFloat16", 2 },     { "Float8", 1 }, { "signed char", 1 },
		      { "unsigned char", 1 } };

	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
		if (str_has(type, str_from(sizes[i].type)))
			return sizes[i].size;
	return 4;
}

struct shapes {
	struct json_value dims, types, concrete;
};

static struct shapes find_shapes(struct str args)
{
	struct shapes found = { .dims.at = "", .types.at = "", .concrete.at = "" };
	struct json_reader r = json_over(args);
	struct json_value value;
	struct str key;

	if (!args.len || args.ptr[0] != '{')
		return found;
	while (json_next_member(&r, &key, &value)) {
		if (json_key_is(key, "Input Dims") || json_key_is(key, "Input dims"))
			found.dims = value;
		else if (json_key_is(key, "Input type"))
			found.types = value;
		else if (json_key_is(key, "Concrete Inputs"))
			found.concrete = value;
	}
	return found;
}

static uint32_t read_tensors(const struct shapes *s, struct tensor *to)
{
	struct json_reader r = json_over(json_text(s->dims)), t = json_over(json_text(s->types));
	struct json_value value, type;
	uint32_t count = 0;

	while (count < INPUTS_MAX && json_next_element(&r, &value)) {
		struct tensor *tensor = &to[count++];

		*tensor = (struct tensor){ .elements = 1 };
		tensor->rank = read_numbers(json_text(value), tensor->dims, DIMS_MAX);
		for (uint32_t i = 0; i < tensor->rank; i++)
			tensor->elements *= (double)tensor->dims[i];
		tensor->bytes = tensor->elements * 4;
		if (s->types.len && json_next_element(&t, &type))
			tensor->bytes = tensor->elements * element_size(json_text(type));
	}
	return count;
}

/* Reads a list of "Concrete Inputs", a text such as "[3, 3]". One number stands for all
 * dimensions. */
static bool read_list(const struct shapes *s, uint32_t index, uint32_t rank, int64_t *to)
{
	struct json_reader r = json_over(json_text(s->concrete));
	struct json_value value;
	uint32_t count = 0;

	for (uint32_t i = 0; i <= index; i++)
		if (!json_next_element(&r, &value))
			return false;
	if (value.kind == JSON_STRING && str_starts(json_text(value), STR("[")))
		count = read_numbers(json_text(value), to, DIMS_MAX);
	for (uint32_t i = 1; count == 1 && i < rank; i++)
		to[i] = to[0];
	return count == 1 || count >= rank;
}

static bool cost_of_product(const struct tensor *a, const struct tensor *b, struct product *out)
{
	double rows, inner, columns;

	if (a->rank < 2 || b->rank != a->rank || a->dims[a->rank - 1] != b->dims[b->rank - 2])
		return false;
	inner = (double)a->dims[a->rank - 1];
	rows = inner > 0 ? a->elements / inner : 0; /* rows of all matrices of a batch */
	columns = (double)b->dims[b->rank - 1];
	out->flops = 2 * rows * inner * columns;
	out->bytes = a->bytes + b->bytes +
		     (a->elements > 0 ? a->bytes / a->elements : 0) * rows * columns;
	return out->flops > 0;
}

/* Returns the number of products per element of the result: the weights of one output channel. */
static double taps(const struct tensor *weight)
{
	return weight->dims[0] > 0 ? weight->elements / (double)weight->dims[0] : 0;
}

static bool cost_of_convolution(const struct shapes *s, const struct tensor *t, uint32_t lists,
				struct product *out)
{
	const struct tensor *image = &t[0], *weight = &t[1];
	uint32_t rank = image->rank < 3 ? 0 : image->rank - 2;
	int64_t padding[DIMS_MAX], stride[DIMS_MAX], dilation[DIMS_MAX];
	double result;

	if (!rank || weight->rank != image->rank || !read_list(s, lists, rank, padding) ||
	    !read_list(s, lists + 1, rank, stride) || !read_list(s, lists + 2, rank, dilation))
		return false;
	result = (double)image->dims[0] * (double)weight->dims[0];
	for (uint32_t i = 0; i < rank; i++) {
		double size = (double)image->dims[i + 2] + 2.0 * (double)padding[i] -
			      (double)dilation[i] * ((double)weight->dims[i + 2] - 1) - 1;

		if (stride[i] <= 0 || !(size >= 0 && size < SIZE_LIMIT))
			return false;
		result *= (double)((int64_t)(size / (double)stride[i]) + 1);
	}
	out->flops = 2 * result * taps(weight);
	out->bytes = image->bytes + weight->bytes +
		     result * (image->elements > 0 ? image->bytes / image->elements : 0);
	return out->flops > 0;
}

static bool cost_of(struct str args, unsigned which, struct product *out)
{
	struct shapes s = find_shapes(args);
	struct tensor t[INPUTS_MAX] = { 0 };
	uint32_t count = read_tensors(&s, t), first = operators[which].first;

	switch (operators[which].formula) {
	case PRODUCT:
		return count > first + 1 && cost_of_product(&t[first], &t[first + 1], out);
	case CONVOLUTION:
		return count > 1 && cost_of_convolution(&s, t, operators[which].lists, out);
	/* inputs are gradient, image, weight; two products of the forward size */
	case CONVOLUTION_BACKWARD:
	case CONVOLUTION_BACKWARD_INPUT:
		if (count <= first + 1 || t[first].rank < 3)
			return false;
		if (operators[which].formula == CONVOLUTION_BACKWARD_INPUT) {
			out->flops = 2 * t[first].elements * taps(&t[first + 1]);
			out->bytes = t[first].bytes + t[first + 1].bytes;
		} else if (count > 2) {
			out->backward = true;
			out->flops = 4 * t[0].elements * taps(&t[2]);
			out->bytes = 2 * (t[0].bytes + t[1].bytes + t[2].bytes);
		}
		return out->flops > 0;
	}
	return false;
}

static int operator_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(operators); i++)
		if (str_eq(name, str_from(operators[i].name)))
			return (int)i;
	return -1;
}

static bool is_operator(struct str name)
{
	return operator_of(name) >= 0;
}

/* Returns whether a kernel only prepares the operands. */
static bool is_helper(struct str name)
{
	static const char *const parts[] = { "transpose",     "subtensorop", "cast",
					     "elementwise",   "copy",	     "memset",
					     "reduce_kernel", "nchwtonhwc",  "nhwctonchw",
					     "fill" };

	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		if (str_has_ignoring_case(name, parts[i]))
			return true;
	return false;
}

static unsigned kind_of_name(struct flops *f, str_id name)
{
	struct str text = model_str(f->x->m, name);
	int which;

	if (f->kinds[name.v] != NAME_NEW)
		return f->kinds[name.v];
	which = operator_of(text);
	f->kinds[name.v] = which >= 0	     ? (uint8_t)(NAME_OPERATOR + which)
			   : is_helper(text) ? NAME_HELPER
					     : NAME_OTHER;
	return f->kinds[name.v];
}

static void take_shapes(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	struct product product = { .event = event };
	struct flops *f = arg;
	unsigned kind = kind_of_name(f, interpret_name(x, event));

	if (kind >= NAME_OPERATOR && cost_of(args, kind - NAME_OPERATOR, &product) &&
	    !vec_push(x->mem, f->list, f->count, f->cap, product))
		interpret_no_memory(x);
}

static ow_status read_products(struct flops *f)
{
	struct interpret *x = f->x;
	struct interpret_rows rows = { 0 };
	ow_status status = OW_OK;

	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!(track->categories & 1u << CATEGORY_OPERATOR) || !interpret_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && status == OW_OK; e++)
			if (interpret_is_slice(x, e) &&
			    kind_of_name(f, interpret_name(x, e)) >= NAME_OPERATOR)
				status = interpret_rows_add(x, &rows, e);
	}
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_shapes, f);
	interpret_rows_release(x, &rows);
	return status;
}

static int by_event(const void *a, const void *b)
{
	const struct product *x = a, *y = b;

	return (x->event > y->event) - (x->event < y->event);
}

/* Finds calls of the device's library inside of each operator: they follow it on its track. */
static ow_status find_calls(struct flops *f)
{
	struct interpret *x = f->x;
	const struct event_table *e = &x->m->event;

	for (size_t i = 0; i < f->count; i++) {
		uint32_t first = f->list[i].event, track = e->track[first].v;
		int64_t end = interpret_end(x, first);

		for (uint32_t k = first + 1;
		     k < x->last_event && e->track[k].v == track && e->ts_ns[k] < end; k++)
			if (interpret_category(x, k) == CATEGORY_RUNTIME &&
			    !vec_push(x->mem, f->calls, f->call_count, f->call_cap,
				      (struct call){ k, (uint32_t)i }))
				return interpret_no_memory(x);
	}
	return OW_OK;
}

static void take_kernel(struct flops *f, struct product *p, uint32_t work)
{
	const struct interpret *x = f->x;
	const int64_t *dur = x->m->event.dur_ns;

	if (x->m->event.phase[work] != PHASE_COMPUTE ||
	    kind_of_name(f, interpret_name(x, work)) == NAME_HELPER)
		return;
	if (!p->work[0] || dur[work] > dur[p->work[0]]) {
		p->work[1] = p->work[0];
		p->work[0] = work;
	} else if (!p->work[1] || dur[work] > dur[p->work[1]]) {
		p->work[1] = work;
	}
}

static void find_kernels(struct flops *f)
{
	const struct link_table *l = &f->x->m->link;

	for (uint32_t i = f->x->first_link; i < l->count; i++) {
		size_t low = 0, high = f->call_count;

		if (l->kind[i] != LINK_LAUNCH)
			continue;
		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (f->calls[middle].event < l->src[i].v)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < f->call_count && f->calls[low].event == l->src[i].v)
			take_kernel(f, &f->list[f->calls[low].product], l->dst[i].v);
	}
}

#define COUNT_LIMIT 9e18 /* largest count that fits a column, because sizes come from the file */

/* Gives each op the mean of its runs; runs without known shapes count as 0. */
static ow_status give_to_ops(struct flops *f)
{
	struct interpret *x = f->x;
	struct model *m = x->m;
	double *flops = ARENA_ARRAY(&x->scratch, double, m->op.count);
	double *bytes = ARENA_ARRAY(&x->scratch, double, m->op.count);
	uint32_t *runs = ARENA_ARRAY(&x->scratch, uint32_t, m->op.count);

	if (!flops || !bytes || !runs)
		return interpret_no_memory(x);
	for (size_t i = 0; i < f->count; i++) {
		const struct product *p = &f->list[i];
		bool half = p->backward && x->has_device;

		for (unsigned k = 0; k < (half ? 2u : 1u); k++) {
			uint32_t op = m->event.op[x->has_device ? p->work[k] : p->event].v;

			flops[op] += half ? p->flops / 2 : p->flops;
			bytes[op] += half ? p->bytes / 2 : p->bytes;
		}
	}
	for (uint32_t e = x->first_event; e < x->last_event; e++)
		runs[m->event.op[e].v]++;
	for (uint32_t op = 1; op < m->op.count; op++) {
		double each = runs[op] ? 1.0 / runs[op] : 0;

		if (!(flops[op] > 0 && flops[op] * each < COUNT_LIMIT) ||
		    !(bytes[op] >= 0 && bytes[op] * each < COUNT_LIMIT) || m->op.float_ops[op])
			continue;
		m->op.float_ops[op] = (int64_t)(flops[op] * each);
		m->op.flags[op] |= OP_INFERRED_FLOPS;
		BUILDER_SET(x->b, op, accessed, (op_id){ op }, (int64_t)(bytes[op] * each));
	}
	return builder_status(x->b);
}

ow_status interpret_torch_flops(struct interpret *x)
{
	struct flops f = { .x = x };
	ow_status status = OW_OK;

	if (!interpret_has_name(x, is_operator))
		return OW_OK;
	f.kinds = ARENA_ARRAY(&x->scratch, uint8_t, x->m->strings.count);
	if (!f.kinds)
		return interpret_no_memory(x);
	status = read_products(&f);
	if (status == OW_OK && f.count) {
		qsort(f.list, f.count, sizeof(*f.list), by_event);
		status = find_calls(&f);
		if (status == OW_OK) {
			find_kernels(&f);
			status = give_to_ops(&f);
		}
	}
	mem_free(x->mem, f.list, f.cap * sizeof(*f.list));
	mem_free(x->mem, f.calls, f.call_cap * sizeof(*f.calls));
	return status;
}
