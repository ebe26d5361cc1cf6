"""Answers that a compiler under judgement should not give, made from those that it should.

`answer` makes one from a seed: text damaged byte by byte, line by line or number by number, other
programs, right ones grown beyond measure, other exit statuses and words on standard error.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence

from grader import shrink
from grader.sandbox import Completed
from grader.verdict import Verdict
from grader.weeks import OPS, read
from week01_uops.interchange import ReadErrors, to_json, write

NUMBERS = (
    *("0", "-0", "-1", "1", "2", "7", "63", "64", "65", "255", "256", "4096", "65535", "100000"),
    *("1000000", "1000000000", "2147483647", "2147483648", "1000000000000", "140737488355328"),
    *("140737488355329", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
    *("1e999", "-1e999", "1e-999", "1.0", "0.1", "1e1", "00", "+1", "0x10", "1_000", "٣", "NaN"),
    *("Infinity", "null", "true", "[]", "{}", '"inf"', '"nan"', "9" * 400, "9" * 5000),
)
WORDS = (
    *("uops 1", "uops 2", "return", "return x", "=", ":", "#", "\x00", "\ufeff", "\x1b[2J", "\r"),
    *("\u2028", "\u202e", "\ud83d", "<script>", "%s%n", "{0}", "x = CONST", "[" * 70, "{" * 200),
    *("\\", '"', "'", "$(reboot)", "`", "\x07", "\x7f", "a" * 5000, "é" * 300, " " * 1000),
)
DTYPES = ("bool", "int8", "int64", "uint64", "float16", "bfloat16", "float32", "float64", "void")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
Change = Callable[[random.Random, bytes], bytes]


def _spot(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + int(2 ** rng.uniform(0, 8)))


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def drop(rng: random.Random, data: bytes) -> bytes:
    start, end = _spot(rng, data)
    return data[:start] + data[end:]


def repeat(rng: random.Random, data: bytes) -> bytes:
    start, end = _spot(rng, data)
    return data[:start] + data[start:end] * rng.choice((2, 3, 50, 2000)) + data[end:]


def flip(rng: random.Random, data: bytes) -> bytes:
    found = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 6)):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def put(rng: random.Random, data: bytes) -> bytes:
    start, _ = _spot(rng, data)
    new = rng.choice((rng.randbytes(rng.randint(1, 40)), _encoded(rng.choice(WORDS))))
    return data[:start] + new + data[start:]


def number(rng: random.Random, data: bytes) -> bytes:
    return _exchange(rng, data, NUMBER, lambda old: rng.choice(NUMBERS))


def word(rng: random.Random, data: bytes) -> bytes:
    """A name, an op or a dtype for another that stands there."""
    known = re.findall(r"%?\w+", _text(data)) or ["x"]
    return _exchange(rng, data, re.compile(r"%?\w+"), lambda old: rng.choice((*known, *DTYPES)))


def op(rng: random.Random, data: bytes) -> bytes:
    return _exchange(rng, data, re.compile(r"\b[A-Z]\w+"), lambda old: rng.choice(list(OPS)).name)


def _exchange(
    rng: random.Random, data: bytes, what: re.Pattern[str], new: Callable[[str], str]
) -> bytes:
    text = _text(data)
    found = list(what.finditer(text))
    for match in sorted(rng.sample(found, min(len(found), rng.randint(1, 3))), key=_late):
        text = text[: match.start()] + new(match[0]) + text[match.end() :]
    return _encoded(text)


def _late(match: re.Match[str]) -> int:
    return -match.start()


def lines(rng: random.Random, data: bytes) -> bytes:
    """Lines in another order, twice, or with other ends."""
    rows = data.split(b"\n")
    kind = rng.randrange(4)
    if kind == 0:
        rng.shuffle(rows)
    elif kind == 1:
        rows.insert(rng.randrange(len(rows)), rng.choice(rows))
    elif kind == 2:
        del rows[rng.randrange(len(rows))]
    return (rng.choice((b"\r\n", b"\r", b"\x0b")) if kind == 3 else b"\n").join(rows)


def rubbish(rng: random.Random, data: bytes) -> bytes:
    return rng.choice((b"", b"uops 1\n", rng.randbytes(rng.randint(1, 4000)), b"\0" * 4000))


def nested(rng: random.Random, data: bytes) -> bytes:
    deep = rng.choice(("[", '{"a": ')) * rng.choice((60, 70, 5000, 100_000))
    return data.replace(b" : ", b" : " + deep.encode(), 1)


def twin(rng: random.Random, data: bytes) -> bytes:
    """The JSON twin where the text is due, whole or damaged."""
    try:
        text = json.dumps(to_json(read(data, 10))).encode()
    except ReadErrors:
        return rubbish(rng, data)
    return number(rng, text) if rng.random() < 0.5 else text


def well_typed(rng: random.Random, data: bytes) -> bytes:
    """Another program of the same inputs, as shrinking makes them."""
    try:
        program = read(data, 10)
    except ReadErrors:
        return rubbish(rng, data)
    found = []
    for number, candidate in enumerate(shrink.candidates(program)):
        found.append(candidate)
        if number > 60:
            break
    return write(rng.choice(found)).encode() if found else data


SIZES = (0, 1, 2, 3, 7, 64, 1000, 10**5, 10**6, 10**9, 10**12, 1 << 47)


def grown(rng: random.Random, data: bytes) -> bytes:
    """The right result after a detour through something huge, deep or endless."""
    try:
        program = read(data, 10)
    except ReadErrors:
        return rubbish(rng, data)
    head, _, names = write(program).rpartition("return ")
    name, *others = names.split()
    shape, dtype = list(program.src[0].shape), program.src[0].dtype.name
    rows = rng.choice(DETOURS)(rng, name, shape, dtype)
    last = rows[-1].split()[0]
    return _encoded("\n".join((head.rstrip("\n"), *rows, f"return {' '.join((last, *others))}\n")))


Detour = Callable[[random.Random, str, list[int], str], list[str]]
MAX = '{"op": "MAX", "axes": %d}'


def _expanded(rng: random.Random, name: str, shape: list[int], dtype: str) -> list[str]:
    more = [rng.choice(SIZES) for _ in range(rng.choice((1, 1, 2, 9, 40)))]
    rows = [f"g0 = EXPAND {name} : {more + shape}", "g1 = MAX g0 g0"]
    return [*rows, f"g2 = REDUCE g{rng.randrange(2)} : {MAX % len(more)}"]


def _padded(rng: random.Random, name: str, shape: list[int], dtype: str) -> list[str]:
    wide = [[rng.choice(SIZES), rng.choice(SIZES)] for _ in shape]
    back = [[low, low + size] for (low, _), size in zip(wide, shape, strict=True)]
    return [f"g0 = PAD {name} : {wide}", f"g1 = SHRINK g0 : {back}"]


def _doubled(rng: random.Random, name: str, shape: list[int], dtype: str) -> list[str]:
    """name + name + … in 2^depth parts, shared."""
    rows = [f"g0 = {rng.choice(('MAX', 'ADD'))} {name} {name}"]
    return [*rows, *(f"g{k} = MAX g{k - 1} g{k - 1}" for k in range(1, rng.choice((3, 60, 3000))))]


def _called(rng: random.Random, name: str, shape: list[int], dtype: str) -> list[str]:
    """Bodies that call bodies twice: 2^depth calls."""
    param = json.dumps({"slot": 0, "dtype": dtype, "shape": shape})
    rows = [f"b = PARAM : {param}", "f0 = MAX b b"]
    depth = rng.choice((2, 9, 60))
    for k in range(1, depth):
        rows += [f"c{k} = CALL f{k - 1} b", f"d{k} = CALL f{k - 1} c{k}", f"f{k} = MAX c{k} d{k}"]
    return [*rows, f"g = CALL f{depth - 1} {name}"]


def _looped(rng: random.Random, name: str, shape: list[int], dtype: str) -> list[str]:
    count = rng.choice((1, 1, 2, 5, 40, 300))
    sizes = [rng.choice(SIZES) for _ in range(count)]
    rows = [f'r{k} = RANGE : {{"id": {900 + k}, "size": {n}}}' for k, n in enumerate(sizes)]
    value = name
    if rng.random() < 0.5:
        rows += [f'i = CAST r0 : "{dtype}"', f"v = MAX {name} i"]
        value = "v"
    counters = " ".join(f"r{k}" for k in range(count))
    return [*rows, f"g = REDUCE {value} {counters} : {MAX % 0}"]


def _stored(rng: random.Random, name: str, shape: list[int], dtype: str) -> list[str]:
    """Through storage of any size, in a loop of any length, perhaps out of range."""
    size, turns = rng.choice(SIZES), rng.choice(SIZES)
    where = json.dumps({"slot": 77, "dtype": dtype, "shape": [size, *shape]})
    rows = [f"a = {rng.choice(('ALLOC', 'BUFFER'))} : {where}"]
    rows += [f'r = RANGE : {{"id": 900, "size": {turns}}}', "p = INDEX a r", f"s = STORE p {name}"]
    rows += ["e = END s r", "f = AFTER a e"]
    at = rng.choice((0, turns - 1, turns, size - 1, -1))
    rows += [f'z = CONST : {{"value": {at}, "dtype": "int64"}}', "q = INDEX f z", "g = LOAD q"]
    return rows


def _staged(rng: random.Random, name: str, shape: list[int], dtype: str) -> list[str]:
    rows = [f'r = RANGE : {{"id": 900, "size": {rng.choice(SIZES)}}}', f"s = STAGE {name} r"]
    return [*rows, f"g = REDUCE s : {MAX % 1}"]


DETOURS: Sequence[Detour] = (
    *(_expanded, _expanded, _padded, _doubled, _called, _looped, _looped, _stored, _stored),
    _staged,
)

TEXT_CHANGES: Sequence[Change] = (
    *(cut, drop, repeat, flip, put, number, number, number, word, word, op, op, lines),
    *(rubbish, nested, twin, well_typed, well_typed, grown),
)


def said(rng: random.Random, data: bytes) -> bytes:
    """Words for standard error: diagnostics that are damaged, huge, or none."""
    numbers = rng.choice(("7", "0", "9" * 5000, "٣", "-1", "4294967296", "1" * 9))
    row = f"<stdin>:{numbers}:{rng.choice(NUMBERS)}: E{rng.choice(NUMBERS)} x\n".encode()
    kind = rng.randrange(6)
    if kind == 0:
        return row * rng.choice((1, 3, 20_000))
    if kind == 1:
        return b":1" * 200_000
    if kind == 2:
        return rng.randbytes(rng.randint(0, 5000))
    if kind == 3:
        return _encoded("\n".join(rng.choices(WORDS, k=20)))
    return rng.choice((flip, drop, number, repeat, put, cut))(rng, data or row)


ENDS: Sequence[tuple[Verdict, int | None, str]] = (
    *[(Verdict.OK, status, "") for status in (0, 0, 0, 1, 2, 77, 126, 127, 255, -1)],
    (Verdict.CRASH, None, "SIGSEGV"),
    (Verdict.TIMEOUT, None, "more than 10 s"),
    (Verdict.MEMORY, None, "more than 2048 MiB"),
    (Verdict.OUTPUT, None, "more than 65536 KiB on standard output"),
    (Verdict.GRADER, None, "cannot start ./gone: no such program"),
)


def answer(rng: random.Random, honest: Completed) -> Completed:
    """What might come instead of an honest answer."""
    stdout, stderr = honest.stdout, honest.stderr
    verdict, status, note = honest.verdict, honest.status, honest.note
    if rng.random() < 0.85:
        stdout = _changed(rng, stdout)
    if rng.random() < 0.3 or honest.status:
        stderr = said(rng, stderr)[: 1 << 20]
    if rng.random() < 0.15:
        verdict, status, note = rng.choice(ENDS)
    return Completed(verdict, status, stdout, stderr, 0.0, note=note)


READABLE: Sequence[Change] = (well_typed, well_typed, grown, grown, grown, number, op, word)
"""Changes that mostly leave a program."""


def _changed(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.5:
        return rng.choice(READABLE)(rng, data)[: 1 << 20]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(TEXT_CHANGES)(rng, data)[: 1 << 20]
    return data


def frame(rng: random.Random, stdout: bytes, stderr: bytes) -> bytes:
    """What a server writes, and how it may be wrong."""
    head: dict[str, object] = {"status": 0, "stdout": len(stdout), "stderr": len(stderr)}
    if rng.random() < 0.4:
        key = rng.choice(("status", "stdout", "stderr", "more"))
        head[key] = rng.choice((-1, 0, 1, 2, 10**6, 10**30, True, None, "1", 1.0, [], {}, 1e308))
    line = json.dumps(head).encode()
    if rng.random() < 0.3:
        line = rng.choice((flip, drop, put, number, nested, repeat))(rng, line)
    whole = line + b"\n" + stdout + stderr
    return rng.choice((flip, cut, put, repeat))(rng, whole) if rng.random() < 0.3 else whole


C_WORDS = (
    *("'/*'", '"\\', "/*", "*/", "#if 0\n", '#include "/dev/zero"\n', "#include __FILE__\n"),
    *("#define A A(A)\n", "%:", "??/", "\\\n", "{" * 3000, "(" * 3000, "for(", "\x00", "é", "\x0c"),
    *('asm(".incbin \\"/etc/passwd\\"");', "#line 0\n", "#error x\n", "_Pragma(", "x" * 50_000),
)


def c_text(rng: random.Random, data: bytes) -> bytes:
    """C that is odd, mostly no C at all."""
    for _ in range(rng.randint(1, 4)):
        start, end = _spot(rng, data)
        new = _encoded(rng.choice(C_WORDS))
        data = rng.choice((data[:start] + new + data[end:], data[:start] + new, flip(rng, data)))
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass" if "\ud83d" in text else "surrogateescape")
