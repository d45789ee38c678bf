"""Copies of this process in the place of new ones, which would import PyTorch again."""

import os
import runpy
import subprocess
import sys
import traceback

import psutil


def become(run):
    """Call `run` and end this process, a fork of pytest's, as a script ends. Never returns."""
    try:
        sys.stdout, sys.stderr = (os.fdopen(fd, "w", buffering=1, closefd=False) for fd in (1, 2))
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(bool(code)))


class ForkedPopen:
    """What subprocess.Popen is to the launcher, for a script of ours; others are started."""

    def __new__(cls, command_line, **options):
        is_script = command_line[0] == sys.executable and command_line[1].endswith(".py")
        return super().__new__(cls) if is_script else subprocess.Popen(command_line, **options)

    def __init__(self, command_line, env, preexec_fn):
        def script():
            preexec_fn()
            os.environ.clear()
            os.environ.update(env)
            sys.argv = command_line[1:]
            runpy.run_path(command_line[1], run_name="__main__")

        pid = os.fork()
        if not pid:
            become(script)
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
