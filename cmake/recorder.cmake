# libopwatch-recorder.so, which is loaded into other people's programs: libc only, its own flags, no sanitizers. Hooks
# for accelerators are built when the headers of their interfaces are there.
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|aarch64|arm64)$")
	message(STATUS "the recorder knows x86-64 and arm64 only: it is left out")
	return()
endif()
file(GLOB recorder_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/recorder/*.c)
list(FILTER recorder_sources EXCLUDE REGEX "/hook_(opencl|cuda)\\.c$|_test\\.c$")
set(recorder_definitions)

include(CheckIncludeFile)
check_include_file(CL/cl_layer.h OPWATCH_HAVE_CL_LAYER_H)
if(OPWATCH_HAVE_CL_LAYER_H)
	list(APPEND recorder_sources ${PROJECT_SOURCE_DIR}/recorder/hook_opencl.c)
	list(APPEND recorder_definitions RECORDER_OPENCL)
endif()

# CUPTI is loaded at run time, from wherever the job has it: only its headers are needed here.
find_path(OPWATCH_CUPTI_INCLUDE cupti.h HINTS /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include ENV CUDA_HOME
	PATH_SUFFIXES include extras/CUPTI/include)
if(OPWATCH_CUPTI_INCLUDE)
	include(CheckCSourceCompiles)
	set(CMAKE_REQUIRED_INCLUDES ${OPWATCH_CUPTI_INCLUDE} /usr/local/cuda/include)
	check_c_source_compiles("#include <cupti.h>
		int main(void) { CUpti_ActivityKernel9 k; CUpti_ActivityMemset4 s; return (int)(sizeof(k) + sizeof(s)); }" OPWATCH_CUPTI_12)
	check_c_source_compiles("#include <cupti.h>
		int main(void) { CUpti_ActivityKernel10 k; CUpti_ActivityMemcpy6 c; return (int)(sizeof(k) + sizeof(c)); }" OPWATCH_CUPTI_13)
	unset(CMAKE_REQUIRED_INCLUDES)
endif()
if(OPWATCH_CUPTI_12 OR OPWATCH_CUPTI_13)
	list(APPEND recorder_sources ${PROJECT_SOURCE_DIR}/recorder/hook_cuda.c)
	list(APPEND recorder_definitions RECORDER_CUDA)
else()
	message(STATUS "no headers of CUPTI: the recorder does not see CUDA")
endif()

add_library(recorder SHARED ${recorder_sources})
set_target_properties(recorder PROPERTIES OUTPUT_NAME opwatch-recorder
	LINK_DEPENDS ${PROJECT_SOURCE_DIR}/recorder/recorder.map)
target_include_directories(recorder PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/recorder)
if(RECORDER_CUDA IN_LIST recorder_definitions)
	target_include_directories(recorder SYSTEM PRIVATE ${OPWATCH_CUPTI_INCLUDE})
endif()
target_compile_definitions(recorder PRIVATE _GNU_SOURCE ${recorder_definitions})
target_compile_options(recorder PRIVATE -O2 -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wundef
	-fno-strict-aliasing -fno-sanitize=all)
if(OPWATCH_WERROR)
	target_compile_options(recorder PRIVATE -Werror)
endif()
# Hooks run on any stack of the program, also on the smallest that a signal's handler may have. Clang does not know the option.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
	foreach(hook clock hook_cuda hook_file hook_nccl hook_opencl hook_start hook_torch text_table thread)
		set_source_files_properties(${PROJECT_SOURCE_DIR}/recorder/${hook}.c PROPERTIES
			COMPILE_OPTIONS "-Werror=stack-usage=512")
	endforeach()
endif()
target_link_options(recorder PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/recorder/recorder.map -Wl,-z,defs
	-Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -fno-sanitize=all)
target_link_libraries(recorder PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(product recorder)
