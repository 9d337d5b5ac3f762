"""An emulated machine with a kernel of Debian, whose whole world is an initramfs made here.

It runs a shell script, the scenario (busybox is its shell), as root, and powers off. Missing says what
this machine lacks: such a test is skipped (exit code 77). VM_ACCELERATOR=kvm runs it faster.
"""
import glob
import gzip
import lzma
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

INIT = pathlib.Path(__file__).with_name("virtual_machine_init")


class Missing(Exception):
    """Something that the test needs and this machine does not give."""


def tool(name, package):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        raise Missing(f"{name} is not installed (package {package})")
    return path


def fetch_kernel(work, meta_package):
    """Unpacks the kernel that a package depends on into `work`; nothing is installed. Returns the folder."""
    unpacked = work / "kernel"
    if (unpacked / "complete").exists():
        return unpacked
    depends = subprocess.run(["apt-cache", "depends", meta_package], capture_output=True, text=True,
                             check=False).stdout
    found = re.search(r"Depends: (linux-image-\S+)", depends)
    if not found:
        raise Missing(f"the package lists know no {meta_package}")
    with tempfile.TemporaryDirectory(dir=work) as folder:
        subprocess.run(["apt-get", "download", "-q", found.group(1)], cwd=folder, check=False,
                       capture_output=True)
        packages = glob.glob(f"{folder}/*.deb")
        if not packages:
            raise Missing(f"{found.group(1)} cannot be downloaded")
        shutil.rmtree(unpacked, ignore_errors=True)
        subprocess.run(["dpkg", "-x", packages[0], unpacked], check=True)
    (unpacked / "complete").touch()
    return unpacked


def unpack_xz(packed):
    try:
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(packed)
    except lzma.LZMAError:
        return b""


def unpack_zstd(packed):
    if shutil.which("zstd") is None:
        return b""
    # What follows the kernel is no zstd: it complains, and has written the kernel by then.
    return subprocess.run(["zstd", "-dcq"], input=packed, capture_output=True, check=False).stdout


def kernel_image(kernel, work):
    """The ELF inside vmlinuz: it starts through its PVH entry, and nothing is unpacked by an emulated CPU.
    Where it is packed in a way that we do not know, vmlinuz itself."""
    vmlinuz = next(kernel.glob("boot/vmlinuz-*"))
    packed = vmlinuz.read_bytes()
    for magic, unpack in ((b"\xfd7zXZ\x00", unpack_xz), (b"\x28\xb5\x2f\xfd", unpack_zstd)):
        at = packed.find(magic)
        while at >= 0:
            unpacked = unpack(packed[at:])
            if unpacked.startswith(b"\x7fELF"):
                image = work / "vmlinux"
                image.write_bytes(unpacked)
                return image
            at = packed.find(magic, at + 1)
    return vmlinuz


def module_files(kernel, modules):
    """Those named and what they need, each after what it needs. Some may be built in."""
    paths = {path.name.split(".")[0].replace("_", "-"): path
             for path in kernel.glob("lib/modules/*/kernel/**/*.ko*")}
    order = []

    def add(name):
        path = paths.get(name.replace("_", "-"))
        if path is None or path in order:
            return
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        needs = re.search(rb"depends=([^\0]*)\0", content)
        for need in (needs.group(1).decode().split(",") if needs else []):
            if need:
                add(need)
        order.append(path)

    for name in modules:
        add(name)
    return order


def libraries(program):
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", said)


class Archive:
    """A cpio archive in the format that the kernel unpacks."""

    def __init__(self):
        self.parts, self.number, self.folders = [], 0, set()

    def _entry(self, name, mode, content=b""):
        self.number += 1
        encoded = name.encode() + b"\0"
        fields = (self.number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        for part in (head, content):
            self.parts.append(part + b"\0" * (-len(part) % 4))

    def add(self, name, content, executable=True):
        name = name.lstrip("/")
        for parent in reversed(pathlib.PurePath(name).parents):
            if str(parent) != "." and str(parent) not in self.folders:
                self.folders.add(str(parent))
                self._entry(str(parent), stat.S_IFDIR | 0o755)
        self._entry(name, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def bytes(self):
        self._entry("TRAILER!!!", 0)
        return b"".join(self.parts)


def make_initramfs(path, kernel, modules, programs, scenario, files=()):
    """A world of the programs, what they are linked with, the modules, and `files` where they are here."""
    archive = Archive()
    for name, program in programs.items():
        archive.add(f"bin/{name}", pathlib.Path(program).read_bytes())
    linked = [*programs.values(), *(file for file in files if ".so" in str(file))]
    extra = {library for program in linked for library in libraries(program)} | {str(f) for f in files}
    for file in sorted(extra):
        archive.add(file, pathlib.Path(file).read_bytes())
    archive.add("init", INIT.read_bytes())
    archive.add("scenario", pathlib.Path(scenario).read_bytes())
    order = module_files(kernel, modules)
    for module in order:
        content = module.read_bytes()
        archive.add(f"modules/{module.name.split('.')[0]}.ko",
                    lzma.decompress(content) if module.suffix == ".xz" else content)
    archive.add("modules/order", "\n".join(f"{m.name.split('.')[0]}.ko" for m in order).encode())
    path.write_bytes(gzip.compress(archive.bytes(), 1))


def boot(image, initramfs, disks=(), memory_mib=1536, append=""):
    """Runs the scenario and shows what is said. True when it ended with 0."""
    # Nested KVM hangs on some hosts, so it is for whoever knows that it works.
    accelerator = os.environ.get("VM_ACCELERATOR", "tcg,thread=multi")
    print(f"booting on {accelerator}", flush=True)
    command = [tool("qemu-system-x86_64", "qemu-system-x86"), "-M", "q35", "-accel", accelerator,
               "-cpu", "max", "-smp", "2", "-m", str(memory_mib),
               "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
               "-monitor", "none", "-no-reboot", "-kernel", str(image), "-initrd", str(initramfs),
               "-append", f"console=ttyS0 quiet panic=-1 mitigations=off nokaslr {append}"]
    for i, disk in enumerate(disks):
        command += ["-drive", f"file={disk},if=none,id=d{i},format=raw,cache=unsafe",
                    "-device", f"nvme,serial=d{i},drive=d{i}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as machine:
        said = []
        for line in machine.stdout:
            print(line, end="", flush=True)
            said.append(line)
        machine.wait()
    return any(line.strip() == "scenario ended with 0" for line in said)
