"""The rules of the tree, each a function that yields 'file:line: what is wrong, what to do'."""
import re

import source_tree as tree

FUNCTION_LINES_MAX = 70
HEADER_LINES_MAX = 200
SOURCE_LINES_MAX = 500
LINE_LENGTH_MAX = 100


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# --- Layers -----------------------------------------------------------------

def closure(layers, name):
    """Every layer whose headers `name` may include."""
    seen, todo = set(), [name]
    while todo:
        current = todo.pop()
        if current in seen or current not in layers:
            continue
        seen.add(current)
        todo.extend(layers[current].uses)
    return seen


def cycles(layers):
    for name in layers:
        for used in layers[name].uses:
            if used in layers and name in closure(layers, used):
                yield f"{layers[name].folder}/CMakeLists.txt: {name} and {used} use each other"


def owner_of(layers, path):
    """The layer whose folder is the longest prefix of `path`."""
    best = None
    for layer in layers.values():
        if path.startswith(layer.folder + "/") and (best is None or len(layer.folder) > len(best.folder)):
            best = layer
    return best


def includes(layers, path, text):
    """`path` is relative to the root."""
    owner = owner_of(layers, path)
    is_main = path.endswith("main.cc")
    for match in re.finditer(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
        target = owner_of(layers, match.group(1))
        if target is None or owner is None or is_main:
            continue
        if target.name != owner.name and target.name not in closure(layers, owner.name):
            yield (f"{path}:{line_of(text, match.start())}: {owner.name} may not include {match.group(1)}: "
                   f"its USES line does not name {target.name}")


def in_some_target(layers, path):
    """Every product source is listed in the CMakeLists.txt of its folder."""
    owner = owner_of(layers, path)
    listed = owner is not None and path[len(owner.folder) + 1:] in owner.sources
    if path.endswith(".cc") and not listed and not path.endswith("main.cc"):
        yield f"{path}:1: is in no kv_layer: list it under SOURCES"


# --- Bans -------------------------------------------------------------------

# (pattern, folders where it is allowed, what to use instead)
BANS = [
    (r"\b(steady_clock|system_clock|high_resolution_clock)::now", ("kvstore/os", "tests", "tools", "gateway", "engine/serve", "engine/compute"),
     "use Clock::Now (kvstore/io/clock.h)"),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b", ("kvstore/os",),
     "use Clock::SleepUntil, or wait for the event itself"),
    (r"\b(std::rand|srand|random_device|mt19937|uniform_\w+_distribution|normal_distribution)\b", ("kvstore/os",),
     "use Random (kvstore/base/random.h)"),
    (r"#\s*include\s*<thread>", ("kvstore/os", "tests", "tools", "gateway", "engine/serve", "engine/compute"),
     "use Workers (kvstore/io/workers.h)"),
    (r"#\s*include\s*<(liburing|sys/epoll|sys/socket|netinet/\w+|sys/mman)\.h>",
     ("kvstore/os", "kvstore/rdma", "kvstore/lane", "tests", "tools", "engine/gguf", "gateway/http"),
     "only kvstore/os sees Linux (kvstore/rdma its devices, and kvstore/lane its sockets)"),
    (r"#\s*include\s+\"kvstore/os/", ("kvstore/os", "kvstore/rdma", "tests", "tools", "kvstore/node/embedded",
                                     "kvstore/lane", "kvstore/serve", "kvstore/remote", "kvstore/capi", "kvstore/daemon"),
     "take the seams of kvstore/io as references"),
    (r"\bstd::(set|map)<(const )?[\w:]+ ?\*", ("kvstore/serve", "kvstore/rdma", "tests", "tools", "engine", "gateway"),
     "order by an id: that of addresses is another in each run"),
    (r"#\s*include\s+\"tests/", ("tests",), "nothing may use tests"),
    (r"\bGTEST_SKIP\(\)\s*;", (), "name what is missing: GTEST_SKIP() << \"...\""),
    (r"\bDISABLED_", (), "a test that does not run is not a test"),
    (r"\bEXPECT_TRUE\(true\)", (), "assert something"),
]


def bans(path, text, rules=None):
    code = tree.strip_comments_and_strings(text)
    # Includes keep their names: they are strings to the stripper.
    code = "\n".join(raw if raw.lstrip().startswith("#") else clean
                     for raw, clean in zip(text.split("\n"), code.split("\n")))
    for pattern, allowed, instead in rules or BANS:
        if any(path.startswith(prefix) for prefix in allowed):
            continue
        for match in re.finditer(pattern, code):
            yield f"{path}:{line_of(code, match.start())}: {match.group(0).strip()} is banned here, {instead}"


