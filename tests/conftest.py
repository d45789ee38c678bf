"""Images that all tests share."""

import pytest

from training_runs import write_images


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A folder with images.npz and manifest.json, see `training_runs.write_images`."""
    folder = tmp_path_factory.mktemp("images")
    write_images(folder)
    return folder
