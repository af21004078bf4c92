/* export.c: ow_export: tables of profiles as files for other programs. */
#include "api/api_int.h"
#include "opwatch/sql.h"

#include "export/export.h"

void ow_export_options_init(struct ow_export_options *options)
{
	*options = (struct ow_export_options){ .size = sizeof(*options) };
}

static ow_status take_word(const char *word, const char *const *words, size_t count,
			   const char *option, int *value, struct ow_error *err)
{
	if (!word)
		return OW_OK;
	for (size_t i = 0; i < count; i++)
		if (words[i] && strcmp(words[i], word) == 0) {
			*value = (int)i;
			return OW_OK;
		}
	return error_set(err, OW_E_USAGE, "'%s' is not a valid value of %s", word, option);
}

static ow_status take_options(const struct ow_export_options *from, struct export_options *to,
			      struct ow_error *err)
{
	static const char *const partitions[] = {
		[PARTITION_NONE] = "none", [PARTITION_RUN] = "run", [PARTITION_STEP] = "step"
	};
	static const char *const packings[] = {
		[PACKING_NONE] = "none", [PACKING_GZIP] = "gzip", [PACKING_ZSTD] = "zstd"
	};
	int partition = PARTITION_NONE, packing = PACKING_DEFAULT;

	to->format = export_format_find(from->format ? from->format : "");
	if (!to->format)
		return error_set(err, OW_E_USAGE,
				 "'%s' is not a table format; one of: parquet, ndjson, csv, arrow",
				 from->format ? from->format : "");
	OW_TRY(take_word(from->partition, partitions, ARRAY_COUNT(partitions),
			 "partition: run or step", &partition, err));
	OW_TRY(take_word(from->compress, packings, ARRAY_COUNT(packings),
			 "compress: gzip, zstd or none", &packing, err));
	to->partition = (enum export_partition)partition;
	to->packing = (enum export_packing)packing;
	to->tables = from->tables;
	to->sort = from->sort;
	to->file_bytes = from->file_bytes;
	to->bigquery = from->bigquery;
	to->overwrite = from->overwrite;
	to->progress = from->progress;
	to->progress_arg = from->progress_arg;
	return OW_OK;
}

static ow_status run_export(const struct ow_run *runs, size_t count,
			    const struct export_options *options, struct export_summary *summary,
			    struct ow_error *err)
{
	struct mem *mem = &runs[0].profile->mem;
	struct table_run *relations = mem_zalloc(mem, count * sizeof(*relations));
	ow_status status;

	if (!relations)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++)
		relations[i] =
			(struct table_run){ runs[i].profile->m, runs[i].name, (uint32_t)i + 1 };
	status = export_tables(relations, count, options, mem, summary, err);
	mem_free(mem, relations, count * sizeof(*relations));
	return status;
}

ow_status ow_export(const struct ow_run *runs, size_t count,
		    const struct ow_export_options *options, const char *dir,
		    struct ow_export_summary *summary, struct ow_error *err)
{
	struct export_options inside = { .dir = dir };
	struct ow_export_options full;
	struct export_summary sums;
	struct ow_export_summary out;

	error_clear(err);
	if (!count)
		return error_set(err, OW_E_USAGE, "there is no run to export");
	for (size_t i = 0; i < count; i++)
		OW_TRY(api_check_frozen(runs[i].profile, err));
	ow_export_options_init(&full);
	SIZED_IN(&full, options);
	OW_TRY(take_options(&full, &inside, err));
	inside.memory_limit = runs[0].profile->options.memory_limit;
	OW_TRY(run_export(runs, count, &inside, &sums, err));
	out = (struct ow_export_summary){ sizeof(out), sums.tables, sums.files, sums.rows,
					  sums.bytes };
	SIZED_OUT(summary, &out);
	return OW_OK;
}
