"""The machine of a benchmark, and units of its processor that a benchmark hides from all contestants."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/examples"
HIDDEN = {"avx512": "AVX-512 and tiles hidden from all", "tiles": "tiles hidden from all"}


def hide(units):
    """Hides units, a key of HIDDEN, from all programs that are started later."""
    library = EXAMPLES / f"hide-{units}.so"
    only = ["-DTILES_ONLY"] if units == "tiles" else []
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *only, "-o", library, HERE / "hide-units.c"], check=True)
    os.environ["LD_PRELOAD"] = str(library)


def processor():
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].split(":")[1].strip() if models else "unknown processor"
    return f"{model}, {os.cpu_count()} processors"


def commit():
    git = lambda *words: subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    changed = " with changes" if git("status", "--porcelain", "-uno") else ""
    return f"{git('rev-parse', '--short', 'HEAD') or 'unknown'}{changed}"
