# Finds the libraries; zlib is required, the rest optional. What was found is told to the code
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

configure_file(cmake/opwatch_config.h.in opwatch_config.h)
