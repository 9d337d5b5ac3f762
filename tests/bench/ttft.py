"""Time to first token of a prompt of about 4,000 tokens, cold and warm, over HTTP.

    ttft.py CAIRN_BINARY MODEL.gguf [--rounds N] [--json FILE]

Each round asks a prompt that nobody asked before (cold), then the same again (warm), then restarts
the process and asks once more (warm after a restart). Prints medians and their ratio.
"""
import argparse
import http.client
import json
import pathlib
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration" / "stack"))
from cairn_process import Cairn, cached  # noqa: E402

PROMPT_WORDS = 3600  # About 4,000 tokens of SmolLM2.
WORDS = ("the river carries cold water past stone houses where people keep their gardens and talk "
         "about weather bread and the price of wood in a voice that never hurries").split()


def prompt(seed):
    generator = random.Random(seed)
    return f"Story {seed}: " + " ".join(generator.choice(WORDS) for _ in range(PROMPT_WORDS))


def first_token(cairn, text):
    """(seconds to the first piece of text, usage)."""
    connection = http.client.HTTPConnection("127.0.0.1", cairn.port, timeout=600)
    body = json.dumps({"model": "test", "temperature": 0, "max_tokens": 4, "stream": True,
                       "stream_options": {"include_usage": True},
                       "messages": [{"role": "user", "content": text}]})
    begin = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(response.read().decode())
    first, usage = None, None
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        if first is None and any(choice["delta"].get("content") for choice in chunk["choices"]):
            first = time.perf_counter() - begin
        usage = chunk.get("usage") or usage
    connection.close()
    return first, usage


def measure(binary, model, rounds):
    cold, warm, restarted = [], [], []
    with tempfile.TemporaryDirectory(prefix="cairn-ttft-") as data:
        arguments = [binary, model, data, "--capacity", "6GiB"]
        with Cairn(*arguments) as cairn:
            first_token(cairn, "Hello")
            for seed in range(rounds):
                seconds, usage = first_token(cairn, prompt(seed))
                assert cached(usage) < 64, usage
                cold.append(seconds)
                seconds, usage = first_token(cairn, prompt(seed))
                assert cached(usage) > 0.95 * usage["prompt_tokens"], usage
                warm.append(seconds)
        with Cairn(*arguments) as cairn:
            first_token(cairn, "Hello")
            for seed in range(rounds):
                seconds, usage = first_token(cairn, prompt(seed))
                assert cached(usage) > 0.95 * usage["prompt_tokens"], usage
                restarted.append(seconds)
    tokens = usage["prompt_tokens"]
    return tokens, statistics.median(cold), statistics.median(warm), statistics.median(restarted)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    tokens, cold, warm, restarted = measure(options.binary, options.model, options.rounds)
    print(f"prompt of {tokens} tokens: cold {cold * 1e3:.0f} ms, warm {warm * 1e3:.0f} ms, "
          f"warm after a restart {restarted * 1e3:.0f} ms; warm/cold 1/{cold / warm:.0f}")
    figures = [{"name": "ttft.warm_over_cold", "value": warm, "unit": "s", "baseline": cold,
                "ratio": warm / cold},
               {"name": "ttft.restarted_over_cold", "value": restarted, "unit": "s",
                "baseline": cold, "ratio": restarted / cold}]
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
