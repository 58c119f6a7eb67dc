"""The report in a real browser: sliders move the curves, nothing is asked of any host."""

from functools import cache

import numpy as np
import pytest

from jacridge.report import write_report

HOSTILE = "<script>alert(1)</script><img src=http://example.org/x.png onerror=alert(2)>"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(chromium):
    """A browser with one context, as each new one costs as much as drawing a report."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser.new_context()
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports of one feature, two features, five with names that try to run, and of classes."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(7)
    X = np.sort(rng.uniform(0, 6, (80, 1)), axis=0)
    names = {"features": ["hours"], "target": "height", "bandwidth": "jacobian"}
    write_report(folder / "curve.html", X, np.sin(X[:, 0]), **names)
    X = rng.uniform(-1, 1, (80, 2))
    places = {"features": ["latitude", "longitude"], "target": "depth"}
    write_report(folder / "surface.html", X, X[:, 0] * X[:, 1], **places)
    X = rng.standard_normal((80, 5))
    names = [HOSTILE, "b" * 200, "c", "d", "e"]
    write_report(folder / "table.html", X, X[:, 0] ** 2, features=names, target=HOSTILE)
    large = {"features": ["u", "v"], "bandwidth": 3.0}
    write_report(folder / "large.html", X[:, :2], 425_000 + 0.1 * X[:, 0], **large)
    X = np.column_stack([X[:, :2], 2020 + 3 * np.sort(rng.uniform(size=80))])
    labels = np.array(["a", "b" * 60, HOSTILE])[np.digitize(X[:, 0], [-0.5, 0.5])]
    dates = {"features": ["u", "v", "sold (year)"], "parts": {"sold (year)": "sold"}}
    write_report(folder / "classes.html", X, labels, bandwidth="scale", **dates)
    return folder


@pytest.fixture(scope="module")
def troubles():
    """What goes wrong in the pages: errors, messages, dialogs and requests."""
    return []


@pytest.fixture(autouse=True)
def nothing_goes_wrong(troubles):
    troubles.clear()
    yield
    assert troubles == []


@pytest.fixture(scope="module")
def opened(browser, folder, troubles):
    """Function that opens a report in a new page."""

    def open_page(name, width=1400, scheme="light", folded=False):
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        address = (folder / name).as_uri()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: troubles.append(request.url) if request.url != address else None,
        )
        page.goto(address)
        page.wait_for_selector("#performance svg")
        if not folded:
            page.locator("#curious summary").click()
            page.wait_for_selector("#map svg")
            page.evaluate("scrollTo(0, 0)")
        return page

    return open_page


@pytest.fixture(scope="module")
def look(opened):
    """Function that returns an open report, the same for all tests that only look at it."""
    return cache(opened)


@pytest.fixture(scope="module")
def play(opened):
    """Function that returns an open report whose sliders stand anywhere, the same for all tests."""
    return cache(opened)


@pytest.fixture
def visit(opened):
    """Function that opens a report for one test, which may change it."""
    pages = []
    yield lambda name, **options: pages.append(opened(name, **options)) or pages[-1]
    for page in pages:
        page.close()


def test_the_part_for_the_curious_is_folded_and_opens_by_keyboard(visit):
    page = visit("curve.html", folded=True)
    assert not page.locator("#sigma").is_visible()
    page.locator("#curious summary").focus()
    page.keyboard.press("Enter")
    page.locator("#map svg").wait_for()
    settle(page)
    assert chart_width(page) > 360


def test_a_link_opens_the_part_for_the_curious(visit, folder):
    page = visit("curve.html", folded=True)
    page.locator("nav a[href='#curious']").click()
    page.locator("#sigma").wait_for()
    page = visit("curve.html", folded=True)
    page.evaluate("location.hash = '#curious'")
    page.locator("#sigma").wait_for()


def test_everything_is_open_while_it_is_printed(visit):
    page = visit("curve.html", folded=True)
    shut = "document.querySelectorAll('details:not([open])').length"
    before, found = page.evaluate(shut), []
    for event in ("beforeprint", "afterprint"):
        page.evaluate("event => dispatchEvent(new Event(event))", event)
        found.append(page.evaluate(shut))
    assert before > 1
    assert found == [0, before]


def test_ticks_of_an_axis_are_told_apart(look):
    """Also on the narrow axis of large numbers."""
    page = look("large.html")
    for chart in ("observed", "effect-0"):
        ends = page.locator(f"#{chart} text[text-anchor=end]")
        places = ends.evaluate_all("all => all.map((t) => [t.getAttribute('x'), t.textContent])")
        texts = [text for x, text in places if x == places[-1][0]]  # of the vertical axis
        assert len(set(texts)) == len(texts) >= 3
        assert any(text.startswith("425,000.") for text in texts)
    dots = page.locator("#observed circle")
    heights = dots.evaluate_all("all => all.map((c) => c.cy.baseVal.value)")
    assert len(set(heights)) > 40


@pytest.mark.parametrize("name", ["table.html", "surface.html", "large.html"])
def test_tables_and_code_scroll_on_a_telephone_and_are_not_cut(look, name):
    cut = look(name, width=390).evaluate(
        """() => [...document.querySelectorAll("table, pre")].filter((e) => {
            const box = e.closest(".scroll, pre") || e.parentElement;
            const scrolls = getComputedStyle(box).overflowX === "auto";
            const look = (cell) => getComputedStyle(cell).display;
            const hidden = [...e.querySelectorAll("td, th")].some((c) => look(c) === "none");
            return hidden || (!scrolls && e.scrollWidth > box.clientWidth);
        }).map((e) => e.textContent.slice(0, 60))"""
    )
    assert cut == []


def drawn(page, chart):
    return page.locator(f"#{chart} svg").inner_html()


def settle(page):
    """Wait until the frame after the next one, when what was asked for is drawn."""
    page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


def slide(page, slider, value):
    page.locator(f"#{slider}").fill(str(value))
    settle(page)


@pytest.mark.parametrize("name", ["curve.html", "surface.html", "table.html"])
def test_a_report_opens_without_an_error_or_a_request(look, name):
    page = look(name)
    assert page.locator("#norms path.curve").count() >= 1
    assert page.locator("#predictions circle").count() == 80
    assert page.locator("#observed circle").count() == 80
    # Of a series, later rows are kept aside: three times a fifth of all.
    kept_aside = 48 if name == "curve.html" else 80
    assert page.locator("#intervals line.interval").count() == kept_aside


@pytest.mark.parametrize("name", ["curve.html", "surface.html", "table.html", "classes.html"])
def test_every_chart_is_drawn_and_described(look, name):
    page = look(name)
    for chart in page.locator(".chart").all():
        assert len(chart.locator("svg[role=img]").get_attribute("aria-label")) > 20


def test_classes_have_calibration_roc_and_a_line_each(look):
    page = look("classes.html")
    assert page.locator("#calibration path.curve").count() == 4
    assert page.locator("#roc path.curve").count() == 4
    assert page.locator("#effect-0 path.curve").count() == 3
    assert page.locator(".confusion td[style]").count() == 9


def test_ticks_of_time_are_years_or_months_and_differ(look):
    labels = look("classes.html").locator("#series text").all_text_contents()
    ticks = [label for label in labels if label.startswith("202")]
    assert len(ticks) == len(set(ticks)) >= 3


def test_a_map_has_a_scale_of_colours_and_the_stations(look):
    page = look("surface.html")
    assert page.locator("#surface circle.place").count() == 80
    assert page.locator("#surface rect").count() > 32 * 32 + 40


@pytest.mark.parametrize("name", ["curve.html", "surface.html", "table.html", "classes.html"])
def test_labels_of_charts_can_be_read_on_a_telephone(look, name):
    page = look(name, width=390)
    sizes = page.evaluate(
        """() => [...document.querySelectorAll(".chart svg text")].map(
            (t) => parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getScreenCTM().a)"""
    )
    assert len(sizes) > 50
    assert min(sizes) >= 13


def test_a_printed_report_fits_its_pages(visit, tmp_path):
    page = visit("table.html")
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 700, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert not page.locator("nav").is_visible()


def test_charts_are_drawn_for_the_page_while_it_is_printed(visit):
    page = visit("table.html")
    half, widths = 182 / 25.4 * 96 / 2, []  # of the page's width in pixels
    for event in ("beforeprint", "afterprint"):
        page.evaluate("event => dispatchEvent(new Event(event))", event)
        box = page.locator("#observed svg").get_attribute("viewBox")
        widths.append(float(box.split()[2]))
    assert widths[0] < half < widths[1]


def test_a_chart_keeps_its_shape_until_it_is_drawn_anew(visit):
    shapes = visit("table.html").evaluate(
        """() => {
            document.body.style.width = "300px";
            const svg = document.querySelector("#observed svg");
            const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
            const box = svg.getBoundingClientRect();
            return [width / height, box.width / box.height];
        }"""
    )
    assert shapes[0] == pytest.approx(shapes[1], rel=0.01)  # whole pixels


def test_the_label_of_the_map_is_not_cut_on_a_telephone(look):
    texts = look("classes.html", width=390).locator("#map text").all_text_contents()
    assert any(text.startswith("σ (R² ≤") for text in texts)
    assert not any(text.endswith("…") for text in texts)


@pytest.mark.parametrize("slider", ["sigma", "lambda"])
@pytest.mark.parametrize("name", ["curve.html", "surface.html"])
def test_both_sliders_move_every_chart(play, name, slider):
    page = play(name)
    charts = ["norms", "loo", "mml", "map", "predictions"]
    before = {chart: drawn(page, chart) for chart in charts}
    readout = page.locator(".readout").inner_text()
    slide(page, slider, 0 if int(page.locator(f"#{slider}").input_value()) else 9)
    assert not [chart for chart in charts if drawn(page, chart) == before[chart]]
    assert page.locator(".readout").inner_text() != readout


def test_the_marked_point_follows_the_slider(play):
    page = play("curve.html")
    places = []
    for value in (2, 10, 20):
        slide(page, "sigma", value)
        places.append(float(page.locator("#loo circle.here").get_attribute("cx")))
    assert places == sorted(set(places))


def test_the_sliders_work_by_keyboard(play):
    page = play("table.html")
    for name in ("sigma", "lambda"):
        slider = page.locator(f"#{name}")
        before, text = int(slider.input_value()), slider.get_attribute("aria-valuetext")
        slider.focus()
        page.keyboard.press("ArrowRight")
        settle(page)
        assert int(slider.input_value()) == before + 1
        assert slider.get_attribute("aria-valuetext") != text


def test_tab_reaches_the_sliders_and_the_buttons(visit):
    page = visit("curve.html")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"sigma", "lambda", "to-chosen", "to-best"} <= reached


def test_a_click_on_the_map_moves_the_sliders(play):
    page = play("curve.html")
    page.locator("#map rect.cell").nth(3).click()
    settle(page)
    assert page.locator("#sigma").input_value() == "3"
    assert page.locator("#lambda").input_value() == "0"


def test_the_buttons_go_to_the_best_and_back_to_the_chosen_point(visit):
    page = visit("curve.html")
    start = page.locator("#sigma").input_value()
    page.locator("#to-best").click()
    settle(page)
    best = float(page.locator("#r2").inner_text())
    for value in range(0, 20, 5):
        slide(page, "sigma", value)
        assert float(page.locator("#r2").inner_text()) <= best
    page.locator("#to-chosen").click()
    settle(page)
    assert page.locator("#sigma").input_value() == start


def test_a_column_named_like_a_script_shows_as_text(look):
    page = look("table.html")
    assert HOSTILE in page.locator("#matters").inner_text()
    assert page.locator("h1").inner_text().startswith(HOSTILE)


@pytest.mark.parametrize("widths", [(360, 390), (1400,)], ids=str)
@pytest.mark.parametrize("name", ["curve.html", "surface.html", "table.html", "classes.html"])
def test_nothing_sticks_out_at_the_side(look, name, widths):
    page = look(name, width=widths[0])
    for width in widths:
        wider = chart_width(page) + width - page.viewport_size["width"]
        page.set_viewport_size({"width": width, "height": 900})
        page.locator(f"#loo svg[viewBox^='0 0 {wider} ']").wait_for()
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, scheme
            inside = page.evaluate(
                "[...document.querySelectorAll('.chart svg')].every(s => "
                "s.getBoundingClientRect().right <= innerWidth)"
            )
            assert inside, scheme


def contrast(page, selector):
    """Ratio of the luminances of a text and of the page behind it, as WCAG defines it."""
    colours = page.evaluate(
        "selector => [document.querySelector(selector), document.body].map((e, i) => "
        "getComputedStyle(e)[i ? 'backgroundColor' : 'color'].match(/[\\d.]+/g).map(Number))",
        selector,
    )
    light = []
    for colour in colours:
        c = np.array(colour[:3]) / 255
        c = np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        light.append(c @ [0.2126, 0.7152, 0.0722])
    return (max(light) + 0.05) / (min(light) + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_light_and_in_dark(look, scheme):
    page = look("curve.html", scheme=scheme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    for selector in ("p", "a", ".small", ".key.c1", ".key.c2", "th"):
        # 4.5 is what WCAG asks for texts; bold keys of charts count as large, for which it asks 3.
        assert contrast(page, selector) >= (3 if selector.startswith(".key") else 4.5), selector


def chart_width(page):
    return int(page.locator("#loo svg").get_attribute("viewBox").split()[2])


def test_the_charts_are_drawn_anew_when_the_window_changes(visit):
    page = visit("curve.html")
    width = chart_width(page)
    assert width > 360
    page.set_viewport_size({"width": 360, "height": 800})
    page.locator(f"#loo svg:not([viewBox^='0 0 {width} '])").wait_for()
    assert chart_width(page) < 340


def test_code_can_be_copied(visit):
    page = visit("curve.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator(".code").first
    block.locator("button").click()
    block.get_by_role("button", name="Copied", exact=True).wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == block.locator("pre").inner_text()
    assert "JacobianKernelRidge" in copied


@pytest.mark.parametrize("name", ["curve.html", "surface.html", "table.html"])
def test_the_table_of_rules_fits_a_narrow_screen(look, name):
    page = look(name, width=360)
    page.set_viewport_size({"width": 360, "height": 900})  # another test may have widened it
    widths = page.evaluate(
        "(e => [e.scrollWidth, e.clientWidth])(document.querySelector('.rules'))"
    )
    assert widths[0] <= widths[1]


@pytest.mark.parametrize("name", ["table.html", "classes.html"])
def test_effects_are_read_on_a_telephone_without_moving_sideways(look, name):
    """Interval and p stand inside of the window, each after its heading."""
    page = look(name, width=390)
    page.set_viewport_size({"width": 390, "height": 900})
    cells = page.locator("#matters .blocks tbody tr").first.locator("td.number")
    before = "all => all.map(c => getComputedStyle(c, '::before').content)"
    headings = cells.evaluate_all(before)
    assert [heading.strip('"').strip() for heading in headings][-3:] == [
        "standard error",
        "95 % interval",
        "p",
    ]
    ends = cells.evaluate_all("all => all.map(c => c.getBoundingClientRect().right)")
    assert 0 < max(ends) <= 390
    wide = page.locator("#matters .blocks .scroll").evaluate("e => e.scrollWidth - e.clientWidth")
    assert wide <= 0


def test_the_table_of_columns_is_read_on_a_telephone_without_moving_sideways(folder, opened):
    """Also with dates and large numbers."""
    X = np.column_stack([2020 + np.arange(60) / 366, 1e9 + np.arange(60)])
    parts = {"features": ["sold (year)", "turnover"], "parts": {"sold (year)": "sold"}}
    write_report(folder / "wide.html", X, X[:, 0], bandwidth="scale", **parts)
    page = opened("wide.html", width=390)
    page.locator("#quality summary").click()
    scrolled = page.locator("#quality .scroll")
    assert scrolled.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    page.close()


def test_an_option_is_not_divided_between_lines(folder, opened):
    """At any width of the window, whatever words come before."""
    X, sentence = np.arange(40.0)[:, None], "1 of 41 rows is left out. Use --missing impute."
    losses = {"left_out": 1, "losses": [sentence]}
    write_report(folder / "option.html", X, np.sin(X[:, 0]), bandwidth="scale", **losses)
    page = opened("option.html", width=390)
    tops = """() => {
      const part = document.querySelector("#quality");
      const walk = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        const start = walk.currentNode.data.indexOf("--missing");
        if (start < 0) continue;
        const range = document.createRange();
        range.setStart(walk.currentNode, start);
        range.setEnd(walk.currentNode, start + 9);
        return new Set([...range.getClientRects()].map((box) => box.top)).size;
      }
    }"""
    lines = []
    for width in range(320, 420, 5):
        page.set_viewport_size({"width": width, "height": 900})
        lines.append(page.evaluate(tops))
    assert set(lines) == {1}
    page.close()


def test_the_first_table_and_the_labels_of_months_fit_a_telephone(folder, opened):
    """The table also on the narrowest one; 10, 11 and 12 stand side by side."""
    days = np.arange(0, 1100, 7.0)
    angle = 2 * np.pi * (days // 30.5 % 12) / 12
    X = np.column_stack([2020 + days / 366, np.sin(angle), np.cos(angle)])
    names = ["t (year)", "t (month sine)", "t (month cosine)"]
    given = {"features": names, "parts": dict.fromkeys(names, "t"), "bandwidth": 1.0}
    write_report(folder / "months.html", X, 123_456 * X[:, 2] + 1e4 * np.sin(days), **given)
    page = opened("months.html", width=390)
    months = page.locator("figure", has_text="t (month)").locator("text").all_text_contents()
    assert set(map(str, range(1, 13))) <= set(months)
    page.set_viewport_size({"width": 320, "height": 900})
    first = page.locator("#performance .scroll").first
    assert first.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_ticks_of_months_stand_at_their_first_days(folder, opened):
    days = np.arange(100.0)
    X = np.column_stack([2023 + (59 + days) / 366, np.sin(days)])  # from the first of March on
    names = {"features": ["t (year)", "x"], "parts": {"t (year)": "t"}, "bandwidth": 2.0}
    write_report(folder / "days.html", X, days + X[:, 1], **names)
    page = opened("days.html")
    dots = page.locator("#series circle.data")
    for label, day in (("2023-03", 0), ("2023-04", 31), ("2023-05", 61), ("2023-06", 92)):
        tick = page.locator("#series text", has_text=label).get_attribute("x")
        assert float(tick) == pytest.approx(float(dots.nth(day).get_attribute("cx")), abs=0.2)
