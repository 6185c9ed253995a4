#!/usr/bin/env python3
"""The student of docs/first-model.md with other queries, and seeds 1 to 5 of `speed student queries`.

    python scripts/peers/first-model/groups.py FOLDER [SPEED]

FOLDER holds the files of the guide's steps 1 and 3: trial/, north.safetensors, east.safetensors and south.safetensors; SPEED is the
program (default: speed). One Markdown table on standard output.
"""

import csv, json, subprocess, sys, tempfile
from pathlib import Path

KINDS = {
    "12 groups": ["--count", "12", "--groups", "--grey"],
    "20 groups": ["--count", "20", "--groups", "--grey"],
    "40 random pictures": ["--count", "40"],
}
SITES, SEEDS = ("north", "east", "south"), range(1, 6)


def student(folder, speed, work, choice, seed):
    """Returns the accuracy in per cent, and the number of classes that the labels have."""
    def run(*arguments):
        return json.loads(subprocess.run([speed, *arguments, "--json", "-q"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    pool, listed = ["--pool", folder / "trial/public"], ["--query-list", work / "queries.csv"]
    run("student", "queries", *pool, *choice, "--seed", str(seed), "--out", work / "queries.csv")
    votes = [work / f"{site}.csv" for site in SITES]
    for site, out in zip(SITES, votes):
        run("teacher", "vote", "--model", folder / f"{site}.safetensors", "--images", folder / "trial/public", *listed, "--out", out)
    run("student", "plurality", "--votes", *votes, *listed, "--classes", "10", "--out", work / "labels.csv")
    report = run("student", "train", *pool, "--labels", work / "labels.csv", *listed, "--test", folder / "trial/test", "--grey",
                 "--seed", "1", "--out", work / "student.safetensors")
    with open(work / "labels.csv", newline="") as file:
        classes = {row["label"] for row in csv.DictReader(file) if row["label"]}
    return 100 * report["test"]["accuracy"], len(classes)


def main():
    folder, speed = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "speed"
    rows = []
    for kind, choice in KINDS.items():
        found = []
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as work:
                found.append(student(folder, speed, Path(work), choice, seed))
            print(kind, seed, *found[-1], file=sys.stderr)
        accuracies, classes = zip(*found)
        rows.append((kind, [f"{value:.1f}" for value in [*accuracies, sum(accuracies) / len(accuracies)]], classes))
    heads = " | ".join([f"seed {seed}" for seed in SEEDS])
    print(f"| queries | {heads} | mean |\n|---|{'---:|' * (len(SEEDS) + 1)}")
    for kind, cells, _ in rows:
        print(f"| {kind} | {' | '.join(cells)} |")
    print(f"\n| queries | {heads} |\n|---|{'---:|' * len(SEEDS)}")
    for kind, _, classes in rows:
        print(f"| classes of {kind} | {' | '.join(map(str, classes))} |")


if __name__ == "__main__":
    main()
