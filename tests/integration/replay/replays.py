"""Runs `cairn replay --json` in a folder of its own, and compares it with its prediction."""
import json
import pathlib
import subprocess
import tempfile


def replay(binary, trace, *arguments, prefix="cairn-replay-"):
    """The report of a replay that ended well, as a dictionary."""
    with tempfile.TemporaryDirectory(prefix=prefix) as folder:
        done = subprocess.run(
            [binary, "replay", str(trace), "--data", str(pathlib.Path(folder) / "data"), "--predict",
             "--json", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def predict(binary, trace, *arguments):
    """What the simulator expects of a store, as a dictionary."""
    done = subprocess.run([binary, "replay", str(trace), "--predict-only", "--json", *arguments],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["predicted"]


def check_report(test, report, below_lru_max=None):
    """Exact, within a point of what was predicted, and within the rewrite budget."""
    predicted = report["predicted"]
    rates = (f"measured {report['hit_rate']:.4f}, predicted {predicted['hit_rate']:.4f}, "
             f"LRU {predicted['lru_hit_rate']:.4f}")
    test.assertEqual(report["wrong_bytes"], 0)
    test.assertEqual(report["puts_failed"], 0)
    test.assertLessEqual(abs(report["hit_rate"] - predicted["hit_rate"]), 0.01, rates)
    test.assertLessEqual(report["write_amplification"], 1.3)
    if below_lru_max is not None:
        test.assertGreaterEqual(report["hit_rate"], predicted["lru_hit_rate"] - below_lru_max, rates)


def describe(name, report):
    """One row of the table in docs/benchmarks.md."""
    predicted = report["predicted"]
    return (f"| {name} | {report['hit_rate']:.2%} | {predicted['hit_rate']:.2%} | "
            f"{predicted['lru_hit_rate']:.2%} | {report['write_amplification']:.3f} | "
            f"{report['seconds']:.0f} s |")
