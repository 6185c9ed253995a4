#!/usr/bin/env python3
"""Compares other private learners on the vectors of one encoder, with a trusted curator who holds all pictures; the unit is one picture.

    pip install -r scripts/peers/photographs/requirements.txt
    python scripts/peers/photographs/compare.py ENCODER.onnx FOLDER [CACHE.npz]

FOLDER has train/CLASS/* and test/CLASS/*, the encoder reads pictures from 0 to 1. 9000 random training pictures are public, without
labels; the others are private. Mirror images are not used. One seed; one Markdown table on standard output.
CACHE keeps the vectors (10 minutes for CIFAR-10).

- class means: the sums of the vectors of every class, each vector of length 1, with Gaussian noise (sensitivity 2 for a
  replaced picture, because two vectors of a class may be opposite); the nearest mean decides.
- a linear layer by full-batch noisy gradient descent: DP-SGD without sampling, whose Gaussian composition is exact (Abadi et al.
  2016; sensitivity 2C/n for a replaced picture). Steps and rate are the best of six on 5000 private pictures, which favours it.
- Private-kNN (Zhu et al. 2020): every query samples a tenth of the private pictures, its 200 nearest ones vote, with Gaussian noise; a
  logistic regression learns from the answers. Its epsilon is for an added or removed picture.
"""

import hashlib
import sys
from pathlib import Path

import dp_accounting
import numpy as np
import onnxruntime
from dp_accounting import rdp
from PIL import Image
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

DELTA, SEEDS, POOL, COMPONENTS = 1e-5, 1, 9000, 128
SAMPLED, NEAREST, QUERIES = 0.1, 200, 1000


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def vectors(encoder, folder):
    session = onnxruntime.InferenceSession(encoder, providers=["CPUExecutionProvider"])
    source = session.get_inputs()[0]
    side = tuple(source.shape[:1:-1])
    found = {}
    for part in ("train", "test"):
        files = sorted(Path(folder, part).glob("*/*"))
        names = sorted({path.parent.name for path in files})
        found[part + "_labels"] = np.array([names.index(path.parent.name) for path in files])
        rows = []
        for start in range(0, len(files), 50):
            pictures = [Image.open(path).convert("RGB").resize(side, Image.BILINEAR) for path in files[start : start + 50]]
            batch = np.stack([np.asarray(picture) for picture in pictures]).transpose(0, 3, 1, 2).astype("f4") / 255
            rows.append(session.run(None, {source.name: batch})[0].reshape(len(batch), -1))
            print(f"\r{part}: {start} of {len(files)}", end="", file=sys.stderr)
        found[part] = np.concatenate(rows)
    return found


def gaussian(epsilon, sensitivity):
    """The standard deviation of the analytic Gaussian mechanism (Balle and Wang 2018)."""
    s = sensitivity
    delta = lambda g: norm.cdf(s / (2 * g) - epsilon * g / s) - np.exp(epsilon) * norm.cdf(-s / (2 * g) - epsilon * g / s)
    return brentq(lambda g: delta(g) - DELTA, 0.05 * s, 1e5 * s)


def class_means(data, epsilon, random):
    private, labels, _, test, truth = data
    sums = np.stack([private[labels == c].sum(0) for c in range(truth.max() + 1)])
    means = unit(sums + random.normal(0, gaussian(epsilon, 2), sums.shape))
    return np.mean((test @ means.T).argmax(1) == truth)


def noisy_descent(data, epsilon, random, steps, rate, clip=1.0):
    private, labels, _, test, truth = data
    n, classes = len(private), truth.max() + 1
    noise = gaussian(epsilon, 2 * clip * steps**0.5) / n
    targets, weights, average = np.eye(classes)[labels], np.zeros((private.shape[1], classes)), 0
    for step in range(steps):
        logits = private @ weights * 8
        p = np.exp(logits - logits.max(1, keepdims=True))
        error = p / p.sum(1, keepdims=True) - targets
        # The gradient of a picture is its vector, of length 1, times its error.
        error *= np.minimum(1, clip / np.linalg.norm(error, axis=1, keepdims=True))
        weights -= rate * (private.T @ error / n + random.normal(0, noise, weights.shape))
        average = average + weights
    return np.mean((test @ average).argmax(1) == truth)


