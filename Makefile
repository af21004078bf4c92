# A thin front to CMake: every target is a line or two, the work is in CMakePresets.json and tools/.
# `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
# Passed to every configure, for example CMAKE_FLAGS=-DOPWATCH_WERROR=ON
CMAKE_FLAGS ?=

export JOBS FUZZ_SECONDS CMAKE_FLAGS

configure = cmake --preset $(1) $(CMAKE_FLAGS) >/dev/null
build = cmake --build build/$(1) -j $(JOBS) --target $(2)
ctest = tools/run-ctest ctest --preset $(1) -j $(JOBS)

all: ## build build/release/opwatch and libopwatch
	@tools/setup-ui
	@tools/setup-duckdb
	@$(call configure,release)
	@$(call build,release,product)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: setup-build setup-sql setup-ui all ## build, then look into a bundled profile
	build/release/opwatch samples/resnet.profile --no-pager
	@echo
	@echo "Next, try:"
	@echo "  build/release/opwatch op samples/resnet.profile       the costliest operations"
	@echo "  build/release/opwatch lines samples/resnet.profile    the lines that made them"
	@echo "  build/release/opwatch shell samples/resnet.profile    more questions; 'help' lists the commands"
	@echo
	@echo "The same in a browser, with a timeline, findings and the lines of code:"
	@echo "  build/release/opwatch ui samples/resnet.profile"

test: setup-build setup-sql setup-ui setup-test all ## unit, golden, property and docs tests
	@$(call build,release,tests)
	$(call ctest,release)

test-integration: setup-build setup-sql setup-ui setup-test setup-integration all ## tests that need more programs or real files
	@$(call build,release,tests)
	tools/run-ctest ctest --test-dir build/release -j $(JOBS) --output-on-failure --no-tests=ignore -L '^integration$$'

ui-dev: all ## build, then show the sample in a browser; FILES=… shows other files; rebuild and reload to see a change
	build/release/opwatch ui $(or $(FILES),samples/resnet.profile)

ui-shots: all ## pictures of every page in build/ui-shots; FILES=… of other files
	node tests/ui/shots.mjs build/ui-shots $(FILES)

golden: all ## rewrite the golden files from what the binary prints now; review the diff
	OPWATCH_UPDATE_GOLDEN=1 ctest --test-dir build/release --output-on-failure -L '^golden$$'
	git --no-pager diff --stat -- tests

screens: all ## print the first screens of all files in OPWATCH_CORPUS into build/screens.txt, to be read
	tools/screens build/release/opwatch build/screens.txt

asan: setup-build setup-sql setup-ui setup-test ## the tests under the address and undefined-behaviour sanitizers
	@$(call configure,asan)
	@$(call build,asan,product tests)
	$(call ctest,asan)

tsan: setup-build setup-sql setup-ui setup-test ## the tests under the thread sanitizer
	@$(call configure,tsan)
	@$(call build,tsan,product tests)
	$(call ctest,tsan)

fuzz: setup-build setup-check ## every importer under libFuzzer, FUZZ_SECONDS each (60)
	@$(call configure,fuzz)
	@$(call build,fuzz,fuzzers)
	tools/fuzz build/fuzz

check: setup-build setup-sql setup-ui setup-test setup-check ## format, tidy, cppcheck, headers, layers, tables, exports
	@$(call configure,debug)
	tools/check build/debug

format: setup-check ## lay out the C sources by .clang-format
	find include src recorder python tests bench -name '*.[ch]' | xargs clang-format -i

bench: setup-build setup-sql all ## speed and memory against sha256sum; prints, never fails
	@$(call build,release,gen_profile gen_trace gen_xspace load_time)
	bench/run

install: all ## install under PREFIX (/usr/local), below DESTDIR
	DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig

uninstall: all ## remove what `make install` with the same PREFIX and DESTDIR put there
	tools/uninstall build/release "$(PREFIX)" "$(DESTDIR)"

deb: setup-build setup-sql setup-deb ## build/deb/opwatch_VERSION_ARCH.deb
	@cmake --preset release -B build/deb -DCMAKE_INSTALL_PREFIX=/usr $(CMAKE_FLAGS) >/dev/null
	@$(call build,deb,product)
	cd build/deb && cpack -G DEB

dist: setup-build setup-sql setup-deb ## tarball, .deb and wheel with everything inside, in build/dist/out
	tools/dist

dist-test: ## each of them in a bare Debian 12 chroot, without compiler and network (root)
	tools/dist-test

fresh: ## `make demo` and `make test` in a clean Debian 12 chroot (root)
	tools/fresh

nightly: setup-build setup-test setup-check ## the slow ones: valgrind, gcc -fanalyzer, many jobs, kills, long fuzzing
	tools/nightly

clean: ## remove build/
	rm -rf build

# Installs what is missing, once; see tools/setup and tools/packages.txt.
setup-%:
	@tools/setup $*

# Steps of one target depend on their order; ninja and ctest are parallel inside.
.NOTPARALLEL:

.PHONY: all help demo test test-integration ui-dev ui-shots golden screens asan tsan fuzz check format bench install uninstall deb dist dist-test fresh nightly clean
