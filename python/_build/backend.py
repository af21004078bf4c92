"""The build backend of the Python package (PEP 517, PEP 660): standard library only, nothing to download.

`pip install .` calls build_wheel: CMake builds libopwatch, the extension module and the program, and all go into one wheel,
which serves CPython 3.8 and later (limited API). Settings, as `--config-settings name=value` or environment:

    build-dir   OPWATCH_BUILD   take what was built there already (a CMake build directory); else build/python
    cmake-args  OPWATCH_CMAKE   more arguments for CMake's configure, separated by spaces
    duckdb      OPWATCH_WHEEL_DUCKDB   "no": leave DuckDB, which answers SQL, out of the wheel (70 MB)
    libraries   OPWATCH_WHEEL_LIBRARIES   a folder of libraries that the wheel carries along (tools/dist)
    glibc       OPWATCH_WHEEL_GLIBC    2.34: the oldest glibc that all of it runs on, for the name of the wheel
"""
import base64
import hashlib
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "opwatch"
NAME = "opwatch"
SUMMARY = "Why is my training job slow, and what do I change? Profiles of TensorFlow, PyTorch and others"


def version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^project\(opwatch VERSION ([0-9.]+)", text, re.M)[1]


# ---- the hooks of PEP 517 and 660 ----

def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_editable = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory) / dist_info()
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in metadata_files().items():
        (folder / name).write_bytes(data)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    extension, library = build_native(config_settings)
    files = [(f"{NAME}/{path.relative_to(PACKAGE).as_posix()}", path.read_bytes(), 0o644) for path in package_files()]
    files.append((f"{NAME}/{extension.name}", stripped(extension), 0o755))
    files.append((f"{NAME}/{soname(library)}", stripped(library), 0o755))
    duckdb = library.parent / "libduckdb.so"  # where the build found it; looked for beside the library
    left_out = setting(config_settings, "duckdb", "OPWATCH_WHEEL_DUCKDB") == "no"
    if duckdb.exists() and not left_out:
        files.append((f"{NAME}/{duckdb.name}", duckdb.read_bytes(), 0o755))
    bundled = setting(config_settings, "libraries", "OPWATCH_WHEEL_LIBRARIES")
    files += bundled_libraries(bundled)
    files += programs(library.parent, bundled)
    name = write_wheel(wheel_directory, files, setting(config_settings, "glibc", "OPWATCH_WHEEL_GLIBC"))
    if not left_out and not duckdb.exists():
        say(NO_SQL)
    return name


def bundled_libraries(folder):
    """Where libopwatch of `make dist` looks for them. The recorder lies beside libopwatch."""
    if not folder:
        return []
    return [(f"{NAME}/{path.name}" if "recorder" in path.name else f"{NAME}/libs/{path.name}", path.read_bytes(), 0o755)
            for path in sorted(pathlib.Path(folder).glob("*.so*")) if path.name != "libduckdb.so"]


