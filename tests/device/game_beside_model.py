#!/usr/bin/env python3
"""A game beside a model that answers: what VRAM the game gets, and what the answer feels of it.

Usage: game_beside_model.py HEADROOM_CLI MODEL.gguf [--leave 32] [--rate 2] [--take 24] [--hold 20] [--reserve-mib N] [--ctx N]

On a machine with an NVIDIA card. One process fills the card but for LEAVE GiB; `headroom-cli serve` loads the model into what is left and
answers one request after another; a further process takes RATE GiB a second up to TAKE GiB, holds them for HOLD seconds and ends. Told are:
allocations that the game was refused, the longest pauses between two pieces of an answer in progress, and when all blocks were back.
"""
import argparse
import ctypes
import http.client
import json
import subprocess
import sys
import threading
import time

GIB = 1 << 30
PIECE = 128 << 20


class Card:
    """The driver, with a context on the first device."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()  # a context as programs have it: a game brings a few hundred MiB of its own
        for code in (self.cuda.cuInit(0), self.cuda.cuDeviceGet(ctypes.byref(device), 0),
                     self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), self.cuda.cuCtxSetCurrent(context)):
            if code != 0:
                sys.exit(f"the driver refuses: {code}")

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self, size):
        """Whether the driver gave so many bytes, and they could be written."""
        at = ctypes.c_uint64()
        return self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)) == 0 and \
            self.cuda.cuMemsetD8_v2(at, ctypes.c_ubyte(1), ctypes.c_size_t(size)) == 0


def ballast(leave):
    card = Card()
    while card.free() > leave and card.take(min(GIB, card.free() - leave)):
        pass
    print(f"{card.free() / GIB:.2f}", flush=True)
    sys.stdin.read()  # until the parent closes it, or ends


def game(rate, take, hold):
    card = Card()
    start, taken, refused, slowest = time.monotonic(), 0, 0, 0.0
    while taken < take:
        time.sleep(max(0.0, start + (taken + PIECE) / rate - time.monotonic()))
        called = time.monotonic()
        if card.take(PIECE):
            taken += PIECE
        else:
            refused += 1
            time.sleep(0.01)
        slowest = max(slowest, time.monotonic() - called)
    filled = time.monotonic() - start
    time.sleep(hold)
    print(json.dumps({"taken_gib": taken / GIB, "seconds": round(filled, 2), "refused": refused, "slowest_ms": round(1000 * slowest, 1)}), flush=True)


class Answers(threading.Thread):
    """Asks one question after another; remembers when each piece of an answer came."""

    def __init__(self, address, tokens):
        super().__init__(daemon=True)
        self.address, self.tokens, self.ended, self.gaps, self.pieces, self.trouble = address, tokens, False, [], 0, ""

    def run(self):
        number = 0
        while not self.ended:
            number += 1
            connection = http.client.HTTPConnection(self.address, timeout=60)
            body = json.dumps({"prompt": f"Story {number}:", "max_tokens": self.tokens, "temperature": 0, "stream": True})
            connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if reply.status != 200:
                self.trouble = reply.read().decode(errors="replace")
                return
            last = None
            while not self.ended:
                line = reply.readline()
                if not line:
                    break
                if not line.startswith(b"data:"):
                    continue
                now = time.monotonic()
                if last is not None:
                    self.gaps.append((now, now - last))
                    self.pieces += 1
                last = now
                if b"[DONE]" in line:
                    break
            connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--leave", type=float, default=32)
    parser.add_argument("--rate", type=float, default=2)
    parser.add_argument("--take", type=float, default=24)
    parser.add_argument("--hold", type=float, default=20)
    parser.add_argument("--reserve-mib", type=int, default=2048)
    parser.add_argument("--ctx", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()

    def role(*of, **options):
        return subprocess.Popen([sys.executable, __file__, *map(str, of)], stdout=subprocess.PIPE, text=True, **options)

    filler = role("ballast", args.leave, stdin=subprocess.PIPE)
    print("free beside the ballast:", filler.stdout.readline().strip(), "GiB", flush=True)
    command = [args.program, "serve", "-m", args.model, "--port", "0", "--json", "--ctx", str(args.ctx)]
    if args.threads:
        command += ["--threads", str(args.threads)]
    started = time.monotonic()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    answers = None
    try:
        told = json.loads(server.stdout.readline())
        address = next(value for value in told.values() if isinstance(value, str) and value.startswith("http")).split("//")[1].split("/")[0]

        def ask(method, path, body=None):
            connection = http.client.HTTPConnection(address, timeout=60)
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            data = reply.read()
            connection.close()
            return json.loads(data)

        def card():
            return ask("GET", "/v1/vram")["devices"][0]

        device = card()
        print(f"serving after {time.monotonic() - started:.1f} s: {device['blocks_resident']} of {device['blocks_total']} {device['block_name']}", flush=True)
        report = ask("POST", "/v1/vram", {"reserve_mib": args.reserve_mib})
        print("reserve:", report.get("text", report), flush=True)
        answers = Answers(address, args.ctx - 64)
        answers.start()
        time.sleep(4)
        before, began = len(answers.gaps), time.monotonic()
        player = role("game", args.rate * GIB, args.take * GIB, args.hold)
        changes, seen, least = [], 0, device["blocks_resident"]
        full = device["blocks_resident"]

        def look():
            nonlocal seen, least
            now = card()
            least = min(least, now["blocks_resident"])
            last = now["last_report"]
            if last and last["number"] != seen:
                seen = last["number"]
                changes.append((time.monotonic() - began, last))
            return now

        while player.poll() is None:
            look()
            time.sleep(0.05)
        over = time.monotonic()
        played = json.loads(player.stdout.readline())
        while look()["blocks_resident"] < full and time.monotonic() - over < 60:
            time.sleep(0.02)
        back = time.monotonic() - over
        time.sleep(1)
        answers.ended = True

        def pauses(begin, end):
            found = sorted((gap for at, gap in answers.gaps if begin <= at < end), reverse=True)
            if not found:
                return "none"
            return f"{len(found) / (end - begin):.0f} pieces a second, longest {', '.join(f'{1000 * gap:.1f}' for gap in found[:5])} ms, median {1000 * found[len(found) // 2]:.2f} ms"

        filled = began + played["seconds"]
        print("the game:", played)
        print(f"all blocks back {back:.2f} s after its end; fewest meanwhile: {least} of {full}")
        print("answers before:  ", pauses(began - 4, began))
        print("while it takes:  ", pauses(began, filled))
        print("while it holds:  ", pauses(filled, over))
        print("while it is gone:", pauses(over, over + back))
        if answers.trouble:
            print("answers ended:", answers.trouble)
        for at, change in changes:
            print(f"  {at:6.2f} s {change['cause']}: {change['text']} (free {change['free_before_mib']} -> {change['free_after_mib']} MiB)")
    finally:
        if answers:
            answers.ended = True
        server.terminate()
        server.wait(20)
        filler.stdin.close()
        filler.wait(20)


if __name__ == "__main__":
    if sys.argv[1:2] == ["ballast"]:
        ballast(int(float(sys.argv[2]) * GIB))
    elif sys.argv[1:2] == ["game"]:
        game(float(sys.argv[2]), int(float(sys.argv[3])), float(sys.argv[4]))
    else:
        main()
