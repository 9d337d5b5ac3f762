#!/usr/bin/env python3
"""Makes smollm2_greedy.txt: llama.cpp's greedy tokens for five prompts.

    pip install llama-cpp-python==0.3.36
    python3 make_golden.py SmolLM2-135M-Instruct.Q4_1.gguf > smollm2_greedy.txt

llama.cpp's logits for this file move by about 0.2 (at times 1) when nothing but the order of its
sums changes, as between its two attention kernels: activations are rounded to 8 bits in every
layer. Where two tokens are nearer than that, its greedy choice says nothing about right or wrong. So
the answer to a prompt ends before the first token whose lead over the second is below LEAD_MIN, or
where the two kernels disagree; of the candidates below, the first five with MIN_TOKENS or more count.

The candidates were widened until five qualified, so the texts are repetitive. They show that the
computation is right, not that free chat text agrees token for token: of the first five ordinary
prompts four diverged at near-ties (before activation scales were rounded to half as ggml does).

Weights are multiplied as they are in the file (use_extra_bufts off: no repacking to other kernels,
and no AMX, which crashes where the processor has it and the operating system withholds it).
"""
import hashlib
import sys

import llama_cpp
import numpy

LEAD_MIN = 0.75
MIN_TOKENS = 24
MAX_TOKENS = 64
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
STORY = (
    "The harbour town of Eldmere lay at the foot of a grey hill. Every morning the boats went out "
    "before the sun, and every evening the gulls followed them home. Marta kept the lighthouse. She "
    "wrote down the wind, the tide and the names of the ships in a blue book, as her mother had. "
    "In the winter of the long storm a ship with no name came in on the tide with no lights and no "
    "crew. In its hold there were forty clocks, all of them wound, all of them showing a different "
    "hour. Marta wrote the forty hours in the blue book and closed the door of the lighthouse. ")
LETTERS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
SENTENCE = "The cat sat on the mat. The dog lay by the door. The bird sang in the tree. "
CODE = "".join(f"def add_{n}(x):\n    return x + {n}\n\n" for n in range(1, 5))
# (the user's turn, the beginning of the assistant's)
CANDIDATES = [
    ("What is the capital of France?", ""),
    ("Count from 1 to 30.", "1, 2, 3, 4, 5, 6"),
    ("Write the alphabet in capital letters, separated by spaces.", LETTERS + "\n" + LETTERS[:9]),
    ("Say the same sentences again and again.", SENTENCE * 3 + "The cat"),
    ("Write functions that add 1, 2, 3 and so on.", CODE + CODE[:30]),
    ("Repeat this text word for word:\n" + STORY * 2, STORY + "The harbour town of Eldmere"),
]


def load(path, flash_attention):
    defaults = llama_cpp.llama_model_default_params

    def without_extra_buffers():
        parameters = defaults()
        parameters.use_extra_bufts = False
        return parameters

    llama_cpp.llama_cpp.llama_model_default_params = without_extra_buffers
    llama_cpp.llama_model_default_params = without_extra_buffers
    model = llama_cpp.Llama(path, n_ctx=2048, n_batch=512, n_threads=1, n_threads_batch=1,
                            flash_attn=flash_attention, verbose=False)
    llama_cpp.llama_cpp.llama_model_default_params = defaults
    llama_cpp.llama_model_default_params = defaults
    return model


def greedy(model, prompt):
    """The tokens, and the lead of each over the second best."""
    model.reset()
    model.eval(prompt)
    answer, leads = [], []
    while len(answer) < MAX_TOKENS:
        logits = numpy.ctypeslib.as_array(
            llama_cpp.llama_get_logits_ith(model.ctx, -1), shape=(model.n_vocab(),))
        second, best = numpy.sort(numpy.partition(logits, -2)[-2:])
        answer.append(int(numpy.argmax(logits)))
        leads.append(float(best - second))
        model.eval(answer[-1:])
    return answer, leads


def sure_answer(models, prompt):
    (first, first_leads), (second, second_leads) = [greedy(model, prompt) for model in models]
    for i, (a, b) in enumerate(zip(first, second)):
        if a != b or min(first_leads[i], second_leads[i]) < LEAD_MIN:
            return first[:i]
    return first


def main(path):
    models = [load(path, False), load(path, True)]
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    print(f"# llama-cpp-python {llama_cpp.__version__}, greedy; made by make_golden.py")
    print(f"# model sha256 {digest}")
    for user, assistant in CANDIDATES:
        chat = (f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n"
                f"<|im_start|>assistant\n{assistant}")
        prompt = models[0].tokenize(chat.encode(), add_bos=False, special=True)
        answer = sure_answer(models, prompt)
        print(f"{len(prompt):4} + {len(answer):2} tokens: {user[:40]!r}: "
              f"{models[0].detokenize(answer)!r}", file=sys.stderr)
        if len(answer) < MIN_TOKENS:
            continue
        print("prompt", *prompt)
        print("answer", *answer)


main(sys.argv[1])
