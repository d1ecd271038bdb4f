"""tools/manual/kubernetes.md: its overlays build, and its commands name what is there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
from typing import Any, Dict, List

import kustomize
import yaml
from manifests import JOBS, KUBERNETES, LEDGER_MOUNT, ROOT, VERSION, Overlay
from support import BIN_DIR
from test_manifests import NO_KUSTOMIZE, real_kustomize, schemas, without_hash

with open(os.path.join(ROOT, "tools/manual/kubernetes.md")) as file:
    PAGE = file.read()
OVERLAYS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> List[List[str]]:
    """The words of each line to type, also of those in the text."""
    indented = re.findall(r"(?:^ {4,}\S.*\n)+", PAGE, re.MULTILINE)
    text = "\n".join(re.sub(r"\\\n", "", lines) for lines in indented)
    text += "\n".join(re.findall(r"`((?:kubectl|nowcalls-admin) [^`]+)`", PAGE))
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [words for words in lines if words and words[0] in ("kubectl", "nowcalls-admin")]


def of_admin(words: List[str]) -> List[str]:
    """The command of nowcalls-admin in a command, or nothing."""
    return words[words.index("nowcalls-admin") :] if "nowcalls-admin" in words else []


class PageTest(unittest.TestCase):
    def test_each_overlay_of_the_page_builds(self) -> None:
        self.assertEqual(len(OVERLAYS), 2)
        for text in OVERLAYS:
            with self.subTest(text), tempfile.TemporaryDirectory() as directory:
                tree = os.path.join(directory, "nowcalls")
                shutil.copytree(KUBERNETES, tree)
                mine = os.path.join(tree, "overlays/mine")
                os.makedirs(os.path.join(mine, "rules"))
                base = os.path.join(tree, "base")
                for name in ("server.toml", "rules/default.json"):
                    shutil.copy(os.path.join(base, name), os.path.join(mine, name))
                shutil.copy(os.path.join(ROOT, "data/rules/shop.json"), mine + "/rules")
                with open(os.path.join(mine, "kustomization.yaml"), "w") as file:
                    file.write(text)
                objects = kustomize.render(mine)
                if schemas is not None:
                    for thing in objects:
                        self.assertEqual(schemas.problems(thing), [])
                command = real_kustomize()
                if not command:
                    self.skipTest(NO_KUSTOMIZE)
                done = subprocess.run([*command, mine], check=True, capture_output=True, text=True)
                real = list(yaml.safe_load_all(without_hash(done.stdout)))
                kinds = lambda things: sorted(yaml.safe_dump(thing) for thing in things)
                self.assertEqual(kinds(objects), kinds(real))

    def test_the_single_overlay_of_the_page_has_what_it_changes(self) -> None:
        self.assertIn("newName: harbor.internal/nowcalls-server", OVERLAYS[0])
        self.assertIn(f"newTag: {VERSION}}}", OVERLAYS[0])
        names = set(re.findall(r"name: (registry\.[\w./-]+)", OVERLAYS[0]))
        (image,) = {Overlay("single").container["image"].rpartition(":")[0]}
        self.assertEqual(names, {image})
        self.assertIn("NOWCALLS_CLUSTER,", OVERLAYS[1])

    def test_each_command_names_what_is_there(self) -> None:
        overlay = Overlay("production")
        objects = {(t["kind"].lower(), t["metadata"]["name"]) for t in overlay.objects}
        pods = [f"nowcalls-{number}" for number in range(3)]
        (claim,) = overlay.find("StatefulSet")["spec"]["volumeClaimTemplates"]
        claims = [f"{claim['metadata']['name']}-{pod}" for pod in pods]
        found = commands()
        self.assertGreater(len(found), 20)
        for words in found:
            with self.subTest(" ".join(words)):
                if words[0] != "kubectl":
                    continue
                namespace = words[words.index("-n") + 1] if "-n" in words else "nowcalls"
                self.assertIn(("namespace", namespace), objects)
                for word in words:
                    kind, _, name = word.partition("/")
                    if kind == "statefulset":
                        self.assertIn((kind, name), objects)
                if "exec" in words:
                    self.assertIn(words[words.index("exec") + 1], pods)
                if "delete" in words:
                    what, name = words[words.index("delete") + 1 :][:2]
                    self.assertIn(name, {"pvc": claims, "pod": pods}[what])
                for path in [word for word in words if word.startswith("nowcalls/")]:
                    path = path.replace("nowcalls/", KUBERNETES + "/", 1)
                    self.assertTrue(path.endswith("/mine") or path in JOBS, path)

    def test_the_secrets_of_the_page_are_those_that_are_mounted(self) -> None:
        overlay = Overlay("production")
        made: Dict[str, List[str]] = {}
        for words in commands():
            if "secret" in words:
                name = words[words.index("generic") + 1]
                files = [word[12:] for word in words if word.startswith("--from-file=")]
                made[name] = [file.partition("=")[0] for file in files]
        volumes = [v["secret"]["secretName"] for v in overlay.pod["volumes"] if "secret" in v]
        (endpoint,) = overlay.find("ServiceMonitor")["spec"]["endpoints"]
        scrape = endpoint["authorization"]["credentials"]
        self.assertEqual(sorted(made), sorted([*volumes, scrape["name"]]))
        self.assertEqual(made[scrape["name"]], [scrape["key"]])
        self.assertIn(endpoint["tlsConfig"]["ca"]["secret"]["key"], made["nowcalls-tls"])
        for path in overlay.environment.values():
            for volume, name in (("tls", "nowcalls-tls"), ("access", "nowcalls-access")):
                if path.startswith(f"/etc/nowcalls/{volume}/"):
                    self.assertIn(os.path.basename(path), made[name])

    def test_the_tool_knows_its_commands_and_their_options(self) -> None:
        tools = [of_admin(words) for words in commands() if of_admin(words)]
        self.assertGreater(len(tools), 6)
        for words in tools:
            with self.subTest(" ".join(words)):
                names = []
                for word in words[1:3]:
                    if word.startswith("-") or not word.isalpha():
                        break
                    names.append(word)
                if names[0] not in ("access", "rules"):
                    names = names[:1]
                program = os.path.join(BIN_DIR, "nowcalls-admin")
                done = subprocess.run([program, *names, "--help"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("Usage: nowcalls-admin " + " ".join(names), done.stdout)
                for word in words:
                    if word.startswith("--"):
                        self.assertIn(word.partition("=")[0] + " ", done.stdout)

    def test_paths_settings_and_sections_of_the_page_are_those_of_the_manifests(self) -> None:
        settings: Any = Overlay("single").config_map("nowcalls-config")["server.toml"]
        (data_dir,) = re.findall(r'^data_dir = "(.*)"$', settings, re.MULTILINE)
        self.assertEqual(set(re.findall(r"/\S+/server\.sock", PAGE)), {data_dir + "/server.sock"})
        (job,) = kustomize.documents(JOBS[0])
        arguments = " ".join(job["spec"]["template"]["spec"]["containers"][0]["args"])
        (restored,) = re.findall(r'`data_dir = "(.*)"`', PAGE)
        self.assertIn(f"--data-dir={restored}", arguments)
        (backup,) = re.findall(r"--to (\S+)", PAGE)
        self.assertIn(f"--from={backup}", arguments)
        for path in (restored, backup):
            self.assertEqual(os.path.dirname(path), LEDGER_MOUNT)
        for directory in re.findall(r"^\| `([\w/]+)` \| ", PAGE, re.MULTILINE):
            if not directory.startswith("/"):
                self.assertTrue(os.path.isdir(os.path.join(KUBERNETES, directory)), directory)
        for probe in Overlay("single").probes.values():
            self.assertIn(f"`{probe['path']}`", PAGE)


if __name__ == "__main__":
    unittest.main()
