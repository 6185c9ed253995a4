#!/usr/bin/env python3
"""Small tasks with photographs, as a new user does them: three unequal sites, 100 voted labels, one student, commands of
docs/first-model.md.

    pip install pillow
    python scripts/peers/photographs/tasks.py SPEED ENCODER.onnx CIFAR WORK

SPEED is the program, CIFAR has the pictures train/CLASS/* and test/CLASS/* of CIFAR-10, WORK is an empty folder. Prints a Markdown
table: accuracy on 1000 test pictures with voted labels of typical pictures, with true labels of the same pictures, and with
voted labels of groups; seeds 1 to 3. The commands encode the pictures anew each time; everything else takes seconds.
"""

import csv, json, subprocess, sys
from pathlib import Path
from PIL import Image

TASKS = {
    "cat, deer, dog, horse, 32 x 32 pixels": (["cat", "deer", "dog", "horse"], None),
    "airplane, automobile, frog, ship, 300 x 200 pixels": (["airplane", "automobile", "frog", "ship"], (300, 200)),
}
SITES = {"north": 400, "east": 200, "south": 100}  # pictures of each class
POOL, TEST, LABELS, SEEDS = 250, 250, 100, range(1, 4)


def folders(cifar, work, classes, size):
    def write(source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.open(source).convert("RGB")
        (picture.resize(size, Image.BICUBIC) if size else picture).save(target, quality=95)
    for name in classes:
        files = sorted((cifar / "train" / name).iterdir())
        for site, count in [*SITES.items(), ("public", POOL)]:
            for file in files[:count]:
                folder = work / site if site == "public" else work / site / name
                write(file, folder / f"{name}-{file.stem}.jpg")
            files = files[count:]
        for file in sorted((cifar / "test" / name).iterdir())[:TEST]:
            write(file, work / "test" / name / file.name)


def accuracies(speed, work, encoder, classes, seed):
    """Returns the accuracies of three students, by the words of their labels."""
    def run(*arguments):
        result = subprocess.run([speed, *map(str, arguments), "--json", "-q"], cwd=work, capture_output=True, text=True)
        if result.returncode:
            raise SystemExit(f"{arguments}: {result.stderr}")
        return json.loads(result.stdout)
    encoded, seeded, named = ["--encoder", encoder, "--set", "features.mirror=true"], ["--seed", seed], ["--classes", ",".join(classes)]
    def student(name, *labels):
        report = run("student", "train", "--pool", "public", "--labels", *labels, *encoded, *seeded, *named, "--test", "test",
                     "--out", f"{name}-{seed}.safetensors")
        return report["test"]["accuracy"]
    for site in SITES:
        run("teacher", "train", "--images", site, *encoded, *seeded, "--out", f"{site}-{seed}.safetensors")
    found = {}
    for kind in ("clusters", "groups"):
        queries, labels, votes = f"{kind}-{seed}.csv", f"{kind}-{seed}-labels.csv", [f"{site}-{kind}-{seed}.csv" for site in SITES]
        run("student", "queries", "--pool", "public", "--count", LABELS, f"--{kind}", *encoded, *seeded, "--out", queries)
        for site, file in zip(SITES, votes):
            run("teacher", "vote", "--model", f"{site}-{seed}.safetensors", "--encoder", encoder, "--images", "public",
                "--query-list", queries, "--out", file)
        run("student", "plurality", "--votes", *votes, "--query-list", queries, *named, "--out", labels)
        found[f"voted labels of {'typical pictures' if kind == 'clusters' else 'groups'}"] = student(kind, labels, "--query-list", queries)
    with open(work / f"clusters-{seed}.csv") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    (work / f"true-{seed}.csv").write_text("name,label\n" + "".join(f"{name},{name.split('-')[0]}\n" for name in names))
    found["true labels of typical pictures"] = student("true", f"true-{seed}.csv")
    return found


def main():
    speed, encoder, cifar, work = (Path(argument).resolve() for argument in sys.argv[1:])
    print(f"| task | {LABELS} labels | mean | lowest |\n|---|---|---:|---:|")
    for place, (task, (classes, size)) in enumerate(TASKS.items()):
        folder, found = work / str(place), {}
        folders(cifar, folder, classes, size)
        for seed in SEEDS:
            for labels, value in accuracies(str(speed), folder, str(encoder), classes, seed).items():
                found.setdefault(labels, []).append(100 * value)
            print(task, seed, found, file=sys.stderr)
        for labels, values in found.items():
            print(f"| {task} | {labels} | {sum(values) / len(values):.1f} % | {min(values):.1f} % |")


if __name__ == "__main__":
    main()
