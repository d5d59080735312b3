{{- define "cronward.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "cronward.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "cronward.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "cronward.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "cronward.selector" -}}
app.kubernetes.io/name: {{ include "cronward.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "cronward.labels" -}}
{{ include "cronward.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "cronward.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "cronward.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "cronward.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- define "cronward.basePath" -}}
{{- trimSuffix "/" .Values.ingress.path }}
{{- end }}

{{- /* The whole of jobs.toml. toJson writes strings that are also strings of TOML. */ -}}
{{- define "cronward.file" -}}
[node]
name = "${HOSTNAME}"
drain = "{{ .Values.drainSeconds }}s"
{{- with .Values.nodeLabels }}

[node.labels]
{{- range $name, $value := . }}
{{ $name | toJson }} = {{ $value | toJson }}
{{- end }}
{{- end }}

[store]
url_file = "/run/secrets/cronward/url"
namespace = {{ .Values.store.namespace | toJson }}

[http]
listen = "0.0.0.0:9747"
behind_tls_proxy = true
metrics_open = {{ .Values.http.metricsOpen }}
{{- with .Values.http.publicUrl }}
public_url = {{ . | toJson }}
{{- end }}
{{- if and .Values.ingress.enabled (include "cronward.basePath" .) }}
base_path = {{ include "cronward.basePath" . | toJson }}
{{- end }}

[http.auth]
tokens_file = "/etc/cronward/tokens"

{{ .Values.jobs }}
{{- end }}

{{- define "cronward.tokens" -}}
# Lines of `cronward token new`: role name sha256:HEX. Hashes, no secrets.
{{- range .Values.http.tokens }}
{{ . }}
{{- end }}
{{- end }}
