"""The paper's student for SVHN in JAX: convolutions, weight norm, dropout; transposed convolutions and batch norm.

Salimans et al., "Improved techniques for training GANs" (2016), as in the SVHN code that the paper cites. Images are
[n, height, width, channels] within 0..1. Layers have the form of student.py; kernels are matrices [rows * columns * channels, outputs]
of windows on the larger maps, also for transposed convolutions. Gradients are JAX's own.
"""

import jax
import jax.numpy as jnp
from jax import lax

import student

LEARNING_RATE = 3e-4
DIMENSIONS = ("NHWC", "HWIO", "NHWC")
BLOCK = 3  # convolutions, the last of stride 2
INSIDE = 3  # convolutions after the blocks: one 3x3 without padding, two 1x1


def leaky(x, flips, margins):
    if flips is None:
        return jnp.where(x < 0, 0.2 * x, x)
    flip = flips[len(margins)]
    margins.append(jnp.abs(x) / jnp.std(x))
    return jnp.where((x < 0) ^ flip, 0.2 * x, x)


def relu(x, flips, margins):
    if flips is None:
        return jax.nn.relu(x)
    flip = flips[len(margins)]
    margins.append(jnp.abs(x) / jnp.std(x))
    return jnp.where((x > 0) ^ flip, x, 0.0)


def windows(index, count):
    """Returns kernel side, stride and padding of convolution `index` of `count`."""
    if index < count - INSIDE:
        return 3, 2 if index % BLOCK == BLOCK - 1 else 1, [(1, 1), (1, 1)]
    return 3 if index == count - INSIDE else 1, 1, "VALID"


def convolved(x, matrix, window):
    side, stride, padding = window
    kernel = matrix.reshape(side, side, x.shape[-1], -1)
    return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=DIMENSIONS)


def conv(x, layer, window):
    theta, bias, scale = layer
    return convolved(x, theta * (scale / jnp.sqrt(jnp.sum(theta**2, axis=0))), window) + bias


def transposed(x, matrix, shape):
    """Maps results to maps of this shape, by the gradient of a 5x5 convolution with stride 2 with respect to its maps."""
    n, height, width, _ = shape
    channels = matrix.shape[0] // 25
    forward = lambda maps: convolved(maps, matrix, (5, 2, [(2, 2), (2, 2)]))
    return jax.linear_transpose(forward, jax.ShapeDtypeStruct((n, height, width, channels), x.dtype))(x)[0]


def features(layers, x, masks, flips, margins):
    """Returns the means over rows and columns. `masks` are the dropout factors, one before every block and one after the last."""
    x = 2 * x - 1
    for index, layer in enumerate(layers[:-1]):
        x = x * masks[index // BLOCK] if index % BLOCK == 0 else x
        x = leaky(conv(x, layer, windows(index, len(layers) - 1)), flips, margins)
    return jnp.mean(x, axis=(1, 2))


def maps(shape, count):
    """Returns the shapes of the generator's maps, from the smallest maps to the images."""
    n, height, width, channels = shape
    sizes = [(height, width)]
    for _ in range(count):
        sizes.append(tuple(-(-side // 2) for side in sizes[-1]))
    return [(n, *size) for size in reversed(sizes)]


def batch_norm(x):
    centred = x - jnp.mean(x, axis=0)
    return centred / jnp.sqrt(jnp.mean(centred**2, axis=0) + 1e-6)


def before_output(layers, latent, shape, flips, margins):
    sizes = maps((len(latent), *shape[1:]), len(layers) - 1)
    weight, shift = layers[0]
    x = relu(batch_norm(latent @ weight) + shift, flips, margins)
    x = x.reshape(*sizes[0], -1)
    for (weight, shift), size in zip(layers[1:-1], sizes[1:]):
        y = transposed(x, weight, (*size, 0))
        rows = batch_norm(y.reshape(-1, y.shape[-1])) + shift
        x = relu(rows.reshape(y.shape), flips, margins)
    return x, sizes[-1]


def output_norm(theta, channels):
    by_channel = theta.reshape(25, channels, -1)
    return jnp.sqrt(jnp.sum(by_channel**2, axis=(0, 2)) + 1e-6)


def generate(layers, latent, shape, flips=None, margins=None):
    margins = [] if margins is None else margins
    x, size = before_output(layers, latent, shape, flips, margins)
    theta, bias, scale = layers[-1]
    channels = shape[-1]
    factor = scale / output_norm(theta, channels)
    weight = (theta.reshape(25, channels, -1) * factor[None, :, None]).reshape(theta.shape)
    return jnp.tanh(transposed(x, weight, (*size, 0)) + bias) / 2 + 0.5


def discriminator_loss(layers, generated, labelled, labels, unlabelled, masks, flips=None):
    """`masks` cover labelled, unlabelled and generated images, in this order."""
    margins = []
    x = features(layers, jnp.concatenate([labelled, unlabelled, generated]), masks, flips, margins)
    return student.loss_of_logits(student.weight_norm(x, layers[-1]), labels), margins


def generator_loss(generator, discriminator, unlabelled, latent, masks, flips=None):
    """`masks` cover unlabelled and generated images, in this order."""
    n, margins = len(unlabelled), []
    generated = generate(generator, latent, unlabelled.shape, flips, margins)
    both = features(discriminator, jnp.concatenate([unlabelled, generated]), masks, flips, margins)
    return jnp.mean(jnp.abs(jnp.mean(both[:n], axis=0) - jnp.mean(both[n:], axis=0))), margins


def initialisation(layers, x, masks):
    """Yields name, found array and expected array for every scale and bias of a discriminator."""
    found, x = [], 2 * x - 1
    count = len(layers) - 1
    for index, (theta, bias, scale) in enumerate(layers):
        if index < count:
            x = x * masks[index // BLOCK] if index % BLOCK == 0 else x
            product, target = convolved(x, theta, windows(index, count)), 1.0
        else:
            x = jnp.mean(x, axis=(1, 2))
            product, target = x @ theta, 0.1
        axes = tuple(range(product.ndim - 1))
        mean, std = jnp.mean(product, axis=axes), jnp.std(product, axis=axes)
        expected = -target * mean / std, target / std * jnp.sqrt(jnp.sum(theta**2, axis=0))
        found += [(f"{index}/bias", bias, expected[0]), (f"{index}/scale", scale, expected[1])]
        x = leaky(target * (product - mean) / std, None, None)
    return found


def generator_initialisation(layers, latent, shape):
    x, size = before_output(layers, latent, shape, None, None)
    theta, bias, scale = layers[-1]
    product = transposed(x, theta, (*size, 0))
    mean, std = jnp.mean(product, axis=(0, 1, 2)), jnp.std(product, axis=(0, 1, 2))
    expected = -0.1 * mean / std, 0.1 / std * output_norm(theta, shape[-1])
    return [("generator/bias", bias, expected[0]), ("generator/scale", scale, expected[1])]
