"""The Python environment of the peers, created outside the repository if it is missing or its requirements changed."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def python():
    """Returns the interpreter with the packages of requirements.txt; $PEERS_VENV is the environment's folder."""
    folder = Path(os.environ.get("PEERS_VENV") or Path(tempfile.gettempdir()) / "speed-peers-venv")
    wanted, installed = HERE / "requirements.txt", folder / "requirements.txt"
    interpreter = folder / "bin/python"
    if not installed.exists() or installed.read_text() != wanted.read_text():
        note(f"installing JAX and TensorFlow into {folder}")
        venv.create(folder, with_pip=True)
        command = [interpreter, "-m", "pip", "install", "--quiet", "--requirement", wanted]
        subprocess.run(command, stdout=sys.stderr, check=True)
        installed.write_text(wanted.read_text())
    return interpreter


def note(text):
    print(text, file=sys.stderr, flush=True)
