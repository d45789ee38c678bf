"""The orders in which ranks see the images, hashed and compared."""

import hashlib

import numpy as np

from scaling.synchronization.training import orders_of, sampled


def described(*orders, images=10):
    return orders_of([np.array(order) for order in orders], images, epoch=0)


def test_an_overlap_is_counted_pair_by_pair_and_the_largest_is_told():
    # 0 shares images 1 and 2 with 1, image 0 with 2; 1 and 2 share nothing. 8 draws, 5 images.
    rows = described([0, 1, 2], [1, 2, 3], [0, 4], images=7)
    assert [row["overlap"] for row in rows] == [2, 2, 1]
    assert [row["samples"] for row in rows] == [3, 3, 2]
    assert {(row["unseen"], row["repeated"]) for row in rows} == {(2, 3)}


def test_a_lone_rank_has_nobody_to_share_with():
    (row,) = described([1, 0, 1], images=4)
    expected = hashlib.sha256(bytes([1, *[0] * 7, *[0] * 8, 1, *[0] * 7])).hexdigest()
    order = {"epoch": 0, "rank": 0, "samples": 3, "order_sha256": expected}
    assert row == order | {"overlap": None, "unseen": 2, "repeated": 1}


def test_where_ranks_do_not_divide_the_images_some_are_drawn_twice():
    # 10 images on 4 ranks: 3 each, so 2 of the 12 draws are repeats.
    rows = sampled(10, 4, seed=1, epochs=1, set_epoch=True)
    assert {(row["samples"], row["unseen"], row["repeated"]) for row in rows} == {(3, 0, 2)}
    assert max(row["overlap"] for row in rows) >= 1
