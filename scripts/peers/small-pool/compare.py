#!/usr/bin/env python3
"""Compares our student with scikit-learn's LabelSpreading on small pools with few labels, with the same images and labels for both.

    pip install -r scripts/peers/small-pool/requirements.txt
    cargo build --release
    python scripts/peers/small-pool/compare.py [--images digits] [--pools 100 400 1000] [--labels 40] [--seeds 5]

One Markdown table on standard output, progress on standard error. A task is drawn by its seed: a pool, true labels of some of its
images, and up to 2000 other images for testing. `--images digits` uses scikit-learn's 1797 digits of 8 x 8, enlarged three times;
`mnist-test` and `mnist-train` use these splits of MNIST in $SPEED_DATASETS, cut to 24 x 24. Ours is `speed run` on arrays with the default
settings of `student.method = "pseudo-labels"`, changed by `--set KEY=VALUE`. LabelSpreading sees only the pool and predicts the other
images from it. Its setting is the best of seven on the test images, which favours it.
"""

import argparse
import csv
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading

ROOT = Path(__file__).resolve().parents[3]
SIDE = 24
MEASURED = 2000
# Name and arguments; the first entry has scikit-learn's defaults for a graph of neighbours.
PEERS = [(f"{n} neighbours", {"kernel": "knn", "n_neighbors": n}) for n in (7, 5, 10, 20)]
PEERS += [(f"rbf, gamma {gamma}", {"kernel": "rbf", "gamma": gamma}) for gamma in (0.02, 0.05, 0.1)]

CONFIG = """name = "small-pool"
seed = {seed}
[data]
source = "arrays"
folder = "."
pool_images = {pool}
[ensemble]
teachers = 1
[votes]
source = "truth"
[queries]
count = {labels}
[noise]
source = "simulation"
[student]
method = "{method}"
[table]
repeats = 1
[[row]]
name = "true labels"
aggregation = "non-private"
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, nargs="+", default=[100, 400, 1000])
    parser.add_argument("--labels", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5, help="tasks of every pool")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--images", choices=["digits", "mnist-test", "mnist-train"], default="digits", help="the images that tasks are drawn from")
    parser.add_argument("--method", default="pseudo-labels", help="our student's method")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of ours")
    parser.add_argument("--speed", default=str(ROOT / "target/release/speed"), metavar="FILE", help="the program")
    parser.add_argument("--csv", metavar="FILE", help="write every task there")
    options = parser.parse_args()
    images, labels = digits() if options.images == "digits" else mnist(options.images)
    tasks = []
    for pool in options.pools:
        for seed in range(options.first, options.first + options.seeds):
            tasks.append(task(options, images, labels, pool, seed))
            print(json.dumps(tasks[-1]), file=sys.stderr, flush=True)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, tasks[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(tasks)
    print(table(options, tasks))


def digits():
    """Returns scikit-learn's digits, with every pixel enlarged to three by three, and their labels."""
    found = load_digits()
    return np.kron(found.images * 255 / 16, np.ones((1, 3, 3))).round().astype(np.uint8), found.target.astype(np.uint8)


def mnist(half):
    """Returns images of MNIST without two pixels at each side, and their labels."""
    folder, name = Path(os.environ["SPEED_DATASETS"]) / "mnist", {"mnist-train": "train", "mnist-test": "t10k"}[half]
    raw = [gzip.decompress((folder / f"{name}-{rest}-ubyte.gz").read_bytes()) for rest in ("images-idx3", "labels-idx1")]
    images = np.frombuffer(raw[0], np.uint8, offset=16).reshape(-1, 28, 28)
    return images[:, 2 : 2 + SIDE, 2 : 2 + SIDE], np.frombuffer(raw[1], np.uint8, offset=8)


def task(options, images, labels, pool, seed):
    """Trains all contestants on one task, and returns accuracies in percent."""
    order = np.random.default_rng([seed, pool]).permutation(len(images))[: pool + MEASURED]
    x, y = images[order], labels[order]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        known, ours = student(options, folder, x, y, pool, seed)
    flat = x.reshape(len(x), -1) / 255.0
    given = np.full(pool, -1)
    given[list(known)] = list(known.values())
    found = {"pool": pool, "seed": seed, **ours}
    for name, arguments in PEERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            peer = LabelSpreading(**{**arguments, "n_neighbors": min(arguments.get("n_neighbors", 7), pool - 1)}, max_iter=200)
            peer.fit(flat[:pool], given)
            guesses = np.nan_to_num(peer.predict(flat[pool:]))
        found[name] = round(100 * float(np.mean(guesses == y[pool:])), 2)
    return found


def student(options, folder, x, y, pool, seed):
    """Returns our student's given labels by pool image, its accuracy, and its core-seconds."""
    # No network trains on the training images, because true labels replace votes.
    np.save(folder / "train_images.npy", x[:1000])
    np.save(folder / "train_labels.npy", y[:1000])
    np.save(folder / "test_images.npy", x)
    np.save(folder / "test_labels.npy", y)
    config = CONFIG.format(seed=seed, pool=pool, labels=options.labels, method=options.method)
    (folder / "config.toml").write_text(config)
    before = core_seconds()
    command = [options.speed, "run", "config.toml", "--quiet", "--json", "--threads", "1"]
    for change in options.set:
        command += ["--set", change]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    seconds = core_seconds() - before
    (answers,) = folder.glob("results/small-pool/*/stages/aggregate-*/labels.csv")
    with open(answers, newline="") as file:
        known = {int(line["pool_image"]): int(line["label"]) for line in csv.DictReader(file)}
    accuracy = json.loads(run.stdout)["rows"][0]["student_mean"]
    return known, {"ours": round(100 * accuracy, 2), "core_seconds": round(seconds, 1)}


def core_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(options, tasks):
    lines = [
        "| pool | ours | lowest | LabelSpreading, 7 neighbours | LabelSpreading, its best setting | core-seconds of ours |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for pool in options.pools:
        of = [task for task in tasks if task["pool"] == pool]
        values = lambda name: [task[name] for task in of]
        cell = lambda values: f"{statistics.mean(values):.1f} ± {statistics.stdev(values) if len(values) > 1 else 0:.1f}"
        best = max((name for name, _ in PEERS), key=lambda name: statistics.mean(values(name)))
        ours, seconds = values("ours"), values("core_seconds")
        lines.append(
            f"| {pool} | {cell(ours)} | {min(ours):.1f} | {cell(values(PEERS[0][0]))} | {cell(values(best))} ({best}) |"
            f" {min(seconds):.0f} to {max(seconds):.0f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
