"""Prints the time of each kind of kernel in an ncu CSV of one step, longest first.

usage: ops_table.py FILE.csv
"""

import csv
import sys
from collections import defaultdict


def read(path):
    """Metrics by launch: {id: {"name": ..., metric: value}}."""
    with open(path, errors="replace") as file:
        lines = [line for line in file if line.startswith('"')]
    launches = defaultdict(dict)
    for row in csv.DictReader(lines):
        value = float(row["Metric Value"].replace(",", ""))
        unit = row["Metric Unit"]
        scale = {"ns": 1e-3, "us": 1, "usecond": 1, "nsecond": 1e-3, "ms": 1e3, "msecond": 1e3}.get(unit, 1)
        scale = {"byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}.get(unit, scale)
        launch = launches[row["ID"]]
        launch["name"] = row["Kernel Name"].split("(")[0][-60:] + " " + row.get("Grid Size", "")
        launch[row["Metric Name"]] = value * scale
    return launches


def main():
    kinds = defaultdict(lambda: [0, 0.0, 0.0])
    for launch in read(sys.argv[1]).values():
        kind = kinds[launch["name"]]
        kind[0] += 1
        kind[1] += launch.get("gpu__time_duration.sum", 0)
        kind[2] += launch.get("dram__bytes_read.sum", 0)
    if not kinds:
        sys.exit("no launches in " + sys.argv[1])
    total = sum(kind[1] for kind in kinds.values())
    print(f"{'us':>9} {'share':>6} {'count':>5} {'us each':>8} {'GB/s':>6}  kernel and grid")
    for name, (count, micros, megabytes) in sorted(kinds.items(), key=lambda item: -item[1][1])[:24]:
        rate = megabytes / micros * 1e3 if micros else 0
        print(f"{micros:9.1f} {micros / total:6.1%} {count:5} {micros / count:8.2f} {rate:6.0f}  {name}")
    print(f"{total:9.1f} all")


if __name__ == "__main__":
    main()
