#!/usr/bin/env python3
"""Onefold beside ONNX Runtime, PyTorch and JAX, on the same arrays, in turns.

    cargo build --release --features llvm
    pip install -r benches/peers/requirements.txt      # what of it there is; peers that cannot be imported are left out
    python benches/peers/peers.py --onefold target/release/onefold --backend llvm

Every round times each contender once (the median of some calls after a warm-up), so that whatever else the machine does hits all
alike; the figure is the median over rounds. Results of peers are compared with ours before anything is timed. Ratios are
peer over Onefold: above 1 we are faster. `share` is Onefold's part of the read (or read and write) bandwidth measured by
`onefold bench` in the same run.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"

# Name, example, shapes of the inputs.
WORKS = {
    "softmax-1x16M": ("softmax", {"x": (1, 16 << 20)}),
    "softmax-64x262144": ("softmax", {"x": (64, 262144)}),
    "softmax-4096x1024": ("softmax", {"x": (4096, 1024)}),
    "softmax-65536x64": ("softmax", {"x": (65536, 64)}),
    "topk-4000x25000": ("softmax_topk", {"x": (4000, 25000)}),
    "topk-400x100000": ("softmax_topk", {"x": (400, 100000)}),
    "attention-12x512x64": ("attention", {n: (1, 12, 512, 64) for n in "qkv"}),
}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def onnx_runtime(kind, arrays, threads):
    """A session over one ONNX graph, as its own optimiser leaves it."""
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    inputs = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in arrays.items()]
    nodes, constants, outputs = [], [], ["p"]
    if kind == "attention":
        scale = np.float32(1 / np.sqrt(arrays["q"].shape[-1]))
        constants = [numpy_helper.from_array(scale, "scale")]
        nodes = [
            helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["q", "t"], ["s0"]),
            helper.make_node("Mul", ["s0", "scale"], ["s"]),
            helper.make_node("Softmax", ["s"], ["w"], axis=-1),
            helper.make_node("MatMul", ["w", "v"], ["p"]),
        ]
    else:
        nodes = [helper.make_node("Softmax", ["x"], ["p"], axis=-1)]
    if kind == "softmax_topk":
        constants = [numpy_helper.from_array(np.array([5], np.int64), "k")]
        nodes.append(helper.make_node("TopK", ["p", "k"], ["top", "at"], axis=-1))
        outputs = ["top", "at"]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs]
    graph = helper.make_graph(nodes, kind, inputs, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(outputs, arrays)


def pytorch(kind, arrays, threads):
    """Eager, with the fused attention that PyTorch has."""
    import torch

    torch.set_num_threads(threads)
    given = {n: torch.from_numpy(a) for n, a in arrays.items()}
    if kind == "attention":
        call = lambda: torch.nn.functional.scaled_dot_product_attention(given["q"], given["k"], given["v"])
    elif kind == "softmax_topk":
        call = lambda: torch.topk(torch.softmax(given["x"], -1), 5)
    else:
        call = lambda: torch.softmax(given["x"], -1)

    def run():
        with torch.inference_mode():
            result = call()
        return [r.numpy() for r in result] if isinstance(result, tuple) else [result.numpy()]

    return run


def jax_jit(kind, arrays, threads):
    """Compiled by XLA; the number of threads is XLA's own unless it is 1."""
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    import jax.numpy as jnp

    given = {n: jnp.asarray(a) for n, a in arrays.items()}
    formulas = {
        "softmax": lambda x: (jax.nn.softmax(x),),
        "softmax_topk": lambda x: tuple(jax.lax.top_k(jax.nn.softmax(x), 5)),
        "attention": lambda q, k, v: (jax.nn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v,),
    }
    compiled = jax.jit(formulas[kind])
    return lambda: [np.asarray(r.block_until_ready()) for r in compiled(**given)]


PEERS = {"ONNX Runtime": onnx_runtime, "PyTorch": pytorch, "JAX": jax_jit}


def reference(kind, arrays):
    """The first output in f64, of the first rows."""
    if kind == "attention":
        q, k, v = (arrays[n][:, :1].astype(np.float64) for n in "qkv")
        return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    p = softmax(arrays["x"][:4].astype(np.float64))
    return -np.sort(-p, -1)[:, :5] if kind == "softmax_topk" else p


def first_rows(kind, result):
    return result[:, :1] if kind == "attention" else result[:4]


def timed(call, calls):
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


class Onefold:
    """The command, on arrays in files."""

    def __init__(self, args, kind, arrays, folder):
        self.folder, self.threads = folder, str(args.threads)
        self.base = [args.onefold, "{}", str(EXAMPLES / f"{kind}.fold"), "--backend", args.backend]
        for name, array in arrays.items():
            file = folder / f"{name}.npy"
            np.save(file, array)
            self.base += ["--input", f"{name}={file}"]

    def call(self, command, *more):
        words = [command if w == "{}" else w for w in self.base] + ["--threads", self.threads, *more]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def result(self):
        out = self.folder / "out.npy"
        self.call("run", "--out", f"0={out}")
        return np.load(out)

    def bench(self, calls):
        return json.loads(self.call("bench", "--json", "--reps", str(calls)).splitlines()[0])


def measure(args, name):
    kind, shapes = WORKS[name]
    random = np.random.default_rng(1)
    arrays = {n: random.standard_normal(s, dtype=np.float32) for n, s in shapes.items()}
    want = reference(kind, arrays)
    with tempfile.TemporaryDirectory() as folder:
        ours = Onefold(args, kind, arrays, pathlib.Path(folder))
        np.testing.assert_allclose(first_rows(kind, ours.result()), want, rtol=2e-4, atol=2e-6)
        peers = {}
        for peer, prepare in PEERS.items():
            try:
                run = prepare(kind, arrays, args.threads)
            except ImportError as error:
                print(f"  {peer} is left out: {error}")
                continue
            np.testing.assert_allclose(first_rows(kind, run()[0]), want, rtol=2e-4, atol=2e-6)
            peers[peer] = run
        times = {peer: [] for peer in peers}
        lines = []
        for _ in range(args.rounds):
            lines.append(ours.bench(args.calls))
            for peer, run in peers.items():
                times[peer].append(timed(run, args.calls))
    mine = statistics.median(line["median_ms"] for line in lines)
    share = statistics.median(line["limit"]["share"] for line in lines)
    print(f"{name:22} Onefold {mine:9.3f} ms, {100 * share:3.0f} % of {lines[0]['limit']['kind']}", end="")
    for peer, values in times.items():
        # Paired: each round's ratio, then their median.
        ratio = statistics.median(t / line["median_ms"] for t, line in zip(values, lines))
        print(f"; {peer} {statistics.median(values):9.3f} ms, ratio {ratio:5.2f}", end="")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--onefold", default="target/release/onefold")
    parser.add_argument("--backend", default="cranelift")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("works", nargs="*", help=f"all, or some of {', '.join(WORKS)}")
    args = parser.parse_args()
    for name in args.works or WORKS:
        measure(args, name)


if __name__ == "__main__":
    main()
