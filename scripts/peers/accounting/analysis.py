"""Compares the paper's published computation of epsilon, in Python, with `speed account` on the same votes and formulas, in one run.

For every query the published analysis integrates Theorem 2's densities with scipy's quadrature, bounds q with Proposition 4,
and adds Theorem 3's moments for l = 1..25 (Algorithm 1, with ln delta). This is a re-implementation from the paper's
formulas, not the authors' code.

    pip install -r scripts/peers/accounting/requirements.txt
    cargo build --release
    python scripts/peers/accounting/analysis.py VOTES.npy [INDICES.npy | A..B]
"""

import json
import math
import subprocess
import sys
import time

import numpy as np
from scipy import integrate, special

GAMMA, DELTA, ORDERS = 0.1, 1e-5, range(1, 26)


def per_query_epsilon(gamma, tau):
    """Computes Theorem 2 by nested quadrature, as published."""
    if tau == 1:
        return 2 * gamma

    def i(v):
        # The substitution t = s^(1/tau) removes the singularity at the end of the integral.
        f = lambda s: (s ** (1 / tau) + v) ** (tau - 1) * math.exp(-2 * s ** (1 / tau)) / tau
        return integrate.quad(f, 0, np.inf)[0]

    density = lambda v: math.exp(-v) * i(v)
    near = integrate.quad(density, 0, gamma)[0]
    half = special.gamma(tau) ** 2 / 2
    far = half - integrate.quad(density, 0, 2 * gamma)[0]
    first = math.log(1 + 2 * near / far)
    if tau <= 0.5:
        return first
    slope = gamma * (half * math.exp(-2 * gamma) * i(2 * gamma) - i(0) * far) / far**2
    inside = half / far - slope
    return min(first, math.log(inside)) if inside > 0 else first


def q_bound(counts, gamma, tau):
    """Proposition 4."""
    winner = int(np.argmax(counts))
    x = gamma * (counts[winner] - np.delete(counts, winner))
    if tau > 0.5:
        terms = x ** (2 * tau - 1) / (tau * 2 ** (4 * tau - 2) * special.gamma(tau) ** 2)
    else:
        c = (1.5 * tau) ** (1.5 * tau) * (2 / tau - 3) ** (1 - 1.5 * tau)
        terms = c * x ** (tau / 2) / (tau * 2 ** (2.5 * tau - 1) * special.gamma(tau) ** 2)
    return min(float(np.sum(np.exp(-x) * (0.5 + terms))), 1 - 1 / len(counts))


def moment(epsilon, q, l):
    """Theorem 3."""
    least = min(epsilon * l, epsilon**2 * l * (l + 1) / 2)
    if q < 1 / (1 + math.exp(epsilon)):
        inside = (1 - q) * ((1 - q) / (1 - math.exp(epsilon) * q)) ** l + q * math.exp(epsilon * l)
        least = min(least, math.log(inside))
    return least


def epsilon_of(votes, tau):
    """Algorithm 1; the privacy cost is computed for each query, as published."""
    total = np.zeros(len(ORDERS))
    for counts in votes:
        epsilon = per_query_epsilon(GAMMA, tau)
        q = q_bound(counts, GAMMA, tau)
        total += [moment(epsilon, q, l) for l in ORDERS]
    return min((alpha - math.log(DELTA)) / l for alpha, l in zip(total, ORDERS))


def speed(arguments):
    start = time.perf_counter()
    output = subprocess.run(["target/release/speed", "account", "--json", *arguments], capture_output=True, check=True)
    return json.loads(output.stdout), time.perf_counter() - start


def main():
    votes, which = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else None)
    rows = np.load(votes).astype(float)
    arguments = ["--votes", votes, "--gamma", str(GAMMA), "--delta", str(DELTA)]
    if which and ".." in which:
        first, last = map(int, which.split(".."))
        rows, arguments = rows[first:last], [*arguments, "--rows", which]
    elif which:
        rows, arguments = rows[np.load(which)], [*arguments, "--queries", which]
    print(f"{len(rows)} queries, gamma {GAMMA}, delta {DELTA}; wall-clock seconds, process start included for speed")
    print(f"{'tau':>4} {'method':<34} {'epsilon':>9} {'seconds':>9}")
    for tau in (1.0, 0.9, 0.7):
        start = time.perf_counter()
        peer = epsilon_of(rows, tau)
        print(f"{tau:>4} {'paper, scipy quadrature per query':<34} {peer:>9.5f} {time.perf_counter() - start:>9.3f}")
        for name, extra in (
            ("paper, speed", ["--mechanism", "laplace", "--bound", "paper"]),
            ("tight, both directions, speed", []),
        ):
            found, seconds = speed([*arguments, *extra, "--honest-ratio", str(tau)])
            print(f"{tau:>4} {name:<34} {found['epsilon']:>9.5f} {seconds:>9.3f}")
            if name == "paper, speed":
                assert abs(found["epsilon"] / peer - 1) < 1e-6, (found["epsilon"], peer)


if __name__ == "__main__":
    main()
