# SPDX-License-Identifier: Apache-2.0
"""The API server, as the project needs it. Import from the modules, nothing is re-exported here.

client     `await KubeClient.connect(kubeconfig=None)`: in a pod by its service account, else $KUBECONFIG or
           ~/.kube/config; an async context manager. `list_pods(field_selector)`, `list_nodes()`, `get_pod`,
           `get_node`, `patch_node_annotations(name, {key: value or None})`, `patch_pod_annotations`,
           `patch_node_status(name, {resource: "2"})`, `bind`, `proxy_get(namespace, pod, port, path) -> bytes`;
           `get`, `post`, `patch`, `request` for the rest. All answer with `cgpu.core.model` values or raise
           UnavailableError (NotFoundError, ConflictError, ForbiddenError, ExpiredError) of `cgpu.core.errors`;
           an unusable configuration is a SettingError.
objects    what is decoded: `PODS`, `NODES` (a `Resource` names path, decoder and key), `decode_pod`, `decode_node`.
reflector  `Reflector(client, PODS, sink, field_selector="spec.nodeName=a")`; `sink` has `replace(objects)`,
           `changed(item)`, `deleted(item)`. `await reflector.run()` in a task; `await reflector.synced.wait()`;
           `reflector.objects` is the copy (pods by "namespace/name", nodes by name).
events     `EventRecorder(client, component)`: `await recorder.warning(Reference.to_pod(pod), reason, message)`;
           never raises, repeats itself at most once a minute.
"""
