#!/usr/bin/env python3
"""Writes a GGUF file with the exact shape of a known model and random weights.

For benchmarks and load tests where no trained weights are at hand: every tensor has the shape, the type and the
byte count of the real thing, and scales chosen so that activations stay finite. The text it produces is noise.

Usage: synth_gguf.py PRESET MIX OUT.gguf [--layers N] [--skew S]        (needs python3-numpy)
  --skew  some experts are chosen more often than others, as in trained models: the routers' rows are longer by up to S times for them
          (0, the default: all alike; with 3 the hotter half of 128 experts gets about nine choices in ten)
  PRESET  qwen3-0.6b  qwen3-8b  qwen3moe-1.5b-a0.3b  qwen3moe-7b-a1b  qwen3moe-30b-a3b  qwen3moe-235b-a22b
  MIX     f16  q8_0  q4_0  q4_k_m  q5_k_m  q6_k  iq4_xs
"""
import argparse
import struct
import numpy as np

PRESETS = {
    #                       layers embd heads kv dim  ff    experts used expert_ff vocab
    "qwen3-0.6b":           (28, 1024, 16, 8, 128, 3072, 0, 0, 0, 151936),
    "qwen3-8b":             (36, 4096, 32, 8, 128, 12288, 0, 0, 0, 151936),
    "qwen3moe-1.5b-a0.3b":  (12, 1024, 16, 4, 64, 3072, 64, 8, 512, 32000),
    "qwen3moe-7b-a1b":      (24, 1536, 16, 4, 128, 6144, 64, 8, 768, 64000),
    "qwen3moe-30b-a3b":     (48, 2048, 32, 4, 128, 6144, 128, 8, 768, 151936),
    "qwen3moe-235b-a22b":   (94, 4096, 64, 4, 128, 12288, 128, 8, 1536, 151936),
}
# name: (ggml type id, elements per block, bytes per block)
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144),
         "q5_k": (13, 256, 176), "q6_k": (14, 256, 210), "iq4_xs": (23, 256, 136)}
FILE_TYPE = {"f16": 1, "q4_0": 2, "q8_0": 7, "q4_k_m": 15, "q5_k_m": 17, "q6_k": 18, "iq4_xs": 30}


