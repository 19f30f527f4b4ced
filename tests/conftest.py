"""One thread a process: two workers and their kernels would only fight for the cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