def tuned_descent(data, epsilon, random):
    private, labels, pool, test, truth = data
    held = (private[5000:], labels[5000:], pool, private[:5000], labels[:5000])
    settings = [(steps, rate) for steps in (20, 60) for rate in (0.5, 2, 8)]
    best = max(settings, key=lambda setting: noisy_descent(held, epsilon, random, *setting))
    return noisy_descent(data, epsilon, random, *best)


def knn_noise(epsilon):
    """The noise of QUERIES sampled Gaussian queries, by RDP. An added or removed picture changes at most two counts by 1 each: it may
    push another one out of the nearest. The accountant covers this relation only."""
    def spent(sigma):
        accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
        event = dp_accounting.PoissonSampledDpEvent(SAMPLED, dp_accounting.GaussianDpEvent(sigma / 2**0.5))
        return accountant.compose(event, QUERIES).get_epsilon(DELTA)
    return brentq(lambda sigma: spent(sigma) - epsilon, 0.5, 2000, xtol=0.05) + 0.05


def private_knn(data, random, noise):
    private, labels, pool, test, truth = data
    classes, queries = truth.max() + 1, random.permutation(len(pool))[:QUERIES]
    answers = []
    for query in queries:
        some = np.flatnonzero(random.random(len(private)) < SAMPLED)
        near = some[np.argpartition(-(private[some] @ pool[query]), NEAREST)[:NEAREST]]
        answers.append((np.bincount(labels[near], minlength=classes) + random.normal(0, noise, classes)).argmax())
    return LogisticRegression(C=1, max_iter=300).fit(pool[queries], answers).score(test, truth)


def main():
    encoder, folder, cache = sys.argv[1], sys.argv[2], Path((sys.argv + ["vectors.npz"])[3])
    key = f"{hashlib.sha256(Path(encoder).read_bytes()).hexdigest()} {Path(folder).resolve()}"
    if not cache.exists():
        np.savez(cache, key=key, **vectors(encoder, folder))
    all_of = np.load(cache)
    if all_of.get("key") != key:
        raise SystemExit(f"{cache}: expected the vectors of {key}, found those of {all_of.get('key')}: remove the file")
    results = {}
    for seed in range(1, SEEDS + 1):
        random = np.random.default_rng(seed)
        order = random.permutation(len(all_of["train"]))
        train, test = unit(all_of["train"])[order], unit(all_of["test"])
        mean = train[:POOL].mean(0)
        # Components of the public pictures only.
        pca = PCA(COMPONENTS, random_state=seed, svd_solver="randomized").fit(train[:POOL] - mean)
        place = lambda rows: unit(pca.transform(rows - mean))
        data = (place(train[POOL:]), all_of["train_labels"][order][POOL:], place(train[:POOL]), place(test), all_of["test_labels"])
        for epsilon in (0.1, 0.5, 2.0):
            for name, learner in (
                ("class means with noise", class_means),
                ("linear layer, noisy gradient descent", tuned_descent),
                ("Private-kNN", lambda d, e, r: private_knn(d, r, knn_noise(e))),
            ):
                results.setdefault((name, epsilon), []).append(100 * learner(data, epsilon, random))
                print(f"\rseed {seed}: {name}, epsilon {epsilon}", end="", file=sys.stderr)
    print("| learner | unit, trust | epsilon | mean | lowest |\n|---|---|---:|---:|---:|")
    for (name, epsilon), values in sorted(results.items()):
        unit_of = "added or removed" if name == "Private-kNN" else "replaced"
        print(f"| {name} | one picture {unit_of}, a trusted curator | {epsilon} | {np.mean(values):.1f} % | {min(values):.1f} % |")


if __name__ == "__main__":
    main()
