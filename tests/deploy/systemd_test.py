"""The units: systemd finds no fault in them, and what they forbid cairnd does not need.

Usage: systemd_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import re
import shutil
import subprocess
import sys
import unittest

from cairnd_process import CAIRND, SOURCE, Folder, main

UNITS = SOURCE / "deploy/systemd"
EXPOSURE_MAX = 20  # Tenths: 2.0 of 10.


def analyze(*arguments):
    done = subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=120)
    return done.returncode, (done.stdout + done.stderr).strip()


class Units(Folder):
    def setUp(self):
        super().setUp()
        shutil.copytree(UNITS, self.folder, dirs_exist_ok=True)
        unit = self.folder / "cairnd.service"
        self.edit(unit, "/usr/local/bin/cairnd", str(CAIRND))
        # Debian's own unit, as far as the drop-in needs it.
        (self.folder / "etcd.service").write_text("[Service]\nType=notify\nExecStart=/bin/true\n")
        example = self.folder / "cairnd.service.d/mounts.conf.example"
        example.rename(example.with_suffix(""))

    def edit(self, path, old, new):
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def verify(self):
        units = [self.folder / name for name in ("cairnd.service", "cairn.target", "etcd.service")]
        return analyze("verify", "--man=no", "--recursive-errors=no", *units)

    def test_systemd_finds_no_fault(self):
        self.assertEqual(self.verify(), (0, ""))

    def test_a_fault_would_be_found(self):
        for path, old, new in (("cairnd.service", "RestartSec=", "RestartSecs="),
                               ("cairnd.service", str(CAIRND), "/nonexistent"),
                               ("cairn.target", "After=", "Aftr="),
                               ("etcd.service.d/cairn.conf", "IOWeight=1000", "IOWeight=x")):
            self.edit(self.folder / path, old, new)
            self.assertNotEqual(self.verify(), (0, ""), path)
            self.edit(self.folder / path, new, old)

    def test_little_is_exposed(self):
        code, said = analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}",
                             "--no-pager", self.folder / "cairnd.service")
        self.assertEqual(code, 0, said)

    def test_io_uring_is_allowed(self):
        unit = (self.folder / "cairnd.service").read_text(encoding="utf-8")
        self.assertIn("\nSystemCallFilter=@system-service\n", unit)
        denied = re.search(r"^SystemCallFilter=~(.*)$", unit, re.MULTILINE).group(1).split()
        self.assertIn("@aio", analyze("syscall-filter", "@system-service")[1])
        self.assertIn("io_uring_setup", analyze("syscall-filter", "@aio")[1])
        for group in denied:
            self.assertNotIn("io_uring", analyze("syscall-filter", group)[1])

    def test_cairnd_takes_the_flags(self):
        unit = (self.folder / "cairnd.service").read_text(encoding="utf-8")
        command = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE).group(1).split()
        command[command.index("--config") + 1] = str(SOURCE / "deploy/cairnd.toml")
        done = subprocess.run([*command, "--print-config"], capture_output=True, text=True,
                              check=True, timeout=60)
        self.assertIn('format = "json"', done.stdout)


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("skipped: systemd-analyze is not here (Debian package systemd)")
        sys.exit(77)
    main()
