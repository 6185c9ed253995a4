"""Sizes, initial weights and images for the benchmark's peers, in NumPy."""

import numpy as np

PIXELS, SIDE, CLASSES = 784, 28, 10
NOISE_POOL = 1 << 22


def initial_student():
    """The discriminator (theta, bias, scale) and the generator of student.py, paper sizes."""
    from student import DISCRIMINATOR, GENERATOR, LATENT

    draw = np.random.default_rng(1)
    normal = lambda *shape: 0.1 * draw.standard_normal(shape, dtype=np.float32)
    zeros, ones = (lambda n: np.zeros(n, np.float32)), (lambda n: np.ones(n, np.float32))
    sizes = [PIXELS, *DISCRIMINATOR, CLASSES]
    discriminator = [(normal(a, b), zeros(b), ones(b)) for a, b in zip(sizes, sizes[1:])]
    sizes = [LATENT, *GENERATOR]
    generator = [(normal(a, b), zeros(b)) for a, b in zip(sizes, sizes[1:])]
    return discriminator, [*generator, (normal(GENERATOR[-1], PIXELS), zeros(PIXELS), ones(PIXELS))]


def initial_teacher(architecture):
    """Pairs of weight and bias, convolutions [height, width, inputs, outputs]."""
    draw = np.random.default_rng(1)
    if architecture == "small":
        sizes = [(5, 5, 1, 16), (5, 5, 16, 32), (512, 64), (64, CLASSES)]
    else:
        sizes = [(5, 5, 1, 64), (5, 5, 64, 128), (6272, 384), (384, 192), (192, CLASSES)]
    he = lambda shape: np.float32(np.sqrt(2 / np.prod(shape[:-1]))) * draw.standard_normal(shape, dtype=np.float32)
    return [(he(shape), np.zeros(shape[-1], np.float32)) for shape in sizes]


def random_images(count):
    """Images [count, 28, 28, 1] within 0..1, and labels."""
    draw = np.random.default_rng(0)
    return draw.random((count, SIDE, SIDE, 1), dtype=np.float32), draw.integers(0, CLASSES, count, dtype=np.int32)
