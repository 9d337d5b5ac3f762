"""A small ext4 of its own in a file, mounted through a loop device, for faults that need one."""
import os
import shutil
import subprocess
import tempfile


class NotAllowed(Exception):
    """This place does not let us mount; the message says what failed."""


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotAllowed(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


class LoopMount:
    """Mounted from the constructor on; errors of the file system make it read-only."""

    def __init__(self, mebibytes):
        if os.geteuid() != 0:
            raise NotAllowed("mounting needs root")
        if shutil.which("mkfs.ext4") is None:
            raise NotAllowed("mkfs.ext4 is not installed (package e2fsprogs)")
        self.folder = tempfile.mkdtemp(prefix="cairn-mount-")
        self.image = os.path.join(self.folder, "image")
        self.path = os.path.join(self.folder, "mounted")
        os.mkdir(self.path)
        with open(self.image, "wb") as image:
            image.truncate(mebibytes << 20)
        self.device = None
        try:
            _run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0", self.image)
            self.device = _run("losetup", "--find", "--show", self.image)
            self.mount()
        except NotAllowed:
            self.close()
            raise

    def mount(self):
        _run("mount", "-o", "errors=remount-ro", self.device, self.path)

    def unmount(self):
        _run("umount", self.path)

    def repair(self):
        """Like the check at boot. Unmounted only."""
        subprocess.run(["e2fsck", "-fy", self.device], capture_output=True, check=False)

    def break_it(self):
        """The kernel finds an error in the file system, stops its journal and makes it read-only."""
        name = os.path.basename(self.device)
        assert name.startswith("loop"), name
        trigger = f"/sys/fs/ext4/{name}/trigger_fs_error"
        try:
            with open(trigger, "w", encoding="ascii") as file:
                file.write("1")
        except OSError as error:
            raise NotAllowed(f"{trigger}: {error}") from error

    def free_bytes(self):
        about = os.statvfs(self.path)
        return about.f_bavail * about.f_frsize

    def fill(self):
        """Takes all the room that is left, again and again; returns the path of what takes it."""
        path = os.path.join(self.path, "filler")
        with open(path, "ab") as file:
            for step in (1 << 24, 1 << 20, 1 << 16, 4096):
                while True:
                    try:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, step)
                    except OSError:
                        break
        return path

    def close(self):
        if os.path.ismount(self.path):
            subprocess.run(["umount", "-l", self.path], capture_output=True, check=False)
        if self.device is not None:
            subprocess.run(["losetup", "-d", self.device], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
