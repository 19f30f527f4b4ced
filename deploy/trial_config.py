"""The same Hub, for a trial by learners.py: whoever has HUB_TOKEN may start everyone's server."""

import os
from pathlib import Path

c = get_config()  # noqa: F821 - JupyterHub brings both
load_subconfig(str(Path(__file__).with_name("jupyterhub_config.py")))  # noqa: F821

c.JupyterHub.services = [{"name": "trial", "api_token": os.environ["HUB_TOKEN"]}]
c.JupyterHub.load_roles = [
    {
        "name": "trial",
        "services": ["trial"],
        "scopes": ["admin:users", "admin:servers", "access:servers"],
    }
]
