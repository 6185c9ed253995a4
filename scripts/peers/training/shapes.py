"""Sizes, initial weights and images for the benchmark's peers, in NumPy."""

import numpy as np

PIXELS, SIDE, CLASSES = 784, 28, 10
NOISE_POOL = 1 << 22
COLOUR_SIDE, COLOURS = 32, 3
RATES = {"small": 4e-3, "reference": 0.01, "reference-no-lrn": 0.01, "deeper": 0.08}
# Kernel, stride and outputs of the deeper teacher's convolutions. It diverges at its learning rate unless the initial weights are as
# published: deviation 1e-4 in the seventh convolution and 0.05 elsewhere; biases 0.1 from there on, except for the logits.
DEEPER = [(3, 1, 96), (3, 1, 96), (3, 2, 96), (3, 1, 192), (3, 1, 192), (3, 2, 192), (5, 1, 192)]
DEEPER_DEVIATIONS, DEEPER_BIASES = [*6 * [0.05], 1e-4, *3 * [0.05]], [*6 * [0.0], *3 * [0.1], 0.0]
# Kernel and outputs of the convolutions of the student's discriminator, and channels of its generator's maps.
CONV_DISCRIMINATOR, CONV_GENERATOR = [*3 * [(3, 64)], *4 * [(3, 128)], *2 * [(1, 128)]], [512, 256, 128]
# Dropout rates before every block of the discriminator and after the last.
DROPOUT = [0.2, 0.5, 0.5]


def initial_student():
    """Returns the discriminator (theta, bias, scale) and the generator of student.py in the paper's sizes."""
    from student import DISCRIMINATOR, GENERATOR, LATENT

    draw = np.random.default_rng(1)
    normal = lambda *shape: 0.1 * draw.standard_normal(shape, dtype=np.float32)
    zeros, ones = (lambda n: np.zeros(n, np.float32)), (lambda n: np.ones(n, np.float32))
    sizes = [PIXELS, *DISCRIMINATOR, CLASSES]
    discriminator = [(normal(a, b), zeros(b), ones(b)) for a, b in zip(sizes, sizes[1:])]
    sizes = [LATENT, *GENERATOR]
    generator = [(normal(a, b), zeros(b)) for a, b in zip(sizes, sizes[1:])]
    return discriminator, [*generator, (normal(GENERATOR[-1], PIXELS), zeros(PIXELS), ones(PIXELS))]


def initial_conv_student():
    """Returns the discriminator and the generator of conv_student.py in the paper's sizes, with kernels as matrices."""
    from student import LATENT

    draw = np.random.default_rng(1)
    normal = lambda *shape: 0.05 * draw.standard_normal(shape, dtype=np.float32)
    zeros, ones = (lambda n: np.zeros(n, np.float32)), (lambda n: np.ones(n, np.float32))
    normalised = lambda inputs, outputs: (normal(inputs, outputs), zeros(outputs), ones(outputs))
    inputs = [COLOURS, *(outputs for _, outputs in CONV_DISCRIMINATOR)]
    discriminator = [normalised(side**2 * a, b) for a, (side, b) in zip(inputs, CONV_DISCRIMINATOR)]
    discriminator.append(normalised(inputs[-1], CLASSES))
    smallest = (COLOUR_SIDE >> len(CONV_GENERATOR)) ** 2 * CONV_GENERATOR[0]
    generator = [(normal(LATENT, smallest), zeros(smallest))]
    generator += [(normal(25 * b, a), zeros(b)) for a, b in zip(CONV_GENERATOR, CONV_GENERATOR[1:])]
    generator.append((normal(25 * COLOURS, CONV_GENERATOR[-1]), zeros(COLOURS), ones(COLOURS)))
    return discriminator, generator


def initial_teacher(architecture):
    """Returns pairs of weight and bias, convolutions [height, width, inputs, outputs]."""
    draw = np.random.default_rng(1)
    if architecture == "small":
        sizes = [(5, 5, 1, 16), (5, 5, 16, 32), (512, 64), (64, CLASSES)]
    elif architecture == "deeper":
        return initial_deeper(draw)
    else:
        sizes = [(5, 5, 1, 64), (5, 5, 64, 128), (6272, 384), (384, 192), (192, CLASSES)]
    he = lambda shape: np.float32(np.sqrt(2 / np.prod(shape[:-1]))) * draw.standard_normal(shape, dtype=np.float32)
    return [(he(shape), np.zeros(shape[-1], np.float32)) for shape in sizes]


def initial_deeper(draw):
    inputs = [COLOURS, *(outputs for _, _, outputs in DEEPER)]
    sizes = [(side, side, a, b) for a, (side, _, b) in zip(inputs, DEEPER)]
    sizes += [(8 * 8 * inputs[-1], 192), (192, 192), (192, CLASSES)]
    return [
        (np.float32(deviation) * draw.standard_normal(shape, dtype=np.float32), np.full(shape[-1], bias, np.float32))
        for shape, deviation, bias in zip(sizes, DEEPER_DEVIATIONS, DEEPER_BIASES)
    ]


def random_images(count, side=SIDE, channels=1):
    """Returns images [count, side, side, channels] within 0..1, and labels."""
    draw = np.random.default_rng(0)
    return draw.random((count, side, side, channels), dtype=np.float32), draw.integers(0, CLASSES, count, dtype=np.int32)


def teacher_images(architecture):
    """Returns a thousand images of this teacher's size."""
    return random_images(1000, COLOUR_SIDE, COLOURS) if architecture == "deeper" else random_images(1000)
