"""The training steps in JAX as competitors: float32, jit. See peer.py."""

import jax
import jax.numpy as jnp
import numpy as np

import student
import teacher
from shapes import CLASSES, NOISE_POOL, PIXELS, initial_student, initial_teacher, random_images


def version():
    return f"JAX {jax.__version__}"


def student_step(pooled):
    """A function that runs a number of steps of both networks, 3 x 100 and 2 x 100 images each."""
    n = 100
    discriminator, generator = jax.tree.map(jnp.asarray, initial_student())
    rows, labels = (jnp.asarray(array) for array in random_images(1000))
    rows = rows.reshape(len(rows), PIXELS)
    # Sliced at random places, as ours does, instead of drawn anew.
    normals = jnp.asarray(np.random.default_rng(2).standard_normal(NOISE_POOL, dtype=np.float32))
    widths = [theta.shape[0] for theta, _, _ in discriminator]

    def noise(key, count):
        keys = jax.random.split(key, len(widths))
        if not pooled:
            return [jax.random.normal(k, (count, width)) for k, width in zip(keys, widths)]
        starts = [jax.random.randint(k, (), 0, NOISE_POOL - count * width) for k, width in zip(keys, widths)]
        slices = [jax.lax.dynamic_slice(normals, (s,), (count * w,)) for s, w in zip(starts, widths)]
        return [values.reshape(count, width) for values, width in zip(slices, widths)]

    def step(state, key):
        discriminator, generator, d_state, g_state, count = state
        draws, d_latent, g_latent, d_noise, g_noise = jax.random.split(key, 5)
        labelled, unlabelled, other = jax.random.randint(draws, (3, n), 0, len(rows))
        uniform = lambda key: jax.random.uniform(key, (n, student.LATENT))
        d_loss, discriminator, d_state = student.discriminator_step(
            discriminator, d_state, count, generator, uniform(d_latent),
            rows[labelled], labels[labelled], rows[unlabelled], noise(d_noise, 3 * n),
        )  # fmt: skip
        g_loss, generator, g_state = student.generator_step(
            generator, g_state, count, discriminator, rows[other], uniform(g_latent), noise(g_noise, 2 * n)[:-1]
        )
        return (discriminator, generator, d_state, g_state, count + 1), (d_loss, g_loss)

    step = jax.jit(step, donate_argnums=0)
    state = (discriminator, generator, student.zeros(discriminator), student.zeros(generator), jnp.float32(1))
    key = jax.random.key(3)

    def run(steps):
        nonlocal state, key
        for _ in range(steps):
            key, own = jax.random.split(key)
            state, losses = step(state, own)
        return [float(loss) for loss in losses]

    return run


def teacher_step(architecture, batch):
    """A function that runs a number of steps on one batch size: Adam for the small network, SGD for the reference."""
    parameters = jax.tree.map(jnp.asarray, initial_teacher(architecture))
    images, labels = random_images(1000)
    images, labels = jnp.asarray(images), jnp.asarray(labels)
    if architecture == "small":
        loss_of, optimiser, rate = teacher.small_loss, teacher.adam, 4e-3
    else:
        with_lrn = architecture == "reference"
        loss_of, optimiser, rate = (lambda p, x, y: teacher.reference_loss(p, x, y, with_lrn=with_lrn)), teacher.sgd, 0.01

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
