"""The RDMA transport on two Soft-RoCE devices in a virtual machine: see the scenario.

Usage: rdma_test.py WORK_FOLDER PART,PART...|all PROGRAM...: the programs that these parts run.
"""
import glob
import pathlib
import sys
import tempfile

import virtual_machine as vm

SCENARIO = pathlib.Path(__file__).with_name("scenario")
# Debian's kernels for the cloud have no Soft-RoCE.
KERNEL = "linux-image-6.12-amd64"
MODULES = ("veth", "sch_netem", "ib_uverbs", "rdma_ucm", "crc32_generic", "rdma_rxe")
MEMORY_MIB = 3072


def main():
    work, parts, built = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    work.mkdir(parents=True, exist_ok=True)
    try:
        vm.tool("zstd", "zstd")
        vm.tool("qemu-system-x86_64", "qemu-system-x86")
        programs = {pathlib.Path(path).name: path for path in built}
        programs["busybox"] = vm.tool("busybox", "busybox-static")
        if "cluster" in parts:
            programs["etcd"] = vm.tool("etcd", "etcd-server")
        programs |= {name: vm.tool(name, "iproute2") for name in ("ip", "tc", "rdma")}
        provider = glob.glob("/usr/lib/*/libibverbs/librxe-rdmav*.so")
        if not provider:
            raise vm.Missing("Soft-RoCE's library is not installed (package ibverbs-providers)")
        kernel = vm.fetch_kernel(work, KERNEL)
    except vm.Missing as missing:
        print(f"skipped: {missing}")
        return 77
    image = vm.kernel_image(kernel, work)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        initramfs = pathlib.Path(folder) / "initramfs"
        vm.make_initramfs(initramfs, kernel, MODULES, programs, SCENARIO,
                          files=[*provider, "/etc/libibverbs.d/rxe.driver"])
        append = f"run={parts}" if parts != "all" else ""
        return 0 if vm.boot(image, initramfs, memory_mib=MEMORY_MIB, append=append) else 1


if __name__ == "__main__":
    sys.exit(main())
