"""Tasks as environments of other packages, each a module over :mod:`pytest_evocode.play` that its package drives."""
