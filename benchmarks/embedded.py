"""How the embedded model's threads should wait for each other: replies by policy, on idle cores and on busy ones.

Each policy is tried in a process of its own, since the engine reads it once. Prints tokens a second while a reply is
written, and the ratio to the engine's own default; with `--busy`, while another process takes one core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

#: What is in the environment when the engine is loaded. "townhall" is what `models.weights.require_engine` sets.
POLICIES = {
    "engine's default": {"GOMP_SPINCOUNT": "300000"},
    "townhall": {},
    "sleep at once": {"OMP_WAIT_POLICY": "passive"},
}
CHILD = """
import sys, threading, time
from townhall.models.embedded import EmbeddedEngine
server = EmbeddedEngine(sys.argv[1]).server()
def reply(tokens):
    body = {"messages": [{"role": "user", "content": "Count from 1 to 300 in words."}], "max_tokens": tokens,
            "temperature": 0, "cache_prompt": True, "ignore_eos": True}
    started = time.perf_counter()
    done = server.submit(body, threading.Event()).result()
    return done.usage["completion_tokens"], time.perf_counter() - started
reply(8)
short, long = reply(8), reply(int(sys.argv[2]))
print((long[0] - short[0]) / (long[1] - short[1]))
"""


def speed(name: str, tokens: int, settings: dict[str, str]) -> float:
    """Return tokens a second, what reading the prompt takes left out."""
    clean = {key: value for key, value in os.environ.items() if key not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    command = [sys.executable, "-c", CHILD, name, str(tokens)]
    done = subprocess.run(command, check=True, env={**clean, **settings}, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="qwen2.5-coder-0.5b", help="as `townhall models` names it")
    parser.add_argument("--tokens", type=int, default=120, help="of a reply (default 120)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each policy is tried, in turn (default 2)")
    parser.add_argument("--busy", action="store_true", help="while another process takes one core")
    given = parser.parse_args()
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if given.busy else None
    try:
        found: dict[str, list[float]] = {name: [] for name in POLICIES}
        for _ in range(given.rounds):
            for name, settings in POLICIES.items():
                found[name].append(speed(given.model, given.tokens, settings))
    finally:
        if other is not None:
            other.kill()
    first = max(found["engine's default"])
    print(f"{given.model}, {'one core busy' if given.busy else 'idle cores'}, best of {given.rounds}")
    print(f"{'policy':<18} {'tokens/s':>9} {'ratio':>6}")
    for name, speeds in found.items():
        print(f"{name:<18} {max(speeds):>9.1f} {max(speeds) / first:>6.2f}")


if __name__ == "__main__":
    main()
