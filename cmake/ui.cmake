# Builds the web page (ui/) with esbuild and makes one C file of it (src/page/assets.h). tools/setup-ui fetches esbuild and
# the libraries into build/deps/ui; without them the list of files is empty, and `opwatch ui` says what is missing. Also
# run as a script, with -P: then it compresses the files in DIR and writes OUT.
if(CMAKE_SCRIPT_MODE_FILE)
	set(text "/* Made from ui/ by cmake/ui.cmake. */\n#include \"page/assets.h\"\n\n")
	set(table "")
	set(count 0)
	foreach(entry "index.html:text/html. charset=utf-8" "app.js:text/javascript. charset=utf-8" "app.css:text/css. charset=utf-8"
		"icon.svg:image/svg+xml")
		string(REGEX MATCH "^[^:]+" name ${entry})
		string(REGEX REPLACE "^[^:]+:" "" type ${entry})
		string(REPLACE ". " "; " type "${type}")
		if(NOT DIR OR NOT EXISTS ${DIR}/${name})
			continue()
		endif()
		execute_process(COMMAND gzip -9nkf ${DIR}/${name} COMMAND_ERROR_IS_FATAL ANY)
		file(READ ${DIR}/${name}.gz bytes HEX)
		string(LENGTH "${bytes}" length)
		math(EXPR length "${length} / 2")
		string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
		string(APPEND text "static const unsigned char bytes_${count}[] = { ${bytes} };\n")
		file(SHA256 ${DIR}/${name} sum)
		string(APPEND table "\t{ \"/${name}\", \"${type}\", bytes_${count}, ${length}, \"${sum}\" },\n")
		math(EXPR count "${count} + 1")
	endforeach()
	if(count EQUAL 0)
		set(table "\t{ \"\", \"\", (const unsigned char *)\"\", 0, \"\" },\n")
	endif()
	string(APPEND text "\nconst struct page_asset page_assets[] = {\n${table}};\nconst size_t page_asset_count = ${count};\n")
	file(WRITE ${OUT} "${text}")
	return()
endif()

option(OPWATCH_WITH_UI "Build the web page if tools/setup-ui fetched what it needs" ON)
set(ui_source ${PROJECT_BINARY_DIR}/ui_assets.c)
set(ui_modules ${PROJECT_SOURCE_DIR}/build/deps/ui/node_modules)
file(GLOB ui_esbuild ${ui_modules}/@esbuild/linux-*/bin/esbuild)
if(NOT EXISTS ${PROJECT_SOURCE_DIR}/build/deps/ui/fetched.json)
	set(ui_esbuild "")
endif()
if(OPWATCH_WITH_UI AND ui_esbuild)
	list(GET ui_esbuild 0 ui_esbuild)
	set(ui_dir ${PROJECT_BINARY_DIR}/ui)
	file(GLOB_RECURSE ui_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ui/src/*)
	add_custom_command(OUTPUT ${ui_source}
		COMMAND ${CMAKE_COMMAND} -E make_directory ${ui_dir}
		COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${ui_modules} ${ui_esbuild} ${PROJECT_SOURCE_DIR}/ui/src/app.tsx
			--bundle --minify --target=es2021 --jsx=automatic --jsx-import-source=preact --legal-comments=none
			--log-level=warning --outfile=${ui_dir}/app.js
		COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/ui/src/index.html ${PROJECT_SOURCE_DIR}/ui/src/icon.svg ${ui_dir}
		COMMAND ${CMAKE_COMMAND} -DDIR=${ui_dir} -DOUT=${ui_source} -P ${CMAKE_CURRENT_LIST_FILE}
		DEPENDS ${ui_files} ${PROJECT_SOURCE_DIR}/ui/package-lock.json ${CMAKE_CURRENT_LIST_FILE}
		COMMENT "Building the web page" VERBATIM)
else()
	add_custom_command(OUTPUT ${ui_source}
		COMMAND ${CMAKE_COMMAND} -DDIR= -DOUT=${ui_source} -P ${CMAKE_CURRENT_LIST_FILE}
		DEPENDS ${CMAKE_CURRENT_LIST_FILE}
		COMMENT "No web page: tools/setup-ui did not run, or npm is missing" VERBATIM)
endif()
