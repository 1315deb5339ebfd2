#!/bin/bash
# Send dist/ to PyPI as the trusted publisher, with an attestation of each file; no key is kept anywhere.
set -euo pipefail
sha256sum --check --quiet <(sed 's,  ,  dist/,' SHA256SUMS)
pip install 'pypi-attestations>=0.0.28' 'uv>=0.12'
python -m pypi_attestations sign dist/*
uv publish --trusted-publishing always dist/*
