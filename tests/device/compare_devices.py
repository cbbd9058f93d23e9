#!/usr/bin/env python3
"""compare_devices.py HEADROOM_CLI MODEL VOCABULARY: a model's logits on the card beside those of the processor, behind every token of a short
text (they are the same) and, token by token given, of a long one (attention on matrix units may differ a little): how often the
likeliest token is the same, and how far its logit is off. Then 100 greedy tokens behind the short text: the same."""
import json
import os
import random
import subprocess
import sys
import tempfile

cli, model, vocabulary = sys.argv[1], sys.argv[2], int(sys.argv[3])


def evaluate(device, tokens, *more):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump({"tokens": tokens, "positions": list(range(len(tokens)))}, file)
    out = subprocess.run([cli, "eval", "--json", "-m", model, "--tokens", file.name, "--device", device, "--top", "4", "--ctx", "1024", *more],
                         check=True, capture_output=True, text=True).stdout
    os.unlink(file.name)
    return json.loads(out)


random.seed(1)
name, failed = os.path.basename(model), False
short, long = ([random.randrange(vocabulary) for _ in range(n)] for n in (40, 700))
cpu, gpu = evaluate("cpu", short, "--greedy", "100"), evaluate("cuda:0", short, "--greedy", "100")
failed |= cpu["positions"] != gpu["positions"] or cpu.get("greedy") != gpu.get("greedy")
print(f"{name}: 40 tokens and 100 greedy ones behind them:", "DIFFERENT" if failed else "the same")
same, worst = 0, 0.0
for a, b in zip(evaluate("cpu", long)["positions"], evaluate("cuda:0", long)["positions"]):
    same += a["ids"][0] == b["ids"][0]
    worst = max(worst, abs(a["logits"][0] - b["logits"][0]))
print(f"{name}: 700 given tokens: the likeliest is the same behind {same}, its logit differs by at most {worst:.2g}")
sys.exit(1 if failed or same < 690 else 0)
