"""Prints the expected values of quantize_test.cc with the Python package gguf (pip install gguf)."""
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize

for type_, size, halves in ((T.Q8_0, 34, [0]), (T.Q4_0, 18, [0]), (T.Q4_1, 20, [0, 2]),
                            (T.Q4_K, 144, [0, 2]), (T.Q6_K, 210, [208])):
    block = np.array([(i * 37 + 11) % 256 for i in range(size)], dtype=np.uint8)
    for half in halves:
        block[half:half + 2] = [0, (0x3c + half // 2) % 256]
    values = dequantize(block.reshape(1, size), type_)[0]
    eighths = [float(values[i]) for i in range(0, len(values), len(values) // 8)]
    print(type_.name, eighths, float(np.abs(values).sum()))
