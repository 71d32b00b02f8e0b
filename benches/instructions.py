#!/usr/bin/env python3
"""Instructions per element in the inner loops of a function: a figure that no noise moves.

    python benches/instructions.py examples/softmax.fold [--onefold target/release/onefold] [--cpu avx512]

Reads the assembly that the LLVM backend makes. An inner loop is a backward jump with no other loop inside; its step is the
largest number that it adds to a register. Loops with masks or with a quarter of the largest step are tails
and are left out.
"""

import argparse
import re
import subprocess

LABEL = re.compile(r"^(\.LBB\d+_\d+):")
JUMP = re.compile(r"^\tj\w+\t(\.LBB\d+_\d+)")
ADD = re.compile(r"^\t(?:addq\t\$(-?\d+)|subq\t\$(-?\d+)|leaq\t(\d+)\(%\w+\)), ?%?(\w+)")
VECTOR = re.compile(r"%[xyz]mm")


def inner_loops(lines):
    """Line ranges from a label to the jump back to it, innermost only."""
    labels = {m.group(1): n for n, line in enumerate(lines) if (m := LABEL.match(line))}
    loops = [
        (labels[m.group(1)], n)
        for n, line in enumerate(lines)
        if (m := JUMP.match(line)) and labels.get(m.group(1), n) < n
    ]
    contains = lambda outer, inner: outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]
    return [loop for loop in loops if not any(contains(loop, other) for other in loops)]


def is_instruction(line):
    return line.startswith("\t") and not line.startswith("\t.") and not line.startswith("\t#")


def step(body):
    adds = [m for line in body if (m := ADD.match(line))]
    return max((abs(int(m.group(1) or m.group(2) or m.group(3))) for m in adds), default=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--onefold", default="target/release/onefold")
    parser.add_argument("--cpu", default="avx512")
    parser.add_argument("--form", default="fused")
    args = parser.parse_args()
    words = [args.onefold, "inspect", args.file, "--stage", "asm", "--backend", "llvm"]
    words += ["--cpu", args.cpu, "--form", args.form]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    loops = []
    for first, last in inner_loops(lines):
        body = [line for line in lines[first : last + 1] if is_instruction(line)]
        vectors = sum(bool(VECTOR.search(line)) for line in body)
        if vectors and not any("{%k" in line for line in body):
            loops.append((first, body, vectors, step(body)))
    whole = max((elements for *_, elements in loops), default=0)
    total = 0.0
    for first, body, vectors, elements in loops:
        # A tail goes vector by vector where the loop before it goes four at a time.
        if 4 * elements <= whole:
            continue
        total += len(body) / elements
        print(f"{lines[first]:12} {len(body):4} instructions ({vectors} on vectors), {elements:3} elements: {len(body) / elements:.2f} each")
    print(f"all loops: {total:.2f} instructions an element")


if __name__ == "__main__":
    main()
