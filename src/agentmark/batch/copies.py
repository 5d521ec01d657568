"""Rows that read like an earlier row of the same context: a step that stands in a log many times is read once."""

from agentmark.batch.arrays import Bools, Int64s, np, spread
from agentmark.batch.columns import StepColumns

# All that a reading depends on, beside the context and the list.
_COLUMNS = ("scheme", "key_id", "payload_len", "marked", "choice", "partial", "listed")


def copies(columns: StepColumns) -> tuple[Int64s, Int64s]:
    """The rows that need no reading, and for each the row whose reading it has: what `verify.state.accumulate` does.

    A row is compared with the one of its context that was read last.
    """
    rows = _shared_beginnings(columns)
    if not len(rows):
        return rows, rows
    words = np.ascontiguousarray(columns.context[rows]).view("<u8")
    order = np.lexsort(words.T)
    rows, words = rows[order], words[order]
    # Neighbors of one context, in the order of the log.
    same = np.all(words[1:] == words[:-1], axis=1)
    alike = same.copy()
    alike[same] = _alike(columns, rows[1:][same], rows[:-1][same])
    group = np.concatenate([[0], np.cumsum(~same)])
    differing = np.unique(group[1:][same & ~alike])
    simple = np.concatenate([[False], same]) & ~np.isin(group, differing)
    first = rows[np.concatenate([[0], np.flatnonzero(~same) + 1])]
    found = [(rows[simple], first[group[simple]])]
    # Copies that differ, or whose lists stand in another order: one after the other.
    begins, ends = np.searchsorted(group, differing), np.searchsorted(group, differing, side="right")
    borders = zip(begins.tolist(), ends.tolist(), strict=True)
    found += [_one_by_one(columns, rows[begin:end]) for begin, end in borders]
    return np.concatenate([copied for copied, _ in found]), np.concatenate([original for _, original in found])


def _shared_beginnings(columns: StepColumns) -> Int64s:
    """Rows whose context may stand elsewhere as well: the first eight bytes of it do."""
    beginnings = np.ascontiguousarray(columns.context[:, :8]).view("<u8").ravel()
    ordered = np.sort(beginnings)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(beginnings, shared)) if len(shared) else np.zeros(0, dtype=np.int64)


def _alike(columns: StepColumns, rows: Int64s, others: Int64s) -> Bools:
    """Whether the two of each pair read alike; False if their lists stand in different orders."""
    alike = np.ones(len(rows), dtype=np.bool_)
    for name in _COLUMNS:
        column = getattr(columns, name)
        alike &= column[rows] == column[others]
    lengths = np.diff(columns.list_start)
    alike &= lengths[rows] == lengths[others]
    pairs = np.flatnonzero(alike & (lengths[rows] > 0))
    mine, theirs = rows[pairs], others[pairs]
    entries = spread(columns.list_start[mine], lengths[mine])
    other_entries = spread(columns.list_start[theirs], lengths[mine])
    differs = (columns.name[entries] != columns.name[other_entries]) | (
        columns.weight[entries] != columns.weight[other_entries]
    )
    if len(pairs):
        ends = np.cumsum(lengths[mine])
        alike[pairs] = ~np.logical_or.reduceat(differs, ends - lengths[mine])
    return alike


def _one_by_one(columns: StepColumns, rows: Int64s) -> tuple[Int64s, Int64s]:
    found = []
    read = int(rows[0])
    for row in rows[1:].tolist():
        if _content(columns, row) == _content(columns, read):
            found.append((row, read))
        else:
            read = row
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _content(columns: StepColumns, row: int) -> tuple[object, ...]:
    begin, end = columns.list_start[row : row + 2].tolist()
    weights = dict(zip(columns.name[begin:end].tolist(), columns.weight[begin:end].tolist(), strict=True))
    return *[getattr(columns, name)[row].item() for name in _COLUMNS], weights
