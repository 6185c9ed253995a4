"""Repeats recorded steps of our student and teachers in float64 and compares; called by `check`.

    python check.py FOLDER [--fixtures]

FOLDER holds the traces that the tests named write_peer_traces left. Every training runs free for its twenty steps: only
initial weights, images, labels, latent vectors and noise come from the trace; losses, gradients and updates are computed
here. A deviation is the largest absolute difference of an array, divided by the array's largest absolute value here. With
--fixtures the results for the small networks are written to where the Rust tests compare with them.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import student
import teacher

jax.config.update("jax_enable_x64", True)

TOLERANCE = 1e-4
STEPS = 20
KEPT = 32  # as in trace.rs
ROOT = Path(__file__).resolve().parents[3]
FIXTURES = {
    "student-tiny": ROOT / "crates/speed-student/tests/peers/student.json",
    "small-tiny": ROOT / "crates/speed-teacher/tests/peers/small.json",
    "reference-tiny": ROOT / "crates/speed-teacher/tests/peers/reference.json",
}


class Trace:
    """The arrays of a folder by name, and what is found beside each."""

    def __init__(self, folder):
        entries = json.loads((folder / "trace.json").read_text())
        values, self.arrays = np.fromfile(folder / "trace.bin", "<f4"), {}
        for entry in entries:
            count = int(np.prod(entry["shape"]))
            self.arrays[entry["name"]] = values[:count].reshape(entry["shape"])
            values = values[count:]
        assert not len(values), "the index is of another trace"
        self.rows, self.results = [], {}

    def input(self, name):
        return self.arrays[f"in/{name}"].astype(np.float64)

    def inputs(self, name):
        """All arrays name/0, name/1, ..."""
        found = []
        while f"in/{name}/{len(found)}" in self.arrays:
            found.append(self.input(f"{name}/{len(found)}"))
        return found

    def compare(self, step, name, reference):
        """`reference` is what was computed here, in the trace's own layout."""
        reference, found = np.asarray(reference, np.float64), self.arrays[f"out/{name}"].astype(np.float64)
        assert reference.size == found.size, f"{name}: {reference.shape} and {found.shape}"
        reference = reference.reshape(found.shape)
        largest = np.abs(reference).max()
        self.results[f"out/{name}"] = reference
        self.rows.append((step, name, np.abs(found - reference).max() / largest, largest))

    def fixture(self):
        """Sums of the inputs, and of every result its length and values at even distances; see trace.rs."""
        sums = {
            name: float(np.sum((1 + np.arange(array.size) % 7) * array.ravel().astype(np.float64)))
            for name, array in self.arrays.items()
            if name.startswith("in/")
        }
        assert sorted(self.results) == sorted(name for name in self.arrays if name.startswith("out/"))
        return {"inputs": sums, "results": {name: kept(array.ravel()) for name, array in self.results.items()}}


