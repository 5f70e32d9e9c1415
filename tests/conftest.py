"""Settings that all tests share."""

import os

# Two tests at once on few cores: threads of one product would wait for those of the other, a hundred times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings

# The same examples on every run: a failure is then a change of the code, never of luck.
settings.register_profile(
    "isotrope", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("isotrope")

# Doctests are looked for in every module, and several folders have a conftest of their own.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]
