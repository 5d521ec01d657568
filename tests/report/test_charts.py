"""Charts: what is drawn where, for a screen and for a phone."""

import re
from xml.etree import ElementTree

from agentmark.report.charts import NARROW, WIDE, Bar, Series, bar_chart, line_chart, line_chart_file, ticks

LINE = Series("evidence & more", [(0, -2), (10, 15), (20, 40)], "r")
LEVEL = (19.9, "19.9 bits needed")


def drawings(chart: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", chart, flags=re.DOTALL)]


def test_the_threshold_is_named_in_the_legend_and_covers_nothing() -> None:
    """A label beside the line stood where the curve crosses it, and blanked it out."""
    chart = line_chart([LINE], x_label="records", y_label="bits", threshold=LEVEL)
    for drawing in drawings(chart):
        texts = [element.text or "" for element in drawing.iter("text")]
        assert not [text for text in texts if "needed" in text]
        assert len([line for line in drawing.iter("line") if line.get("class") == "threshold"]) == 1
    legend = chart[chart.index('<p class="legend">') :]
    assert '<span class="key level dash">19.9 bits needed</span>' in legend
    assert "evidence &amp; more" in legend
    assert "paint-order" not in chart


def test_a_phone_gets_a_drawing_of_its_own_width() -> None:
    """Text of 12 units on 300 is 12 pixels on a phone of 390, less its margins; on 720 it would be 5."""
    screen, phone = drawings(line_chart([LINE], x_label="records", y_label="bits", threshold=LEVEL))
    assert (screen.get("class"), phone.get("class")) == ("on-screen", "on-phone")
    assert screen.get("viewBox") == f"0 0 {WIDE.width} {WIDE.height}"
    assert phone.get("viewBox") == f"0 0 {NARROW.width} {NARROW.height}"
    for frame, drawing in ((WIDE, screen), (NARROW, phone)):
        [path] = drawing.iter("polyline")
        points = [tuple(map(float, point.split(","))) for point in (path.get("points") or "").split()]
        assert points[0][0] == frame.left
        assert points[-1][0] == frame.width - frame.right
        assert all(frame.top <= y <= frame.height - frame.bottom for _, y in points)
    screen, phone = drawings(bar_chart([Bar("baseline", 0.5, 0.4, 0.6, "base")]))
    assert phone.get("viewBox", "").startswith(f"0 0 {NARROW.width} ")


def test_a_line_that_is_ruled_out_ends_with_a_cross() -> None:
    ruled_out = Series("claim", [(0, 0), (5, 3)], "bad", ends_with_cross=True)
    for drawing in drawings(line_chart([ruled_out], x_label="x", y_label="y", threshold=LEVEL, x_max=20)):
        assert [element.text for element in drawing.iter("text") if "cross" in (element.get("class") or "")] == ["✕"]


def test_a_file_has_its_legend_inside() -> None:
    drawing = ElementTree.fromstring(line_chart_file([LINE], x_label="steps", y_label="share", threshold=LEVEL))
    texts = [element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "evidence & more" in texts
    assert "19.9 bits needed" in texts


def test_ticks_are_round_and_few() -> None:
    assert ticks(108) == [0, 20, 40, 60, 80, 100]
    assert ticks(50, 4, low=-9) == [0, 20, 40]
    assert len(ticks(7567, 4)) <= 5
