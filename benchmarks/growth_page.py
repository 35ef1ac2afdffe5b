"""The page of the growth benchmark: tables of what was measured, and the curve."""

from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

HEAD = """# Growth

Written by `python -m benchmarks.growth`; its first lines say how the stores are made. Two cores shared with other work:
read medians and CPU times; a p95 of a busy machine says more of the machine. Wall times in ms at the client, over HTTP
on one connection; CPU in ms of the service with its vector process, mean of a request.

![p50 and p95 by the number of observations](growth.svg)
"""
LATENCIES = (
    *("search, all", "search, 22 %", "search, 1 %", "search, needles", "timeline", "context"),
    *("/api/stats", "/api/stats, project", "/api/projects", "/api/observations", "/api/observations, offset 5000"),
    *("/api/sessions", "/api/queue", "/metrics", "/readyz"),
)
SHARES = ("needles", "needles, one word wrong")
SINGLE = {
    "documents": "documents in the vector index",
    "filled, records/s": "Chroma filled from stored vectors, records/s",
    "start_s": "start to /readyz, s",
    "status_s": "`gapless status`, s",
    "doctor_s": "`gapless doctor`, s",
    "memory_at_start_mb": "memory after the start, MB",
    "memory_mb": "memory after all that, MB",
    "vector_process_mb": "… of the vector process, MB",
    "database_mb": "database, MB",
    "text_index_mb": "… of it the text index, MB",
    "vectors_mb": "… of it the vectors, MB",
    "chroma_mb": "Chroma's folder, MB",
}
CURVES = {"search, all": "#1b6ca8", "search, 22 %": "#c05621", "search, needles": "#2f855a", "timeline": "#805ad5"}
WIDTH, HEIGHT, MARGIN = 720, 400, 60
DECADES_MS = (1.0, 10.0, 100.0, 1000.0)


def write(page: Path, found: Sequence[Figures]) -> None:
    """The page, and the curve beside it."""
    keyword = [figures for figures in found if not figures["vectors"]]
    hybrid = [figures for figures in found if figures["vectors"]]
    parts = [HEAD]
    for title, some in (("Words only (CHROMA=off)", keyword), ("Words and meaning", hybrid)):
        if some:
            parts.append(f"## {title}\n\n{_table(some)}")
    page.write_text("\n".join(parts), encoding="utf-8")
    page.with_suffix(".svg").write_text(_plot(keyword or hybrid), encoding="utf-8")


def _table(found: Sequence[Figures]) -> str:
    heads = [f"{figures['rows']:,}" for figures in found]
    lines = [f"| observations | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [_line(f"{name}: p50 / p95 / CPU", [_latency(figures[name]) for figures in found]) for name in LATENCIES]
    lines += [_line(f"{name}: in the top ten", [f"{figures[name]:.1%}" for figures in found]) for name in SHARES]
    for name, words in SINGLE.items():
        if any(name in figures for figures in found):
            lines.append(_line(words, [_number(figures.get(name)) for figures in found]))
    return "\n".join(lines) + "\n"


def _line(head: str, cells: Sequence[str]) -> str:
    return f"| {head} | {' | '.join(cells)} |"


def _latency(took: dict[str, float]) -> str:
    return f"{took['p50']:.1f} / {took['p95']:.1f} / {took['cpu']:.1f}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _plot(found: Sequence[Figures]) -> str:
    """Both axes logarithmic; a full line is the p50, a dashed one the p95."""
    left, right = found[0]["rows"], found[-1]["rows"]
    marks = [figures["rows"] for figures in found]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"',
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for ms in DECADES_MS:
        y = _y(ms)
        parts.append(f'<line x1="{MARGIN}" y1="{y:.0f}" x2="{WIDTH - MARGIN}" y2="{y:.0f}" stroke="#ddd"/>')
        parts.append(f'<text x="{MARGIN - 8}" y="{y + 4:.0f}" text-anchor="end">{ms:g} ms</text>')
    for rows in marks:
        x = _x(rows, left, right)
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT - MARGIN + 20}" text-anchor="middle">{rows:,}</text>')
    for place, (name, colour) in enumerate(CURVES.items()):
        for measure, dash in (("p50", ""), ("p95", ' stroke-dasharray="5 4"')):
            points = " ".join(
                f"{_x(figures['rows'], left, right):.0f},{_y(figures[name][measure]):.0f}" for figures in found
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{MARGIN + 10 + 150 * place}" y="20" fill="{colour}">{name}</text>')
    parts.append(
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">observations (full: p50, dashed: p95)</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(rows: int, left: int, right: int) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * (log10(rows / left) / log10(right / left) if right > left else 0.5)


def _y(ms: float) -> float:
    share = log10(max(ms, DECADES_MS[0]) / DECADES_MS[0]) / log10(DECADES_MS[-1] / DECADES_MS[0])
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * min(share, 1.0)
