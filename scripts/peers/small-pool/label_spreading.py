#!/usr/bin/env python3
"""Writes the fixture of `labels_spread_as_in_scikit_learn` in crates/speed-student/src/label_spreading.rs.

    pip install -r scripts/peers/small-pool/requirements.txt
    python scripts/peers/small-pool/label_spreading.py > crates/speed-student/tests/peers/label-spreading.json

The images are random, around one centre for each class, and the eight nearest images have different distances, because scikit-learn
orders equally near images arbitrarily.
"""

import json
import sys

import numpy as np
from sklearn.semi_supervised import LabelSpreading

SIDE, CLASSES, POOL, TEST = 5, 3, 60, 25
LABELLED = [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]

random = np.random.default_rng(42)
centres = random.integers(60, 196, (CLASSES, SIDE * SIDE))


def images(count):
    classes = np.arange(count) % CLASSES
    return np.clip(centres[classes] + random.normal(0, 55, (count, SIDE * SIDE)), 0, 255).astype(np.uint8)


pool, test = images(POOL), images(TEST)
for image in np.concatenate([pool, test]).astype(int):
    nearest = sorted(((pool.astype(int) - image) ** 2).sum(axis=1))[:8]
    assert len(set(nearest)) == 8, "equally near images: take another seed"

labels = np.full(POOL, -1)
for image, label in LABELLED:
    labels[image] = label
model = LabelSpreading(kernel="knn").fit(pool.astype(float), labels)
fixture = {
    "side": SIDE,
    "classes": CLASSES,
    "pool": pool.ravel().tolist(),
    "test": test.ravel().tolist(),
    "labelled": LABELLED,
    "distributions": model.label_distributions_.tolist(),
    "predictions": model.predict(test.astype(float)).tolist(),
}
json.dump(fixture, sys.stdout)
print()