def kept(values):
    count = min(len(values), KEPT)
    at = [k * len(values) // count for k in range(count)]
    return {
        "largest": short(np.abs(values).max()),
        "length": short(np.linalg.norm(values)),
        "values": [short(values[i]) for i in at],
    }


def short(value):
    return float(f"{value:.7g}")


def check_student(trace):
    """Layers of the trace have weights [outputs, inputs] and one example a column; here it is the other way round."""
    turned = lambda arrays: [jnp.asarray(array.T) for array in arrays]
    grouped = lambda arrays, size: [tuple(arrays[i : i + size]) for i in range(0, len(arrays), size)]

    discriminator = grouped(turned(trace.inputs("start/discriminator")), 3)
    arrays = turned(trace.inputs("start/generator"))
    generator = [*grouped(arrays[:-3], 2), tuple(arrays[-3:])]
    check_initialisation(trace, discriminator)

    def compare(step, name, layers):
        for index, array in enumerate(array for layer in layers for array in layer):
            trace.compare(step, f"{name}/{index}", array.T)

    d_step, g_step = jax.jit(student.discriminator_step), jax.jit(student.generator_step)
    d_state, g_state = student.zeros(discriminator), student.zeros(generator)
    for step in range(1, STEPS + 1):
        name = f"{step}/discriminator"
        part = lambda what: turned(trace.inputs(f"{name}/{what}"))
        noise = lambda: turned(standard(trace.inputs(f"{name}/noise")))
        labels = jnp.asarray(trace.input(f"{name}/labels"), jnp.int32)
        loss, gradient, discriminator, d_state = d_step(
            discriminator, d_state, jnp.float64(step), generator, part("latent")[0], part("labelled")[0], labels,
            part("unlabelled")[0], noise(),
        )  # fmt: skip
        trace.compare(step, f"{name}/loss", loss)
        compare(step, f"{name}/gradient", gradient)

        name = f"{step}/generator"
        loss, gradient, generator, g_state = g_step(
            generator, g_state, jnp.float64(step), discriminator, part("unlabelled")[0], part("latent")[0], noise()
        )
        trace.compare(step, f"{name}/loss", loss)
        compare(step, f"{name}/gradient", gradient)
    compare("end", "end/discriminator", discriminator)
    compare("end", "end/generator", generator)


def standard(noise):
    """The recorded noise of every layer divided by its deviation, so that it is standard normal here."""
    sigmas = [student.INPUT_NOISE] + [student.HIDDEN_NOISE] * (len(noise) - 1)
    noise = [values / sigma for values, sigma in zip(noise, sigmas)]
    for values in noise:
        # Five standard errors of mean and deviation: a false alarm in 10^6.
        assert abs(values.mean()) < 5 / values.size**0.5 and abs(values.std() - 1) < 5 / (2 * values.size) ** 0.5
    return noise


def check_initialisation(trace, discriminator):
    """Scales and biases of the start give every unit mean 0 and variance 1 on the initial images and their noise."""
    x, noise = trace.input("initial/images/0").T, [values.T for values in standard(trace.inputs("initial/noise"))]
    for index, (theta, bias, scale) in enumerate(discriminator):
        x = x + (student.INPUT_NOISE if index == 0 else student.HIDDEN_NOISE) * noise[index]
        product = x @ theta
        expected = 1 / product.std(axis=0) * jnp.linalg.norm(theta, axis=0), -product.mean(axis=0) / product.std(axis=0)
        for what, found, reference in zip(["scale", "bias"], [scale, bias], expected):
            largest = jnp.abs(reference).max()
            trace.rows.append((0, f"initial/{index}/{what}", float(jnp.abs(found - reference).max() / largest), largest))
        x = jax.nn.relu(student.weight_norm(x, (theta, *reversed(expected))))


def check_teacher(trace, is_reference):
    """Convolutions of the reference are [outputs, inputs, height, width] in the trace, and its first dense layer reads
    maps channel by channel; those of the small network are the kernels [height, width, inputs, outputs] as one matrix."""
    start, images = trace.inputs("start"), trace.input("1/images")
    if is_reference:
        rows, columns = (-(-(-(-size // 2)) // 2) for size in images.shape[1:3])
        maps = (start[2].shape[0], rows, columns)
        there = {0: lambda a: a.transpose(2, 3, 1, 0), 2: lambda a: a.transpose(2, 3, 1, 0)}
        there[4] = lambda a: a.reshape(*maps, -1).transpose(1, 2, 0, 3).reshape(a.shape)
        back = {0: lambda a: a.transpose(3, 2, 0, 1), 2: lambda a: a.transpose(3, 2, 0, 1)}
        back[4] = lambda a: a.reshape(rows, columns, maps[0], -1).transpose(2, 0, 1, 3).reshape(a.shape)
        loss_of, optimiser, state = teacher.reference_loss, teacher.sgd, lambda p: ()
        rate = lambda step: 0.01
    else:
        there = {0: lambda a: a.reshape(5, 5, -1, a.shape[1]), 2: lambda a: a.reshape(5, 5, -1, a.shape[1])}
        back = {}
        loss_of, optimiser, state = teacher.small_loss, teacher.adam, teacher.zeros
        rate = lambda step: 4e-3 * 0.5 * (1 + np.cos(np.pi * (step - 1) / 300))

    same = lambda array: array
    # The weight, then the bias of every layer. Burn visits a convolution's and a dense layer's fields in this order.
    p = [jnp.asarray(there.get(index, same)(array)) for index, array in enumerate(start)]
    p = [tuple(p[i : i + 2]) for i in range(0, len(p), 2)]
    moments = state(p)

    def compare(step, name, layers):
        for index, array in enumerate(array for layer in layers for array in layer):
            trace.compare(step, f"{name}/{index}", back.get(index, same)(array))

    @jax.jit
    def one(p, moments, step, rate, x, y):
        loss, gradient = jax.value_and_grad(loss_of)(p, x, y)
        return loss, gradient, *optimiser(p, gradient, moments, step, rate)

    for step in range(1, STEPS + 1):
        x, y = trace.input(f"{step}/images"), jnp.asarray(trace.input(f"{step}/labels"), jnp.int32)
        loss, gradient, p, moments = one(p, moments, jnp.float64(step), rate(step), x, y)
        trace.compare(step, f"{step}/loss", loss)
        compare(step, f"{step}/gradient", gradient)
    compare("end", "end", p)


def table(trace):
    """For every step the largest deviation of the losses and of the gradients, and in which array."""
    lines = ["| step | losses | gradients | array |", "|---|---:|---:|---|"]
    for step in dict.fromkeys(row[0] for row in trace.rows):
        rows = [row for row in trace.rows if row[0] == step]
        losses = [row[2] for row in rows if row[1].endswith("loss")]
        worst = max((row for row in rows if not row[1].endswith("loss")), key=lambda row: nan_is_worst(row[2]))
        title = {0: "initialisation", "end": "parameters at the end"}.get(step, step)
        lines.append(f"| {title} | {max(losses, default=0):.1e} | {worst[2]:.1e} | {worst[1]} |")
    return "\n".join(lines)


def nan_is_worst(value):
    return value if value == value else np.inf


def main():
    folder, write = Path(sys.argv[1]), "--fixtures" in sys.argv[2:]
    failed = []
    for name in [*FIXTURES, "student", "small", "reference"]:
        trace = Trace(folder / name)
        check_student(trace) if name.startswith("student") else check_teacher(trace, name.startswith("reference"))
        worst = max(nan_is_worst(row[2]) for row in trace.rows)
        print(f"\n## {name}: largest deviation {worst:.1e}\n\n{table(trace)}", flush=True)
        if not worst <= TOLERANCE:
            failed.append(name)
        elif write and name in FIXTURES:
            FIXTURES[name].write_text(json.dumps(trace.fixture()) + "\n")
            print(f"\nwritten: {FIXTURES[name].relative_to(ROOT)}")
    if failed:
        sys.exit(f"\nabove {TOLERANCE:g}: {', '.join(failed)}")


if __name__ == "__main__":
    main()
