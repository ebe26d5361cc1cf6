"""From bytes to lines."""

from __future__ import annotations

_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


def decode_text(text: str | bytes) -> tuple[list[str], dict[int, int]]:
    r"""Lines without their ends (\n or \r\n), and the columns where they are not UTF-8.

    A byte-order mark counts as such a fault, too; lines and columns are counted from 1.
    """
    if isinstance(text, str):
        if not text.startswith(_MARK) and _encodable(text):
            return _split(text), {}
        text = text.encode("utf-8", "surrogatepass")
    try:
        string = text.decode("utf-8")
    except UnicodeDecodeError:
        return _split(text.decode("utf-8", "replace")), _faults(text)
    if string.startswith(_MARK):
        return _split(string[1:]), {1: 1}
    return _split(string), {}


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def _faults(data: bytes) -> dict[int, int]:
    columns = {1: 1} if data.startswith(_MARK.encode()) else {}
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            columns.setdefault(number, len(line[: error.start].decode("utf-8")) + 1)
    return columns
