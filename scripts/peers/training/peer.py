"""One competitor of the benchmark, alone in its process.

    python peer.py jax|tensorflow student|student-pooled|conv-student|small|reference|reference-no-lrn|deeper
    python peer.py tensorflow ensemble FOLDER FIRST STRIDE

Reads lines with a number from standard input. For each, it makes this number of steps and prints a line of JSON; for an
ensemble, it trains every STRIDE-th of this number of teachers, from FIRST on. The environment limits its threads (set by run).
"""

import gzip
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

BATCHES = {"small": 128, "reference": 128, "reference-no-lrn": 128, "deeper": 64}


def framework(name):
    if name == "jax":
        import peer_jax

        return peer_jax
    import tensorflow as tf

    # One thread on any machine; the ensemble has one process for each core.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    import peer_tensorflow

    return peer_tensorflow


def work(module, words):
    """Returns a function that does an amount of work."""
    match words:
        case ["student"]:
            return module.student_step(pooled=False)
        case ["student-pooled"]:
            return module.student_step(pooled=True)
        case ["conv-student"]:
            return module.conv_student_step()
        case [architecture] if architecture in BATCHES:
            return module.teacher_step(architecture, BATCHES[architecture])
        case ["ensemble", folder, first, stride]:
            images, labels = mnist(Path(folder))
            first, stride = int(first), int(stride)
            train = module.ensemble(images, labels)
            return lambda teachers: float(np.mean([train(index) for index in range(first, teachers, stride)]))
    sys.exit(__doc__)


def mnist(folder):
    """Returns the training images [60000, 28, 28] and labels from the published files, compressed or not."""
    read = lambda name: next(folder.rglob(f"train-{name}-ubyte*"))
    load = lambda path: (gzip.open if path.suffix == ".gz" else open)(path, "rb").read()
    images = np.frombuffer(load(read("images-idx3")), np.uint8, offset=16).reshape(-1, 28, 28)
    return images, np.frombuffer(load(read("labels-idx1")), np.uint8, offset=8)


def main():
    module = framework(sys.argv[1])
    run = work(module, sys.argv[2:])
    run(2)
    print(json.dumps({"name": module.version(), "cores": len(os.sched_getaffinity(0))}), flush=True)
    for line in sys.stdin:
        amount, start = int(line), time.perf_counter()
        outcome = run(amount)
        print(json.dumps({"amount": amount, "seconds": time.perf_counter() - start, "outcome": outcome}), flush=True)


if __name__ == "__main__":
    main()
