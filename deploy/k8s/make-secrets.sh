#!/usr/bin/env bash
# Prints the Kubernetes secrets of an installation, one a process, from what `ambit init keys` handed out.
#   docker run --rm -u "$(id -u)" -v "$PWD/identity:/identity" -e AMBIT_KEYS_DIR=/identity/keys -e AMBIT_HANDOUT_DIR=/identity/handout \
#     ambit/init node apps/init/dist/main.js keys
#   deploy/k8s/make-secrets.sh identity/handout | kubectl --namespace ambit apply -f -
# Keep identity/keys safe and outside the cluster: its operator key is the root of every identity.
set -euo pipefail
handout=${1:?usage: make-secrets.sh HANDOUT_FOLDER}
for folder in "$handout"/*/; do
  name=$(basename "$folder")
  files=()
  while IFS= read -r file; do files+=("--from-file=$file"); done < <(find "$folder" -type f | sort)
  kubectl create secret generic "ambit-$name" "${files[@]}" --dry-run=client -o yaml
  echo '---'
done
