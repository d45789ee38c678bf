"""Fork this process instead of starting processes, which would import PyTorch again."""

import importlib
import json
import os
import runpy
import socket
import socketserver
import subprocess
import sys
import traceback
from pathlib import Path

import psutil

Popen = subprocess.Popen

CLIENT = """#!{python} -IS
import json, os, socket, sys
if not sys.argv[1:2] or not sys.argv[1].endswith(".py"):
    os.execv("{python}", ["{python}", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{address}")
    asked = json.dumps([os.getcwd(), dict(os.environ), sys.argv[1:]]).encode()
    socket.send_fds(server, [len(asked).to_bytes(8, "big")], [1, 2])
    server.sendall(asked)
    sys.exit(int(server.recv(8) or b"1"))
"""
"""Script that replaces Python on the PATH. `Server` runs the project's scripts for it."""
LIBRARIES = ["torch", "torchvision", "pandas", "scipy.stats", "matplotlib.figure", "jinja2"]
"""Modules that a study's jobs import, and that take longest to import."""
OF_RANKS = ["scaling.training.worker", "scaling.instruments.steps", "torch._dynamo"]
OF_RANKS += ["torch.distributed.fsdp", "torch.distributed.optim", "torch.profiler"]
OF_RANKS += ["scaling.training.eager", "scaling.training.resident"]
"""Modules that ranks import, too. This takes seconds once, for all forks of a process."""


def become(run):
    """Call `run`, then end this forked process with the exit status of a script."""
    os._exit(status_of(run))


def status_of(run):
    try:
        sys.stdout, sys.stderr = (os.fdopen(fd, "w", buffering=1, closefd=False) for fd in (1, 2))
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(bool(code))


def run_script(command_line, environment):
    """Run a script or module of the project in this process, as a new Python process would."""
    os.environ.clear()
    os.environ.update(environment)
    if command_line[0] == "-m":
        _, name, *words = command_line
        sys.argv = [name, *words]
        importlib.import_module(name).main()
        return
    sys.argv = command_line
    sys.path[0] = str(Path(command_line[0]).parent)
    runpy.run_path(command_line[0], run_name="__main__")


class ForkedPopen:
    """Replaces the launcher's subprocess.Popen. Forks for the project's modules only."""

    def __new__(cls, command_line, *args, **options):
        is_ours = command_line[:2] == [sys.executable, "-m"] and "preexec_fn" in options
        return super().__new__(cls) if is_ours else Popen(command_line, *args, **options)

    def __init__(self, command_line, env, preexec_fn, **_):
        for name in OF_RANKS:
            importlib.import_module(name)
        pid = os.fork()
        if not pid:
            preexec_fn()
            become(lambda: run_script(command_line[1:], env))
        self._process = psutil.Process(pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.wait()

    def wait(self, timeout):
        try:
            return self._process.wait(timeout)
        except psutil.TimeoutExpired as late:
            raise subprocess.TimeoutExpired("forked", timeout) from late


class Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Runs each script that `CLIENT` requests in a fork of this process."""


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        code = status_of(self.run_asked)
        self.request.sendall(str(code).encode())

    def run_asked(self):
        size, fds, _, _ = socket.recv_fds(self.request, 8, 2)
        asked = self.request.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
        folder, environment, argv = json.loads(asked)
        for fd, own in zip(fds, (1, 2), strict=True):
            os.dup2(fd, own)
        os.chdir(folder)
        # The launcher of the folder's own code forks as well.
        subprocess.Popen = ForkedPopen
        run_script(argv, environment)


def python_that_forks(folder):
    """Start a `Server` process, write its client to `folder`, and return the process.

    The server is not forked from this process, which has computed with threads. In forks, the next
    parallel region would wait for these threads forever.
    """
    address = str(folder / "server")
    client = folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    server = Popen([sys.executable, __file__, address], stdout=subprocess.PIPE)
    server.stdout.readline()
    return server


if __name__ == "__main__":
    for name in LIBRARIES:
        importlib.import_module(name)
    with Server(sys.argv[1], Handler) as server:
        print("ready", flush=True)
        server.serve_forever()
