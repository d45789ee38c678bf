"""Measurements: start and rendezvous of processes, and results of how they end."""

import os
import socket
import sys
import time
from pathlib import Path

import pytest

import measure as script
from scaling.core.errors import UserError
from scaling.core.records.kind import SWEEP
from scaling.launch import launcher, measure
from scaling.launch.launcher import ProcessResult
from scaling.launch.measure import Measurement


def ending(options: Measurement, folder: Path) -> None:
    """Fail or hang, depending on the name of the record."""
    match options.output.stem:
        case "fails":
            sys.exit(3)
        case "hangs":
            time.sleep(60)


@pytest.mark.parametrize(
    ("name", "cause"),
    [("fails", "exit status 3"), ("hangs", "its time limit"), ("ends", "exit status 0")],
)
def test_measurement_without_a_process_is_one_sentence(tmp_path, name, cause):
    output, limit = tmp_path / f"{name}.json", 1 if name == "hangs" else 60
    options = Measurement(output=output, gpus=1, device="cpu", time_limit_seconds=limit)
    sentence = f"the sweep over 2 GPUs ended early with {cause}: see the log above; ask for less"
    about = {"name": "the sweep over 2 GPUs", "advice": "; ask for less", "processes": 2}
    with pytest.raises(UserError, match=sentence):
        measure.run(f"{__name__}:ending", options, **about)


SIZES = [{"message_bytes": size, "seconds": [1e-3] * 3} for size in (4096, 1024)]
ROWS = [{"kind": "sweep", "correct": True, "launch": "eager"} | size for size in SIZES]


@pytest.mark.parametrize("rows", [ROWS, []])
def test_sweep_ends_with_the_rows_before_its_limit(tmp_path, monkeypatch, capsys, rows):
    """If a message takes longer than the time limit, the sweep ends, and the study goes on."""
    lines = [{"kind": "row", "row": one} for one in rows]
    lines.append({"kind": "model", "gradient_bytes": 4096})
    found = launcher.by_kind({"rank": 0} | one for one in lines)
    late = ProcessResult(-9, timed_out=True, lines=found, environment={"device": "cpu"})
    monkeypatch.setattr(measure, "launch_ranks", lambda *_: late)
    output = tmp_path / "sweep.json"
    asked = {"gpus": 2, "device": "cpu", "message_bytes": [1024], "manifest": "none"}
    asked["output"] = output
    if rows:
        script.main(sweep=asked)
        assert SWEEP.read(output)["rows"] == rows
        assert "time limit of 600 s" in capsys.readouterr().out
    else:
        with pytest.raises(UserError, match="ended early with its time limit"):
            script.main(sweep=asked)
        assert not output.exists()


def test_next_start_removes_a_killed_measurements_files(tmp_path):
    (tmp_path / ".run.ranks.killed").mkdir()
    (tmp_path / ".other.ranks.killed").mkdir()
    options = Measurement(output=tmp_path / "run.json", device="cpu")
    given = options, options.output, 1
    ended = measure.launch_ranks("sys:exit", {"status": 3}, *given)
    assert (ended.returncode, any(ended.lines.values())) == (1, False)
    assert [path.name for path in tmp_path.iterdir()] == [".other.ranks.killed"]


def test_rendezvous_port_is_reserved():
    port = launcher.reserve_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("", port))


MEETING = """
import os, psutil
from scaling.launch import ranks

def run():
    rank = ranks.join("cpu", 1, 60)
    port = int(os.environ["MASTER_PORT"])
    rank.barrier()
    own = [c.laddr for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN]
    heard = rank.gather([address.ip for address in own if address.port == port])
    others = rank.gather([address.ip for address in own if address.port != port])
    if rank.is_first:
        print(heard, set(sum(others, [])), os.environ["GLOO_SOCKET_IFNAME"])
    rank.leave()

ranks.start(3, run)
"""


def test_ranks_meet_on_a_loopback_socket_of_rank_0(capfd):
    variables = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    done = launcher.launch([sys.executable, "-c", MEETING], variables, 60)
    told = "[['127.0.0.1'], [], []] {'127.0.0.1'} lo\n"
    assert (done.returncode, capfd.readouterr().out) == (0, told)
