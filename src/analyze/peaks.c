/*
 * peaks.c: see peaks.h. The peaks of known devices are those of dense 16-bit matrix products and of the device's memory, from their
 * data sheets. What a GPU's plane tells (cores, clock, capability) gives the same by XProf's formula.
 */
#include "analyze/peaks.h"

/* The longest name that fits counts, so that A100 80GB is not A10. */
static const struct {
	const char *name;
	double tflops, gbytes;
} known[] = {
	{ "B200", 2250, 8000 },
	{ "H200", 989.4, 4800 },
	{ "H100 PCIe", 756, 2000 },
	{ "H100", 989.4, 3350 },
	{ "A100-SXM4-40GB", 312, 1555 },
	{ "A100-PCIE-40GB", 312, 1555 },
	{ "A100", 312, 2039 },
	{ "A30", 165, 933 },
	{ "A10G", 70, 600 },
	{ "A10", 125, 600 },
	{ "L40S", 362, 864 },
	{ "L40", 181, 864 },
	{ "L4", 121, 300 },
	{ "V100", 125, 900 },
	{ "T4", 65, 320 },
	{ "P100", 21.2, 732 },
	{ "RTX 4090", 165.2, 1008 },
	{ "RTX 3090", 71, 936 },
	{ "MI300X", 1307.4, 5300 },
	{ "MI300A", 980.6, 5300 },
	{ "MI250X", 191.5, 1638 },
	{ "MI250", 181, 1638 },
	{ "MI210", 181, 1638 },
	{ "MI100", 184.6, 1229 },
	{ "TPU v2", 23, 350 },
	{ "TPU v3", 61.5, 450 },
	{ "TPU v4", 275, 1228 },
	{ "TPU v5 Lite", 197, 819 },
	{ "TPU v5e", 197, 819 },
	{ "TPU v5p", 459, 2765 },
	{ "TPU v6 Lite", 918, 1638 },
	{ "TPU v6e", 918, 1638 },
};

bool peaks_known(struct str name, struct peaks *out)
{
	size_t longest = 0;

	for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
		size_t len = strlen(known[i].name);

		if (len <= longest || !str_has(name, str_from(known[i].name)))
			continue;
		longest = len;
		out->flops = known[i].tflops * 1e12;
		out->bytes = known[i].gbytes * 1e9;
		snprintf(out->from, sizeof(out->from), "the data sheet of %s", known[i].name);
	}
	return longest > 0;
}

/* "312T", "2.5e12"; the text behind it. */
static bool parse_rate(const char *text, double *rate, const char **rest)
{
	static const char units[] = "kMGTP";
	const char *unit;
	char *end;

	*rate = strtod(text, &end);
	if (end == text || !(*rate > 0 && *rate < 1e30))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		*rate *= 1000;
	*rest = end + (unit ? 1 : 0);
	return true;
}

ow_status peaks_parse(const char *text, struct peaks *out, struct error *err)
{
	const char *rest = text;

	*out = (struct peaks){ .from = "what was given" };
	if (peaks_known(str_from(text), out))
		return OW_OK;
	if ((*rest == ':' || parse_rate(rest, &out->flops, &rest)) &&
	    (!*rest || (*rest == ':' && parse_rate(rest + 1, &out->bytes, &rest) && !*rest)))
		return OW_OK;
	return error_set(err, OW_E_USAGE,
			 "--peak takes the name of a known device, such as A100, or operations and "
			 "bytes per second, such as 312T:2.04T, not '%s'",
			 text);
}

/* ---- what a source tells ---- */

static uint32_t find_child(const struct model *m, uint32_t parent, const char *key)
{
	for (uint32_t i = parent + 1; i < m->fact.count; i++)
		if (m->fact.parent[i].v == parent &&
		    str_eq(model_str(m, m->fact.key[i]), str_from(key)))
			return i;
	return 0;
}

