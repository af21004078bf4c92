# Makes one C file of queries/*.sql (src/ask/queries.h) and installs them. Also run as a script, with -P: then it
# writes OUT from the files in FILES.
if(CMAKE_SCRIPT_MODE_FILE)
	set(text "/* Made from queries/ by cmake/queries.cmake. */\n#include \"ask/queries.h\"\n\n")
	set(table "")
	foreach(file ${FILES})
		get_filename_component(name ${file} NAME_WE)
		file(READ ${file} bytes HEX)
		string(LENGTH "${bytes}" length)
		math(EXPR length "${length} / 2")
		string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
		string(APPEND text "static const unsigned char ${name}_bytes[] = { ${bytes} };\n")
		string(APPEND table "\t{ \"${name}\", { (const char *)${name}_bytes, ${length} } },\n")
	endforeach()
	string(APPEND text "\nconst struct query_file query_files[] = {\n${table}};\n")
	string(APPEND text "const size_t query_file_count = sizeof(query_files) / sizeof(query_files[0]);\n")
	file(WRITE ${OUT} "${text}")
	return()
endif()

file(GLOB query_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/queries/*.sql)
set(queries_source ${PROJECT_BINARY_DIR}/queries.c)
add_custom_command(OUTPUT ${queries_source}
	COMMAND ${CMAKE_COMMAND} "-DFILES=${query_files}" -DOUT=${queries_source} -P ${CMAKE_CURRENT_LIST_FILE}
	DEPENDS ${query_files} ${CMAKE_CURRENT_LIST_FILE}
	COMMENT "Embedding the named queries" VERBATIM)
install(FILES ${query_files} DESTINATION ${CMAKE_INSTALL_DATADIR}/opwatch/queries)
