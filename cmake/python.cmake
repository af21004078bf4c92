# The Python package: the extension module and, beside it in the build directory, links to the package's
# files, so that PYTHONPATH=build/release/python works without an installation. Written against the limited
# API of CPython 3.8: whichever Python's headers are found, the module loads in all later ones.
option(OPWATCH_PYTHON "Build the Python package if Python's headers are there" ON)
if(NOT OPWATCH_PYTHON OR NOT TARGET libopwatch)
	return()
endif()
find_program(OPWATCH_PYTHON_PROGRAM NAMES python3 HINTS /usr/bin NO_CACHE)
if(NOT OPWATCH_PYTHON_INCLUDE AND OPWATCH_PYTHON_PROGRAM)
	execute_process(COMMAND ${OPWATCH_PYTHON_PROGRAM} -c "import sysconfig; print(sysconfig.get_paths()['include'])"
		OUTPUT_VARIABLE OPWATCH_PYTHON_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT EXISTS "${OPWATCH_PYTHON_INCLUDE}/Python.h")
	message(STATUS "Python.h was not found: the Python package is left out (tools/setup build installs it)")
	return()
endif()

file(GLOB extension_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/ext/*.c)
file(GLOB_RECURSE package_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python
	${PROJECT_SOURCE_DIR}/python/opwatch/*.py ${PROJECT_SOURCE_DIR}/python/opwatch/*.pyi
	${PROJECT_SOURCE_DIR}/python/opwatch/py.typed)
set(package_dir ${PROJECT_BINARY_DIR}/python/opwatch)

add_library(python_extension MODULE ${extension_sources})
target_compile_definitions(python_extension PRIVATE Py_LIMITED_API=0x03080000)
target_include_directories(python_extension SYSTEM PRIVATE ${OPWATCH_PYTHON_INCLUDE})
target_link_libraries(python_extension PRIVATE opwatch_options libopwatch Threads::Threads)
# Where the library is: beside (a wheel), in the build directory, in PREFIX/lib of an installation.
set_target_properties(python_extension PROPERTIES
	OUTPUT_NAME _opwatch PREFIX "" SUFFIX .abi3.so
	LIBRARY_OUTPUT_DIRECTORY ${package_dir}
	BUILD_WITH_INSTALL_RPATH ON
	INSTALL_RPATH "$ORIGIN;$ORIGIN/../..;$ORIGIN/../../../../${CMAKE_INSTALL_LIBDIR}")
foreach(file ${package_files})
	get_filename_component(folder ${PROJECT_BINARY_DIR}/python/${file} DIRECTORY)
	file(MAKE_DIRECTORY ${folder})
	file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/${file} ${PROJECT_BINARY_DIR}/python/${file} SYMBOLIC)
endforeach()
add_dependencies(product python_extension)

# Where the Python of the system looks: Debian's own below /usr, by version elsewhere. The prefix is known
# only when it is installed.
install(CODE "
	set(opwatch_python_dir lib/python3/dist-packages)
	if(NOT CMAKE_INSTALL_PREFIX STREQUAL /usr AND NOT \"${OPWATCH_PYTHON_PROGRAM}\" STREQUAL \"\")
		execute_process(COMMAND \"${OPWATCH_PYTHON_PROGRAM}\" -c
			\"import os, sys; print('lib/python%d.%d/%s' % (*sys.version_info[:2], 'dist-packages' if os.path.exists('/etc/debian_version') and sys.prefix == '/usr' else 'site-packages'))\"
			OUTPUT_VARIABLE opwatch_python_dir OUTPUT_STRIP_TRAILING_WHITESPACE)
	endif()")
install(TARGETS python_extension LIBRARY DESTINATION "\${opwatch_python_dir}/opwatch")
foreach(file ${package_files})
	get_filename_component(folder ${file} DIRECTORY)
	install(FILES ${PROJECT_SOURCE_DIR}/python/${file} DESTINATION "\${opwatch_python_dir}/${folder}")
endforeach()