static double number_of(const struct model *m, uint32_t object, const char *key)
{
	uint32_t at = find_child(m, object, key);

	if (!at)
		return 0;
	return m->fact.kind[at] == FACT_REAL ? m->fact.real[at] : (double)m->fact.number[at];
}

static struct str text_of(const struct model *m, uint32_t object, const char *key)
{
	uint32_t at = find_child(m, object, key);

	return at ? model_str(m, m->fact.text[at]) : STR("");
}

/* Float operations of one processor of a GPU in a cycle, at most; the next lower one that is known. */
static double flops_per_cycle(bool amd, double capability)
{
	static const struct {
		double capability, flops;
	} nvidia[] = { { 10, 8192 }, { 9, 4096 },   { 8.9, 1024 }, { 8.6, 1024 },
		       { 8, 2048 },  { 7.5, 1024 }, { 7, 1024 },   { 6, 256 },
		       { 5, 256 },   { 3, 384 },    { 2, 64 } },
	  gfx[] = { { 9.5, 4096 }, { 9.4, 2048 }, { 9, 1024 } };

	for (size_t i = 0; amd && i < ARRAY_COUNT(gfx); i++)
		if (capability > gfx[i].capability - 0.05)
			return gfx[i].flops;
	for (size_t i = 0; !amd && i < ARRAY_COUNT(nvidia); i++)
		if (capability > nvidia[i].capability - 0.05)
			return nvidia[i].flops;
	return 0;
}

/* The capabilities of a plane of an XSpace. */
static bool use_capabilities(const struct model *m, uint32_t object, struct peaks *out)
{
	double capability = number_of(m, object, "compute_cap_major") +
			    number_of(m, object, "compute_cap_minor") / 10;
	bool amd = str_eq(text_of(m, object, "device_vendor"), STR("AMD"));
	double tflops = number_of(m, object, "peak_teraflops_per_second");

	*out = (struct peaks){ 0 };
	if (tflops > 0) {
		out->flops = tflops * 1e12;
		out->bytes = number_of(m, object, "peak_hbm_bw_gigabytes_per_second") * 1e9;
		snprintf(out->from, sizeof(out->from), "the file: %.*s",
			 STR_ARG(str_first(text_of(m, object, "device_type_string"), 60)));
		return true;
	}
	if (capability > 0)
		out->flops = number_of(m, object, "core_count") *
			     number_of(m, object, "clock_rate") * 1e3 *
			     flops_per_cycle(amd, capability);
	out->bytes = number_of(m, object, "memory_bandwidth");
	snprintf(out->from, sizeof(out->from),
		 "the file: %.0f processors of capability %.1f at %.2f GHz",
		 number_of(m, object, "core_count"), capability,
		 number_of(m, object, "clock_rate") / 1e6);
	return out->flops > 0 || out->bytes > 0;
}

/* Names of devices that a source tells anywhere: gpu_device_name, name of a device of PyTorch's. */
static bool use_names(const struct model *m, struct peaks *out)
{
	for (uint32_t i = 1; i < m->fact.count; i++) {
		struct str key = model_str(m, m->fact.key[i]);

		if (m->fact.kind[i] == FACT_TEXT &&
		    (str_has(key, STR("device")) || str_has(key, STR("gpu")) ||
		     str_eq(key, STR("name"))) &&
		    peaks_known(model_str(m, m->fact.text[i]), out))
			return true;
	}
	for (uint32_t i = 1; i < m->device.count; i++)
		if (peaks_known(model_str(m, m->device.name[i]), out))
			return true;
	return false;
}

void peaks_find(const struct model *m, struct peaks *out)
{
	*out = (struct peaks){ 0 };
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (m->fact.kind[i] == FACT_OBJECT &&
		    str_eq(model_str(m, m->fact.key[i]), STR("capabilities")) &&
		    use_capabilities(m, i, out))
			return;
	if (!use_names(m, out))
		*out = (struct peaks){ 0 };
}