def blocks(kind, count, std, rng):
    """count random blocks of a type as a (count, bytes) array, weights of about the given standard deviation."""
    _, _, size = TYPES[kind]
    raw = rng.integers(0, 256, (count, size), dtype=np.uint8)

    def put(column, value):
        raw[:, column:column + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)

    if kind == "f32":
        return (rng.standard_normal(count) * std).astype(np.float32).view(np.uint8).reshape(count, 4)
    if kind == "f16":
        return (rng.standard_normal(count) * std).astype(np.float16).view(np.uint8).reshape(count, 2)
    if kind == "q4_0":
        put(0, std / 4.6)
    elif kind == "q8_0":
        put(0, std / 74)
    elif kind in ("q4_k", "q5_k"):
        half = 15 if kind == "q5_k" else 7.5
        put(0, std / (20 * half))
        put(2, std / 20)
    elif kind == "q6_k":
        put(208, std / 1367)
    elif kind == "iq4_xs":
        put(0, std / 1200)
    return raw


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("mix", choices=FILE_TYPE)
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, help="fewer layers than the preset has")
    parser.add_argument("--skew", type=float, default=0, help="how much longer the longest router rows are")
    args = parser.parse_args()
    layers, embd, heads, kv, dim, ff, experts, used, expert_ff, vocab = PRESETS[args.preset]
    layers = args.layers or layers
    arch = "qwen3moe" if experts else "qwen3"

    def kind_of(name, layer):
        if "norm" in name or "ffn_gate_inp" in name:
            return "f32"
        if args.mix in ("f16", "q8_0", "q4_0", "q6_k"):
            return "q6_k" if name == "output.weight" and args.mix == "q4_0" else args.mix
        base = {"q4_k_m": "q4_k", "q5_k_m": "q5_k", "iq4_xs": "iq4_xs"}[args.mix]
        if name == "output.weight":
            return "q6_k"
        more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        if ("attn_v" in name or "ffn_down" in name) and args.mix != "iq4_xs" and more:
            return "q6_k"
        return base

    tensors = [("token_embd.weight", (embd, vocab), 0), ("output.weight", (embd, vocab), 0), ("output_norm.weight", (embd,), 0)]
    for i in range(layers):
        p = f"blk.{i}."
        tensors += [(p + "attn_norm.weight", (embd,), i), (p + "attn_q.weight", (embd, heads * dim), i),
                    (p + "attn_k.weight", (embd, kv * dim), i), (p + "attn_v.weight", (embd, kv * dim), i),
                    (p + "attn_q_norm.weight", (dim,), i), (p + "attn_k_norm.weight", (dim,), i),
                    (p + "attn_output.weight", (heads * dim, embd), i), (p + "ffn_norm.weight", (embd,), i)]
        if experts:
            tensors += [(p + "ffn_gate_inp.weight", (embd, experts), i),
                        (p + "ffn_gate_exps.weight", (embd, expert_ff, experts), i),
                        (p + "ffn_up_exps.weight", (embd, expert_ff, experts), i),
                        (p + "ffn_down_exps.weight", (expert_ff, embd, experts), i)]
        else:
            tensors += [(p + "ffn_gate.weight", (embd, ff), i), (p + "ffn_up.weight", (embd, ff), i),
                        (p + "ffn_down.weight", (ff, embd), i)]

    def text(value):
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    def key(name, code, payload):
        return text(name) + struct.pack("<I", code) + payload

    u32, f32 = (lambda n, v: key(n, 4, struct.pack("<I", v))), (lambda n, v: key(n, 6, struct.pack("<f", v)))
    visible = [c for c in range(256) if 33 <= c <= 126 or 161 <= c <= 172 or 174 <= c <= 255]
    alphabet = {c: chr(c) for c in visible}
    for offset, c in enumerate(c for c in range(256) if c not in alphabet):
        alphabet[c] = chr(256 + offset)
    words = [alphabet[c] for c in range(256)] + ["Ġt"] + [f"tok{i}" for i in range(257, vocab - 3)]
    words += ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    chat = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
    meta = [key("general.architecture", 8, text(arch)), key("general.name", 8, text("synthetic " + args.preset)),
            u32("general.file_type", FILE_TYPE[args.mix]), u32("general.quantization_version", 2),
            u32(f"{arch}.block_count", layers), u32(f"{arch}.context_length", 40960), u32(f"{arch}.embedding_length", embd),
            u32(f"{arch}.feed_forward_length", ff), u32(f"{arch}.attention.head_count", heads),
            u32(f"{arch}.attention.head_count_kv", kv), u32(f"{arch}.attention.key_length", dim),
            u32(f"{arch}.attention.value_length", dim), f32(f"{arch}.rope.freq_base", 1e6),
            f32(f"{arch}.attention.layer_norm_rms_epsilon", 1e-6),
            key("tokenizer.ggml.model", 8, text("gpt2")), key("tokenizer.ggml.pre", 8, text("qwen2")),
            key("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, len(words)) + b"".join(map(text, words))),
            key("tokenizer.ggml.token_type", 9, struct.pack("<IQ", 5, len(words)) + struct.pack(f"<{len(words)}i", *([1] * (len(words) - 3) + [3] * 3))),
            key("tokenizer.ggml.merges", 9, struct.pack("<IQ", 8, 1) + text("Ġ t")),
            u32("tokenizer.ggml.eos_token_id", vocab - 1), u32("tokenizer.ggml.padding_token_id", vocab - 3),
            key("tokenizer.ggml.add_bos_token", 7, b"\0"), key("tokenizer.chat_template", 8, text(chat))]
    if experts:
        meta += [u32(f"{arch}.expert_count", experts), u32(f"{arch}.expert_used_count", used),
                 u32(f"{arch}.expert_feed_forward_length", expert_ff)]

    infos, plan, offset = [], [], 0
    for name, shape, layer in tensors:
        kind = kind_of(name, layer)
        code, per, size = TYPES[kind]
        count = int(np.prod([int(s) for s in shape])) // per
        infos.append(text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", s) for s in shape) + struct.pack("<IQ", code, offset))
        plan.append((name, kind, count, count * size, shape[0]))
        offset += -(-count * size // 32) * 32
    rng = np.random.default_rng(7)
    pools = {}
    with open(args.out, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)) + b"".join(meta) + b"".join(infos))
        out.write(b"\0" * (-out.tell() % 32))
        for name, kind, count, size, width in plan:
            if "norm" in name:
                data = np.ones(count, np.float32).tobytes()
            elif args.skew and "ffn_gate_inp" in name:
                rows = rng.standard_normal((count // width, width)) * width ** -0.5
                hot = np.exp(-4 * rng.permutation(len(rows)) / len(rows))
                data = (rows * (1 + args.skew * hot[:, None])).astype(np.float32).tobytes()
            else:  # a pool of random blocks per type and width, read from a random place on: as quick as the disk
                pool = pools.get((kind, width))
                if pool is None:
                    pool = pools[(kind, width)] = blocks(kind, max(1, (24 << 20) // TYPES[kind][2]), width ** -0.5, rng)
                start, data = int(rng.integers(0, len(pool))), None
                left, parts = count, []
                while left:
                    part = pool[start:start + left]
                    out.write(part.tobytes())
                    left -= len(part)
                    start = 0
            if data:
                out.write(data)
            out.write(b"\0" * (-size % 32))
    print(f"{args.out}: {arch}, {len(tensors)} tensors, {offset / 2**30:.2f} GiB")


main()
