"""The tree as the tidy rules see it: files, layers, and code without comments and strings."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT_FOLDERS = ("erasure", "kvstore", "engine", "gateway", "tools")
CODE_FOLDERS = PRODUCT_FOLDERS + ("tests",)


def cpp_files(folders=CODE_FOLDERS, root=ROOT):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu") and "build" not in path.parts:
                yield path


def strip_comments_and_strings(text):
    """Same length and line breaks; comments and the inside of literals become spaces."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
        re.DOTALL)

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    return pattern.sub(blank, text)


class Layer:
    def __init__(self, name, folder, uses, sources):
        self.name, self.folder, self.uses, self.sources = name, folder, uses, sources


KEYWORDS = ("EXCEPTIONS", "USES", "PACKAGES", "SOURCES")


def parse_layers(cmake_text, folder):
    """All kv_layer() calls of one CMakeLists.txt."""
    text = re.sub(r"#[^\n]*", "", cmake_text)
    for call in re.finditer(r"\bkv_layer\(([^)]*)\)", text):
        words = call.group(1).split()
        lists = {keyword: [] for keyword in KEYWORDS}
        current = None
        for word in words[1:]:
            if word in KEYWORDS:
                current = word
            elif current:
                lists[current].append(word)
        yield Layer(words[0], folder, lists["USES"], lists["SOURCES"])


def all_layers(root=ROOT):
    layers = {}
    for folder in PRODUCT_FOLDERS:
        for cmake in sorted((root / folder).rglob("CMakeLists.txt")):
            relative = cmake.parent.relative_to(root).as_posix()
            for layer in parse_layers(cmake.read_text(), relative):
                layers[layer.name] = layer
    return layers
