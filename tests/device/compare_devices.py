#!/usr/bin/env python3
"""compare_devices.py HEADROOM_CLI MODEL VOCABULARY [DEVICE [OPTION…]]: a model's logits on the card (cuda:0, or DEVICE with these options) beside those of the processor, behind every token of a
short text (they are the same) and behind some tokens of a long one that is given (attention on matrix units may differ a little, and a
mixture with random weights then chooses other experts): how often the likeliest token is the same, and how far its logit is off. Then 100
greedy tokens behind the short text: the same. Exit status 1 if what has to be the same is not."""
import json
import os
import random
import subprocess
import sys
import tempfile

cli, model, vocabulary = sys.argv[1], sys.argv[2], int(sys.argv[3])
card = sys.argv[4:] or ["cuda:0"]


def evaluate(device, tokens, step, *more):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump({"tokens": tokens, "positions": list(range(step - 1, len(tokens), step))}, file)
    out = subprocess.run([cli, "eval", "--json", "-m", model, "--tokens", file.name, "--device", device, "--top", "4", "--ctx", "1024", *more],
                         check=True, capture_output=True, text=True).stdout
    os.unlink(file.name)
    return json.loads(out)


random.seed(1)
name, failed = os.path.basename(model), False
short, long = ([random.randrange(vocabulary) for _ in range(n)] for n in (40, 700))
cpu, gpu = evaluate("cpu", short, 1, "--greedy", "100"), evaluate(card[0], short, 1, "--greedy", "100", *card[1:])
failed |= cpu["positions"] != gpu["positions"] or cpu.get("greedy") != gpu.get("greedy")
print(f"{name}: 40 tokens and 100 greedy ones behind them:", "DIFFERENT" if failed else "the same")
same, worst = 0, 0.0
pairs = list(zip(evaluate("cpu", long, 25)["positions"], evaluate(card[0], long, 25, *card[1:])["positions"]))
for a, b in pairs:
    same += a["ids"][0] == b["ids"][0]
    worst = max(worst, abs(a["logits"][0] - b["logits"][0]))
print(f"{name}: 700 given tokens: behind {len(pairs)} of them the likeliest is the same {same} times, its logit differs by at most {worst:.2g}")
sys.exit(1 if failed else 0)
