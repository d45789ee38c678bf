"""Draw docs/architecture.svg: the packages of the library and which imports which."""

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "workflow/scripts/scaling"
COLUMNS = {
    "what measures": {
        "data": "Datasets: sources, preparation and loading of images.",
        "models": "Networks and their training kernels.",
        "launch": "Launch, supervise and end processes.",
        "training": "Train a cell of the grid: recipes, strategies and steps.",
        "instruments": "Measure communication, kernels, peak rates and the interconnect.",
        "large_batches": "Experiments on training with large batches.",
        "synchronization": "Experiments on what ranks send and share.",
        "quantization": "Int8 networks: made, run in integers, and taken apart.",
    },
    "what both need": {
        "core": "Grid cells, records, files, the environment, number formats.",
        "registry": "Registries of strategies, recipes, models and datasets.",
        "config": "The configuration, and studies kept as data.",
    },
    "what derives": {
        "tables": "Compute the tables of a study from its records.",
        "claims": "Claims: answers to the lab's questions, each with a test.",
        "figures": "All figures by name, with their tables.",
        "report": "The HTML report: tables, sections, the page.",
        "terminal": "Terminal output: a study's size, progress and results.",
    },
}
"""The packages of each column, and what they do."""
WIDTH, HEIGHT, GAP_X, GAP_Y, TOP = 330, 46, 80, 22, 40


def imports() -> dict[str, set[str]]:
    """The packages that each package imports, itself left out."""
    found: dict[str, set[str]] = {}
    for path in LIBRARY.rglob("*.py"):
        package = path.relative_to(LIBRARY).parts[0]
        if package != "__init__.py":
            found.setdefault(package, set()).update(set(_imported(path)) - {package})
    return found


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scaling":
            parts = (node.module or "").split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


def direct(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports that no other import of the same package implies."""

    def reached(package: str) -> set[str]:
        return set().union(*({near} | reached(near) for near in graph[package]))

    return {
        package: {near for near in nears if not any(near in reached(n) for n in nears - {near})}
        for package, nears in graph.items()
    }


def draw() -> str:
    """The picture as SVG: a box for each package, an arrow to what it imports."""
    place = {
        name: (20 + column * (WIDTH + GAP_X), TOP + row * (HEIGHT + GAP_Y))
        for column, names in enumerate(COLUMNS.values())
        for row, name in enumerate(names)
    }
    width = 20 + len(COLUMNS) * (WIDTH + GAP_X)
    height = TOP + max(map(len, COLUMNS.values())) * (HEIGHT + GAP_Y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif">',
        '<marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#666"/></marker>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for column, title in enumerate(COLUMNS):
        x = 20 + column * (WIDTH + GAP_X)
        parts.append(f'<text x="{x}" y="24" font-size="15" font-weight="bold">{title}</text>')
    for package, nears in sorted(direct(imports()).items()):
        parts += [_arrow(place[package], place[near]) for near in sorted(nears)]
    for name, (x, y) in place.items():
        modules = [p for p in (LIBRARY / name).rglob("*.py") if p.name != "__init__.py"]
        what = next(names[name] for names in COLUMNS.values() if name in names)
        parts += [
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3f8" '
            'stroke="#456"/>',
            f'<text x="{x + 10}" y="{y + 19}" font-size="14" font-weight="bold">{name}/</text>',
            f'<text x="{x + WIDTH - 10}" y="{y + 19}" font-size="11" text-anchor="end" '
            f'fill="#555">{len(modules)} modules</text>',
            f'<text x="{x + 10}" y="{y + 36}" font-size="11" fill="#333">{escape(what)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """A curve between two boxes: beside them within a column, else from side to side."""
    (x1, y1), (x2, y2) = start, end
    y1, y2 = y1 + HEIGHT // 2, y2 + HEIGHT // 2
    if x1 == x2:
        bow, side = 18 + abs(y1 - y2) / 6, x1 + WIDTH
        path = f"M{side} {y1}C{side + bow:.0f} {y1} {side + bow:.0f} {y2 + 6} {side} {y2 + 6}"
    else:
        x1, x2 = (x1 + WIDTH, x2) if x1 < x2 else (x1, x2 + WIDTH)
        middle = (x1 + x2) // 2
        path = f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="#666" marker-end="url(#end)"/>'


if __name__ == "__main__":
    (ROOT / "docs/architecture.svg").write_text(draw(), encoding="utf-8")
