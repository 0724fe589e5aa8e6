"""Comparisons of functions, settings and runs: how they are measured and judged."""

from gpubench.comparison.accelerators import compare_accelerators
from gpubench.comparison.outcome import ArmOutcome, Comparison
from gpubench.comparison.paired import compare
from gpubench.comparison.run_comparison import RunComparison
from gpubench.comparison.runs import compare_runs

__all__ = [
    "ArmOutcome",
    "Comparison",
    "RunComparison",
    "compare",
    "compare_accelerators",
    "compare_runs",
]
