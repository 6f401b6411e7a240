"""What JupyterHub is told for a trial: everything on loopback, one account for all.

JupyterHub reads it (`jupyterhub -f`). What changes from start to start stands in the
file that ATTNLIB_CLASSROOM names; `tools/classroom/start.py` writes it.
"""

import json
import os
from pathlib import Path

c = get_config()  # noqa: F821  (JupyterHub puts it here)
told = json.loads(Path(os.environ["ATTNLIB_CLASSROOM"]).read_text(encoding="utf-8"))
here, root = "http://127.0.0.1", Path(told["root"])

# Nobody outside this machine reaches any of the three.
c.JupyterHub.bind_url = f"{here}:{told['port']}"
c.JupyterHub.hub_bind_url = f"{here}:{told['hub_port']}"
c.ConfigurableHTTPProxy.api_url = f"{here}:{told['proxy_port']}"
c.ConfigurableHTTPProxy.command = told["proxy"]
c.JupyterHub.db_url = f"sqlite:///{root / 'hub' / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(root / "hub" / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(root / "hub" / "proxy.pid")

# One password for all. Whoever knows it runs programs as the one who started this.
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = told["password"]
c.Authenticator.allowed_users = set(told["students"])

c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(root / "homes" / "{username}")
c.Spawner.cmd = told["server"]
c.Spawner.args = ["--allow-root"] if os.geteuid() == 0 else []
c.Spawner.default_url = "/lab"
c.Spawner.start_timeout = c.Spawner.http_timeout = 180  # many at once, on few cores
c.Spawner.environment = {
    "ATTNLIB_BOX": lambda spawner: str(root / "handed_in" / spawner.user.name),
    # Where JupyterLab finds what came with the course's packages: kernels, widgets.
    "JUPYTER_PATH": told["share"],
    "JUPYTER_CONFIG_PATH": told["etc"],
    "PYTHONNOUSERSITE": "1",
}
