# Every src/**/x_test.c becomes one cmocka executable, in ctest as unit.<folder>.x with the label `unit`.
# `make test` builds the target `tests` first.
add_custom_target(tests)

pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
	message(STATUS "cmocka is not installed: the unit tests are left out (tools/setup test installs it)")
	return()
endif()

foreach(source ${test_sources})
	file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR}/src ${source})
	string(REGEX REPLACE "_test\\.c$" "" name ${relative})
	string(REPLACE "/" "." name ${name})
	set(target test.${name})
	add_executable(${target} EXCLUDE_FROM_ALL ${source})
	if(name MATCHES "^cli\\.")
		target_link_libraries(${target} PRIVATE cli_archive)
	endif()
	target_link_libraries(${target} PRIVATE core_archive PkgConfig::CMOCKA)
	target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests) # "support/…"
	set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unit)
	add_dependencies(tests ${target})
	add_test(NAME unit.${name} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
	set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 900
		ENVIRONMENT "OPWATCH_SRC=${PROJECT_SOURCE_DIR};OPWATCH_DUCKDB=${DUCKDB_LIBRARY}")
endforeach()
