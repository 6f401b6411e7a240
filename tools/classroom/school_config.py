"""What JupyterHub is told for a school with real accounts: a start for your own.

    jupyterhub -f school_config.py

As root, since each server runs under its student's account. TEACHING.md ("A classroom
with real accounts") says what stands around it: the group, the boxes, TLS.
"""

BOXES = "/srv/class/handed_in"
GROUP = "students"  # who may log in
MOST_MEMORY = 4 * 1024**3  # bytes that one process of a student may ask for
IDLE_KERNEL, IDLE_SERVER = 30 * 60, 60 * 60  # seconds

c = get_config()  # noqa: F821  (JupyterHub puts it here)

# What speaks TLS stands before it and passes on what comes; nobody else gets here.
c.JupyterHub.bind_url = "http://127.0.0.1:8000"

# Names and passwords are those of this machine (PAM).
c.JupyterHub.authenticator_class = "pam"
c.PAMAuthenticator.allowed_groups = {GROUP}

c.JupyterHub.spawner_class = "localprocess"
c.Spawner.default_url = "/lab"
c.Spawner.environment = {
    "ATTNLIB_BOX": lambda spawner: f"{BOXES}/{spawner.user.name}",
}
# For each process, and what it starts has the same limit: one notebook that asks for
# all the memory there is fails, and the others go on.
c.Spawner.cmd = ["prlimit", f"--as={MOST_MEMORY}", "jupyterhub-singleuser"]
c.Spawner.args = [
    # Sockets in the student's home. On TCP, every account of this machine can listen
    # to what a kernel prints.
    "--KernelManager.transport=ipc",
    f"--MappingKernelManager.cull_idle_timeout={IDLE_KERNEL}",
    "--MappingKernelManager.cull_connected=True",
    f"--ServerApp.shutdown_no_activity_timeout={IDLE_SERVER}",
]
