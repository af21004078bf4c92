"""The build backend of the Python package (PEP 517, PEP 660): standard library only, nothing to download.

`pip install .` calls build_wheel: CMake builds libopwatch and the extension module, and both go into one wheel,
which serves CPython 3.8 and later (limited API). Settings, as `--config-settings name=value` or environment:

    build-dir   OPWATCH_BUILD   take what was built there already (a CMake build directory); else build/python
    cmake-args  OPWATCH_CMAKE   more arguments for CMake's configure, separated by spaces
    duckdb      OPWATCH_WHEEL_DUCKDB   "no": leave DuckDB, which answers SQL, out of the wheel (70 MB)
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
    if duckdb.exists() and setting(config_settings, "duckdb", "OPWATCH_WHEEL_DUCKDB") != "no":
        files.append((f"{NAME}/{duckdb.name}", duckdb.read_bytes(), 0o755))
    return write_wheel(wheel_directory, files)


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
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not (folder / "CMakeCache.txt").exists() else []
    run(cmake, "-S", ROOT, "-B", folder, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DOPWATCH_TESTS=OFF",
        "-DOPWATCH_PYTHON=ON", f"-DOPWATCH_PYTHON_INCLUDE={include}",
        *shlex.split(setting(config_settings, "cmake-args", "OPWATCH_CMAKE")))
    run(cmake, "--build", folder, "-j", str(os.cpu_count() or 2), "--target", "libopwatch", "python_extension")
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


def platform_tag():
    return re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())


def wheel_tag():
    return f"cp38-abi3-{platform_tag()}"


def metadata_files():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    metadata = (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\nSummary: {SUMMARY}\n"
                "License: Apache-2.0\nRequires-Python: >=3.8\nProvides-Extra: pandas\n"
                "Requires-Dist: pandas ; extra == 'pandas'\n"
                f"Description-Content-Type: text/markdown\n\n{readme}")
    wheel = f"Wheel-Version: 1.0\nGenerator: opwatch\nRoot-Is-Purelib: false\nTag: {wheel_tag()}\n"
    return {"METADATA": metadata.encode(), "WHEEL": wheel.encode(), "LICENSE": (ROOT / "LICENSE").read_bytes(),
            "top_level.txt": f"{NAME}\n".encode()}


def write_wheel(directory, files):
    name = f"{NAME}-{version()}-{wheel_tag()}.whl"
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
        for path, data in metadata_files().items():
            add(f"{dist_info()}/{path}", data)
        records.append(f"{dist_info()}/RECORD,,")
        info = zipfile.ZipInfo(f"{dist_info()}/RECORD", (1980, 1, 1, 0, 0, 0))
        info.external_attr = 0o100644 << 16
        wheel.writestr(info, "\n".join(records) + "\n")
    return name
