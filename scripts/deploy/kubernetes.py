"""Checks deploy/kubernetes and deploy/helm: every resource that comes of them, in strict mode, and the files of cronward inside.

Asks no cluster. Called by scripts/deploy/check.sh, with the program `cronward` as the only argument. Ends with 1 at the first fault.
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

import helm_python
import helm_python.chart as helm
import jsonschema
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRONWARD = sys.argv[1]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]["version"]
# The oldest that the chart takes, and the newest whose schemas are here.
RELEASES = ("1.27", "1.37")
# Resources of the Prometheus operator, of which kubernetes-validate has no schema.
OPERATED = {"ServiceMonitor": "servicemonitor.json", "PrometheusRule": "prometheusrule.json"}


def fail(why):
    sys.exit(f"deploy-check: kubernetes: {why}")


def validate(resource):
    """Against the schemas of Kubernetes, where a key too many is a fault."""
    schema = OPERATED.get(resource["kind"])
    name = f"{resource['kind']}/{resource['metadata']['name']}"
    try:
        if schema:
            text = (ROOT / "scripts/deploy/schemas" / schema).read_text()
            jsonschema.validate(resource, json.loads(text))
        else:
            for release in RELEASES:
                kubernetes_validate.validate(resource, release, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        fail(f"{name}: {error.message}")
    return name


def check_file(text):
    """Lets cronward read a jobs.toml as a pod has it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "url").write_text("redis://redis.example:6379\n")
        (folder / "jobs.toml").write_text(text.replace("/run/secrets/cronward/url", str(folder / "url")))
        environment = dict(os.environ, HOSTNAME="cronward-0")
        said = subprocess.run([CRONWARD, "check", "--config", folder / "jobs.toml"], env=environment, capture_output=True, text=True)
        if said.returncode:
            fail(f"cronward check ends with {said.returncode}:\n{said.stderr}{said.stdout}\n{text}")


def seconds(text):
    return sum(int(count) * {"s": 1, "m": 60, "h": 3600}[unit] for count, unit in re.findall(r"(\d+)([smh])", text))


def default(key):
    """What a key of jobs.toml is without a line of its own: tests/repository compares the page with the parser."""
    return re.search(rf'^\| `{key}` \| `"(\w+)"` \|', (ROOT / "docs/jobs-toml.md").read_text(), re.M).group(1)


def wanted_grace(text):
    """How long a pod with this jobs.toml may need after TERM: drain, the longest kill_after, and 6 s for the last words to the store."""
    file = tomllib.loads(text)
    general = file.get("defaults", {}).get("kill_after", default("kill_after"))
    kill_after = max(seconds(job.get("kill_after", general)) for job in file["jobs"].values())
    return seconds(file["node"].get("drain", default("drain"))) + kill_after + 6


def check_grace(resources, own):
    """The pod lives as long as its own jobs.toml asks for; `own` names the ConfigMap that is not rendered here."""
    files = {resource["metadata"]["name"]: resource["data"]["jobs.toml"] for resource in resources if resource["kind"] == "ConfigMap"}
    for kind, name, spec in pods(resources):
        if kind not in ("Deployment", "DaemonSet"):
            continue
        used = [volume["configMap"]["name"] for volume in spec["volumes"] if "configMap" in volume]
        if not used or (used != [own] and not set(used) <= files.keys()):
            fail(f"{kind} {name} has no jobs.toml: {used}")
        for text in (files[volume] for volume in used if volume != own):
            grace, wanted = spec["terminationGracePeriodSeconds"], wanted_grace(text)
            if grace != wanted:
                fail(f"{kind} {name}: terminationGracePeriodSeconds is {grace}, and its jobs.toml asks for {wanted}")


def pods(resources):
    """The specification of each pod that comes of them."""
    for resource in resources:
        kind, spec = resource["kind"], resource.get("spec", {})
        if kind == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if kind in ("Deployment", "DaemonSet", "CronJob"):
            spec = spec["template"]["spec"]
        elif kind != "Pod":
            continue
        yield kind, resource["metadata"]["name"], spec


def check_pods(resources):
    """Each pod keeps to the profile "restricted", is of this version, and is probed where it goes on running."""
    for kind, name, spec in pods(resources):
        security = spec["securityContext"]
        if not security["runAsNonRoot"] or security["seccompProfile"]["type"] != "RuntimeDefault":
            fail(f"{kind} {name} is not restricted: {security}")
        for container in spec["containers"]:
            security = container["securityContext"]
            if security["allowPrivilegeEscalation"] or not security["readOnlyRootFilesystem"] or security["capabilities"] != {"drop": ["ALL"]}:
                fail(f"{kind} {name} is not restricted: {security}")
            if kind in ("Deployment", "DaemonSet") and not {"livenessProbe", "readinessProbe"} <= container.keys():
                fail(f"{kind} {name} is not probed")
            name_of_image, _, tag = container["image"].rpartition(":")
            if name_of_image == "cronward" and tag != VERSION:
                fail(f"{kind} {name}: {container['image']} is not of version {VERSION}")


