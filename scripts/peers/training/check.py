"""Repeats recorded steps of our student and teachers in float64 and compares; called by `check`.

    python check.py FOLDER [--fixtures]

FOLDER contains the traces that the tests named write_peer_traces wrote: initial weights, images, labels, latent vectors and
noise of twenty steps, and the results. The deviation of an array is the largest absolute difference, divided by the largest
absolute value computed here. The deviation of an update is the part that exceeds one rounding of the parameter, divided by the
largest update.

Small networks run freely: only the initial weights come from the trace. Networks of the paper's size begin every step with
the weights of the trace, and the gradients and updates of that step are compared. Otherwise a single unit that float32 and
float64 put on different sides of a kink would change all later steps. If a gradient deviates, decisions within 3e-5 of a
kink are tried the other way, and counted if they explain the deviation (kinks.py).

With --fixtures, the results of the small networks are written as fixtures for the Rust tests.
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import conv_student
import student
import teacher

jax.config.update("jax_enable_x64", True)

TOLERANCE = 1e-4
NEAR = 3e-5  # largest distance from a kink, in standard deviations of the deciding value
STEPS = 20
KEPT = 32  # as in trace.rs
ROOT = Path(__file__).resolve().parents[3]
FIXTURES = {
    "student-tiny": ROOT / "crates/speed-student/tests/peers/student.json",
    "small-tiny": ROOT / "crates/speed-teacher/tests/peers/small.json",
    "reference-tiny": ROOT / "crates/speed-teacher/tests/peers/reference.json",
    "deeper-tiny": ROOT / "crates/speed-teacher/tests/peers/deeper.json",
    "conv-student-tiny": ROOT / "crates/speed-student/tests/peers/conv-student.json",
}


class Trace:
    """The arrays of a folder by name, and the computed result for each."""

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

    def many(self, name):
        """Returns all arrays name/0, name/1, ...; the name includes in/ or out/."""
        found = []
        while f"{name}/{len(found)}" in self.arrays:
            found.append(self.arrays[f"{name}/{len(found)}"].astype(np.float64))
        return found

    def inputs(self, name):
        return self.many(f"in/{name}")

    def compare(self, step, kind, name, reference):
        """Compares with `reference`, the array computed here in the trace's layout."""
        found = self.arrays[f"out/{name}"].astype(np.float64)
        reference = self.results[f"out/{name}"] = np.asarray(reference, np.float64).reshape(found.shape)
        self.rows.append((step, kind, name, deviation(found, reference)))

    def fixture(self):
        """Returns sums of the inputs, and for every result its length and evenly spaced values; see trace.rs."""
        sums = {
            name: float(np.sum((1 + np.arange(array.size) % 7) * array.ravel().astype(np.float64)))
            for name, array in self.arrays.items()
            if name.startswith("in/")
        }
        assert sorted(self.results) == sorted(name for name in self.arrays if name.startswith("out/"))
        return {"inputs": sums, "results": {name: kept(array.ravel()) for name, array in self.results.items()}}


def deviation(found, reference):
    """NaN counts as infinite."""
    return float(np.nan_to_num(np.abs(found - reference).max() / np.abs(reference).max(), nan=np.inf))


