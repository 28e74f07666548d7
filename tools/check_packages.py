#!/usr/bin/python3
"""tools/packages.txt names every Debian package that building and testing use.

Looks at what was really used, not at what is installed: the headers each object was
compiled from (ninja's records), the libraries linked, the CMake packages and Python
modules asked for, and the commands our scripts call. Each belongs to a package, and
that package must be listed, or be brought by a listed one, or be part of every Debian.
What the program uses must come with role build alone: `make build` installs no more. What
the WebAssembly module uses must come with build and wasm.

    check_packages.py build/release      (looks at its neighbours asan, clang, fuzz, wasm too)
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import tree

OPTIONAL = {"ccache"}  # used when present; nothing fails without
BUILD, TEST, ANY, WASM = range(4)  # who uses a file: the program too; tests; some make
ROLES = ["build", "test", "tidy", "wasm"]  # target; the module
BEFORE = {"build": [], "test": ["build"], "tidy": ["build", "test"], "wasm": ["build"]}
ASSUMED = ["make", "apt"]  # what the user starts from, besides Debian's required packages
TEST_OBJECT = re.compile(r"_(test|bench)(_torch)?(\.dir/|$)|^fuzz_")
# A command stands at the start of a line, or behind one of these.
COMMAND = re.compile(r"(?:^\s*@?|[|;&({!]\s*|\b(?:then|do|else|if|exec|env|xargs)\s+)"
                     r"(?:(?:exec|env|xargs|command -v|-\w|[A-Z_]+=\S*)\s+)*"
                     r"([a-z][\w.+-]*)(?=\s|$|\))", re.MULTILINE)


class Debian:
    """The installed packages, and what apt would bring with each on a fresh machine."""

    def __init__(self):
        fields = ["Package", "Depends", "Pre-Depends", "Provides", "Essential", "Priority"]
        form = "\t".join("${%s}" % f for f in fields) + "\n"
        listed = run(["dpkg-query", "-W", "-f", form])
        self.needs, self.providers, self.base = {}, {}, set(ASSUMED)
        for line in listed.splitlines():
            name, depends, pre, provides, essential, priority = line.split("\t")
            self.needs[name] = self.names(depends) + self.names(pre)
            for virtual in self.names(provides):
                self.providers.setdefault(virtual[0], []).append(name)
            if essential == "yes" or priority == "required":
                self.base.add(name)
        self.base = self.closure(self.base)

    @staticmethod
    def names(field):
        """'a (>= 1) | b, c' -> [[a, b], [c]]"""
        groups = [g.strip() for g in field.split(",") if g.strip()]
        return [[re.split(r"[ :(]", n.strip())[0] for n in g.split("|")] for g in groups]

    def closure(self, packages):
        """With everything they depend on; of alternatives, the first that exists."""
        seen, todo = set(), list(packages)
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            for choices in self.needs.get(name, []):
                real = [c for c in choices if c in self.needs]
                virtual = [p for c in choices for p in self.providers_of(c)]
                todo += real[:1] or virtual[:1]
        return seen

    def providers_of(self, virtual):
        return self.providers.get(virtual, [])


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def owners(paths):
    """path -> package, for the files that belong to one."""
    found, spelled = {}, {}
    for path in paths:
        for form in forms(path):
            spelled.setdefault(form, path)
    names = sorted(spelled)
    for i in range(0, len(names), 500):
        for line in run(["dpkg-query", "-S", *names[i:i + 500]]).splitlines():
            package, _, path = line.partition(": ")
            if path in spelled and not package.startswith("diversion"):
                found.setdefault(spelled[path], package.split(",")[0].split(":")[0])
    return found


def forms(path):
    """The ways dpkg may know a file: links resolved or not, /usr merged or not."""
    real = str(Path(path).resolve())
    plain = str(Path(path).parent.resolve() / Path(path).name)
    for form in {str(path), real, plain}:
        yield form
        if form.startswith("/usr/"):
            yield form[4:]


def user(name):
    return TEST if TEST_OBJECT.search(name) else BUILD


def headers(build):
    """(file, who uses it) from ninja's dependency records."""
    target = ""
    for line in run(["ninja", "-C", str(build), "-t", "deps"]).splitlines():
        if line and not line.startswith(" "):
            target = line
        elif line.strip().startswith("/usr/"):
            yield line.strip(), user(target)


def libraries(build):
    """(library, who links it): what the linker reads, what the binaries then ask for."""
    text = (build / "build.ninja").read_text()
    for target, body in re.findall(r"^build (\S+): \S*LINKER\S*(.*?)\n\n", text, re.M | re.S):
        for path in re.findall(r"(/usr/\S+\.(?:a|so)(?:\.\d+)*)(?=\s|\"|$)", body):
            yield path, user(target)
    known = run(["/sbin/ldconfig", "-p"])
    table = dict(re.findall(r"^\s*(\S+) \(.*x86-64.*\) => (\S+)$", known, re.M))
    for path in build.iterdir():
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            for name in re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", str(path)])):
                if name in table:
                    yield table[name], user(path.name)


def tools(build):
    """(file, who uses it): compilers and builders of the cache, runtimes of sanitizers."""
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))
    for name in ("CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "CMAKE_AR", "CMAKE_MAKE_PROGRAM",
                 "CMAKE_COMMAND", "PYTHON"):
        if name in cache:
            yield shutil.which(cache[name]), TEST if name == "PYTHON" else BUILD
    if cache.get("LAGWISE_SANITIZE"):
        kinds = cache["LAGWISE_SANITIZE"].replace("fuzzer-no-link", "fuzzer")
        compiler = [cache["CMAKE_CXX_COMPILER"], f"-fsanitize={kinds}", "-###", "-x", "c++"]
        said = subprocess.run([*compiler, "/dev/null"], capture_output=True, text=True,
                              check=False).stderr
        yield from ((path, BUILD) for path in re.findall(r'"(/usr/\S*clang_rt\S*\.a)"', said))