def check_base(resources):
    """Three nodes, apart from each other, of which one at a time may be taken away, and whom only those who have to may reach."""
    kinds = {resource["kind"]: resource for resource in resources}
    nodes = kinds["Deployment"]["spec"]
    if nodes["replicas"] != 3 or not nodes["template"]["spec"].get("topologySpreadConstraints"):
        fail("the base has not three nodes that are apart")
    if missing := {"PodDisruptionBudget", "NetworkPolicy"} - kinds.keys():
        fail(f"the base has no {', '.join(sorted(missing))}")


def check_daemonset(base, overlay):
    """One node on each machine that may be used, and else the base: nothing is lost, and nothing else is changed."""
    wanted = {(one["kind"], one["metadata"]["name"]): one for one in copy.deepcopy(base) if one["kind"] != "PodDisruptionBudget"}
    nodes = wanted["DaemonSet", "cronward"] = wanted.pop(("Deployment", "cronward"))
    nodes["kind"] = "DaemonSet"
    del nodes["spec"]["replicas"], nodes["spec"]["strategy"], nodes["spec"]["template"]["spec"]["topologySpreadConstraints"]
    nodes["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    machine = {"name": "MACHINE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    nodes["spec"]["template"]["spec"]["containers"][0].setdefault("env", []).append(machine)
    found = {(one["kind"], one["metadata"]["name"]): one for one in overlay}
    for key in wanted.keys() | found.keys():
        if wanted.get(key) != found.get(key):
            fail(f"overlays/daemonset: {key}: wanted\n{yaml.dump(wanted.get(key))}\nand it is\n{yaml.dump(found.get(key))}")


def check(what, text, own=None):
    resources = [resource for resource in yaml.safe_load_all(text) if resource]
    names = [validate(resource) for resource in resources]
    for resource in resources:
        if resource["kind"] == "ConfigMap":
            check_file(resource["data"]["jobs.toml"])
    check_grace(resources, own)
    check_pods(resources)
    print(f"{what}: {len(names)} resources: {', '.join(names)}")
    return resources


def kustomize():
    base, daemonset, _ = (
        check(f"kubectl kustomize {folder}", rendered(ROOT / "deploy/kubernetes" / folder)) for folder in ("base", "overlays/daemonset", "cronjob")
    )
    check_base(base)
    check_daemonset(base, daemonset)
    with tempfile.TemporaryDirectory(dir=ROOT / "deploy/kubernetes") as folder:
        file = pathlib.Path(folder, "kustomization.yaml")
        file.write_text("namespace: here\nresources: [../base]\ncomponents: [../components/monitoring]\n")
        check("kubectl kustomize base with components/monitoring", rendered(folder))
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    rule = yaml.safe_load((ROOT / "deploy/kubernetes/components/monitoring/prometheusrule.yaml").read_text())
    if rule["spec"] != rules:
        fail("components/monitoring/prometheusrule.yaml is not deploy/prometheus/alerts.yaml: run scripts/deploy/rules.sh")


def rendered(folder):
    said = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    if said.returncode or said.stderr:
        fail(f"kubectl kustomize {folder}: {said.stderr}")
    return said.stdout


def chart():
    folder = ROOT / "deploy/helm/cronward"
    if (folder / "files/alerts.yaml").read_bytes() != (ROOT / "deploy/prometheus/alerts.yaml").read_bytes():
        fail("deploy/helm/cronward/files/alerts.yaml is not deploy/prometheus/alerts.yaml: run scripts/deploy/rules.sh")
    sets = {"defaults": {}, **{path.name: yaml.safe_load(path.read_text()) for path in sorted((folder / "ci").glob("*.yaml"))}}
    if len(sets) < 3:
        fail("fewer than three sets of values")
    with helm_python.Chart.load(folder) as loaded:
        version = loaded.metadata["appVersion"]
        for name, values in sets.items():
            report = helm.lint(folder, values, strict=True)
            faults = [message for message in report["messages"] if message["severity"] > 1] + report["errors"]
            if faults:
                fail(f"helm lint with {name}: {faults}")
            loaded.validate_schema(values)
            manifests = loaded.render(values, name="cronward", namespace="here")
            text = "\n---\n".join(text for path, text in sorted(manifests.items()) if not path.endswith("NOTES.txt"))
            resources = check(f"helm template with {name}", text, values.get("existingConfigMap"))
            for resource in resources:
                if resource["kind"] == "PrometheusRule" and resource["spec"] != yaml.safe_load((folder / "files/alerts.yaml").read_text()):
                    fail("the chart changes the alerts")
        for wrong in WRONG:
            try:
                loaded.validate_schema(wrong)
            except helm_python.HelmError as error:
                print(f"refused: {wrong}: {str(error).splitlines()[-1].strip()}")
            else:
                fail(f"the schema takes {wrong}")
    package = [line for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version = ")][0]
    if f'version = "{version}"' != package:
        fail(f"the chart's appVersion {version} is not that of Cargo.toml, {package}")


WRONG = [
    {"replica": 3},
    {"kind": "StatefulSet"},
    {"replicas": 0},
    {"store": {"existingSecret": "", "key": "url", "namespace": "default"}},
    {"store": {"url": "redis://:secret@h/", "existingSecret": "s", "key": "url", "namespace": "default"}},
    {"http": {"tokens": ["cw_a-token-and-no-hash"]}},
    {"ingress": {"path": "ops"}},
]

kustomize()
chart()
