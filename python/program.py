#!python
"""Becomes the program lagwise, which lies in the installed package.

It does not import the package: that would load torch into this process, for nothing.
"""

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


def main():
    package = Path(find_spec("lagwise").origin).parent
    program = package / "bin" / "lagwise"
    built_for = next((package / "lib").glob("torch-*")).name.removeprefix("torch-")
    try:
        found = version("torch")
    except PackageNotFoundError:
        sys.exit(f"lagwise: built for torch {built_for}, but no torch is installed")
    if found.split(".")[:2] != built_for.split("."):
        sys.exit(f"lagwise: built for torch {built_for}, but torch {found} is installed")
    # The program looks for torch beside its package; another site-packages is possible.
    libraries = str(Path(find_spec("torch").origin).parent / "lib")
    if libraries != str(package.parent / "torch" / "lib"):
        before = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = f"{libraries}:{before}" if before else libraries
    os.execv(program, ["lagwise", *sys.argv[1:]])


if __name__ == "__main__":
    main()