def braces_in_await(path, text):
    """g++ 12.2 frees an aggregate temporary twice inside a co_await expression (docs/style.md)."""
    code = tree.strip_comments_and_strings(text)
    for match in re.finditer(r"\bco_await\b", code):
        depth = 0
        for offset in range(match.end(), len(code)):
            char = code[offset]
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth < 0:
                    break
            elif char == ";" or (char == "{" and depth == 0):
                break
            elif char == "{":
                if re.search(r"\]\s*(\([^()]*\))?\s*(mutable|noexcept|->\s*[\w:<>]+|\s)*$", code[match.end():offset]):
                    break  # The body of a lambda argument.
                yield (f"{path}:{line_of(code, match.start())}: braces inside a co_await expression: "
                       "name the value first")
                break


def awaits_that_go_wrong(path, text):
    """g++ 12.2 loses what `co_await *pointer` awaits, and awaits in both branches of a choice."""
    code = tree.strip_comments_and_strings(text)
    for match in re.finditer(r"\bco_await\s*\*|[?]\s*co_await\b", code):
        yield f"{path}:{line_of(code, match.start())}: {match.group(0)}: name the value first, or use if"
    yield from braces_in_await(path, text)


# --- Shape ------------------------------------------------------------------

def purpose_line(path, text):
    first = text.split("\n", 1)[0]
    if not re.match(r"// [A-Z0-9`].*\S", first):
        yield f"{path}:1: the first line says the file's one purpose, as a sentence: // Does this."


def function_lengths(text):
    """(line, length) of every function body, found by brace matching."""
    code = tree.strip_comments_and_strings(text)
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code, flags=re.MULTILINE)
    stack, start = [], 0
    for match in re.finditer(r"[{};]", code):
        char, offset = match.group(0), match.start()
        if char == "{":
            head = code[start:offset].strip()
            inside_function = any(kind == "function" for kind, _ in stack)
            scope = re.match(r"(?:inline\s+|template\s*<[^{}]*>\s*)*(namespace|class|struct|enum|union|extern)\b", head)
            is_function = not inside_function and not scope and "(" in head and not re.search(r"=\s*$", head)
            stack.append(("function" if is_function else "scope", offset))
            start = offset + 1
        elif char == "}":
            if stack:
                kind, opened = stack.pop()
                if kind == "function":
                    yield line_of(code, opened), code.count("\n", opened, offset) + 1
            start = offset + 1
        else:
            if not any(kind == "function" for kind, _ in stack):
                start = offset + 1


def sizes(path, text, exceptions):
    """`exceptions` maps 'path' or 'path function' to the size it may have: a ratchet, it only shrinks."""
    lines = text.count("\n")
    limit = HEADER_LINES_MAX if path.endswith(".h") else SOURCE_LINES_MAX
    if path.startswith("tests/") and not path.endswith(".h"):
        limit = 2 * SOURCE_LINES_MAX
    limit = max(limit, exceptions.get(path, 0))
    if lines > limit:
        yield f"{path}:1: {lines} lines, at most {limit}: split it by purpose"
    function_limit = max(FUNCTION_LINES_MAX, exceptions.get(path + " function", 0))
    for line, length in function_lengths(text):
        if length > function_limit:
            yield f"{path}:{line}: a function of {length} lines, at most {function_limit}: split it"
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LINE_LENGTH_MAX and "http" not in line and "R\"" not in line:
            yield f"{path}:{number}: {len(line)} columns, at most {LINE_LENGTH_MAX}"


# --- READMEs ----------------------------------------------------------------

def readme_uses(layer, readme):
    """The `Uses:` line of a layer's README names exactly the layers of its USES list."""
    match = re.search(r"^Uses:\s*(.*?)(?:\.\s|\.$|$)", readme, re.MULTILINE)
    if not match:
        yield f"{layer.folder}/README.md:1: has no line 'Uses: ...'"
        return
    said = {word.strip(" `").replace("/", "_") for word in re.split(r",|\band\b", match.group(1)) if word.strip()}
    said = {word for word in said if re.fullmatch(r"(erasure|(kvstore|engine|gateway|tools)_\w+|planner)", word)}
    if said != set(layer.uses):
        yield (f"{layer.folder}/README.md: 'Uses:' says {sorted(said)}, CMakeLists.txt says {sorted(layer.uses)}")
