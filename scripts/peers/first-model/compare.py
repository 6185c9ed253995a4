#!/usr/bin/env python3
"""Compares the student of docs/first-model.md with scikit-learn's LabelSpreading on the same labels.

    pip install -r scripts/peers/first-model/requirements.txt
    python scripts/peers/first-model/compare.py FOLDER [SPEED]

FOLDER holds the files of the guide: trial/, queries.csv, labels.csv and student.safetensors; SPEED is the program (default: speed). One
Markdown table on standard output. LabelSpreading sees the pool and predicts the test images from it. Its setting is the best of seven on
the test images, which favours it.
"""

import csv
import io
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading

PEERS = [(f"{n} neighbours", {"kernel": "knn", "n_neighbors": n}) for n in (7, 5, 10, 20)]
PEERS += [(f"rbf, gamma {gamma}", {"kernel": "rbf", "gamma": gamma}) for gamma in (0.02, 0.05, 0.1)]


def pixels(path):
    return np.asarray(Image.open(path).convert("L"), dtype=np.float64).ravel() / 255


def main():
    folder = Path(sys.argv[1])
    speed = sys.argv[2] if len(sys.argv) > 2 else "speed"
    names = sorted(path.name for path in (folder / "trial/public").iterdir())
    queries = [row["name"] for row in csv.DictReader(open(folder / "queries.csv", newline=""))]
    labels = np.full(len(names), -1)
    for row in csv.DictReader(open(folder / "labels.csv", newline="")):
        if row["label"]:
            labels[names.index(queries[int(row["query"])])] = int(row["label"])
    pool = np.stack([pixels(folder / "trial/public" / name) for name in names])
    files = sorted((folder / "trial/test").glob("*/*.png"))
    test, truth = np.stack([pixels(path) for path in files]), np.array([int(path.parent.name) for path in files])

    results = []
    for name, arguments in PEERS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            model = LabelSpreading(max_iter=1000, **arguments).fit(pool, labels)
            results.append((np.mean(model.predict(test) == truth), f"LabelSpreading, {name}"))
    command = [speed, "predict", "--model", folder / "student.safetensors", folder / "trial/test", "--format", "csv", "--quiet"]
    lines = csv.DictReader(io.StringIO(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    right = [row["label"] == Path(row["image"]).parent.name for row in lines]
    assert len(right) == len(files), "a prediction for every test image"
    print(f"{(labels >= 0).sum()} labels, {len(names)} images in the pool, {len(files)} test images\n")
    print("| method | accuracy |\n|---|---:|")
    for accuracy, name in [(np.mean(right), "speed student train"), max(results)]:
        print(f"| {name} | {100 * accuracy:.1f} % |")


if __name__ == "__main__":
    main()
