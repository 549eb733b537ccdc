{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "cgpu.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "cgpu.labels" -}}
{{ include "cgpu.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "cgpu.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "cgpu.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "cgpu.devicePlugin.name" -}}{{ include "cgpu.name" . }}-device-plugin{{- end -}}
{{- define "cgpu.withdraw.name" -}}{{ include "cgpu.name" . }}-withdraw{{- end -}}
{{- define "cgpu.scheduler.name" -}}{{ include "cgpu.name" . }}-scheduler{{- end -}}

{{- define "cgpu.devicePlugin.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "cgpu.devicePlugin.name" . }}
{{- end -}}
{{- define "cgpu.scheduler.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "cgpu.scheduler.name" . }}
{{- end -}}

{{/* CEL: some container of the pod names one of our resources */}}
{{- define "cgpu.cel.asks" -}}
[object.spec.containers, object.spec.?initContainers.orValue([])].exists(group, group.exists(c,
  ['aliyun.com/gpu-mem', 'aliyun.com/gpu-core.percentage'].exists(name,
    c.?resources.?limits[?name].hasValue() || c.?resources.?requests[?name].hasValue())))
{{- end -}}

{{/* CEL: the pod is left to others, now and before */}}
{{- define "cgpu.cel.ignored" -}}
object.metadata.?labels[?'cgpu.aliyun.com/ignore'].orValue('') == 'true' &&
(request.operation == 'CREATE' || oldObject.metadata.?labels[?'cgpu.aliyun.com/ignore'].orValue('') == 'true')
{{- end -}}

{{/* CEL: the annotations of a pod that only our services write */}}
{{- define "cgpu.cel.podKeys" -}}
['cgpu.aliyun.com/allocation', 'cgpu.aliyun.com/resized', 'cgpu.aliyun.com/resize-status',
 'scheduler.framework.gpushare.allocation', 'ALIYUN_COM_GPU_MEM_IDX', 'ALIYUN_COM_GPU_MEM_DEV',
 'ALIYUN_COM_GPU_MEM_POD', 'ALIYUN_COM_GPU_MEM_ASSUME_TIME', 'ALIYUN_COM_GPU_MEM_ASSIGNED']
{{- end -}}
