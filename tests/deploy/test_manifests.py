"""data/deploy/kubernetes by itself: its schemas, and what must agree with what."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import unittest
from typing import Any, Callable, Dict, List

import kustomize
import yaml
from manifests import (
    ETC,
    JOBS,
    KUBERNETES,
    LEDGER_MOUNT,
    OVERLAYS,
    ROOT,
    VERSION,
    Object,
    Overlay,
    bytes_of,
    overlay_dir,
)

try:
    import schemas
except ImportError:
    schemas = None  # type: ignore[assignment]

NO_KUSTOMIZE = "skipped: no kubectl or kustomize that knows components"
GIVES_UP_S = 10  # tools/manual/operating.md, the steps of an orderly end.
TOKEN_BYTES = 100  # The same page, capacity.


def real_kustomize() -> List[str]:
    """The command, without a directory; empty where there is none."""
    for command in (["kustomize", "build"], ["kubectl", "kustomize"]):
        if shutil.which(command[0]) is None:
            continue
        done = subprocess.run([*command, overlay_dir("production")], capture_output=True)
        if done.returncode == 0:
            return command
    return []


def without_hash(text: str) -> str:
    return re.sub(r"(name: nowcalls-(?:config|writer))-[a-z0-9]{10}\b", r"\1", text)


class RenderTest(unittest.TestCase):
    def test_the_renderer_of_these_tests_agrees_with_kustomize(self) -> None:
        command = real_kustomize()
        if not command:
            self.skipTest(NO_KUSTOMIZE)

        def sorted_objects(objects: List[Object]) -> List[Object]:
            return sorted(objects, key=lambda thing: (thing["kind"], thing["metadata"]["name"]))

        for overlay in OVERLAYS:
            with self.subTest(overlay):
                done = subprocess.run(
                    [*command, overlay_dir(overlay)], check=True, capture_output=True, text=True
                )
                self.assertEqual(done.stderr, "")  # Of a field that is given up, for one.
                real = list(yaml.safe_load_all(without_hash(done.stdout)))
                ours = Overlay(overlay).objects
                self.assertEqual(sorted_objects(ours), sorted_objects(real))


@unittest.skipIf(schemas is None, "skipped: Debian's python3-kubernetes is not installed")
class SchemaTest(unittest.TestCase):
    def test_every_field_of_every_object_is_one_of_kubernetes(self) -> None:
        for overlay in OVERLAYS:
            for thing in Overlay(overlay).objects:
                with self.subTest(overlay, kind=thing["kind"], name=thing["metadata"]["name"]):
                    self.assertEqual(schemas.problems(thing), [])
        for job in JOBS:
            for thing in kustomize.documents(job):
                with self.subTest(job):
                    self.assertEqual(schemas.problems(thing), [])

    def refused(self, thing: Object, spoil: Callable[[Any], Any], *words: str) -> None:
        spoilt = copy.deepcopy(thing)
        spoil(spoilt)
        found = "\n".join(schemas.problems(spoilt))
        for word in words:
            self.assertIn(word, found)

    def test_a_wrong_field_is_found_wherever_it_is(self) -> None:
        overlay = Overlay("production")
        server = overlay.find("StatefulSet")

        def container(thing: Object) -> Object:
            return thing["spec"]["template"]["spec"]["containers"][0]

        spoilt: Dict[str, Callable[[Any], Any]] = {
            "V1StatefulSetSpec has no field 'replica'": lambda t: t["spec"].update(replica=1),
            "spec.replicas: must be int": lambda t: t["spec"].update(replicas="3"),
            "`selector`, must not be `None`": lambda t: t["spec"].pop("selector"),
            "V1HTTPGetAction has no field 'url'": lambda t: container(t)["livenessProbe"][
                "httpGet"
            ].update(url="/"),
            "`port`, must not be `None`": lambda t: container(t)["startupProbe"]["httpGet"].pop(
                "port"
            ),
            "no quantity: '2Gb'": lambda t: container(t)["resources"]["limits"].update(
                memory="2Gb"
            ),
            "must be bool, is 'yes'": lambda t: container(t)["securityContext"].update(
                readOnlyRootFilesystem="yes"
            ),
            "no such mode: 'Once'": lambda t: t["spec"]["volumeClaimTemplates"][0]["spec"].update(
                accessModes=["Once"]
            ),
            "podManagementPolicy: must be one of": lambda t: t["spec"].update(
                podManagementPolicy="parallel"
            ),
            "must be a list": lambda t: t["spec"]["template"]["spec"].update(volumes={}),
            "must be V1PodSpec": lambda t: t["spec"]["template"].update(spec=[]),
            "env[0].value: must be str": lambda t: container(t)["env"][0].update(value=True),
            "no name of a label: 'a b'": lambda t: t["metadata"]["labels"].update({"a b": "c"}),
            "no name of an object": lambda t: t["metadata"].update(name="Nowcalls"),
            "no such kind": lambda t: t.update(apiVersion="apps/v2"),
        }
        for words, spoil in spoilt.items():
            with self.subTest(words):
                self.refused(server, spoil, words)
        monitor = overlay.find("ServiceMonitor")
        self.refused(monitor, lambda t: t["spec"].update(endpoint=[]), "has no field 'endpoint'")
        self.refused(monitor, lambda t: t["spec"].pop("selector"), "lacks 'selector'")
        self.refused(
            monitor, lambda t: t["spec"]["endpoints"][0].update(honorLabels="x"), "must be bool"
        )


def of_each_overlay(test: Callable[[Any, Overlay], None]) -> Callable[[Any], None]:
    def run(self: unittest.TestCase) -> None:
        for name in OVERLAYS:
            with self.subTest(name):
                test(self, Overlay(name))

    return run


class AgreementTest(unittest.TestCase):
    @of_each_overlay
    def test_each_mount_has_a_volume_and_each_volume_a_mount(self, overlay: Overlay) -> None:
        claims = overlay.find("StatefulSet")["spec"]["volumeClaimTemplates"]
        volumes = [volume["name"] for volume in overlay.pod["volumes"]]
        volumes += [claim["metadata"]["name"] for claim in claims]
        self.assertEqual(sorted(overlay.mounts.values()), sorted(volumes))
        self.assertEqual(len(set(volumes)), len(volumes))
        self.assertEqual(overlay.mounts[LEDGER_MOUNT], "ledger")
        # Within a mount that only reads the engine could not make a place for another one.
        for path in overlay.mounts:
            self.assertEqual([p for p in overlay.mounts if p.startswith(path + "/")], [])

    @of_each_overlay
    def test_each_configured_path_is_one_that_is_mounted(self, overlay: Overlay) -> None:
        mounted = overlay.mounted()
        settings = mounted[ETC + "/config"]["server.toml"]
        self.assertEqual(
            overlay.container["args"], ["--config=" + ETC + "/config/server.toml"]
        )
        paths = re.findall(r"/(?:etc|var)/[\w./-]+", settings)
        paths += [value for value in overlay.environment.values() if value[0] == "/"]
        self.assertGreaterEqual(len(paths), 2)
        for path in paths:
            directory, file = os.path.split(path)
            self.assertIn(directory, overlay.mounts)
            if directory in mounted:
                self.assertIn(file, mounted[directory])

    @of_each_overlay
    def test_each_port_that_is_named_is_one_of_the_container(self, overlay: Overlay) -> None:
        ports = {port["name"]: port["containerPort"] for port in overlay.container["ports"]}
        self.assertEqual(ports, {"tokens": 18730, "http": 18731})
        for probe in overlay.probes.values():
            self.assertIn(probe["port"], ports)
        for service in ("nowcalls", "nowcalls-members"):
            for port in overlay.find("Service", service)["spec"]["ports"]:
                self.assertEqual(ports[port["targetPort"]], port["port"])
                self.assertEqual(port["targetPort"], port["name"])
        for rule in overlay.find("NetworkPolicy")["spec"]["ingress"]:
            for port in rule["ports"]:
                self.assertIn(port["port"], ports)

    @of_each_overlay
    def test_what_selects_the_pods_selects_them(self, overlay: Overlay) -> None:
        server = overlay.find("StatefulSet")["spec"]
        labels = server["template"]["metadata"]["labels"]
        selectors = [
            server["selector"]["matchLabels"],
            overlay.find("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
            overlay.find("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
            overlay.find("Service")["spec"]["selector"],
            overlay.find("Service", "nowcalls-members")["spec"]["selector"],
        ]
        for selector in selectors:
            self.assertLessEqual(selector.items(), labels.items())
        self.assertEqual(overlay.pod["serviceAccountName"], "nowcalls")
        overlay.find("ServiceAccount")

    def test_the_pod_keeps_the_restricted_standard(self) -> None:
        pods = [
            (name, thing["spec"]["template"]["spec"])
            for name in OVERLAYS
            for thing in Overlay(name).objects
            if thing["kind"] in ("Deployment", "StatefulSet")
        ]
        pods += [(job, kustomize.documents(job)[0]["spec"]["template"]["spec"]) for job in JOBS]
        for name, pod in pods:
            with self.subTest(name):
                of_pod = pod["securityContext"]
                self.assertTrue(of_pod["runAsNonRoot"])
                self.assertEqual({of_pod[key] for key in ("runAsUser", "fsGroup")}, {65532})
                self.assertEqual(of_pod["seccompProfile"], {"type": "RuntimeDefault"})
                self.assertFalse(pod["automountServiceAccountToken"])
                for container in pod["containers"]:
                    own = container["securityContext"]
                    self.assertFalse(own["allowPrivilegeEscalation"])
                    self.assertTrue(own["readOnlyRootFilesystem"])
                    self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
                for volume in pod["volumes"]:
                    kinds = {"configMap", "secret", "persistentVolumeClaim"}
                    self.assertEqual(len(kinds & set(volume)), 1)

    def test_the_image_is_that_of_this_version(self) -> None:
        images = {Overlay(name).container["image"] for name in OVERLAYS}
        for job in JOBS:
            (thing,) = kustomize.documents(job)
            images |= {c["image"] for c in thing["spec"]["template"]["spec"]["containers"]}
        self.assertEqual(images, {f"registry.example/nowcalls-server:{VERSION}"})

    @of_each_overlay
    def test_there_is_time_to_end_and_memory_for_all_tokens(self, overlay: Overlay) -> None:
        self.assertGreater(overlay.pod["terminationGracePeriodSeconds"], GIVES_UP_S)
        resources = overlay.container["resources"]
        memory = bytes_of(resources["limits"]["memory"])
        self.assertLessEqual(bytes_of(resources["requests"]["memory"]), memory)
        settings = overlay.config_map("nowcalls-config")["server.toml"]
        (tokens,) = re.findall(r"^tokens_max = ([\d_]+)$", settings, re.MULTILINE)
        self.assertLess(int(tokens.replace("_", "")) * TOKEN_BYTES, memory / 2)

    @of_each_overlay
    def test_two_servers_never_have_one_ledger(self, overlay: Overlay) -> None:
        server = overlay.find("StatefulSet")["spec"]
        (claim,) = server["volumeClaimTemplates"]
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteOncePod"])
        clustered = "NOWCALLS_CLUSTER" in overlay.environment
        self.assertEqual(server["replicas"], 3 if clustered else 1)

    def test_members_reach_each_other_by_names_that_are_there_before_they_are_ready(self) -> None:
        overlay = Overlay("cluster")
        members = overlay.find("Service", "nowcalls-members")["spec"]
        self.assertEqual(members["clusterIP"], "None")
        self.assertTrue(members["publishNotReadyAddresses"])
        server = overlay.find("StatefulSet")["spec"]
        self.assertEqual(server["serviceName"], "nowcalls-members")
        self.assertEqual(server["podManagementPolicy"], "Parallel")
        self.assertEqual(
            overlay.environment["NOWCALLS_CLUSTER_ADVERTISE"],
            "$(POD_NAME).nowcalls-members.$(POD_NAMESPACE).svc:18730",
        )
        # A variable is replaced by those above it alone.
        names = [entry["name"] for entry in overlay.container["env"]]
        self.assertLess(names.index("POD_NAME"), names.index("NOWCALLS_CLUSTER_ADVERTISE"))
        self.assertLess(names.index("POD_NAMESPACE"), names.index("NOWCALLS_CLUSTER_ADVERTISE"))
        # Behind one address two of three connections would be refused.
        (port,) = overlay.find("Service")["spec"]["ports"]
        self.assertEqual(port["name"], "http")

    def test_the_proxy_asks_each_member_at_the_ports_that_it_has(self) -> None:
        overlay = Overlay("sentinel")
        server = overlay.find("StatefulSet")
        text = overlay.config_map("nowcalls-writer")["haproxy.cfg"]
        members = [f"nowcalls-{number}" for number in range(server["spec"]["replicas"])]
        self.assertEqual(re.findall(r"^  server (\S+) \"\1\.", text, re.MULTILINE), members)
        names = set(re.findall(r'"nowcalls-\d\.([^"]+)"', text))
        self.assertEqual(names, {"nowcalls-members.${POD_NAMESPACE}.svc.cluster.local:18730"})
        self.assertIn("option httpchk GET /readyz\n", text)
        ports = {port["name"]: port["containerPort"] for port in overlay.container["ports"]}
        self.assertIn(f" check port {ports['http']} ", text)
        proxy = overlay.find("Deployment", "nowcalls-writer")["spec"]["template"]
        (container,) = proxy["spec"]["containers"]
        own = {port["name"]: port["containerPort"] for port in container["ports"]}
        self.assertEqual(re.findall(r"bind :(\d+)", text), [str(port) for port in own.values()])
        for name in ("readinessProbe", "livenessProbe"):
            probe = container[name]["httpGet"]
            self.assertIn(probe["port"], own)
            self.assertIn(f"monitor-uri {probe['path']}\n", text)
        (port,) = overlay.find("Service", "nowcalls-writer")["spec"]["ports"]
        self.assertEqual(own[port["targetPort"]], port["port"])
        (mount,) = container["volumeMounts"]
        self.assertEqual(container["args"][-1], mount["mountPath"] + "/haproxy.cfg")
        # The members let it in.
        ingress = overlay.find("NetworkPolicy")["spec"]["ingress"]
        peers = [rule["from"][0].get("podSelector", {}).get("matchLabels") for rule in ingress]
        self.assertIn(proxy["metadata"]["labels"], peers)

    @of_each_overlay
    def test_no_service_sets_a_variable_that_looks_like_a_setting(self, overlay: Overlay) -> None:
        self.assertFalse(overlay.pod["enableServiceLinks"])

    def test_changed_rules_restart_nothing_and_a_changed_configuration_does(self) -> None:
        (base,) = kustomize.documents(os.path.join(KUBERNETES, "base/kustomization.yaml"))
        hashed = {
            generator["name"]: not generator.get("options", {}).get("disableNameSuffixHash")
            for generator in base["configMapGenerator"]
        }
        self.assertEqual(hashed, {"nowcalls-config": True, "nowcalls-rules": False})

    def test_the_alerts_are_those_of_the_monitoring_folder(self) -> None:
        rule = Overlay("production").find("PrometheusRule")
        (alerts,) = kustomize.documents(os.path.join(ROOT, "data/monitoring/alerts.yml"))
        remedy = "the head of components/monitoring/prometheus-rule.yaml says how to make it anew"
        self.assertEqual(rule["spec"], alerts, remedy)

    def test_prometheus_finds_the_members_under_the_job_that_alerts_expect(self) -> None:
        overlay = Overlay("production")
        monitor = overlay.find("ServiceMonitor")["spec"]
        members = overlay.find("Service", "nowcalls-members")
        labels = members["metadata"]["labels"]
        self.assertLessEqual(monitor["selector"]["matchLabels"].items(), labels.items())
        others = overlay.find("Service")["metadata"]["labels"]
        self.assertFalse(monitor["selector"]["matchLabels"].items() <= others.items())
        self.assertEqual(labels[monitor["jobLabel"]], "nowcalls")
        (endpoint,) = monitor["endpoints"]
        self.assertIn(endpoint["port"], [port["name"] for port in members["spec"]["ports"]])
        self.assertEqual(endpoint["scheme"], "https")
        self.assertTrue(endpoint["honorLabels"])


if __name__ == "__main__":
    unittest.main()
