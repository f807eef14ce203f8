"""Kendall's tau-b. Standard library only, O(n log n)."""

import math


def pairs(count):
    return count * (count - 1) // 2


def ties(values):
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return sum(pairs(count) for count in counts.values())


def swaps(values):
    """Pairs in the wrong order, which a merge sort exchanges. Returns them and the sorted list."""
    if len(values) < 2:
        return 0, values
    middle = len(values) // 2
    count_left, left = swaps(values[:middle])
    count_right, right = swaps(values[middle:])
    count, merged, i = count_left + count_right, [], 0
    for value in right:
        while i < len(left) and left[i] <= value:
            merged.append(left[i])
            i += 1
        count += len(left) - i
        merged.append(value)
    return count, merged + left[i:]


def kendall(first, second):
    """0 if all values of one list are equal."""
    total = pairs(len(first))
    tied_first, tied_second = ties(first), ties(second)
    if total in (tied_first, tied_second):
        return 0.0
    rows = sorted(zip(first, second, strict=True))
    discordant, _ = swaps([b for _, b in rows])
    agreement = total - tied_first - tied_second + ties(rows) - 2 * discordant
    return agreement / math.sqrt((total - tied_first) * (total - tied_second))
