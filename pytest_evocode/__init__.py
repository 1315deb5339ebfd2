"""Run multi-round coding benchmarks with pytest."""
