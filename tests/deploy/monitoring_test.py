"""Rules and dashboard: promtool accepts them, and a running cairnd prints every metric they name.

Usage: monitoring_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import json
import re
import shutil
import subprocess
import unittest

import yaml
from cairnd_process import SOURCE, Cairnd, Folder, main, parse_exposition

RULES = SOURCE / "deploy/prometheus/cairn.rules.yml"
DASHBOARD = SOURCE / "deploy/grafana/cairn.json"


def promtool(*arguments, cwd=None):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, check=False,
                          timeout=120, cwd=cwd)


def rules():
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def records():
    return {rule["record"] for rule in rules() if "record" in rule}


def dashboard():
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def targets():
    return [target for panel in dashboard()["panels"] for target in panel.get("targets", [])]


def plain(expression):
    """A dashboard's query as Prometheus gets it."""
    return expression.replace("$__rate_interval", "5m").replace("$instance", ".*")


def expressions():
    return [rule["expr"] for rule in rules()] + [plain(target["expr"]) for target in targets()]


class Promtool(Folder):
    def setUp(self):
        super().setUp()
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not here (Debian package prometheus)")
        shutil.copytree(RULES.parent, self.folder, dirs_exist_ok=True)

    def test_the_rules_are_sound(self):
        self.expect(promtool("check", "rules", "--lint=all", "--lint-fatal", RULES), 0, "SUCCESS")

    def test_alerts_fire_when_they_should(self):
        self.expect(promtool("test", "rules", "cairn.rules.test.yml", cwd=self.folder), 0, "SUCCESS")

    def test_an_alert_that_does_not_fire_would_be_found(self):
        text = RULES.read_text(encoding="utf-8")
        self.write("cairn.rules.yml", text.replace("cairn_target_up == 0", "cairn_target_up == 2"))
        self.expect(promtool("test", "rules", "cairn.rules.test.yml", cwd=self.folder), 1,
                    "CairnTargetLost")

    def test_the_scrape_configuration_is_sound(self):
        self.expect(promtool("check", "config", "prometheus.example.yml", cwd=self.folder), 0, "valid")

    def test_every_query_of_the_dashboard_parses(self):
        queries = [{"record": f"query:{i}", "expr": plain(target["expr"])}
                   for i, target in enumerate(targets())]
        self.assertGreater(len(queries), 40)
        path = self.write("queries.yml", yaml.safe_dump({"groups": [{"name": "q", "rules": queries}]}))
        self.expect(promtool("check", "rules", path), 0, "SUCCESS")


class Metrics(Folder):
    """Every name, and every value that a label is compared with, is one that cairnd prints."""

    def samples(self):
        with Cairnd(self.folder / "data") as daemon:
            daemon.cairn("namespace", "create", "n", "--fingerprint", "f")
            for _ in range(200):
                samples = parse_exposition(daemon.http("/metrics")[2])
                if any(name.startswith("cairn_namespace_") for name, _ in samples):
                    return samples
                daemon.cairn("status")
        self.fail("the namespace never showed")
        return None

    def test_names_and_labels_exist(self):
        # Of a cluster and of certificates this cairnd prints nothing, as it has none.
        printed = (SOURCE / "kvstore/metrics/exposition.cc").read_text(encoding="utf-8")
        elsewhere = set(re.findall(r'"(cairn_(?:cluster|tls)_[a-z_]+)"', printed))
        values, names = {}, set(records()) | {"up"} | elsewhere
        for name, labels in self.samples():
            names.add(name)
            for label, value in labels:
                values.setdefault(label, set()).add(value)
        values["job"] = {"cairn"}
        for expression in expressions():
            for name in re.findall(r"\b(?:cairn[_:][a-z0-9_:]+|up)\b", expression):
                self.assertIn(name, names, expression)
            for label, operator, compared in re.findall(r'(\w+)(=~?)"([^"]*)"', expression):
                if compared == ".*":
                    continue
                for value in compared.split("|") if operator == "=~" else [compared]:
                    self.assertIn(value, values[label], expression)

    def test_every_record_is_used(self):
        used = " ".join(expressions())
        for record in records():
            self.assertIn(record, used)


class Dashboard(unittest.TestCase):
    def test_panels_are_whole(self):
        panels = dashboard()["panels"]
        ids = [panel["id"] for panel in panels]
        self.assertEqual(len(set(ids)), len(ids))
        source = {"type": "prometheus", "uid": "${datasource}"}
        for panel in panels:
            self.assertIn(panel["type"], ("row", "timeseries", "stat"))
            self.assertTrue(panel["title"])
            if panel["type"] == "row":
                continue
            self.assertEqual(panel["datasource"], source, panel["title"])
            references = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(references)), len(references))
            for target in panel["targets"]:
                self.assertEqual(target["datasource"], source)
                self.assertTrue(target["legendFormat"], panel["title"])

    def test_panels_do_not_overlap(self):
        taken = set()
        for panel in dashboard()["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells = {(place["x"] + x, place["y"] + y)
                     for x in range(place["w"]) for y in range(place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells

    def test_variables_are_there(self):
        variables = {variable["name"]: variable for variable in dashboard()["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        self.assertIn("cairn_build_info", variables["instance"]["definition"])
        for name in re.findall(r"\$\{?(\w+)", " ".join(target["expr"] for target in targets())):
            self.assertIn(name, {*variables, "__rate_interval"})


if __name__ == "__main__":
    main()
