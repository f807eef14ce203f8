"""Random matrices as quantised checkpoints store them, and their values, without torch and NumPy.

A maker gets a source of random numbers, the name NAME of a tensor MODULE.weight [N, K], the standard
deviation that its values should have, and the options of the form. It returns the stored tensors by name,
each with type, shape and bytes, and the values row by row: exact float32 numbers.
"""

import json
import math
import random
import struct

NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
       -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
       0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
       0.7229568362236023, 1.0]
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # the rows of a word's half bytes


def float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def float32_bytes(values: list) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def float16_values(source: random.Random, count: int, around: float) -> tuple[bytes, list]:
    """The stored bytes and their exact values."""
    stored = struct.pack(f"<{count}e", *(around * (0.5 + source.random()) for _ in range(count)))
    return stored, list(struct.unpack(f"<{count}e", stored))


def integers(source: random.Random, rows: int, columns: int, bits: int) -> list[list[int]]:
    return [[source.randrange(2 ** bits) for _ in range(columns)] for _ in range(rows)]


def pack(values: list[int], bits: int) -> list[int]:
    """Words of 32 bits that hold the values one after the other, low bits first."""
    whole = 0
    for i, value in enumerate(values):
        whole |= value << (bits * i)
    return [whole >> (32 * i) & 0xFFFFFFFF for i in range(-(-len(values) * bits // 32))]


def words(rows: list[list[int]]) -> tuple:
    flat = [word for row in rows for word in row]
    return "I32", (len(rows), len(rows[0])), struct.pack(f"<{len(flat)}I", *flat)


def turned(rows: list[list]) -> list[list]:
    return [list(column) for column in zip(*rows)]


def spread(bits: int) -> float:
    """The standard deviation of uniform integers."""
    return 2 ** bits / math.sqrt(12)


def make_gptq(source, name: str, shape: tuple, std: float, bits: int = 4, group: int = 16,
              ordered: bool = False, v2: bool = False) -> tuple[dict, list]:
    module = name.removesuffix(".weight")
    rows, columns = shape
    groups = -(-columns // group)
    index = [k // group for k in range(columns)]
    if ordered:
        source.shuffle(index)
    values = integers(source, rows, columns, bits)
    zeros = integers(source, groups, rows, bits)
    stored, scales = float16_values(source, groups * rows, std / spread(bits))
    kept = [[zero if v2 else (zero - 1) % 2 ** bits for zero in line] for line in zeros]
    tensors = {
        module + ".qweight": words(turned([pack(row, bits) for row in values])),
        module + ".qzeros": words([pack(line, bits) for line in kept]),
        module + ".scales": ("F16", (groups, rows), stored),
        module + ".g_idx": ("I32", (columns,), struct.pack(f"<{columns}i", *index))}
    return tensors, [(values[n][k] - zeros[g][n]) * scales[g * rows + n]
                     for n in range(rows) for k, g in enumerate(index)]


def make_awq(source, name: str, shape: tuple, std: float, group: int = 16) -> tuple[dict, list]:
    module = name.removesuffix(".weight")
    rows, columns = shape
    groups = -(-columns // group)
    values = integers(source, columns, rows, 4)
    zeros = integers(source, groups, rows, 4)
    stored, scales = float16_values(source, groups * rows, std / spread(4))

    def pack_line(line: list[int]) -> list[int]:
        return pack([line[i + j] for i in range(0, rows, 8) for j in AWQ_ORDER], 4)

    tensors = {
        module + ".qweight": words([pack_line(line) for line in values]),
        module + ".qzeros": words([pack_line(line) for line in zeros]),
        module + ".scales": ("F16", (groups, rows), stored)}
    return tensors, [(values[k][n] - zeros[k // group][n]) * scales[k // group * rows + n]
                     for n in range(rows) for k in range(columns)]


def make_pack(source, name: str, shape: tuple, std: float, bits: int = 4, group: int = 16,
              symmetric: bool = False) -> tuple[dict, list]:
    """pack-quantized of compressed-tensors."""
    rows, columns = shape
    groups, middle = -(-columns // group), 2 ** (bits - 1)
    values = integers(source, rows, columns, bits)
    zeros = [[middle] * groups] * rows if symmetric else integers(source, rows, groups, bits)
    stored, scales = float16_values(source, rows * groups, std / spread(bits))
    tensors = {
        name + "_packed": words([pack(row, bits) for row in values]),
        name + "_scale": ("F16", (rows, groups), stored),
        name + "_shape": ("I64", (2,), struct.pack("<2q", rows, columns))}
    if not symmetric:
        tensors[name + "_zero_point"] = words(turned([pack(line, bits) for line in turned(zeros)]))
    return tensors, [(values[n][k] - zeros[n][k // group]) * scales[n * groups + k // group]
                     for n in range(rows) for k in range(columns)]


def make_nf4(source, name: str, shape: tuple, std: float, block: int = 64) -> tuple[dict, list]:
    """nf4 of bitsandbytes with double quantisation, in blocks of 32 scales."""
    rows, columns = shape
    count, nested = rows * columns, 32
    blocks = -(-count // block)
    code = [float32(value) for value in NF4]
    size = std / math.sqrt(sum(value ** 2 for value in code) / 16)
    values = integers(source, 1, count, 4)[0]
    outer = [float32(size * (0.3 + 0.2 * source.random())) for _ in range(-(-blocks // nested))]
    outer_map = [float32(i / 127.5 - 1) for i in range(256)]
    inner = list(source.randbytes(blocks))
    absmax = [float32(float32(outer_map[inner[i]] * outer[i // nested]) + float32(size))
              for i in range(blocks)]
    state = {"quant_type": "nf4", "blocksize": block, "dtype": "float32", "shape": [rows, columns],
             "nested_blocksize": nested, "nested_dtype": "float32", "nested_offset": float32(size)}
    text = json.dumps(state).encode()
    padded = values + [0] * (count % 2)
    stored = bytes(padded[i] << 4 | padded[i + 1] for i in range(0, count, 2))
    tensors = {
        name: ("U8", (len(stored), 1), stored),
        name + ".absmax": ("U8", (blocks,), bytes(inner)),
        name + ".quant_map": ("F32", (16,), float32_bytes(code)),
        name + ".nested_absmax": ("F32", (len(outer),), float32_bytes(outer)),
        name + ".nested_quant_map": ("F32", (256,), float32_bytes(outer_map)),
        name + ".quant_state.bitsandbytes__nf4": ("U8", (len(text),), text)}
    return tensors, [float32(code[value] * absmax[i // block]) for i, value in enumerate(values)]


def make_int8(source, name: str, shape: tuple, std: float) -> tuple[dict, list]:
    """int8 of bitsandbytes."""
    module = name.removesuffix(".weight")
    rows, columns = shape
    values = [source.randrange(-127, 128) for _ in range(rows * columns)]
    largest = [float32(std * 127 / spread(8) * (0.5 + source.random())) for _ in range(rows)]
    step = float32(7.874015718698502e-3)
    tensors = {
        name: ("I8", shape, struct.pack(f"<{len(values)}b", *values)),
        module + ".SCB": ("F32", (rows,), float32_bytes(largest)),
        module + ".weight_format": ("U8", (), b"\0")}
    return tensors, [float32(float32(value * largest[i // columns]) * step)
                     for i, value in enumerate(values)]


def e4m3(byte: int) -> float:
    exponent, fraction = (byte >> 3) & 15, byte & 7
    size = fraction / 512 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -size if byte & 128 else size


E4M3 = [e4m3(byte) for byte in range(256)]
E4M3_RMS = math.sqrt(sum(E4M3[b] ** 2 for b in range(256) if b & 127 != 127) / 254)


def make_fp8_rows(source, name: str, shape: tuple, std: float) -> tuple[dict, list]:
    """fbgemm_fp8: a scale for each row."""
    rows, columns = shape
    values = bytes(b & 0xBF if b & 127 == 127 else b for b in source.randbytes(rows * columns))
    scales = [float32(std / E4M3_RMS * (0.5 + source.random())) for _ in range(rows)]
    tensors = {name: ("F8_E4M3", shape, values),
               name + "_scale": ("F32", (rows, 1), float32_bytes(scales))}
    return tensors, [float32(E4M3[b] * scales[i // columns]) for i, b in enumerate(values)]


def make_fp8_whole(source, name: str, shape: tuple, std: float) -> tuple[dict, list]:
    """fp8 with a scale for each matrix, and one for its activations."""
    module = name.removesuffix(".weight")
    values = bytes(b & 0xBF if b & 127 == 127 else b for b in source.randbytes(math.prod(shape)))
    scale = float32(std / E4M3_RMS * (0.5 + source.random()))
    tensors = {name: ("F8_E4M3", shape, values),
               name + "_scale_inv": ("F32", (), float32_bytes([scale])),
               module + ".activation_scale": ("F32", (), float32_bytes([0.02]))}
    return tensors, [float32(E4M3[b] * scale) for b in values]


MAKERS = {"gptq": make_gptq, "awq": make_awq, "pack": make_pack, "nf4": make_nf4, "int8": make_int8,
          "fp8_rows": make_fp8_rows, "fp8_whole": make_fp8_whole}
