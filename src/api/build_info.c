/*
 * build_info.c: lists the parts of this build: views, importers, sinks, rules and optional libraries. Called by the
 * command line's help, the shells, the Python package and `opwatch --version`.
 */
#include "api/api_int.h"

#include "opwatch_config.h"

bool api_part_info(struct ow_part_info *info, const char *name, const char *summary,
		   const char *detail)
{
	const struct ow_part_info part = { sizeof(part), name, summary, detail };

	SIZED_OUT(info, &part);
	return true;
}

bool ow_view_info(size_t index, struct ow_part_info *info)
{
	if (index >= view_count)
		return false;
	return api_part_info(info, views[index]->name, views[index]->summary,
			     views[index]->tree ? "tree" : "");
}

bool ow_importer_info(size_t index, struct ow_part_info *info)
{
	if (index >= importer_count)
		return false;
	return api_part_info(info, importers[index]->name, importers[index]->summary,
			     importers[index]->extensions);
}

bool ow_sink_info(size_t index, struct ow_part_info *info)
{
	if (index >= sink_count)
		return false;
	return api_part_info(info, sinks[index]->name, sinks[index]->summary,
			     sinks[index]->extension);
}

bool ow_rule_info(size_t index, struct ow_part_info *info)
{
	if (index >= rule_count)
		return false;
	return api_part_info(info, rules[index]->name, rules[index]->summary,
			     rules[index]->checker ? rules[index]->checker : "");
}

const char *ow_version(void)
{
	return OPWATCH_VERSION;
}

bool ow_build_part(size_t index, struct ow_part_info *info)
{
	static const struct {
		const char *name, *summary;
	} parts[] = {
		{ "gzip", OPWATCH_HAVE_LIBDEFLATE ? "zlib and libdeflate" : "zlib only" },
		{ "zstd", OPWATCH_HAVE_ZSTD ? "libzstd" : "not found when this was built" },
		{ "line editing",
		  OPWATCH_HAVE_LIBEDIT ? "libedit" : "not found when this was built" },
		{ "Nsight Systems",
		  OPWATCH_HAVE_SQLITE ? "exports of Nsight Systems, read with the SQLite library"
				      : "sqlite3.h not found when this was built" },
		{ "SQL", OPWATCH_HAVE_DUCKDB ? "DuckDB, loaded when asked for"
					     : "duckdb.h not found when this was built" },
		{ "servers", OPWATCH_HAVE_CURL ? "ClickHouse, over libcurl (loaded when asked for)"
					       : "libcurl was not found when this was built" },
		{ "profilers of jobs", OPWATCH_HAVE_NGHTTP2
					       ? "gRPC, by libnghttp2"
					       : "libnghttp2 was not found when this was built" },
		{ "native stacks",
		  OPWATCH_HAVE_LIBDW ? "libdw" : "libdw was not found when this was built" },
		{ "web server", OPWATCH_HAVE_MICROHTTPD
					? "libmicrohttpd"
					: "libmicrohttpd was not found when this was built" },
		{ "regular expressions", "built in, RE2 syntax, linear time" },
	};

	if (index >= ARRAY_COUNT(parts))
		return false;
	return api_part_info(info, parts[index].name, parts[index].summary, "");
}
