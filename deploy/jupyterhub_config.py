"""JupyterHub for a class on one machine; see TEACHING.md."""

c = get_config()  # noqa: F821 - JupyterHub brings it

# Whoever has an account and a password on this machine may come in.
c.Authenticator.allow_all = True

# Only this machine reaches the Hub; a web server with https stands before it.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"

# Everyone lands in lesson 1, in JupyterLab.
c.Spawner.default_url = "/lab/tree/attention/01_single_head_attention.ipynb"

# One thread each: the lessons are small, and a class shares the cores.
c.Spawner.environment = {"OMP_NUM_THREADS": "1"}

# Kernels talk over files of their owner, not over ports of the machine: two that start at once
# cannot pick the same port.
c.Spawner.args = ["--KernelManager.transport=ipc"]
