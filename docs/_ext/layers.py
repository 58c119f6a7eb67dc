"""Draws the layers from the list that tests/test_layers.py enforces, so that both agree."""

import ast
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDTH, HEIGHT, GAP, LEFT = 128, 30, 8, 16
COLUMNS = 6


def levels():
    """LAYERS of the test, read by itself: the test needs pytest, the picture does not."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            return ast.literal_eval(node.value)
    raise LookupError("tests/test_layers.py must have LAYERS.")


def picture():
    """SVG with one band a level, the lowest at the bottom."""
    bands, y = [], 34
    for row in reversed(levels()):
        lines = [row[i : i + COLUMNS] for i in range(0, len(row), COLUMNS)]
        top = y
        for line in lines:
            for i, room in enumerate(sorted(line)):
                x = LEFT + 10 + i * (WIDTH + GAP)
                look = "inner" if room.startswith("_") and room != "__init__" else "door"
                bands.append(
                    f'<g class="{look}"><rect x="{x}" y="{y + 6}" width="{WIDTH}" '
                    f'height="{HEIGHT}" rx="5"/><text x="{x + WIDTH / 2}" y="{y + 26}">'
                    f"{escape(room)}</text></g>"
                )
            y += HEIGHT + GAP
        width = COLUMNS * (WIDTH + GAP) + 12
        bands.append(
            f'<rect class="band" x="{LEFT}" y="{top}" width="{width}" '
            f'height="{y - top + 4}" rx="8"/>'
        )
        y += 12
    total = COLUMNS * (WIDTH + GAP) + 2 * LEFT + 12
    style = (
        "text{font:13px system-ui,sans-serif;text-anchor:middle}"
        ".band{fill:none;stroke:#8a94a0}.inner rect{fill:#8a94a0;fill-opacity:.18}"
        ".door rect{fill:#0072B2;fill-opacity:.3;stroke:#0072B2}text{fill:currentColor}"
    )
    title = (
        f'<text x="{total / 2}" y="20">Each layer imports only from the bands below its own; '
        "blue ones are public</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {y}" role="img" '
        f'aria-label="The layers of jacridge" style="max-width:100%"><style>{style}</style>'
        f"{title}{''.join(bands)}</svg>"
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
