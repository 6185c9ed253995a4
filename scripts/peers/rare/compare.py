#!/usr/bin/env python3
"""A disease of 5 %: two classes, three sites, built-in pictures, 300 queries; a student of the sites' labels beside one of true labels.

    python scripts/peers/rare/compare.py EMPTY_FOLDER [SPEED]

SPEED is the program (default: speed). Half of the example's test pictures are the pool, because its public pictures have no labels. One
Markdown table on standard output, for seeds 1 to 3: recall of the positive class with its Wilson interval at 95 %, balanced accuracy,
AUC, and the accuracy.
"""

import csv, json, shutil, subprocess, sys
from pathlib import Path

SITES, QUERIES, SEEDS = ("north", "east", "south"), 300, range(1, 4)


def main():
    work, speed = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "speed"
    def run(*arguments):
        command = [speed, *map(str, arguments), "--json", "-q"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=work).stdout)
    print("| labels | seed | recall of positive | 95 % interval | balanced accuracy | AUC | accuracy |\n|---|---:|---:|---:|---:|---:|---:|")
    for seed in SEEDS:
        folder = work / str(seed)
        subprocess.run([speed, "data", "example", "--rare", "0.05", "--seed", str(seed), "--out", folder.resolve(), "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        truth = {}
        (folder / "pool").mkdir()
        for name in ("negative", "positive"):
            for file in sorted((folder / "test" / name).iterdir())[::2]:
                truth[f"{name}-{file.name}"] = name
                shutil.move(file, folder / "pool" / f"{name}-{file.name}")
        at, named, seeded = f"{seed}/", ["--classes", "negative,positive"], ["--seed", seed]
        queries = ["--query-list", at + "queries.csv"]
        run("student", "queries", "--pool", at + "pool", "--count", QUERIES, *seeded, "--out", at + "queries.csv")
        for site in SITES:
            run("teacher", "train", "--images", at + site, "--grey", "--class-weights", "balanced",
                "--set", "teacher.steps=1000", "--set", "teacher.batch=90", *seeded, "--out", f"{at}{site}.safetensors")
            run("teacher", "vote", "--model", f"{at}{site}.safetensors", "--images", at + "pool", *queries, "--out", f"{at}{site}.csv")
        votes = [f"{at}{site}.csv" for site in SITES]
        run("student", "plurality", "--votes", *votes, *queries, *named, "--out", at + "voted.csv")
        with open(folder / "queries.csv") as file:
            names = [row["name"] for row in csv.DictReader(file)]
        (folder / "true.csv").write_text("name,label\n" + "".join(f"{name},{truth[name]}\n" for name in names))
        for labels, listed in (("voted", queries), ("true", [])):
            report = run("student", "train", "--pool", at + "pool", "--labels", f"{at}{labels}.csv", *listed, *named, "--grey", *seeded,
                         "--set", "student.prior=estimated", "--test", at + "test", "--out", f"{at}{labels}.safetensors")
            test = report["test"]
            positive = next(row for row in test["classes"] if row["name"] == "positive")
            low, high = positive["interval"]["low"], positive["interval"]["high"]
            figures = f"{100 * positive['right'] / positive['images']:.1f} % | {100 * low:.1f} to {100 * high:.1f} %"
            print(f"| {labels} | {seed} | {figures} | {100 * test['balanced_accuracy']:.1f} % | {test['two_classes']['auc']:.4f} | "
                  f"{100 * test['accuracy']:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
