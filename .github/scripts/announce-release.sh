#!/bin/bash
# Make TAG a release on GitHub, with its notes, the files that PyPI has, their checksums and the bill of materials.
set -euo pipefail
sha256sum --check --quiet <(sed 's,  ,  dist/,' SHA256SUMS)
gh release create "$TAG" --verify-tag --title "$TAG" --notes-file notes.md dist/* SHA256SUMS sbom.cdx.json
