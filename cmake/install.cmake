# `cmake --install`: library, header, binary under both names, pkg-config file, man pages, completions.
# Files that are not written yet are passed over, so the build works from the first day of a part.
set(man_dir ${PROJECT_SOURCE_DIR}/docs/man)
set(completion_dir ${PROJECT_SOURCE_DIR}/completions)

if(TARGET libopwatch)
	install(TARGETS libopwatch
		LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
		PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/opwatch)
	# The pkg-config file finds its prefix from where it lies, so `make install PREFIX=...` needs no new configure.
	set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
	string(REGEX REPLACE "[^/]+" ".." pc_to_prefix ${pc_dir})
	configure_file(cmake/opwatch.pc.in opwatch.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/opwatch.pc DESTINATION ${pc_dir})
endif()
if(TARGET opwatch)
	install(TARGETS opwatch RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
	install(FILES ${PROJECT_BINARY_DIR}/tfprof DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# `make dist` carries its libraries along: they are found beside the program, and what they need as well (hence no RUNPATH, which
# does not pass on). In a wheel they lie in libs.
option(OPWATCH_BUNDLED "Look for libraries beside the program first" OFF)
if(OPWATCH_BUNDLED)
	set_target_properties(opwatch PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/opwatch;$ORIGIN/libs")
	set_target_properties(libopwatch PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/opwatch;$ORIGIN/libs")
	target_link_options(opwatch PRIVATE -Wl,--disable-new-dtags)
	target_link_options(libopwatch PRIVATE -Wl,--disable-new-dtags)
endif()

# Only opwatch itself loads the recorder.
if(TARGET recorder)
	install(TARGETS recorder LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/opwatch)
endif()

# DuckDB goes beside libopwatch, into a folder of our own, when it is the one that tools/setup fetched.
if(DUCKDB_LIBRARY MATCHES "^${PROJECT_SOURCE_DIR}/build/deps/")
	install(FILES ${DUCKDB_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR}/opwatch)
	install(FILES ${PROJECT_SOURCE_DIR}/build/deps/duckdb/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.duckdb OPTIONAL)
endif()

file(GLOB man_pages CONFIGURE_DEPENDS ${man_dir}/*.1)
install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# install_completion(file directory name...): one copy per name, so that tfprof completes, too.
function(install_completion file directory)
	if(EXISTS ${completion_dir}/${file})
		foreach(name ${ARGN})
			install(FILES ${completion_dir}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${directory} RENAME ${name})
		endforeach()
	endif()
endfunction()
install_completion(opwatch.bash bash-completion/completions opwatch tfprof)
install_completion(_opwatch zsh/vendor-completions _opwatch)
install_completion(opwatch.fish fish/vendor_completions.d opwatch.fish)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# --- make deb ------------------------------------------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The opwatch authors <opwatch@localhost>")
set(CPACK_PACKAGE_FILE_NAME opwatch_${PROJECT_VERSION})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # Depends from the libraries really linked
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
if(OPWATCH_HAVE_CURL) # loaded when a server is named, so it is not among the linked libraries
	set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4 | libcurl3-gnutls")
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Where did the time and memory of a machine-learning program go? Reads
TensorFlow graphs, run metadata, profiles, event files and checkpoints and
answers by scope, graph, operation and line of code. Under the name tfprof
it is a drop-in replacement of the original command line.")
include(CPack)
