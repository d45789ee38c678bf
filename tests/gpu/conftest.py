from unit.test_training import images  # noqa: F401
