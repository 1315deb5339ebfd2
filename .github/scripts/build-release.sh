#!/bin/bash
# Build the wheel and the archive of TAG into dist/, with its notes and a bill of materials beside it: what an installation
# of that wheel with the extra `sandbox` brings.
set -euo pipefail
python .github/scripts/release_notes.py "$TAG" >notes.md
pip install 'build>=1.3' 'check-wheel-contents>=0.6.3' 'cyclonedx-bom>=7' 'twine>=6.2'
python -m build --outdir dist
check-wheel-contents dist
twine check --strict dist/*
python -m venv bill
bill/bin/pip install "$(echo dist/*.whl)[sandbox]"
cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --mc-type library -o sbom.cdx.json bill/bin/python
rm -r bill
(cd dist && sha256sum -- *) >SHA256SUMS
