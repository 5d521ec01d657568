"""What records that stand in columns must keep to: the checks of `record.py` and `core/distribution.py`, on arrays.

They tell which rows break a law, not in which words: those are the plain reader's.
"""

from collections.abc import Mapping, Sequence
from operator import ge
from typing import Any

from agentmark.batch.arrays import Bools, Int32s, Int64s, np, row_of_each, spread, starts_of
from agentmark.core.distribution import MAX_BEHAVIORS, TOTAL_WEIGHT

# Columns by their names in `StepColumns`, without its tables; "length" in place of `list_start`, so that rows can be
# taken out and put behind each other.
Arrays = dict[str, Any]


def only(arrays: Arrays, rows: Bools) -> Arrays:
    """The rows that are wanted."""
    return arrays if rows.all() else in_order(arrays, np.flatnonzero(rows))


def in_order(arrays: Arrays, rows: Int64s) -> Arrays:
    """These rows, in this order."""
    lengths = arrays["length"]
    entries = spread((np.cumsum(lengths) - lengths)[rows], lengths[rows])
    return {column: values[entries if column in ("name", "weight") else rows] for column, values in arrays.items()}


def joined(arrays: Arrays, more: Arrays) -> Arrays:
    """Rows behind rows."""
    return {column: np.concatenate([values, more[column]]) for column, values in arrays.items()}


def check_lists(arrays: Arrays, names: Mapping[str, int]) -> Bools:
    """Which rows have a list that a record may have, or none where it needs none. Whole lists are put in order, in
    place; names are codes of the table. That no list names one twice is for the caller to know."""
    listed, partial, name, weight = arrays["listed"], arrays["partial"], arrays["name"], arrays["weight"]
    start = starts_of(arrays["length"])
    good = ~broken_lists(start, name, weight, listed=listed, partial=partial, choice=arrays["choice"])
    good &= listed | partial | ~arrays["marked"]
    if "" in names:
        good &= sums_of_lists(start, (name == names[""]).astype(np.int64)) == 0
    texts = tuple(names)
    for row in np.flatnonzero(good & ~partial & out_of_order(start, name, weight, texts)).tolist():
        entries = slice(start[row], start[row + 1])
        pairs = zip(weight[entries].tolist(), name[entries].tolist(), strict=True)
        ordered = sorted(pairs, key=lambda pair: (-pair[0], texts[pair[1]]))
        weight[entries], name[entries] = zip(*ordered, strict=True)
    return good


def out_of_order(list_start: Int64s, name: Int32s, weight: Int64s, names: Sequence[str]) -> Bools:
    """For each row, whether its list is in another order than the canonical one: by weight, largest first, then by
    name."""
    found = np.zeros(len(list_start) - 1, bool)
    if len(name) < 2:
        return found
    row = row_of_each(list_start)
    same_list = row[1:] == row[:-1]
    rises = same_list & (weight[1:] > weight[:-1])
    ties = np.flatnonzero(same_list & (weight[1:] == weight[:-1]))
    if len(ties):
        # Code points sort as their UTF-8 bytes do (law L2).
        before, behind = (map(names.__getitem__, name[at].tolist()) for at in (ties, ties + 1))
        rises[ties] = list(map(ge, before, behind))
    found[row[1:][rises]] = True
    return found


def broken_lists(
    list_start: Int64s, name: Int32s, weight: Int64s, *, listed: Bools, partial: Bools, choice: Int32s
) -> Bools:
    """For each row, whether its list, or its choice from a whole list, can be none of a record.

    Names that stand twice in a list are not looked for (`repeated_names`), nor is the order.
    """
    lengths = np.diff(list_start)
    broken = np.asarray(np.where(listed, (lengths < 1) | (lengths > MAX_BEHAVIORS), lengths != 0))
    row = row_of_each(list_start)
    broken[row[(weight < 0) | (weight > TOTAL_WEIGHT)]] = True
    totals = sums_of_lists(list_start, np.clip(weight, 0, TOTAL_WEIGHT + 1))
    broken |= listed & np.where(partial, totals > TOTAL_WEIGHT, totals != TOTAL_WEIGHT)
    has_choice = np.zeros(len(broken), bool)
    has_choice[row[name == choice[row]]] = True
    return broken | (listed & ~partial & ~has_choice)


def sums_of_lists(list_start: Int64s, values: Int64s) -> Int64s:
    """The sum of each list; an empty one sums to zero."""
    sums = np.zeros(len(list_start) - 1, np.int64)
    filled = np.flatnonzero(np.diff(list_start))
    if len(filled):
        sums[filled] = np.add.reduceat(values, list_start[:-1][filled])
    return sums


def repeated_names(list_start: Int64s, name: Int32s, name_count: int) -> Bools:
    """For each row, whether its list names a behavior twice."""
    keys = row_of_each(list_start) * max(1, name_count) + name
    keys.sort()
    found = np.zeros(len(list_start) - 1, bool)
    found[keys[1:][keys[1:] == keys[:-1]] // max(1, name_count)] = True
    return found
