"""How long `townhall --help` and `--version` take, next to a Python that does nothing, in one run.

Prints the median of several alternating starts and their ratio. It runs the console script where one is installed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=11, help="of each command (default 11)")
    starts = parser.parse_args().starts
    beside = Path(sys.executable).with_name("townhall")
    script = str(beside) if beside.exists() else shutil.which("townhall")
    townhall = [script] if script else [sys.executable, "-m", "townhall.cli"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "townhall --version": [*townhall, "--version"],
        "townhall --help": [*townhall, "--help"],
        "townhall evaluate --help": [*townhall, "evaluate", "--help"],
        "townhall list strategies": [*townhall, "list", "strategies"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        seconds(command)  # warms the file cache and the compiled modules
    for _ in range(starts):
        for name, command in commands.items():
            times[name].append(seconds(command))
    bare = statistics.median(times["python -c pass"])
    print(f"{'command':<26} {'median ms':>9} {'best ms':>8} {'x python -c pass':>17}")
    for name, found in times.items():
        median = statistics.median(found)
        print(f"{name:<26} {1000 * median:>9.0f} {1000 * min(found):>8.0f} {median / bare:>17.1f}")


if __name__ == "__main__":
    main()
