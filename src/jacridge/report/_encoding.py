"""Encodings of text files."""

from .._compute.files import encoding_of

OLD_WINDOWS = "cp1252"


def text_encoding(data: bytes) -> str:
    """Encoding of a text: by its mark, else UTF-8, else Windows-1252, which has Latin-1 in it."""
    found = encoding_of(data)
    try:
        data.decode(found)
    except UnicodeDecodeError:
        return OLD_WINDOWS if found == "utf-8" else found
    return found