def found_by_cmake(root):
    """(CMake package, who asks for it) for each find_package, whatever was switched on."""
    for path in [root / "CMakeLists.txt", *(root / "cmake").glob("*.cmake")]:
        for name in re.findall(r"find_package\((\w+)", path.read_text()):
            who = TEST if name in ("GTest", "benchmark") else BUILD
            for place in ("lib/x86_64-linux-gnu", "lib", "share"):
                for config in Path("/usr", place, "cmake").glob(f"{name}*/*onfig.cmake"):
                    yield str(config), who


def python_modules(root):
    """(module, who imports it) of the modules that do not come with Python."""
    for path in [*root.glob("python/*/*.py"), *root.glob("t*/*.py")]:
        for name in re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.M):
            module = Path("/usr/lib/python3/dist-packages", name, "__init__.py")
            if module.exists():
                yield str(module), TEST


def commands(root):
    """(program, who calls it) of the commands in our scripts."""
    texts = {}
    for path in [root / "Makefile", root / ".ci/run", *(root / "tools").glob("*"),
                 *(root / "tests").glob("*")]:
        if path.is_file() and path.suffix in ("", ".sh", ".py"):
            texts[path] = path.read_text()
    for path, text in texts.items():
        if path.suffix == ".py":
            names = re.findall(r'\[\s*"([a-z][\w.+-]*)",', text)
            names += re.findall(r'^[A-Z]+ = "([a-z][\w.+-]*)"$', text, re.M)
        else:
            text = re.sub(r"(^|\s)#.*|'[^']*'|\"[^\"$]*\"", " ", text)
            text = re.sub(r"\\\n", " ", text)
            names = COMMAND.findall(text)
            names += re.findall(r"^[A-Z]+ := ([a-z][\w.+-]*)", text, re.M)
        who = {"setup": BUILD, "stage": BUILD, "Makefile": ANY}.get(path.name, TEST)
        for name in set(names) - OPTIONAL:
            where = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
            if where:
                yield where, who


def missing(uses, lists, debian):
    """uses: package -> (an example file, who uses it)."""
    covered = {role: debian.base | debian.closure(names) for role, names in lists.items()}
    found = []
    for package, (example, who) in sorted(uses.items()):
        role = ROLES[who]
        if package not in covered[role] and package not in OPTIONAL:
            found.append(f"{package}: used by {role} ({example}), but role {role} of "
                         "tools/packages.txt does not bring it")
    return found


def roles(root):
    """role -> the packages it installs, those of the roles before it included."""
    lines = [l.split() for l in (root / "tools/packages.txt").read_text().splitlines()]
    named = [(l[0], l[1]) for l in lines if l and not l[0].startswith("#")]
    return {role: {p for r, p in named if r in [role, *BEFORE[role]]} for role in ROLES}


def used_by_module(build):
    """package -> (an example file, WASM), of the tree that tools/wasm builds."""
    if not (build / "CMakeCache.txt").exists():
        return {}
    files = {path for path, _ in headers(build)}
    return {package: (path, WASM) for path, package in owners(files).items()}


def used(build):
    """package -> (an example file, who uses it)."""
    root = tree.ROOT
    sources = [headers(build), libraries(build), tools(build), found_by_cmake(root),
               commands(root), python_modules(root)]
    for side in (build.parent / name for name in ("asan", "clang", "fuzz")):
        if (side / "CMakeCache.txt").exists():
            for source in (headers(side), libraries(side), tools(side)):
                sources.append((path, TEST) for path, _ in source)
    files = {}
    for source in sources:
        for path, who in source:
            files[path] = min(who, files.get(path, ANY))
    packages = {}
    for path, package in owners(files).items():
        packages[package] = min((packages.get(package, (path, ANY)), (path, files[path])),
                                key=lambda use: use[1])
    return packages


def self_test(debian):
    """Taking any one package that nothing else brings off the list must be noticed."""
    uses = {"libhwy-dev": ("hwy/highway.h", BUILD), "libgtest-dev": ("gtest.h", TEST)}
    full = {"build": {"libhwy-dev"}, "test": {"libhwy-dev", "libgtest-dev"}}
    no_hwy = {"build": set(), "test": {"libgtest-dev"}}
    only_test = {"build": set(), "test": {"libhwy-dev", "libgtest-dev"}}
    results = [missing(uses, lists, debian) for lists in (full, no_hwy, only_test)]
    lines = "\tpkg-config --libs x | xargs -r grep y && FOO=1 ctest\n"
    good = (not results[0] and len(results[1]) == 1 and len(results[2]) == 1
            and COMMAND.findall(lines) == ["pkg-config", "grep", "ctest"]
            and list(owners({"/usr/include/hwy/highway.h"}).values()) == ["libhwy-dev"]
            and "libhwy1" in debian.closure({"libhwy-dev"}))
    print("self-test:", "as expected" if good else f"wrong: {results}")
    return 0 if good else 1


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(self_test(Debian()))
    packages = used(Path(sys.argv[1]).resolve())
    print(f"packages: {len(packages)} in use: {' '.join(sorted(packages))}")
    module = used_by_module(Path(sys.argv[1]).resolve().parent / "wasm")
    debian, lists = Debian(), roles(tree.ROOT)
    findings = missing(packages, lists, debian) + missing(module, lists, debian)
    sys.exit(tree.report("packages", findings))
