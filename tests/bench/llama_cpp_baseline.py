#!/usr/bin/env python3
"""Measures llama.cpp on what engine_bench measures, and prints {"prefill": x, "decode": y}.

    llama_cpp_baseline.py MODEL [--quick]

512 prompt tokens, then 64 decoded, 2 threads, the best of some rounds. Needs the Python package
llama-cpp-python; without it, exits with 3. The repacking to other kernels (use_extra_bufts) is off:
its AMX path crashes where the processor has AMX and the operating system withholds it.
"""
import json
import sys
import time

PROMPT_TOKENS = 512
DECODE_TOKENS = 64


def load(path):
    import llama_cpp
    defaults = llama_cpp.llama_model_default_params

    def without_extra_buffers():
        parameters = defaults()
        parameters.use_extra_bufts = False
        return parameters

    llama_cpp.llama_cpp.llama_model_default_params = without_extra_buffers
    llama_cpp.llama_model_default_params = without_extra_buffers
    return llama_cpp.Llama(path, n_ctx=1024, n_batch=PROMPT_TOKENS, n_threads=2,
                           n_threads_batch=2, verbose=False)


def main(path, rounds):
    try:
        model = load(path)
    except ImportError:
        print("llama-cpp-python is not installed", file=sys.stderr)
        return 3
    prompt = [i * 7919 % (model.n_vocab() - 100) + 100 for i in range(PROMPT_TOKENS)]
    prefill = decode = 0
    for _ in range(rounds):
        model.reset()
        start = time.perf_counter()
        model.eval(prompt)
        prefill = max(prefill, PROMPT_TOKENS / (time.perf_counter() - start))
        start = time.perf_counter()
        for token in prompt[:DECODE_TOKENS]:
            model.eval([token])
        decode = max(decode, DECODE_TOKENS / (time.perf_counter() - start))
    print(json.dumps({"prefill": prefill, "decode": decode}))
    return 0


sys.exit(main(sys.argv[1], 2 if "--quick" in sys.argv else 5))
