"""Generated honest submissions have no error; planted errors are found, placed and named."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from examples.grader.planted import KINDS
from examples.grader.rates import blamed, judged, rates
from examples.grader.submissions import honest


@given(seed=st.integers(0, 2**32 - 1), ring=st.booleans())
@settings(max_examples=100, deadline=None, derandomize=True)
# Its coarse figures leave the bytes open, its utilization does not.
@example(seed=1008736, ring=False)
# Its figures follow from times with loading and from those without as well.
@example(seed=700008178, ring=False)
# Its bandwidth is by a communication that was rounded and is not printed.
@example(seed=930001476, ring=True)
def test_no_honest_submission_is_called_wrong(seed, ring):
    found = judged(honest(seed), ring)
    assert found[found["severity"] != "info"].empty


def test_noise_alone_is_hardly_ever_a_warning():
    assert len(blamed(range(100))) <= 1


def test_planted_errors_are_found_in_the_right_cell_and_named():
    share = rates(range(len(KINDS)), seed=1)
    assert share["found"] >= 0.97 and share["placed"] >= 0.97 and share["named"] >= 0.9
