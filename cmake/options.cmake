# Compiler options of every target, carried by opwatch_options: warnings, include roots, sanitizers.
add_library(opwatch_options INTERFACE)

# Includes read "base/arena.h", <opwatch/opwatch.h> and "opwatch_config.h".
target_include_directories(opwatch_options INTERFACE
	${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR})
target_compile_definitions(opwatch_options INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)

target_compile_options(opwatch_options INTERFACE
	-Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wundef
	-fno-strict-aliasing -fstack-protector-strong)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
	# A range check that is always true on this machine's size_t is still wanted on the next one.
	target_compile_options(opwatch_options INTERFACE -Wno-type-limits)
else()
	# clang asks for a format attribute on every static helper that takes a va_list; gcc's check is enough.
	target_compile_options(opwatch_options INTERFACE -Wno-format-nonliteral)
endif()
if(OPWATCH_WERROR)
	target_compile_options(opwatch_options INTERFACE -Werror)
endif()

target_link_options(opwatch_options INTERFACE -Wl,--as-needed -Wl,-z,relro)

if(OPWATCH_SANITIZE)
	set(sanitize -fsanitize=${OPWATCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	target_compile_options(opwatch_options INTERFACE ${sanitize})
	target_link_options(opwatch_options INTERFACE ${sanitize})
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
	target_compile_definitions(opwatch_options INTERFACE _FORTIFY_SOURCE=2)
endif()

if(OPWATCH_FUZZ)
	if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
		message(FATAL_ERROR "libFuzzer needs clang: configure with --preset fuzz")
	endif()
	# Coverage in every object; the main of libFuzzer is linked into the fuzz targets alone.
	target_compile_options(opwatch_options INTERFACE -fsanitize=fuzzer-no-link)
	target_compile_definitions(opwatch_options INTERFACE OPWATCH_FUZZ) # checksums of opwatch files count as right
	target_link_options(opwatch_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