def programs(build, bundled):
    """The program, which the console scripts start, and the library that it loads into recorded programs."""
    wanted = ["opwatch"] if bundled else ["opwatch", "libopwatch-recorder.so"]
    return [(f"{NAME}/{name}", stripped(build / name), 0o755) for name in wanted if (build / name).is_file()]


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel with one .pth line: the build directory has links to the sources beside the extension."""
    extension, _ = build_native(config_settings)
    return write_wheel(wheel_directory, [(f"__editable__.{NAME}.pth", f"{extension.parents[1]}\n".encode(), 0o644)])


def build_sdist(sdist_directory, config_settings=None):
    """The files under version control, or, in an unpacked sdist, all but what was built."""
    base = f"{NAME}-{version()}"
    target = pathlib.Path(sdist_directory) / f"{base}.tar.gz"
    with tarfile.open(target, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in source_files():
            archive.add(ROOT / path, f"{base}/{path}", recursive=False)
        info = tarfile.TarInfo(f"{base}/PKG-INFO")
        data = metadata_files()["METADATA"]
        info.size, info.mtime = len(data), int(time.time())
        archive.addfile(info, io.BytesIO(data))
    return target.name


# ---- SQL ----

NO_SQL = ("opwatch: this package has no SQL (p.sql, p.ask, p.export to Parquet): DuckDB was not found, and could not be fetched. "
          "Run 'tools/setup sql' in the source directory (it needs npm), or set DUCKDB_ROOT, and install again; "
          "--config-settings duckdb=no leaves it out without this message.")


def say(text):
    """On the terminal: pip keeps what a build prints to itself unless it fails."""
    print(text, file=sys.stderr)
    if sys.stderr.isatty():
        return
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal:
            terminal.write("\n" + text + "\n")
    except OSError:
        pass


def fetch_duckdb(config_settings):
    """The pinned library of tools/duckdb.txt, as `make` fetches it; without npm or network the build goes on without."""
    script = ROOT / "tools" / "setup-duckdb"
    if setting(config_settings, "duckdb", "OPWATCH_WHEEL_DUCKDB") == "no" or os.environ.get("DUCKDB_ROOT") or not script.exists():
        return
    subprocess.call(["sh", str(script)], stdout=sys.stderr)


# ---- the C part ----

def setting(config_settings, name, variable):
    return (config_settings or {}).get(name) or os.environ.get(variable) or ""


def build_native(config_settings):
    """Paths of the extension module and of the library."""
    build = setting(config_settings, "build-dir", "OPWATCH_BUILD")
    folder = pathlib.Path(build).resolve() if build else ROOT / "build" / "python"
    found = native_files(folder)
    if build and found:
        return found
    cmake = shutil.which("cmake")
    if not cmake:
        raise SystemExit("opwatch: cmake is needed to build (on Debian: apt install cmake ninja-build gcc zlib1g-dev), "
                         "or point --config-settings build-dir=DIR at a build that is there")
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise SystemExit(f"opwatch: {include}/Python.h is missing (on Debian: apt install python3-dev)")
    fetch_duckdb(config_settings)
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists() else []
    run(cmake, "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DOPWATCH_TESTS=OFF",
        "-DOPWATCH_PYTHON=ON", f"-DOPWATCH_PYTHON_INCLUDE={include}",
        *shlex.split(setting(config_settings, "cmake-args", "OPWATCH_CMAKE")))
    run(cmake, "--build", folder, "-j", str(os.cpu_count() or 2), "--target", "product")
    found = native_files(folder)
    if not found:
        raise SystemExit(f"opwatch: the build in {folder} made no extension module")
    return found


def run(*command):
    command = [str(word) for word in command]
    if subprocess.call(command, stdout=sys.stderr) != 0:
        raise SystemExit("opwatch: this command failed: " + " ".join(map(shlex.quote, command)))


def native_files(folder):
    extension = folder / "python" / NAME / "_opwatch.abi3.so"
    library = folder / "libopwatch.so"
    return (extension, library.resolve()) if extension.exists() and library.exists() else None


def soname(library):
    """libopwatch.so.0.1.0 is asked for as libopwatch.so.0."""
    return ".".join(library.name.split(".")[:3])


def stripped(path):
    """Its bytes, without debug information when there is a tool for that."""
    strip = shutil.which("strip")
    if strip:
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, path.name)
            if subprocess.call([strip, "--strip-debug", "-o", copy, str(path)]) == 0:
                return pathlib.Path(copy).read_bytes()
    return path.read_bytes()


# ---- the archives ----

def package_files():
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            yield path


def source_files():
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        names = [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        names = []
    if names:
        return names
    return sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")
                  if path.is_file() and path.relative_to(ROOT).parts[0] not in ("build", "PKG-INFO", ".git")
                  and "__pycache__" not in path.parts)


def dist_info():
    return f"{NAME}-{version()}.dist-info"


def platform_tag(glibc=""):
    """linux_x86_64, or manylinux_2_34_x86_64 when the oldest glibc is known."""
    tag = re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())
    return tag.replace("linux", "manylinux_" + glibc.replace(".", "_"), 1) if glibc else tag


def wheel_tag(glibc=""):
    return f"cp38-abi3-{platform_tag(glibc)}"


ENTRY_POINTS = f"[console_scripts]\n{NAME} = {NAME}.__main__:main\ntfprof = {NAME}.__main__:tfprof\n"


def metadata_files(glibc=""):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    metadata = (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nSummary: {SUMMARY}\n"
                "License: Apache-2.0\nRequires-Python: >=3.8\nProvides-Extra: pandas\n"
                "Requires-Dist: pandas ; extra == 'pandas'\n"
                f"Description-Content-Type: text/markdown\n\n{readme}")
    wheel = f"Wheel-Version: 1.0\nGenerator: opwatch\nRoot-Is-Purelib: false\nTag: {wheel_tag(glibc)}\n"
    return {"METADATA": metadata.encode(), "WHEEL": wheel.encode(), "LICENSE": (ROOT / "LICENSE").read_bytes(),
            "entry_points.txt": ENTRY_POINTS.encode(), "top_level.txt": f"{NAME}\n".encode()}


def write_wheel(directory, files, glibc=""):
    name = f"{NAME}-{version()}-{wheel_tag(glibc)}.whl"
    records = []
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, data, mode=0o644):
            info = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same sources give the same wheel
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(data)}")

        for path, data, mode in files:
            add(path, data, mode)
        for path, data in metadata_files(glibc).items():
            add(f"{dist_info()}/{path}", data)
        records.append(f"{dist_info()}/RECORD,,")
        info = zipfile.ZipInfo(f"{dist_info()}/RECORD", (1980, 1, 1, 0, 0, 0))
        info.external_attr = 0o100644 << 16
        wheel.writestr(info, "\n".join(records) + "\n")
    return name
