"""arrays -> arrays: the hot loops, compiled by numba, ignorant of the domain.

Every kernel releases the interpreter lock and writes into arrays that the caller allocated, so that threads may
share the work by slices and the sums come out in the same order on any number of them. Letters are the paper's:
``B`` members, ``n`` leave-one-out predictors, ``K`` columns, ``T`` rows of time, ``W`` places of a window.
"""

from .conditioning import conditional_sums, fill_jointly, fill_near, fill_same_jointly, fill_same_near
from .grams import time_grams
from .left_out import loo_mean_rows, loo_sorted_all, loo_sorted_rows
from .levels import distances_when_drawn
from .medians import median_of_slots, medians_outside, near_on_circle, quickselect
from .rows import complete_rows, gather_design, stand_in
from .selection import select_rows
from .windows import BOTH, CLASS_BITS, HIGH, LOW, rank_gathered, rank_pool, rank_windows

__all__ = [
    "BOTH",
    "CLASS_BITS",
    "HIGH",
    "LOW",
    "complete_rows",
    "conditional_sums",
    "distances_when_drawn",
    "fill_jointly",
    "fill_near",
    "fill_same_jointly",
    "fill_same_near",
    "gather_design",
    "loo_mean_rows",
    "loo_sorted_all",
    "loo_sorted_rows",
    "median_of_slots",
    "medians_outside",
    "near_on_circle",
    "quickselect",
    "rank_gathered",
    "rank_pool",
    "rank_windows",
    "select_rows",
    "stand_in",
    "time_grams",
]
