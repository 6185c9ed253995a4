"""The teachers in JAX: the small network and the paper's, with their losses and optimisers. Written from the formulas.

Images are [n, height, width, channels] and kernels [height, width, inputs, outputs], as in TensorFlow; gradients
are JAX's own. The precision follows the arrays. Besides its loss, every network returns the margins of the decisions of its
ReLUs and pools, see kinks.py.
"""

import jax
import jax.numpy as jnp
from jax import lax

from kinks import max_pool, relu

WEIGHT_DECAY = 0.004
PIXEL_DEPTH = 255.0


def conv(x, kernel, bias, padding, stride=1):
    strides = (stride, stride)
    return lax.conv_general_dilated(x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias


def lrn(x, radius=4, bias=1.0, alpha=0.001 / 9.0, beta=0.75):
    """Computes TensorFlow's local response normalisation: alpha multiplies the sum over the window."""
    window = ((0, 0), (0, 0), (0, 0), (radius, radius))
    squares = lax.reduce_window(x**2, 0.0, lax.add, (1, 1, 1, 2 * radius + 1), (1, 1, 1, 1), window)
    return x / (bias + alpha * squares) ** beta


def small(p, x, flips=None):
    """5x5x16, pool, 5x5x32, pool, 64, classes; no padding."""
    margins = []
    for kernel, bias in p[:2]:
        # The pool comes first, as in the checked code: the values are the same, with fewer decisions.
        x = relu(max_pool(conv(x, kernel, bias, "VALID"), 2, 2, "VALID", flips, margins), flips, margins)
    x = x.reshape(len(x), -1)
    x = relu(x @ p[2][0] + p[2][1], flips, margins)
    return x @ p[3][0] + p[3][1], margins


def reference(p, x, flips=None, with_lrn=True):
    """The paper's published network: 5x5x64, pool, LRN, 5x5x128, LRN, pool, 384, 192, classes. Its inputs are bytes minus a half."""
    normalise = lrn if with_lrn else lambda maps: maps
    margins = []
    x = relu(conv(x * PIXEL_DEPTH, *p[0], "SAME"), flips, margins)
    x = normalise(max_pool(x, 3, 2, "SAME", flips, margins))
    x = relu(conv(x, *p[1], "SAME"), flips, margins)
    x = max_pool(normalise(x), 3, 2, "SAME", flips, margins)
    x = x.reshape(len(x), -1)
    for weight, bias in p[2:4]:
        x = relu(x @ weight + bias, flips, margins)
    return x @ p[4][0] + p[4][1], margins


def standardised(x):
    """Standardises every image: minus its mean, divided by its deviation, which for bytes is at least 1 / sqrt(N), as TensorFlow's per_image_standardization."""
    size = x[0].size
    centred = x - jnp.mean(x, axis=(1, 2, 3), keepdims=True)
    deviation = jnp.sqrt(jnp.mean(centred**2, axis=(1, 2, 3), keepdims=True))
    return centred / jnp.maximum(deviation, 1 / 255 / size**0.5)


def deeper(p, x, flips=None):
    """The paper's published network for SVHN: six convolutions 3x3, two of them of stride 2, one 5x5, 192, 192, classes."""
    margins = []
    x = standardised(x)
    for (kernel, bias), stride in zip(p[:7], [1, 1, 2, 1, 1, 2, 1]):
        x = relu(conv(x, kernel, bias, "SAME", stride), flips, margins)
    x = x.reshape(len(x), -1)
    for weight, bias in p[7:9]:
        x = relu(x @ weight + bias, flips, margins)
    return x @ p[9][0] + p[9][1], margins


def deeper_loss(p, x, labels, flips=None):
    logits, margins = deeper(p, x, flips)
    return cross_entropy(logits, labels), margins


def cross_entropy(logits, labels):
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(labels)), labels])


def small_loss(p, x, labels, flips=None):
    logits, margins = small(p, x, flips)
    return cross_entropy(logits, labels), margins


def reference_loss(p, x, labels, flips=None, with_lrn=True):
    decay = sum(jnp.sum(weight**2) / 2 for weight, _ in p[2:4])
    logits, margins = reference(p, x, flips, with_lrn)
    return cross_entropy(logits, labels) + WEIGHT_DECAY * decay, margins


def sgd(parameters, gradients, state, step, rate):
    return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients), state


def adam(parameters, gradients, state, step, rate, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Makes a step of Adam (Kingma and Ba, Algorithm 1); `step` counts from 1."""
    first = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, state[0], gradients)
    second = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g**2, state[1], gradients)

    def update(p, m, v):
        return p - rate * (m / (1 - beta1**step)) / (jnp.sqrt(v / (1 - beta2**step)) + epsilon)

    return jax.tree.map(update, parameters, first, second), (first, second)


def zeros(parameters):
    return jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)
