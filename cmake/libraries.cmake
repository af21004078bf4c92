# Finds the libraries; zlib is required, the rest optional. The code learns what was found
# in opwatch_config.h (OPWATCH_HAVE_*), and to the linker through the target opwatch_libraries.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)

add_library(opwatch_libraries INTERFACE)
target_link_libraries(opwatch_libraries INTERFACE PkgConfig::ZLIB Threads::Threads m)

# opwatch_optional(NAME module): sets OPWATCH_HAVE_NAME and links the module if pkg-config knows it.
function(opwatch_optional name module)
	option(OPWATCH_WITH_${name} "Use ${module} if it is there" ON)
	set(OPWATCH_HAVE_${name} 0 PARENT_SCOPE)
	if(NOT OPWATCH_WITH_${name})
		return()
	endif()
	pkg_check_modules(${name} IMPORTED_TARGET ${module})
	if(${name}_FOUND)
		set(OPWATCH_HAVE_${name} 1 PARENT_SCOPE)
		target_link_libraries(opwatch_libraries INTERFACE PkgConfig::${name})
	endif()
endfunction()
opwatch_optional(LIBDEFLATE libdeflate)
opwatch_optional(ZSTD libzstd)
opwatch_optional(LIBEDIT libedit)
opwatch_optional(NGHTTP2 libnghttp2)
opwatch_optional(SQLITE sqlite3)
opwatch_optional(LIBDW libdw)

# DuckDB is not linked: the header is needed here, the library when a query is asked. Both are where tools/setup put
# them, under DUCKDB_ROOT, or in the system.
option(OPWATCH_WITH_DUCKDB "Build SQL if duckdb.h is there" ON)
option(OPWATCH_DUCKDB_INTERNALS "Call functions of the tried DuckDB version that its C interface lacks (docs/decisions/sql.md)" ON)
set(DUCKDB_ROOT "$ENV{DUCKDB_ROOT}" CACHE PATH "Where include/duckdb.h and lib/libduckdb.so are")
set(OPWATCH_HAVE_DUCKDB 0)
if(OPWATCH_WITH_DUCKDB)
	set(duckdb_roots ${DUCKDB_ROOT} ${PROJECT_SOURCE_DIR}/build/deps/duckdb)
	find_path(DUCKDB_INCLUDE_DIR duckdb.h HINTS ${duckdb_roots} PATH_SUFFIXES include NO_CACHE)
	find_library(DUCKDB_LIBRARY duckdb HINTS ${duckdb_roots} PATH_SUFFIXES lib NO_CACHE)
	if(DUCKDB_INCLUDE_DIR)
		set(OPWATCH_HAVE_DUCKDB 1)
		if(OPWATCH_DUCKDB_INTERNALS)
			set_source_files_properties(${PROJECT_SOURCE_DIR}/src/sql/duckdb_lib.c PROPERTIES
				COMPILE_DEFINITIONS OPWATCH_DUCKDB_INTERNALS)
		endif()
		target_include_directories(opwatch_libraries SYSTEM INTERFACE ${DUCKDB_INCLUDE_DIR})
		target_link_libraries(opwatch_libraries INTERFACE ${CMAKE_DL_LIBS})
	endif()
	if(NOT DUCKDB_LIBRARY)
		set(DUCKDB_LIBRARY "") # NOTFOUND is not a path
	else()
		# Found beside the program that was built, as in an installation.
		file(CREATE_LINK ${DUCKDB_LIBRARY} ${PROJECT_BINARY_DIR}/libduckdb.so SYMBOLIC)
	endif()
endif()

# libcurl is opened when the first server is named (src/push/curl_api.c): its headers are enough here.
option(OPWATCH_WITH_CURL "Use libcurl if it is there" ON)
set(OPWATCH_HAVE_CURL 0)
if(OPWATCH_WITH_CURL)
	pkg_check_modules(CURL libcurl)
	if(CURL_FOUND)
		set(OPWATCH_HAVE_CURL 1)
		target_include_directories(opwatch_libraries INTERFACE ${CURL_INCLUDE_DIRS})
		target_link_libraries(opwatch_libraries INTERFACE ${CMAKE_DL_LIBS})
	endif()
endif()

# libmicrohttpd is opened when a server is started (src/serve/server.c): it brings a dozen libraries along, which would
# triple the time that every start of the program takes.
option(OPWATCH_WITH_MICROHTTPD "Use libmicrohttpd if it is there" ON)
set(OPWATCH_HAVE_MICROHTTPD 0)
if(OPWATCH_WITH_MICROHTTPD)
	pkg_check_modules(MICROHTTPD libmicrohttpd)
	if(MICROHTTPD_FOUND)
		set(OPWATCH_HAVE_MICROHTTPD 1)
		target_include_directories(opwatch_libraries INTERFACE ${MICROHTTPD_INCLUDE_DIRS})
		target_link_libraries(opwatch_libraries INTERFACE ${CMAKE_DL_LIBS})
	endif()
endif()

configure_file(cmake/opwatch_config.h.in opwatch_config.h)