def kept(values):
    count = min(len(values), KEPT)
    short = lambda value: float(f"{value:.7g}")
    return {
        "largest": short(np.abs(values).max()),
        "length": short(np.linalg.norm(values)),
        "values": [short(values[k * len(values) // count]) for k in range(count)],
    }


class Network:
    """A network whose steps are repeated. `there` and `back` convert its list of arrays from and to the trace's layout."""

    def __init__(self, trace, name, start, there, back, loss, optimiser):
        self.trace, self.name, self.there, self.back = trace, name, there, back
        self.parameters = there(trace.inputs(start))
        self.state = jax.tree.map(jnp.zeros_like, (self.parameters, self.parameters))
        self.loss, self.flips = loss, None
        differentiate = jax.value_and_grad(loss, has_aux=True)
        self.gradient = jax.jit(lambda parameters, data, flips: differentiate(parameters, *data, flips))
        self.optimiser = jax.jit(optimiser)
        self.resumes = f"out/1/{name}after/0" in trace.arrays
        self.tried_otherwise = {}

    def step(self, step, data):
        """Makes one step on `data`, the loss's arguments after the parameters, and stores the new parameters and state."""
        trace, name = self.trace, f"{step}/{self.name}"
        recorded = trace.many(f"out/{name}gradient")
        if self.flips is None:
            margins = jax.eval_shape(lambda p, d: self.loss(p, *d, Anything()), self.parameters, data)[1]
            self.flips = [np.zeros(margin.shape, bool) for margin in margins]
        (loss, margins), gradient = self.gradient(self.parameters, data, self.flips)
        gradient = self.explain(step, data, margins, gradient, recorded)
        trace.compare(step, "losses", f"{name}loss", loss)
        for index, array in enumerate(self.back(gradient)):
            trace.compare(step, "gradients", f"{name}gradient/{index}", array)

        used = self.there(recorded) if self.resumes else gradient
        after, self.state = self.optimiser(self.parameters, used, self.state, float(step))
        if self.resumes:
            before, expected = self.back(self.parameters), self.back(after)
            found = trace.many(f"out/{name}after")
            for index, (b, e, f) in enumerate(zip(before, expected, found)):
                off, update = np.abs(f - e) - np.spacing(np.abs(f).astype(np.float32)), np.abs(e - b).max()
                # Untrained scales do not change.
                value = off.max() / update if update > 0 else float((f != b).any())
                trace.rows.append((step, "updates", f"{name}after/{index}", max(0.0, float(np.nan_to_num(value, nan=np.inf)))))
            after = self.there(found)
        self.parameters = after

    def explain(self, step, data, margins, gradient, recorded):
        """Returns the gradient after reversing the close decisions that bring it nearer to the recorded gradient."""
        worst = lambda g: max(deviation(f, np.asarray(r)) for f, r in zip(recorded, self.back(g)))
        distance = lambda g: sum(
            float(np.sum((f - np.asarray(r)) ** 2)) / float(np.max(np.asarray(r) ** 2)) for f, r in zip(recorded, self.back(g))
        )
        # The same patch in two images of a batch, or moved in one image, has the same decision, and reversing only one may be wrong.
        alike = {}
        for k, margin in enumerate(map(np.asarray, margins)):
            for at in np.argwhere(margin < NEAR):
                alike.setdefault((float(f"{margin[tuple(at)]:.6g}"), k), []).append(tuple(at))
        flips = [flip.copy() for flip in self.flips]
        # Repeated as long as it helps, because the effect of one decision can depend on another.
        before = np.inf
        while distance(gradient) < before:
            before = distance(gradient)
            for (_, k), places in sorted(alike.items()):
                if worst(gradient) <= TOLERANCE:
                    break
                reverse = lambda: [flips[k].__setitem__(at, not flips[k][at]) for at in places]
                reverse()
                other = self.gradient(self.parameters, data, flips)[1]
                if distance(other) < distance(gradient):
                    gradient = other
                else:
                    reverse()
        self.tried_otherwise[step] = sum(int(flip.sum()) for flip in flips)
        return gradient


class Anything:
    """Flips that reverse no decision, for recording the shapes of all decisions."""

    def __getitem__(self, _):
        return False


def grouped(arrays, size):
    return [tuple(arrays[i : i + size]) for i in range(0, len(arrays), size)]


def flat(layers):
    return [np.asarray(array) for layer in layers for array in layer]


def check_gan(trace, networks, rate, data):
    """Repeats both networks of a student. `networks` has their functions, and `data` finds the random inputs of a discriminator's pass."""
    arrays = lambda found: [jnp.asarray(array) for array in found]
    layers = lambda found: [*grouped(arrays(found[:-3]), 2), tuple(arrays(found[-3:]))]
    adam = lambda trained: lambda p, g, state, step: student.adam(p, g, state, step, trained(p), rate)
    discriminator = Network(
        trace, "discriminator/", "start/discriminator", lambda found: grouped(arrays(found), 3), flat,
        networks.discriminator_loss, adam(student.trained_discriminator),
    )  # fmt: skip
    generator = Network(
        trace, "generator/", "start/generator", layers, flat,
        networks.generator_loss, adam(student.trained_generator),
    )  # fmt: skip
    latent, images = jnp.asarray(trace.input("initial/latent")), trace.input("initial/images")
    found = networks.initialisation(discriminator.parameters, images, data("initial"))
    found += networks.generator_initialisation(generator.parameters, latent, images.shape)
    for what, array, reference in found:
        trace.rows.append((0, "updates", f"initial/{what}", deviation(np.asarray(array), np.asarray(reference))))
    for step in range(1, STEPS + 1):
        name = f"{step}/discriminator"
        labelled, unlabelled, latent = (jnp.asarray(trace.input(f"{name}/{what}")) for what in ["labelled", "unlabelled", "latent"])
        labels = jnp.asarray(trace.input(f"{name}/labels"), jnp.int32)
        generated = networks.generate(generator.parameters, latent, unlabelled.shape)
        discriminator.step(step, (generated, labelled, labels, unlabelled, arrays(data(name))))

        name = f"{step}/generator"
        unlabelled, latent = (jnp.asarray(trace.input(f"{name}/{what}")) for what in ["unlabelled", "latent"])
        generator.step(step, (discriminator.parameters, unlabelled, latent, arrays(data(name))))
    if not discriminator.resumes:
        for network in (discriminator, generator):
            for index, array in enumerate(network.back(network.parameters)):
                trace.compare("end", "updates", f"end/{network.name}{index}", array)
    return [discriminator, generator]


def check_student(trace):
    return check_gan(trace, student, student.LEARNING_RATE, lambda name: standard(trace.inputs(f"{name}/noise")))


def check_conv_student(trace):
    return check_gan(trace, conv_student, conv_student.LEARNING_RATE, lambda name: trace.inputs(f"{name}/mask"))


def standard(noise):
    """Returns the recorded noise of every layer, divided by its deviation to be standard normal."""
    sigmas = [student.INPUT_NOISE] + [student.HIDDEN_NOISE] * (len(noise) - 1)
    noise = [values / sigma for values, sigma in zip(noise, sigmas)]
    for values in noise:
        # Five standard errors of mean and deviation: about one false alarm in 10^6.
        assert abs(values.mean()) < 5 / values.size**0.5 and abs(values.std() - 1) < 5 / (2 * values.size) ** 0.5
    return noise


def check_teacher(trace, kind):
    """Repeats a teacher. In the trace, the reference network's convolutions are [outputs, inputs, height, width], and its
    first dense layer reads maps channel by channel. Convolutions of the other networks are kernels [height, width, inputs, outputs] as
    one matrix."""
    start, images = trace.inputs("start"), trace.input("1/images")
    if kind == "deeper":
        sides = [3, 3, 3, 3, 3, 3, 5]
        turn = {2 * i: lambda a, k=k: a.reshape(k, k, -1, a.shape[1]) for i, k in enumerate(sides)}
        turn_back = {2 * i: lambda a: a.reshape(-1, a.shape[-1]) for i in range(len(sides))}
        loss, optimiser = teacher.deeper_loss, lambda p, g, state, step: teacher.sgd(p, g, state, step, 0.08)
    elif kind == "reference":
        rows, columns = (-(-(-(-size // 2)) // 2) for size in images.shape[1:3])
        maps = start[2].shape[0]
        turn = {0: lambda a: a.transpose(2, 3, 1, 0), 2: lambda a: a.transpose(2, 3, 1, 0)}
        turn[4] = lambda a: a.reshape(maps, rows, columns, -1).transpose(1, 2, 0, 3).reshape(a.shape)
        turn_back = {0: lambda a: a.transpose(3, 2, 0, 1), 2: lambda a: a.transpose(3, 2, 0, 1)}
        turn_back[4] = lambda a: a.reshape(rows, columns, maps, -1).transpose(2, 0, 1, 3).reshape(a.shape)
        loss, optimiser = teacher.reference_loss, lambda p, g, state, step: teacher.sgd(p, g, state, step, 0.01)
    else:
        turn = {0: lambda a: a.reshape(5, 5, -1, a.shape[1]), 2: lambda a: a.reshape(5, 5, -1, a.shape[1])}
        turn_back = {0: lambda a: a.reshape(-1, a.shape[-1]), 2: lambda a: a.reshape(-1, a.shape[-1])}
        rate = lambda step: 4e-3 * 0.5 * (1 + jnp.cos(jnp.pi * (step - 1) / 300))
        loss, optimiser = teacher.small_loss, lambda p, g, state, step: teacher.adam(p, g, state, step, rate(step))

    same = lambda array: array
    there = lambda arrays: grouped([jnp.asarray(turn.get(i, same)(array)) for i, array in enumerate(arrays)], 2)
    back = lambda layers: [turn_back.get(i, same)(array) for i, array in enumerate(flat(layers))]
    network = Network(trace, "", "start", there, back, loss, optimiser)
    for step in range(1, STEPS + 1):
        labels = jnp.asarray(trace.input(f"{step}/labels"), jnp.int32)
        network.step(step, (jnp.asarray(trace.input(f"{step}/images")), labels))
    if not network.resumes:
        for index, array in enumerate(back(network.parameters)):
            trace.compare("end", "updates", f"end/{index}", array)
    return [network]


def table(trace, networks):
    """Returns, for every step, the largest deviations, the array that deviates most, and the reversed decisions."""
    kinds = ["losses", "gradients", "updates"]
    lines = [f"| step | {' | '.join(kinds)} | largest in | kinks |", "|---|---:|---:|---:|---|---:|"]
    for step in dict.fromkeys(row[0] for row in trace.rows):
        rows = [row for row in trace.rows if row[0] == step]
        cells = [max((row[3] for row in rows if row[1] == kind), default=None) for kind in kinds]
        cells = ["-" if cell is None else f"{cell:.1e}" for cell in cells]
        title = {0: "initialisation", "end": "parameters at the end"}.get(step, step)
        flipped = sum(network.tried_otherwise.get(step, 0) for network in networks)
        lines.append(f"| {title} | {' | '.join(cells)} | {max(rows, key=lambda row: row[3])[2]} | {flipped} |")
    return "\n".join(lines)


def main():
    folder, write = Path(sys.argv[1]), "--fixtures" in sys.argv[2:]
    failed = []
    for name in [*FIXTURES, "student", "small", "reference", "deeper", "conv-student"]:
        trace, kind = Trace(folder / name), name.removesuffix("-tiny")
        checks = {"student": check_student, "conv-student": check_conv_student}
        networks = checks[kind](trace) if kind in checks else check_teacher(trace, kind)
        worst = max(row[3] for row in trace.rows)
        print(f"\n## {name}: largest deviation {worst:.1e}\n\n{table(trace, networks)}", flush=True)
        if not worst <= TOLERANCE:
            failed.append(name)
        elif write and name in FIXTURES:
            FIXTURES[name].write_text(json.dumps(trace.fixture()) + "\n")
            print(f"\nwritten: {FIXTURES[name].relative_to(ROOT)}")
    if failed:
        sys.exit(f"\nabove {TOLERANCE:g}: {', '.join(failed)}")


if __name__ == "__main__":
    main()
