"""The manifests: valid by the schemas of Kubernetes, and in keeping with each other and cairnd.

Usage: kubernetes_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import re
import shutil
import subprocess
import tomllib
import unittest

import kubernetes_validate
import yaml
from cairnd_process import CAIRN, CAIRND, SOURCE, Folder, main
from tls_files import Authority, tls_flags

MANIFESTS = SOURCE / "deploy/kubernetes"
VERSION = "1.31"  # The first that has every field as stable.
# Of debian:12-slim, by its own dependencies.
IN_THE_BASE_IMAGE = {"libc6", "libstdc++6", "libgcc-s1", "zlib1g", "libbz2-1.0", "liblz4-1", "libzstd1"}
LOADED_BY_NAME = {"ibverbs-providers"}  # By libibverbs, for the devices it finds.


def documents():
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield path.name, document


ALL = {(document["kind"], document["metadata"]["name"]): document for _, document in documents()}


def quantity(text):
    number, unit = re.fullmatch(r"(\d+)([KMGT]i)?", text).groups()
    return int(number) << {None: 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}[unit]


def pod_labels(name):
    return ALL["StatefulSet", name]["spec"]["template"]["metadata"]["labels"]


def selected(labels):
    """The StatefulSets whose pods have all of `labels`."""
    return [name for kind, name in ALL
            if kind == "StatefulSet" and labels.items() <= pod_labels(name).items()]


class Schemas(unittest.TestCase):
    def test_every_document_is_valid(self):
        for file, document in documents():
            with self.subTest(file=file, kind=document["kind"]):
                kubernetes_validate.validate(document, VERSION, strict=True)

    def test_a_mistake_would_be_found(self):
        budget = dict(ALL["PodDisruptionBudget", "cairn"], spec={"maxUnavailabel": 1})
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(budget, VERSION, strict=True)

    def test_names_are_used_once(self):
        self.assertEqual(len(ALL), len(list(documents())))


class Selectors(unittest.TestCase):
    def test_each_selects_the_pods_it_is_named_for(self):
        for kind, name in ALL:
            spec = ALL[kind, name].get("spec", {})
            owner = "etcd" if name == "etcd" else "cairn"
            if kind == "Service":
                self.assertEqual(selected(spec["selector"]), [owner], name)
            elif kind in ("PodDisruptionBudget", "StatefulSet"):
                self.assertEqual(selected(spec["selector"]["matchLabels"]), [owner], name)
            elif kind == "NetworkPolicy":
                self.assertEqual(selected(spec["podSelector"]["matchLabels"]), [owner], name)

    def test_each_set_has_a_budget_and_is_spread(self):
        for name in ("cairn", "etcd"):
            self.assertEqual(ALL["PodDisruptionBudget", name]["spec"]["maxUnavailable"], 1)
            pod = ALL["StatefulSet", name]["spec"]["template"]["spec"]
            terms = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            spread = pod.get("topologySpreadConstraints", [])
            self.assertEqual(terms[0]["topologyKey"], "kubernetes.io/hostname")
            for term in terms + spread:
                self.assertEqual(selected(term["labelSelector"]["matchLabels"]), [name])

    def test_each_set_has_its_headless_service(self):
        for name in ("cairn", "etcd"):
            service = ALL["Service", ALL["StatefulSet", name]["spec"]["serviceName"]]
            self.assertEqual(service["spec"]["clusterIP"], "None")

    def test_ports_are_those_of_the_pods(self):
        for kind, name in ALL:
            if kind not in ("Service", "NetworkPolicy"):
                continue
            owner = "etcd" if name == "etcd" else "cairn"
            container = ALL["StatefulSet", owner]["spec"]["template"]["spec"]["containers"][0]
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            if kind == "Service":
                for port in ALL[kind, name]["spec"]["ports"]:
                    self.assertEqual(port["port"], ports[port["targetPort"]])
            else:
                for rule in ALL[kind, name]["spec"]["ingress"]:
                    for port in rule["ports"]:
                        self.assertIn(port["port"], ports)


class Store(Folder):
    def setUp(self):
        super().setUp()
        self.spec = ALL["StatefulSet", "cairn"]["spec"]
        self.pod = self.spec["template"]["spec"]
        self.container = self.pod["containers"][0]
        self.text = ALL["ConfigMap", "cairnd"]["data"]["cairnd.toml"]
        self.config = tomllib.loads(self.text)
        self.mounts = {mount["mountPath"]: mount["name"] for mount in self.container["volumeMounts"]}

    def check(self, *more):
        path = self.write("cairnd.toml", self.text)
        flags = [flag.replace("$(POD_NAME)", "cairn-0") for flag in self.container["args"]
                 if not flag.startswith("--config=")]
        return subprocess.run([CAIRND, "--check-config", path, *flags, *more], capture_output=True,
                              check=False, timeout=60)

    def test_cairnd_takes_its_configuration(self):
        said = self.expect(self.check(), 0, "sound").stdout.decode()
        certificates = tls_flags("--cluster-etcd", Authority(self.folder, "etcd").issue())
        self.expect(self.check("--cluster-enabled", "true", *certificates), 0, "sound")
        limit = float(re.search(r"add up to ([\d.]+) GiB", said).group(1)) * 2**30
        self.assertLess(limit, quantity(self.container["resources"]["limits"]["memory"]))

    def test_ports_are_those_it_listens_on(self):
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        for name, address in (("client", self.config["listen"]["tcp"]),
                              ("peer", self.config["cluster"]["listen"]),
                              ("metrics", self.config["listen"]["metrics"])):
            self.assertEqual(address, f"0.0.0.0:{ports[name]}")
        self.assertIn(f"--cluster-advertise=$(POD_NAME).cairn-nodes.cairn.svc:{ports['peer']}",
                      self.container["args"])

    def test_each_target_has_a_volume_with_room(self):
        claims = {claim["metadata"]["name"]: claim["spec"] for claim in self.spec["volumeClaimTemplates"]}
        names = [f"target-{i:02}" for i in range(self.config["store"]["targets"])]
        self.assertEqual(sorted(claims), names)
        number, unit = self.config["store"]["target_size"].split()
        for name in names:
            self.assertEqual(self.mounts[f"{self.config['store']['data_dir']}/{name}"], name)
            self.assertEqual(claims[name]["storageClassName"], "local-ssd")
            volume = quantity(claims[name]["resources"]["requests"]["storage"])
            self.assertLess(quantity(number + unit[:2]), 0.95 * volume)

    def test_files_that_it_reads_are_mounted(self):
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        config = [flag for flag in self.container["args"] if flag.startswith("--config=")]
        wanted = [config[0].removeprefix("--config="), self.config["listen"]["admin_token_file"]]
        wanted += [value for key, value in self.config["cluster"].items() if key.endswith("_file")]
        secret = ALL["Secret", "cairn-secret"]["stringData"]
        for path in wanted:
            folder, file = path.rsplit("/", 1)
            volume = volumes[self.mounts[folder]]
            if "configMap" in volume:
                self.assertIn(file, ALL["ConfigMap", volume["configMap"]["name"]]["data"])
            elif volume["secret"]["secretName"] == "cairn-secret":
                self.assertIn(file, secret)
            else:
                self.assertIn(file, ("ca.crt", "tls.crt", "tls.key"))

    def test_probes_ask_what_the_daemon_answers(self):
        self.assertEqual(
            {name: self.container[name + "Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")},
            {"startup": {"path": "/readyz", "port": "metrics"},
             "readiness": {"path": "/readyz", "port": "metrics"},
             "liveness": {"path": "/healthz", "port": "metrics"}})

    def test_it_may_do_nothing_else(self):
        own, shared = self.container["securityContext"], self.pod["securityContext"]
        self.assertTrue(own["readOnlyRootFilesystem"] and shared["runAsNonRoot"])
        self.assertEqual((own["allowPrivilegeEscalation"], own["capabilities"]), (False, {"drop": ["ALL"]}))
        self.assertEqual(shared["seccompProfile"], {"type": "RuntimeDefault"})

    def test_etcd_is_where_it_looks(self):
        etcd = ALL["StatefulSet", "etcd"]["spec"]
        members = [f"etcd-{i}.etcd.cairn" for i in range(etcd["replicas"])]
        self.assertEqual(self.config["cluster"]["etcd"].split(","),
                         [f"https://{member}:2379" for member in members])
        flags = etcd["template"]["spec"]["containers"][0]["args"]
        self.assertIn("--initial-cluster=" + ",".join(
            f"{member.split('.')[0]}=https://{member}:2380" for member in members), flags)


class Image(unittest.TestCase):
    def test_it_has_the_libraries_of_the_programs(self):
        if shutil.which("dpkg") is None:
            self.skipTest("dpkg is not here")
        text = (MANIFESTS / "Containerfile").read_text(encoding="utf-8")
        listed = set(re.search(r"--no-install-recommends \\\n([^&]*)&&", text).group(1)
                     .replace("\\", " ").split())
        needed = set()
        for program in (CAIRND, CAIRN):
            # What it names itself: the package manager brings what those need.
            named = subprocess.run(["objdump", "-p", program], capture_output=True, text=True,
                                   check=True).stdout
            direct = set(re.findall(r"NEEDED\s+(\S+)", named))
            linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
            for soname, library in re.findall(r"(\S+) => (\S+)", linked):
                if soname not in direct:
                    continue
                name = re.sub(r"^/usr", "", library)
                owners = subprocess.run(["dpkg", "-S", name, "/usr" + name], capture_output=True,
                                        text=True, check=False).stdout
                needed.add(owners.split(":")[0])
        self.assertEqual(listed - LOADED_BY_NAME, needed - IN_THE_BASE_IMAGE)


if __name__ == "__main__":
    main()
