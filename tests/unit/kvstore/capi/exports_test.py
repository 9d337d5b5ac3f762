"""libcairn.so exports exactly the functions that cairn.h declares."""
import pathlib
import re
import subprocess
import sys

library, header = sys.argv[1:]
listing = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = {line.split()[-1].split("@")[0] for line in listing.splitlines()} - {"CAIRN_1"}
declared = set(re.findall(r"CAIRN_API[^;(]*?\b(cairn_\w+)\(", pathlib.Path(header).read_text(encoding="utf-8")))
assert len(declared) > 15, declared
assert exported == declared, f"only exported: {exported - declared}; only declared: {declared - exported}"
print(len(exported), "functions")
