"""Draws the layers and the files in them, from the list that tests/test_layers.py enforces."""

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "jacridge"
WIDTH, HEIGHT, GAP, TOP = 820, 30, 6, 34
NAME, LETTERS = 130, 92  # width of a name's box, letters in a line of files


def levels():
    """LAYERS of the test, read by itself: the test needs pytest, the picture does not."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            return ast.literal_eval(node.value)
    raise LookupError("tests/test_layers.py must have LAYERS.")


def content(layer):
    """Files of a folder, or the first line of a file's docstring, in lines of text."""
    path = PACKAGE / f"{layer}.py"
    if path.exists():
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        words = doc.split("\n")[0].replace("`", "").split()
    else:
        files = sorted(file.stem for file in (PACKAGE / layer).glob("*.py"))
        words = ", ".join(name for name in files if name != "__init__").split()
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > LETTERS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def box(layer, y):
    """One layer: its name, public ones blue, and beside it what it holds."""
    lines = content(layer)
    height = max(HEIGHT, 16 * len(lines) + 8)
    look = "inner" if layer.startswith("_") and layer != "__init__" else "public"
    is_folder = (PACKAGE / layer).is_dir()
    middle = y + height / 2 + 5
    first = middle - 8 * (len(lines) - 1)
    text = "".join(
        f'<text class="files" x="{NAME + 30}" y="{first + 16 * i}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    drawn = (
        f'<g class="{look}"><rect x="16" y="{y}" width="{NAME}" height="{height}" rx="5"/>'
        f'<text x="{16 + NAME / 2}" y="{middle}">{escape(layer)}{"/" * is_folder}</text></g>'
    )
    return drawn + text, height


def picture():
    """SVG with one band a level, the lowest at the bottom."""
    parts, y = [], TOP
    for row in reversed(levels()):
        top = y
        for layer in sorted(row):
            drawn, height = box(layer, y + GAP)
            parts.append(drawn)
            y += height + GAP
        size = f'width="{WIDTH - 16}" height="{y - top + GAP}"'
        parts.append(f'<rect class="band" x="8" y="{top}" {size} rx="7"/>')
        y += 2 * GAP
    style = (
        ".layers text{font:13px system-ui,sans-serif;text-anchor:middle;fill:currentColor}"
        ".layers .files{font-size:12px;text-anchor:start;fill-opacity:.8}"
        ".layers .band{fill:none;stroke:#8a94a0;stroke-opacity:.6}"
        ".layers .inner rect{fill:#8a94a0;fill-opacity:.22}"
        ".layers .public rect{fill:#0072B2;fill-opacity:.3;stroke:#0072B2}"
    )
    title = "A layer imports only from the bands below its own. Blue ones are public."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" '
        f'class="layers" aria-label="The layers of jacridge" style="width:100%">'
        f"<style>{style}</style>"
        f'<text x="{WIDTH / 2}" y="20">{title}</text>{"".join(parts)}</svg>'
    )


def setup(app):
    from docutils import nodes
    from docutils.parsers.rst import Directive

    class Layers(Directive):
        """The picture, in the page itself so that it takes the colours of the theme."""

        def run(self):
            return [nodes.raw("", f"<figure>{picture()}</figure>", format="html")]

    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
