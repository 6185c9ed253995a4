"""The training steps in JAX as competitors: float32, jit. See peer.py."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import conv_student
import student
import teacher
from shapes import CLASSES, COLOUR_SIDE, COLOURS, DROPOUT, NOISE_POOL, PIXELS, RATES
from shapes import initial_conv_student, initial_student, initial_teacher, random_images, teacher_images

LOSSES = {
    "small": teacher.small_loss,
    "reference": teacher.reference_loss,
    "reference-no-lrn": partial(teacher.reference_loss, with_lrn=False),
    "deeper": teacher.deeper_loss,
}


def version():
    return f"JAX {jax.__version__}"


def student_step(pooled):
    """Returns a function that runs a number of steps of both networks, 3 x 100 and 2 x 100 images each."""
    networks = jax.tree.map(jnp.asarray, initial_student())
    images, labels = random_images(1000)
    # Sliced at random offsets, as in our implementation, instead of drawn anew.
    normals = jnp.asarray(np.random.default_rng(2).standard_normal(NOISE_POOL, dtype=np.float32))
    widths = [theta.shape[0] for theta, _, _ in networks[0]]

    def noise(key, count):
        keys = jax.random.split(key, len(widths))
        if not pooled:
            return [jax.random.normal(k, (count, width)) for k, width in zip(keys, widths)]
        starts = [jax.random.randint(k, (), 0, NOISE_POOL - count * width) for k, width in zip(keys, widths)]
        slices = [jax.lax.dynamic_slice(normals, (s,), (count * w,)) for s, w in zip(starts, widths)]
        return [values.reshape(count, width) for values, width in zip(slices, widths)]

    functions = student.generate, student.discriminator_loss, student.generator_loss
    return gan_step(functions, student.LEARNING_RATE, networks, images.reshape(len(images), PIXELS), labels, noise)


def conv_student_step():
    """Returns the same function for the convolutional networks."""
    networks = jax.tree.map(jnp.asarray, initial_conv_student())
    images, labels = random_images(1000, COLOUR_SIDE, COLOURS)
    maps = [(COLOUR_SIDE, COLOURS), (COLOUR_SIDE // 2, 64), (COLOUR_SIDE // 4, 128)]

    def masks(key, count):
        keys = jax.random.split(key, len(maps))
        kept = lambda k, rate, side, channels: jax.random.bernoulli(k, 1 - rate, (count, side, side, channels))
        return [kept(k, rate, *map) / (1 - rate) for k, rate, map in zip(keys, DROPOUT, maps)]

    functions = conv_generate, conv_student.discriminator_loss, conv_generator_loss
    return gan_step(functions, conv_student.LEARNING_RATE, networks, images, labels, masks)


def transposed(x, matrix):
    """Computes the same as in conv_student.py, with one 3x3 convolution for each of the four outputs of a value of `x`.

    XLA has no fast CPU kernels for lax.conv_transpose and jax.linear_transpose: with them a step takes six times as long.
    """
    n, rows, columns, inputs = x.shape
    # The 5x5 kernel with a sixth row and column of zeros gives three windows for each output, in reverse.
    kernel = jnp.pad(matrix.reshape(5, 5, -1, inputs), ((0, 1), (0, 1), (0, 0), (0, 0))).reshape(3, 2, 3, 2, -1, inputs)
    kernel = kernel[::-1, :, ::-1].transpose(0, 2, 5, 1, 3, 4).reshape(9 * inputs, -1)
    places = conv_student.convolved(x, kernel, (3, 1, [(1, 1), (1, 1)])).reshape(n, rows, columns, 2, 2, -1)
    return places.transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * rows, 2 * columns, -1)


def conv_generate(layers, latent, shape):
    (weight, shift), side = layers[0], shape[1] >> (len(layers) - 1)
    x = jax.nn.relu(conv_student.batch_norm(latent @ weight) + shift).reshape(len(latent), side, side, -1)
    for matrix, shift in layers[1:-1]:
        y = transposed(x, matrix)
        rows = conv_student.batch_norm(y.reshape(-1, y.shape[-1])) + shift
        x = jax.nn.relu(rows.reshape(y.shape))
    theta, bias, scale = layers[-1]
    factor = scale / conv_student.output_norm(theta, shape[-1])
    return jnp.tanh(transposed(x, theta) * factor + bias) / 2 + 0.5


def conv_generator_loss(generator, discriminator, unlabelled, latent, masks):
    """Returns the loss, with a separate pass for the real images, which need no gradient."""
    n = len(unlabelled)
    means = lambda x, masks: jnp.mean(conv_student.features(discriminator, x, masks, None, []), axis=0)
    real = means(unlabelled, [mask[:n] for mask in masks])
    fake = means(conv_generate(generator, latent, unlabelled.shape), [mask[n:] for mask in masks])
    return jnp.mean(jnp.abs(real - fake)), []


def gan_step(functions, rate, networks, images, labels, noise_of):
    """Returns a function that runs a number of steps of a discriminator and a generator. `functions` are the generator and the losses."""
    generate, discriminator_loss, generator_loss = functions
    n, images, labels = 100, jnp.asarray(images), jnp.asarray(labels)

    def updated(network, state, count, trained, loss_of, *arguments):
        (loss, _), gradient = jax.value_and_grad(loss_of, has_aux=True)(network, *arguments)
        return loss, *student.adam(network, gradient, state, count, trained(network), rate)

    def step(state, key):
        discriminator, generator, d_state, g_state, count = state
        draws, d_latent, g_latent, d_noise, g_noise = jax.random.split(key, 5)
        labelled, unlabelled, other = jax.random.randint(draws, (3, n), 0, len(images))
        uniform = lambda key: jax.random.uniform(key, (n, student.LATENT))
        generated = generate(generator, uniform(d_latent), (n, *images.shape[1:]))
        d_loss, discriminator, d_state = updated(
            discriminator, d_state, count, student.trained_discriminator, discriminator_loss,
            generated, images[labelled], labels[labelled], images[unlabelled], noise_of(d_noise, 3 * n),
        )  # fmt: skip
        g_loss, generator, g_state = updated(
            generator, g_state, count, student.trained_generator, generator_loss,
            discriminator, images[other], uniform(g_latent), noise_of(g_noise, 2 * n),
        )  # fmt: skip
        return (discriminator, generator, d_state, g_state, count + 1), (d_loss, g_loss)

    step = jax.jit(step, donate_argnums=0)
    state, key = (*networks, *(student.zeros(network) for network in networks), jnp.float32(1)), jax.random.key(3)

    def run(steps):
        nonlocal state, key
        for _ in range(steps):
            key, own = jax.random.split(key)
            state, losses = step(state, own)
        return [float(loss) for loss in losses]

    return run


def teacher_step(architecture, batch):
    """Returns a function that runs a number of steps with one batch size: Adam for the small network, SGD for the others."""
    parameters = jax.tree.map(jnp.asarray, initial_teacher(architecture))
    images, labels = (jnp.asarray(array) for array in teacher_images(architecture))
    loss_of, rate = LOSSES[architecture], RATES[architecture]
    optimiser = teacher.adam if architecture == "small" else teacher.sgd

    def step(state, start):
        parameters, moments, count = state
        x = jax.lax.dynamic_slice_in_dim(images, start, batch)
        y = jax.lax.dynamic_slice_in_dim(labels, start, batch)
        (loss, _), gradient = jax.value_and_grad(loss_of, has_aux=True)(parameters, x, y)
        return (*optimiser(parameters, gradient, moments, count, rate), count + 1), loss

    step = jax.jit(step, donate_argnums=0)
    moments = teacher.zeros(parameters) if architecture == "small" else ()
    state, draw = (parameters, moments, jnp.float32(1)), np.random.default_rng(3)

    def run(steps):
        nonlocal state
        for _ in range(steps):
            state, loss = step(state, int(draw.integers(0, len(images) - batch)))
        return float(loss)

    return run


assert CLASSES == 10
