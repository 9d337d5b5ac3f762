"""The store in a virtual machine whose disks lose and refuse writes (dm-flakey, dm-log-writes).

Usage: vm_test.py STORE_DRIVER REPLAY_LOG WORK_FOLDER

Boots Debian's cloud kernel with an initramfs of busybox, dmsetup and the two programs; emulated, or
with VM_ACCELERATOR=kvm. Exit code 77 where a tool or the kernel is not to be had.
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
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
MODULES = ("dm-mod", "dm-flakey", "dm-log-writes", "dm-snapshot", "linear")
DISK_MIB = 1000
META_PACKAGE = "linux-image-cloud-amd64"


class Missing(Exception):
    """Something that the test needs and this machine does not give."""


def tool(name, package):
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        raise Missing(f"{name} is not installed (package {package})")
    return path


def fetch_kernel(work):
    """Unpacks the kernel's package into `work`; nothing is installed. Returns the folder."""
    unpacked = work / "kernel"
    if (unpacked / "complete").exists():
        return unpacked
    depends = subprocess.run(["apt-cache", "depends", META_PACKAGE], capture_output=True, text=True,
                             check=False).stdout
    found = re.search(r"Depends: (linux-image-\S+)", depends)
    if not found:
        raise Missing(f"the package lists know no {META_PACKAGE}")
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


def uncompressed_kernel(vmlinuz):
    """The ELF inside: it starts through its PVH entry, and nothing is unpacked by an emulated CPU."""
    packed = vmlinuz.read_bytes()
    at = packed.find(b"\xfd7zXZ\x00")
    while at >= 0:
        try:
            kernel = lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(packed[at:])
            if kernel.startswith(b"\x7fELF"):
                return kernel
        except lzma.LZMAError:
            pass
        at = packed.find(b"\xfd7zXZ\x00", at + 1)
    return None


def module_files(kernel):
    """Those of MODULES and what they need, each after what it needs. Some may be built in."""
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

    for name in MODULES:
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


def make_initramfs(path, kernel, programs):
    archive = Archive()
    for name, program in programs.items():
        archive.add(f"bin/{name}", pathlib.Path(program).read_bytes())
    for library in sorted({library for program in programs.values() for library in libraries(program)}):
        archive.add(library, pathlib.Path(library).read_bytes())
    archive.add("init", (HERE / "init").read_bytes())
    archive.add("scenario", (HERE / "scenario").read_bytes())
    order = module_files(kernel)
    for module in order:
        content = module.read_bytes()
        archive.add(f"modules/{module.name.split('.')[0]}.ko",
                    lzma.decompress(content) if module.suffix == ".xz" else content)
    archive.add("modules/order", "\n".join(f"{m.name.split('.')[0]}.ko" for m in order).encode())
    path.write_bytes(gzip.compress(archive.bytes(), 1))


def make_disks(folder, mkfs):
    """Five sparse files: see the scenario."""
    disks = [folder / f"disk{i}" for i in range(5)]
    for i, disk in enumerate(disks):
        with open(disk, "wb") as file:
            file.truncate((DISK_MIB if i != 1 else 4096) << 20)
    subprocess.run([mkfs, "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,nodiscard", disks[0]],
                   check=True)
    for i in (2, 3):
        subprocess.run(["cp", "--sparse=always", disks[0], disks[i]], check=True)
    return disks


def boot(qemu, kernel_image, initramfs, disks):
    # Nested KVM hangs on some hosts, so it is for whoever knows that it works.
    accelerator = os.environ.get("VM_ACCELERATOR", "tcg,thread=multi")
    print(f"booting on {accelerator}", flush=True)
    command = [qemu, "-M", "q35", "-accel", accelerator, "-cpu", "max", "-smp", "2", "-m", "1536",
               "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
               "-monitor", "none", "-no-reboot", "-kernel", str(kernel_image),
               "-initrd", str(initramfs),
               "-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr"]
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


def main():
    driver, replay_log, work = sys.argv[1:4]
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    try:
        qemu = tool("qemu-system-x86_64", "qemu-system-x86")
        programs = {"busybox": tool("busybox", "busybox-static"), "store_driver": driver,
                    "dmsetup": tool("dmsetup", "dmsetup"), "replay_log": replay_log}
        mkfs = tool("mkfs.ext4", "e2fsprogs")
        kernel = fetch_kernel(work)
    except Missing as missing:
        print(f"skipped: {missing}")
        return 77
    vmlinuz = next(kernel.glob("boot/vmlinuz-*"))
    image = work / "vmlinux"
    unpacked = uncompressed_kernel(vmlinuz)
    if unpacked:
        image.write_bytes(unpacked)
    else:
        image = vmlinuz
    with tempfile.TemporaryDirectory(dir=work) as folder:
        folder = pathlib.Path(folder)
        make_initramfs(folder / "initramfs", kernel, programs)
        return 0 if boot(qemu, image, folder / "initramfs", make_disks(folder, mkfs)) else 1


if __name__ == "__main__":
    sys.exit(main())
