"""The student of the paper in JAX: two networks, two losses, two steps of Adam. Written from the published formulas.

Salimans et al., "Improved techniques for training GANs" (2016), feature matching on MNIST, as in the code that the paper
cites. One example per row, images of any further dimensions; weights are [inputs, outputs]. Gradients are JAX's
own. The precision follows the arrays, so the same code is the reference in float64 and the competitor in float32.

A discriminator is a list of layers (theta, bias, scale); a generator is a list of layers (weight, shift) and a last
(theta, bias, scale). Besides its loss, every function returns the inputs of its ReLUs, see kinks.py.
"""

import jax
import jax.numpy as jnp

from kinks import relu

INPUT_NOISE, HIDDEN_NOISE = 0.3, 0.5
LEARNING_RATE, BETA1, BETA2 = 1e-3, 0.5, 0.999
DISCRIMINATOR, GENERATOR, LATENT = [1000, 500, 250, 250, 250], [500, 500], 100


def weight_norm(x, layer, epsilon=0.0):
    """Scales every output unit's weights to the length `scale` (Salimans and Kingma 2016)."""
    theta, bias, scale = layer
    length = jnp.sqrt(jnp.sum(theta**2, axis=0) + epsilon)
    return x @ (theta * (scale / length)) + bias


def features(layers, x, noise, flips):
    """Returns the last hidden layer after its ReLU and before its noise. `noise` is standard normal, one array per layer."""
    margins, x = [], x.reshape(len(x), -1)
    for index, layer in enumerate(layers[:-1]):
        x = x + (INPUT_NOISE if index == 0 else HIDDEN_NOISE) * noise[index]
        x = relu(weight_norm(x, layer), flips, margins)
    return x, margins


def logits(layers, x, noise, flips):
    x, margins = features(layers, x, noise, flips)
    return weight_norm(x + HIDDEN_NOISE * noise[len(layers) - 1], layers[-1]), margins


def generate(layers, latent, shape):
    """Generates images of this shape, apart from their number."""
    x = latent
    for weight, shift in layers[:-1]:
        product = x @ weight
        centred = product - jnp.mean(product, axis=0)
        deviation = jnp.sqrt(jnp.mean(centred**2, axis=0) + 1e-6)
        x = jax.nn.softplus(centred / deviation + shift)
    return jax.nn.sigmoid(weight_norm(x, layers[-1], 1e-6)).reshape(len(latent), *shape[1:])


def discriminator_loss(layers, generated, labelled, labels, unlabelled, noise, flips=None):
    """`noise` covers labelled, unlabelled and generated images, in this order."""
    z, margins = logits(layers, jnp.concatenate([labelled, unlabelled, generated]), noise, flips)
    return loss_of_logits(z, labels), margins


def loss_of_logits(z, labels):
    """`z` are those of labelled, unlabelled and generated images, in this order."""
    n, lse = len(labels), jax.nn.logsumexp
    z_labelled, z_unlabelled, z_generated = z[:n], z[n : 2 * n], z[2 * n :]
    supervised = -jnp.mean(z_labelled[jnp.arange(n), labels]) + jnp.mean(lse(z_labelled, axis=1))
    real = -0.5 * jnp.mean(lse(z_unlabelled, axis=1)) + 0.5 * jnp.mean(jax.nn.softplus(lse(z_unlabelled, axis=1)))
    fake = 0.5 * jnp.mean(jax.nn.softplus(lse(z_generated, axis=1)))
    return supervised + real + fake


def generator_loss(generator, discriminator, unlabelled, latent, noise, flips=None):
    """`noise` covers unlabelled and generated images, in this order."""
    n = len(unlabelled)
    generated = generate(generator, latent, unlabelled.shape)
    both, margins = features(discriminator, jnp.concatenate([unlabelled, generated]), noise, flips)
    return jnp.mean((jnp.mean(both[:n], axis=0) - jnp.mean(both[n:], axis=0)) ** 2), margins


def initialisation(layers, x, noise):
    """Yields name, found array and expected array for every scale and bias of a discriminator: mean 0 and variance 1 on these images."""
    found, x = [], x.reshape(len(x), -1)
    for index, (theta, bias, scale) in enumerate(layers):
        x = x + (INPUT_NOISE if index == 0 else HIDDEN_NOISE) * noise[index]
        product = x @ theta
        mean, deviation = product.mean(axis=0), product.std(axis=0)
        expected = -mean / deviation, 1 / deviation * jnp.linalg.norm(theta, axis=0)
        found += [(f"{index}/bias", bias, expected[0]), (f"{index}/scale", scale, expected[1])]
        x = jax.nn.relu(weight_norm(x, (theta, *expected)))
    return found


def generator_initialisation(layers, latent, shape):
    """Returns no scales and biases, because the generator's initialisation does not depend on data."""
    return []


def zeros(parameters):
    """Returns Adam's state: first and second moments."""
    return jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)


def adam(parameters, gradients, state, step, trained, rate=LEARNING_RATE):
    """Makes a step of Adam as in the published code, with 1e-8 inside the root; `step` counts from 1. Only `trained` arrays change."""
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state[0], gradients)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g**2, state[1], gradients)

    def update(parameter, m, v, is_trained):
        if not is_trained:
            return parameter
        m_hat, v_hat = m / (1 - BETA1**step), v / (1 - BETA2**step)
        return parameter - rate * m_hat / jnp.sqrt(v_hat + 1e-8)

    return jax.tree.map(update, parameters, first, second, trained), (first, second)


def trained_discriminator(layers):
    """The scale is a parameter in the last layer only."""
    return [(True, True, False)] * (len(layers) - 1) + [(True, True, True)]


def trained_generator(layers):
    return [(True, True)] * (len(layers) - 1) + [(True, True, True)]


def discriminator_step(discriminator, state, step, generator, latent, labelled, labels, unlabelled, noise):
    """Returns the loss before the step, and discriminator and state after it."""
    generated = generate(generator, latent, unlabelled.shape)
    (loss, _), gradient = jax.value_and_grad(discriminator_loss, has_aux=True)(
        discriminator, generated, labelled, labels, unlabelled, noise
    )
    return loss, *adam(discriminator, gradient, state, step, trained_discriminator(discriminator))


def generator_step(generator, state, step, discriminator, unlabelled, latent, noise):
    """Returns the loss before the step, and generator and state after it."""
    (loss, _), gradient = jax.value_and_grad(generator_loss, has_aux=True)(
        generator, discriminator, unlabelled, latent, noise
    )
    return loss, *adam(generator, gradient, state, step, trained_generator(generator))
