"""What the programs say of themselves: --help, manual pages, completion. No store is needed.

Usage: help_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import os
import re
import subprocess
import unittest

from cairnd_process import CAIRN, CAIRND, SOURCE, Folder, main, run


def verbs():
    """Every command of `cairn` as a list of words, from the help of each."""
    found = []

    def walk(path):
        text = run(*path, "--help").stdout.decode()
        found.append((path, text))
        section = re.search(r"^Subcommands:\n((?:  .*\n?)+)", text, re.MULTILINE)
        for line in section.group(1).splitlines() if section else []:
            match = re.match(r"  (\S+)", line)
            if match:
                walk(path + [match.group(1)])
    walk([])
    return found


def flags_of(text):
    options = re.findall(r"^  (-\S+)", text, re.MULTILINE)
    return {flag.split("{")[0] for group in options for flag in group.split(",")
            if flag.startswith("--")}


class Help(Folder):
    def test_every_command_has_it(self):
        paths = [" ".join(path) for path, _ in verbs()]
        for path in ("status", "namespace create", "namespace list", "namespace delete", "put", "get",
                     "ls", "inspect", "delete", "targets", "scrub start", "scrub stop", "scrub status",
                     "repair start", "repair stop", "repair status", "cluster", "drain", "metrics", "replay", "bench",
                     "up",
                     "plan", "trace", "completion", "man"):
            self.assertIn(path, paths)
        for path, text in verbs():
            self.expect(run(*path, "--help"), 0)
            self.assertTrue(text.strip(), path)

    def test_every_store_verb_has_json_and_connect(self):
        elsewhere = ("up", "plan", "trace", "completion", "man", "tiny-model", "check-model")
        for path, text in verbs():
            if not path or path[0] in elsewhere or "Subcommands:" in text:
                continue
            self.assertIn("--json", text, path)
            self.assertIn("--connect", text, path)

    def test_wrong_usage_ends_with_2(self):
        self.expect(run(), 2)
        self.expect(run("nonsense"), 2, "nonsense")
        self.expect(run("status", "--nonsense"), 2, "--nonsense")
        self.expect(run("put"), 2, "NAMESPACE")
        self.expect(run("put", "n"), 2, "KEY")
        self.expect(run("completion", "csh"), 2)
        self.expect(run("--version"), 0, "cairn 0.")
        self.expect(run("--help"), 0, "Exit codes:")


class Manual(Folder):
    def test_the_pages_are_those_of_this_program(self):
        for name, section in (("cairn", 1), ("cairnd", 8)):
            path = SOURCE / f"docs/man/{name}.{section}"
            self.assertEqual(run("man", name).stdout.decode(), path.read_text(encoding="utf-8"),
                             f"write it anew: cairn man {name} > docs/man/{name}.{section}")

    def plain(self, name):
        return run("man", name).stdout.decode().replace("\\-", "-").replace("\\fB", "").replace(
            "\\fI", "").replace("\\fR", "")

    def test_every_flag_of_every_command_is_in_it(self):
        page = self.plain("cairn")
        for path, text in verbs():
            self.assertIn(" ".join(["cairn", *path]), page)
            for flag in flags_of(text):
                self.assertIn(flag, page, path)

    def test_every_flag_of_the_daemon_is_in_it(self):
        text = subprocess.run([CAIRND, "--help"], capture_output=True, check=True).stdout.decode()
        self.assertGreater(len(flags_of(text)), 30)
        page = self.plain("cairnd")
        for flag in flags_of(text):
            self.assertIn(flag, page)

    def test_the_exit_codes_are_in_it(self):
        page = self.plain("cairn")
        for line in re.findall(r"^  (\d+)  (.*)$", run("--help").stdout.decode(), re.MULTILINE):
            self.assertIn(line[1], page)

    def test_the_macros_are_in_order(self):
        for name in ("cairn", "cairnd"):
            for line in run("man", name).stdout.decode().splitlines():
                if line.startswith("."):
                    self.assertRegex(line, r'^\.(\\"|TH |SH |SS |TP$|PP$|nf$|fi$|RS 4$|RE$|B )')


class Completion(Folder):
    def complete(self, *words):
        """What bash offers for the last of `words`."""
        script = self.write("completion", run("completion", "bash").stdout)
        listed = " ".join(f"'{word}'" for word in words)
        done = subprocess.run(
            ["bash", "-c", f"source {script}; COMP_WORDS=({listed}); "
             f"COMP_CWORD={len(words) - 1}; _cairn; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
            capture_output=True, text=True, check=True,
            cwd=self.folder, env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_commands(self):
        self.assertIn("status", self.complete("cairn", ""))
        self.assertEqual(self.complete("cairn", "nam"), ["namespace"])
        self.assertEqual(self.complete("cairn", "namespace", ""), ["create", "list", "delete"])
        self.assertEqual(self.complete("cairn", "scrub", "st"), ["start", "stop", "status"])
        self.assertIn("models", self.complete("cairn", "plan", ""))

    def test_flags_and_their_choices(self):
        self.assertEqual(self.complete("cairn", "put", "--dur"), ["--durable"])
        self.assertIn("--rate", self.complete("cairn", "repair", "start", "--"))
        self.assertNotIn("--rate", self.complete("cairn", "repair", "stop", "--"))

    def test_files(self):
        self.write("block.bin", "x")
        self.assertEqual(self.complete("cairn", "put", "n", "k", "blo"), ["block.bin"])
        self.assertEqual(self.complete("cairn", "get", "n", "k", "-o", "blo"), ["block.bin"])

    def test_zsh(self):
        script = self.write("_cairn", run("completion", "zsh").stdout)

        def complete(*words):
            """What the script gives to zsh's completion system, which here prints it."""
            listed = " ".join(f"'{word}'" for word in words)
            done = subprocess.run(
                ["zsh", "-f", "-c", "compdef() { :; }; _files() { print FILES; }; "
                 '_describe() { print -rl -- "${(@P)2}"; }; '
                 f"source {script}; words=({listed}); CURRENT={len(words)}; _cairn"],
                capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
            return [line.split(":")[0] for line in done.stdout.splitlines()]

        self.assertIn("status", complete("cairn", ""))
        self.assertEqual(complete("cairn", "namespace", ""), ["create", "list", "delete"])
        self.assertIn("--rate", complete("cairn", "repair", "start", "--"))
        self.assertNotIn("--rate", complete("cairn", "repair", "stop", "--"))
        self.assertEqual(complete("cairn", "put", "n", "k", "x"), ["FILES"])

    def test_fish(self):
        script = self.write("cairn.fish", run("completion", "fish").stdout)

        def complete(line):
            done = subprocess.run(["fish", "--no-config", "-c",
                                   f"source {script}; complete -C '{line}'"],
                                  capture_output=True, text=True, check=True,
                                  cwd=self.folder, env={**os.environ, "HOME": str(self.folder)})
            self.assertEqual(done.stderr, "")
            return [offer.split("\t")[0] for offer in done.stdout.splitlines()]

        self.assertIn("status", complete("cairn "))
        self.assertEqual(complete("cairn nam"), ["namespace"])
        self.assertEqual(sorted(complete("cairn namespace ")), ["create", "delete", "list"])
        self.assertIn("--rate", complete("cairn repair start --"))
        self.assertNotIn("--rate", complete("cairn repair stop --"))

    def test_other_shells_get_every_command(self):
        for shell in ("zsh", "fish"):
            script = self.expect(run("completion", shell), 0).stdout.decode()
            for path, _ in verbs():
                if path:
                    self.assertIn(path[-1], script)
        self.expect(subprocess.run(["bash", "-n", self.write("b", run("completion", "bash").stdout)],
                                   capture_output=True, check=False), 0)


if __name__ == "__main__":
    main()
