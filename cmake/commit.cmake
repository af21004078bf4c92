# The commit for `opwatch --version`: commit.h is written before each build, and only when it changed. It is part of the program alone, so
# that a new commit compiles one file. Sources without git (a tarball) have no commit.
find_package(Git QUIET)
add_custom_target(commit
	COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DGIT=${GIT_EXECUTABLE} -DTO=${PROJECT_BINARY_DIR}/commit.h
		-P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake
	BYPRODUCTS ${PROJECT_BINARY_DIR}/commit.h
	COMMENT "" VERBATIM)
# Also now, for tools that only read compile_commands.json.
execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DGIT=${GIT_EXECUTABLE} -DTO=${PROJECT_BINARY_DIR}/commit.h
	-P ${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake)
if(TARGET opwatch)
	add_dependencies(opwatch commit)
endif()
