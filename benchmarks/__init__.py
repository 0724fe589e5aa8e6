"""Benchmarks of arrays on the GPU, for `gpubench run benchmarks/` and for asv."""

import sys
from pathlib import Path

# asv imports the programs beside the suite as well, which find each other as scripts do.
sys.path.append(str(Path(__file__).parent))
