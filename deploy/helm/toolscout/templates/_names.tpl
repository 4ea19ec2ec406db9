{{- define "toolscout.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "toolscout.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "toolscout.labels" -}}
{{ include "toolscout.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "toolscout.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  {{- range $name, $value := .Values.env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- if and .Values.ingress.enabled .Values.ingress.tlsSecretName (not .Values.env.TOOLSCOUT_PUBLIC_URL) }}
  - name: TOOLSCOUT_PUBLIC_URL
    value: https://{{ .Values.ingress.host }}
  {{- end }}
  {{- if .Values.policy }}
  - name: TOOLSCOUT_POLICY
    value: /etc/toolscout/policy.toml
  {{- end }}
  - name: TOOLSCOUT_STORE
    {{- with .Values.store.secretName }}
    valueFrom:
      secretKeyRef:
        name: {{ . }}
        key: {{ $.Values.store.secretKey }}
    {{- else }}
    value: sqlite:////var/lib/toolscout/catalogue.db
    {{- end }}
{{- with .Values.secrets }}
envFrom:
  {{- range . }}
  - secretRef:
      name: {{ . }}
  {{- end }}
{{- end }}
volumeMounts:
  - name: data
    mountPath: /var/lib/toolscout
  - name: config
    mountPath: /etc/toolscout
    readOnly: true
  - name: tmp
    mountPath: /tmp
{{- end }}
