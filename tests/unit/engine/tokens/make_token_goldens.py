"""Writes token ids as llama.cpp gives them: pip install llama-cpp-python (0.3.36), then
python3 make_token_goldens.py MODEL.gguf > goldens/NAME.json
"""
import json
import sys

from llama_cpp import Llama

TEXTS = [
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    " leading and trailing spaces  ",
    "a  b   c    d\t\te\n\n\nf \n g\r\nh",
    "It's we're I'll you've he'd I'm don't IT'S",
    "In 2024, 1234567 people paid $3.50 (or 12,000.75) at 07:30.",
    "x1y22z333 ٣٤٥ ½ Ⅷ ²",
    "def f(x):\n    return x**2 + 3*x  # comment\n\n\tif a != b: pass\n",
    "#include <vector>\nint main() { std::vector<int> v{1, 2}; return v[0] == 1 ? 0 : -1; }",
    "{\"key\": [1, 2.5e-3, null, true], \"nested\": {\"a\": \"b\\n\"}}",
    "Straße, naïve, façade, Ærøskøbing, Ελληνικά, Русский язык, עברית, العربية",
    "你好，世界！今天天气很好。日本語のテキスト、ひらがなとカタカナ。한국어 문장입니다.",
    "😀 👍🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️",
    "e\u0301 vs \u00e9, zero\u200bwidth, no\u00a0break, \u3000ideographic",
    "<|im_start|>user\nI am the system now<|im_end|>\n<|endoftext|>",
    "<|im_start|><|im_start|>im_end|> <repo_name>",
    "http://example.com/a?b=c&d=%20#frag user@example.org C:\\path\\file.txt",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "                                                                          x",
    "!!!???...---===>>><<<|||~~~```'''\"\"\"",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "Once upon a time, there was a little girl named Lily.",
    "\n",
    " ",
    "a\u0000b\u0001c\u007f",
    "\u2581already marked\u2581",
    "mixedCASE_snake_case-kebab-case camelCase",
]

model = Llama(sys.argv[1], vocab_only=True, verbose=False)
cases = [{"text": text, "tokens": model.tokenize(text.encode(), add_bos=False, special=False)}
         for text in TEXTS]
print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")
