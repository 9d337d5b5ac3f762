"""The operations guide: every alert has its section, links lead somewhere, commands exist.

Usage: guide_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import re
import subprocess
import tomllib
import unittest

import yaml
from cairnd_process import CAIRND, SOURCE, Folder, main, run

GUIDE = SOURCE / "docs/guides/operations.md"
TEXT = GUIDE.read_text(encoding="utf-8")


def anchors(path):
    """Those that GitHub makes of the headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)}


def alerts():
    groups = yaml.safe_load((SOURCE / "deploy/prometheus/cairn.rules.yml").read_text(encoding="utf-8"))
    return {rule["alert"]: rule for group in groups["groups"] for rule in group["rules"] if "alert" in rule}


class Alerts(unittest.TestCase):
    def test_each_links_to_its_section(self):
        for name, rule in alerts().items():
            self.assertEqual(rule["annotations"]["runbook_url"],
                             f"docs/guides/operations.md#{name.lower()}")
            self.assertIn(name.lower(), anchors(GUIDE))

    def test_each_section_has_its_alert(self):
        self.assertEqual(re.findall(r"^### (Cairn\w+)$", TEXT, re.MULTILINE), list(alerts()))


class Links(unittest.TestCase):
    def test_they_lead_somewhere(self):
        for path in (GUIDE, *(SOURCE / "deploy").glob("*/README.md"), SOURCE / "deploy/README.md"):
            for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
                if link.startswith("http"):
                    continue
                file, _, anchor = link.partition("#")
                target = (path.parent / file).resolve() if file else path
                self.assertTrue(target.exists(), f"{path.name}: {link}")
                if anchor:
                    self.assertIn(anchor, anchors(target), f"{path.name}: {link}")


class Names(unittest.TestCase):
    """What the guide calls a setting or a metric is one."""

    def test_settings_exist(self):
        printed = subprocess.run([CAIRND, "--print-config"], capture_output=True, text=True, check=True)
        sections = tomllib.loads(printed.stdout)
        known = {f"{section}.{key}" for section, keys in sections.items() for key in keys}
        named = [name for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", TEXT)
                 if name.split(".")[0] in sections]
        self.assertGreater(len(named), 8)
        for name in named:
            self.assertIn(name, known)

    def test_metrics_exist(self):
        documented = (GUIDE.parent / "metrics.md").read_text(encoding="utf-8")
        for name in re.findall(r"`(cairn_\w+)`", TEXT):
            self.assertIn(f"`{name}`", documented)


class Commands(Folder):
    def test_verbs_and_flags_exist(self):
        lines = re.findall(r"^ {4,}(?:sudo (?:-u \w+ )?)?cairn (.+)$", TEXT, re.MULTILINE)
        self.assertGreater(len(lines), 5)
        for line in lines:
            words = line.split("#")[0].split()
            verb = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
            done = run(*verb, "--help")
            if done.returncode != 0:
                verb = verb[:1]
                done = run(*verb, "--help")
            self.expect(done, 0)
            for flag in (word for word in words if word.startswith("--")):
                self.assertIn(flag, done.stdout.decode(), line)


if __name__ == "__main__":
    main()
