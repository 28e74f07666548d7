"""The files of the repository, as the checks see them."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (".cpp", ".h")


def files(root=ROOT, suffixes=None):
    """Tracked and new files (what git does not ignore), as paths relative to root."""
    if (root / ".git").exists():
        git = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
        listed = subprocess.run(git, cwd=root, check=True, capture_output=True, text=True)
        names = [n for n in listed.stdout.split("\0") if n]
    else:  # a release archive, or the made input of a self-test
        names = []
        for folder, folders, here in os.walk(root):
            folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
            names += [os.path.relpath(os.path.join(folder, n), root) for n in here]
    found = {Path(n) for n in names if (root / n).is_file()}
    return sorted(p for p in found if suffixes is None or p.suffix in suffixes)


def expect_failures(check, cases):
    """Proves a check can fail: each case is (made files, a word of the expected finding).

    A case whose word is None must pass.
    """
    import tempfile

    wrong = 0
    for made, word in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in made.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            found = check(Path(folder))
        good = not found if word is None else any(word in line for line in found)
        if not good:
            wrong += 1
            print(f"self-test: {sorted(made)}: expected {word!r}, found {found}")
    print(f"self-test: {len(cases) - wrong} of {len(cases)} cases as expected")
    return 1 if wrong else 0


def report(name, findings):
    for line in findings:
        print(line)
    print(f"{name}: {len(findings)} finding(s)")
    return 1 if findings else 0
