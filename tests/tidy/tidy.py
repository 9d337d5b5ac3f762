"""Runs one tidy rule over the tree, or the rules' own tests.

Usage: tidy.py layers|bans|awaits|purpose|sizes|readmes
Prints one line per violation; exit code 1 when there is any.
"""
import json
import sys

import rules
import source_tree as tree


def each_file(check, folders=tree.CODE_FOLDERS):
    for path in tree.cpp_files(folders):
        relative = path.relative_to(tree.ROOT).as_posix()
        yield from check(relative, path.read_text(errors="replace"))


def layers():
    known = tree.all_layers()
    yield from rules.cycles(known)
    for layer in known.values():
        for used in layer.uses:
            if used not in known:
                yield f"{layer.folder}/CMakeLists.txt: USES {used}, which is no kv_layer"
    yield from each_file(lambda path, text: rules.includes(known, path, text), tree.PRODUCT_FOLDERS)
    yield from each_file(lambda path, text: rules.in_some_target(known, path), tree.PRODUCT_FOLDERS)


def sizes():
    exceptions = json.loads((tree.ROOT / "tests/tidy/size_exceptions.json").read_text())
    return each_file(lambda path, text: rules.sizes(path, text, exceptions))


def readmes():
    for layer in tree.all_layers().values():
        readme = tree.ROOT / layer.folder / "README.md"
        if not readme.exists():
            yield f"{layer.folder}/README.md: is missing: what it is for, what it may use, in which order to read it"
        else:
            yield from rules.readme_uses(layer, readme.read_text())


CHECKS = {
    "layers": layers,
    "bans": lambda: each_file(rules.bans),
    "awaits": lambda: each_file(rules.awaits_that_go_wrong),
    "purpose": lambda: each_file(rules.purpose_line),
    "sizes": sizes,
    "readmes": readmes,
}


def main():
    violations = list(CHECKS[sys.argv[1]]())
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
