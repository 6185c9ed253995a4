"""Functions with kinks, and the handling of kinks in comparisons of two precisions.

A ReLU or a pool makes a decision: the side of zero, or one of several neighbours. A batch has millions of decisions, and
some are so close that float32 and float64 decide differently. The values hardly change, but the derivative jumps by far more
than rounding. So these functions return the distance of every decision (`margins`), and can reverse decisions (`flips`, one
array of booleans for each margin, in the same order).
"""

import jax
import jax.numpy as jnp
from jax import lax


def relu(x, flips, margins):
    if flips is None:
        return jax.nn.relu(x)
    flip = flips[len(margins)]
    margins.append(jnp.abs(x) / jnp.std(x))
    # A reversed value below zero is mirrored above it; otherwise a pool would choose a neighbouring zero instead.
    mirrored = x - 2 * lax.stop_gradient(jnp.minimum(x, 0.0))
    return jnp.where((x > 0) ^ flip, mirrored, 0.0)


def max_pool(x, size, stride, padding, flips, margins):
    if flips is None:
        window, strides = (1, size, size, 1), (1, stride, stride, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)
    rows, columns = (-(-side // stride) if padding == "SAME" else (side - size) // stride + 1 for side in x.shape[1:3])
    before, after = [], []
    for side, count in zip(x.shape[1:3], (rows, columns)):
        missing = max((count - 1) * stride + size - side, 0) if padding == "SAME" else 0
        before.append(missing // 2), after.append(missing - missing // 2)
    # Finite, so that differences of paddings are not NaN.
    lowest = -1e30
    x_padded = jnp.pad(x, ((0, 0), *zip(before, after), (0, 0)), constant_values=lowest)
    candidates = jnp.stack(
        [
            x_padded[:, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
            for i in range(size)
            for j in range(size)
        ]
    )
    first = jnp.argmax(candidates, axis=0)
    others = jnp.where(jnp.arange(size * size)[:, None, None, None, None] == first, 2 * lowest, candidates)
    second = jnp.argmax(others, axis=0)
    gap = jnp.max(candidates, axis=0) - jnp.max(others, axis=0)
    flip = flips[len(margins)]
    # Equal neighbours are zeros of a ReLU, whose derivative is zero for either choice.
    margins.append(jnp.where(gap == 0, jnp.inf, gap / jnp.std(x)))
    return jnp.take_along_axis(candidates, jnp.where(flip, second, first)[None], axis=0)[0]
