"""The store in a virtual machine whose disks lose and refuse writes (dm-flakey, dm-log-writes).

Usage: vm_test.py STORE_DRIVER REPLAY_LOG WORK_FOLDER
"""
import pathlib
import subprocess
import sys
import tempfile

import virtual_machine as vm

SCENARIO = pathlib.Path(__file__).with_name("scenario")
MODULES = ("dm-mod", "dm-flakey", "dm-log-writes", "dm-snapshot", "linear")
DISK_MIB = 1000


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


def main():
    driver, replay_log, work = sys.argv[1:4]
    work = pathlib.Path(work)
    work.mkdir(parents=True, exist_ok=True)
    try:
        vm.tool("qemu-system-x86_64", "qemu-system-x86")
        programs = {"busybox": vm.tool("busybox", "busybox-static"), "store_driver": driver,
                    "dmsetup": vm.tool("dmsetup", "dmsetup"), "replay_log": replay_log}
        mkfs = vm.tool("mkfs.ext4", "e2fsprogs")
        kernel = vm.fetch_kernel(work, "linux-image-cloud-amd64")
    except vm.Missing as missing:
        print(f"skipped: {missing}")
        return 77
    image = vm.kernel_image(kernel, work)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        folder = pathlib.Path(folder)
        vm.make_initramfs(folder / "initramfs", kernel, MODULES, programs, SCENARIO)
        return 0 if vm.boot(image, folder / "initramfs", make_disks(folder, mkfs)) else 1


if __name__ == "__main__":
    sys.exit(main())
