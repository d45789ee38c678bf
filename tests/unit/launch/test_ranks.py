"""Where the ranks of one machine meet."""

import os
import sys

from scaling.launch import launcher

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


def test_they_meet_at_a_socket_of_rank_0_and_listen_where_only_this_machine_reaches(capfd):
    variables = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    done = launcher.launch([sys.executable, "-c", MEETING], variables, 60)
    assert (
        done.returncode == 0
        and capfd.readouterr().out == "[['127.0.0.1'], [], []] {'127.0.0.1'} lo\n"
    )
