"""Encodings and separators of text tables."""

import re

OLD_WINDOWS = "cp1252"

# Byte order marks, the longer ones first.
MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


SEPARATORS = ",;\t|"


def encoding_of(data: bytes) -> str:
    """Encoding of text by its byte order mark; without one, UTF-16 is recognised by zero bytes."""
    for mark, encoding in MARKS.items():
        if data.startswith(mark):
            return encoding
    start = data[:200]
    if len(start) >= 4 and not any(start[1::2]) and all(start[::2]):
        return "utf-16-le"
    if len(start) >= 4 and not any(start[::2]) and all(start[1::2]):
        return "utf-16-be"
    return "utf-8"


def separator_of(line: str) -> str:
    """The character that separates the cells of a table's first line.

    Separators in quotes do not count, nor do decimal commas if there is another separator.
    """
    bare = re.sub('"[^"]*"', "", line)
    if any(other in bare for other in SEPARATORS[1:]):
        bare = re.sub(r"(?<=\d),(?=\d)", "", bare)
    return max(SEPARATORS, key=bare.count)


def text_encoding(data: bytes) -> str:
    """Encoding of text: by its mark, else UTF-8, else Windows-1252, which includes Latin-1."""
    found = encoding_of(data)
    try:
        data.decode(found)
    except UnicodeDecodeError:
        return OLD_WINDOWS if found == "utf-8" else found
    return found
