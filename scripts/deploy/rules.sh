#!/usr/bin/env bash
# Writes the alerts of deploy/prometheus/alerts.yaml where Kubernetes needs copies of them.
set -euo pipefail

cd "$(dirname "$0")/../.."
alerts=deploy/prometheus/alerts.yaml
cp "$alerts" deploy/helm/cronward/files/alerts.yaml
{
    cat <<'END'
# The rules of deploy/prometheus/alerts.yaml, for the Prometheus operator: written by scripts/deploy/rules.sh.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: cronward
spec:
END
    sed -n '/^groups:/,$p' "$alerts" | sed 's/^./  &/'
} >deploy/kubernetes/components/monitoring/prometheusrule.yaml
