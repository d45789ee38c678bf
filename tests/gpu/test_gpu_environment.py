"""The GPU that a process names as its own. Skipped without."""

import pytest
import torch

from scaling.core import environment

pytestmark = pytest.mark.skipif(torch.cuda.device_count() == 0, reason="needs a GPU")


def test_the_driver_knows_the_gpu_by_the_uuid_that_torch_tells():
    found = environment.describe_process(torch.device("cuda"))
    assert found["device_names"] == [torch.cuda.get_device_name()]
    assert found["device_ids"][0] in map(environment.gpu_uuid, environment.visible_gpus())
    assert found["cuda"] == torch.version.cuda


def test_the_driver_knows_the_compute_capability_that_torch_tells():
    own = torch.cuda.get_device_capability()
    assert environment.older_gpu((99, 0)).endswith(f"has compute capability {own[0]}.{own[1]}")
    assert environment.older_gpu((0, 1)) is None
