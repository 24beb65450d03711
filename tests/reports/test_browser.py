"""Reports in a real browser: Chromium without a window. Where none is found these tests do not run,
and say so.

Each page is written once, by the command a user would run, with fewer features than by default:
what is tested is the page and not the answer.
"""

import base64
import contextlib
import importlib.util
import io
import json
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from browser import (
    brightness,
    changed,
    colours,
    drag,
    found,
    numbers,
    pixels,
    point,
    press,
    settle,
    shown,
    surface,
)

from cordes.cli import run
from cordes.studies.pages.study import write_study_report
from cordes.surfaces import flatten
from cordes.surfaces.density import equalise_areas
from cordes.surfaces.folded import folded_surface
from cordes.surfaces.pages import plots as surface_plots

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
LION = ROOT.parent / "shared" / "data" / "chinese_lion.mat"
SOLVED = {
    "ex4.2-discontinuous": ("--features", "400"),
    "ex4.5-hjb": ("--features", "300"),
    "ex5.1-square": ("--features", "200"),
}
SURFACES = ("folded", "lion")
PAGES = (*SOLVED, *SURFACES, "study")
ALL_PAGES = (*PAGES, "check", "comparison")
WIDTHS = (390, 1440)
# Software draws each pixel of a surface: where the width does not matter, fewer of them.
MIDDLE = 440
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
if not (CHROMIUM and DRIVER and importlib.util.find_spec("selenium")):
    reason = (
        "no Chromium with chromedriver and selenium was found: the browser tests did NOT run "
        "(Debian: apt install chromium chromium-driver)"
    )
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """`pages(name)`: the folder of a report, made once."""
    made = {}

    def make(name):
        if name == "lion" and not LION.exists():
            pytest.skip(f"{LION} is not there: the page of the lion was not tried")
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            write(name, made[name], make)
        return made[name]

    return make


def write(name, folder, make):
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        if name in SURFACES:
            patch.setattr(surface_plots, "PIXELS", 300)
            patch.setattr(
                "cordes.surfaces.folded.folded_surface",
                lambda: folded_surface(folds=3, depth=1.2, columns=48, rows=32),
            )
            patch.setattr(
                flatten,
                "equalise_areas",
                lambda disk, flat: equalise_areas(disk, flat, resolution=256),
            )
            chosen = (
                ["folded"]
                if name == "folded"
                else [str(LION), "--corners", "7013", "6582", "12652", "5716"]
            )
            assert run(["surface", *chosen, "--out", str(folder), "--json"]) == 0
        elif name == "study":
            results = ROOT / "docs" / "reproduction"
            facts = json.loads((results / "ex4.5-hjb.json").read_text(encoding="utf-8"))
            for figure in ("error", "dynamics", "landscape", "spectra"):
                shutil.copy(results / f"ex4.5-hjb-{figure}.png", folder / f"{figure}.png")
            write_study_report(folder / "report.html", facts, folder, ["study", "ex4.5-hjb"])
            (folder / "study.json").write_text(json.dumps(facts), encoding="utf-8")
        elif name == "check":
            assert run(["check", "ex4.2-continuous", "--out", str(folder), "--json"]) == 0
        elif name == "comparison":
            compared = [str(make(each)) for each in ("ex4.2-discontinuous", "ex4.5-hjb")]
            assert run(["report", *compared, "--out", str(folder / "report.html"), "--json"]) == 0
        else:
            assert run(["solve", name, *SOLVED[name], "--out", str(folder), "--json"]) in (0, 1)


@pytest.fixture(scope="module")
def driver():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    # Software rendering, so that WebGL works on machines without a graphics card.
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(DRIVER))
    made.set_page_load_timeout(60)
    yield made
    made.quit()


# All pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_PAGES)
def test_no_error_and_no_request(driver, pages, name):
    """The console is silent, and nothing but the file itself is fetched."""
    folder = pages(name)
    shown(driver, folder)
    driver.execute_script("scrollTo(0, document.body.scrollHeight)")
    settle(driver)
    assert [
        entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")
    ] == []
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
    ]
    assert [address for address in asked if not address.startswith("data:")] == [
        (folder / "report.html").as_uri()
    ]
    assert (
        driver.execute_script(
            "return performance.getEntriesByType('resource').filter((e) => "
            "!e.name.startsWith('data:')).length"
        )
        == 0
    )


@pytest.mark.parametrize("name", PAGES)
def test_the_numbers_are_those_of_the_file(driver, pages, name):
    folder = pages(name)
    shown(driver, folder)
    script = (
        "return [...document.querySelectorAll('.number')].map((e) => [e.dataset.value, "
        "e.textContent, e.dataset.fact, Boolean(e.closest('#run'))])"
    )
    values = driver.execute_script(script)
    facts = json.loads(
        (
            folder
            / {"folded": "report.json", "lion": "report.json", "study": "study.json"}.get(
                name, "result.json"
            )
        ).read_text()
    )
    stated = [(float(exact), text) for exact, text, *_ in values if exact != "null"]
    assert len(stated) >= 10
    # Settings of the solver stand on the page and not in the file; the number of seeds is the
    # length of a list there.
    known = numbers(facts) | {float(len(facts.get("seeds", ())))}
    assert [
        pair[1]
        for pair in values
        if pair[0] != "null" and not pair[3] and float(pair[0]) not in known
    ] == []
    named = [(path, json.loads(exact)) for exact, _, path, _ in values if path]
    assert [pair for pair in named if found(facts, pair[0]) != pair[1]] == []
    assert name not in SOLVED or len(named) >= 5
    # The digits that are read are those of the exact value, to within one unit of the last (a bound
    # may be rounded up).
    for exact, text in stated:
        digits, _, exponent = text.replace("\u202f", "").replace("−", "-").partition("·10")
        shown_value = Decimal(f"{digits}e{exponent or 0}")
        assert abs(float(shown_value) - exact) <= 10.0 ** int(shown_value.as_tuple().exponent), text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ALL_PAGES)
def test_nothing_is_wider_than_the_window(driver, pages, name, width):
    shown(driver, pages(name), width)
    assert driver.execute_script("return innerWidth") == width
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    tall = driver.execute_script("return document.documentElement.scrollHeight")
    assert tall > 900
    # Text is not cut off on its way: nothing visible begins left of the window.
    assert driver.execute_script(
        "return [...document.querySelectorAll('main *')].every((e) => "
        "e.getBoundingClientRect().left >= -1 || e.closest('.scroll'))"
    )


@pytest.mark.parametrize("name", ALL_PAGES)
def test_the_theme_can_be_chosen(driver, pages, name):
    """The button turns light into dark and back, and the dark of the system is followed."""
    folder = pages(name)
    shown(driver, folder)
    button = driver.find_element("id", "theme")
    light = brightness(driver)
    button.click()
    dark = brightness(driver)
    button.click()
    assert (light > 200, dark < 60, brightness(driver) == light) == (True, True, True)
    driver.execute_script("localStorage.removeItem('cordes-theme')")
    shown(driver, folder, dark=True)
    assert brightness(driver) == dark


@pytest.mark.parametrize("name", PAGES)
def test_pictures_are_not_blank(driver, pages, name):
    """Every picture has been decoded and varies; what is drawn on the page has colours."""
    shown(driver, pages(name))
    assert driver.execute_script(
        "return [...document.images].every((i) => i.complete && i.naturalWidth > 50)"
    )
    spreads = driver.execute_script(
        """return [...document.images].map((image) => {
             const canvas = document.createElement("canvas");
             [canvas.width, canvas.height] = [40, 40];
             const context = canvas.getContext("2d");
             context.drawImage(image, 0, 0, 40, 40);
             const pixels = context.getImageData(0, 0, 40, 40).data;
             const colour = (k) => `${pixels[k]} ${pixels[k + 1]} ${pixels[k + 2]}`;
             return new Set(Array.from({length: 1600}, (_, k) => colour(4 * k))).size;
           })"""
    )
    # A map may be constant, or nearly so: the distortion of an area-preserving map, or a
    # multiplier.
    assert sum(count >= 10 for count in spreads) >= min(4, len(spreads) - 1) >= 2
    for drawing in driver.find_elements("css selector", "svg.drawing, figure[data-chart] svg")[:2]:
        assert colours(pixels(driver, drawing)) >= 4


@pytest.mark.parametrize("name", PAGES)
def test_the_pointer_reads_values(driver, pages, name):
    shown(driver, pages(name))
    if name in (*SURFACES, "study"):
        column = driver.find_elements("css selector", ".reach")[20]
        point(driver, column)
        reading = driver.find_element("css selector", ".tip")
        assert reading.is_displayed()
        assert reading.text == driver.execute_script("return arguments[0].dataset.tip", column)
        assert any(letter.isdigit() for letter in reading.text)
        return
    figure = driver.find_element("css selector", "figure[data-map]")
    reading = figure.find_element("css selector", ".reading")
    assert reading.text.strip() == ""
    point(driver, figure.find_element("css selector", ".plot"), 0.3, 0.6)
    said = driver.execute_script("return arguments[0].textContent", reading)
    assert said.count("=") == 2
    value = said.split(":")[1].strip()
    assert any(letter.isdigit() for letter in value)
    point(driver, figure.find_element("css selector", ".plot"), 0.55, 0.45)
    assert driver.execute_script("return arguments[0].textContent", reading) != said


# Surfaces -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SURFACES)
def test_the_surface_turns(driver, pages, name):
    """Keys, the mouse and the buttons each change the picture, and going back brings it back."""
    shown(driver, pages(name), MIDDLE)
    canvas = surface(driver)
    press(driver, "area-preserving")
    first = pixels(driver, canvas)
    assert colours(first) >= 12
    press(driver, "conformal")
    assert changed(first, pixels(driver, canvas)) > 0.03
    press(driver, "area-preserving")
    assert changed(first, pixels(driver, canvas)) < 0.002
    for key in ("ArrowRight", "ArrowUp", "+"):
        before = pixels(driver, canvas)
        driver.execute_script(
            (
                "arguments[0].dispatchEvent(new KeyboardEvent('keydown', {key: arguments[1], "
                "bubbles: true}))"
            ),
            canvas,
            key,
        )
        settle(driver)
        assert changed(before, pixels(driver, canvas)) > 0.03
    before = pixels(driver, canvas)
    drag(driver, canvas)
    assert changed(before, pixels(driver, canvas)) > 0.03
    press(driver, "front")
    assert changed(first, pixels(driver, canvas)) < 0.002


@pytest.mark.parametrize("name", SURFACES)
def test_the_surface_is_laid_flat(driver, pages, name):
    """At the end of the slider the colours of the areas differ: those of the conformal map vary,
    the others hardly do."""
    shown(driver, pages(name), MIDDLE)
    canvas = surface(driver)
    slider = driver.find_element("css selector", "#surface-view input")
    driver.execute_script(
        "arguments[0].value = 1; arguments[0].dispatchEvent(new Event('input'))", slider
    )
    press(driver, "areas")
    images = {}
    for words in ("conformal", "area-preserving"):
        press(driver, words)
        image = pixels(driver, canvas)
        images[words] = image[
            image.shape[0] // 3 : -image.shape[0] // 3, image.shape[1] // 3 : -image.shape[1] // 3
        ]
    assert np.mean(np.std(images["conformal"], axis=(0, 1))) > 4 * np.mean(
        np.std(images["area-preserving"], axis=(0, 1))
    )
    point(driver, canvas, 0.5, 0.5)
    said = driver.find_element("css selector", "#surface-view output").text
    assert said.startswith("area-preserving")
    # Areas are kept to a few per cent, so the factor that is read is near one.
    assert 0.8 < float(said.split("areas ")[1].split(" ")[0]) < 1.25


@pytest.mark.parametrize("width", WIDTHS)
def test_stills_stand_in_where_there_is_no_webgl(driver, pages, width):
    folder = pages("folded")
    blind = "HTMLCanvasElement.prototype.getContext = () => null"
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": blind})[
        "identifier"
    ]
    try:
        shown(driver, folder, width)
        stills = driver.find_element("id", "surface-stills")
        assert stills.is_displayed()
        assert not driver.find_element("id", "surface-view").is_displayed()
        assert colours(pixels(driver, stills.find_element("css selector", "img"))) >= 10
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})
    shown(driver, folder, width)
    assert not driver.find_element("id", "surface-stills").is_displayed()
    assert driver.find_element("id", "surface-view").is_displayed()


def test_a_printed_page_shows_the_stills(driver, pages):
    """A page becomes a document of several sheets; the view to turn is replaced by its pictures."""
    shown(driver, pages("folded"))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert driver.find_element("id", "surface-stills").is_displayed()
        assert not driver.find_element("id", "surface-view").is_displayed()
        printed = base64.b64decode(
            driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"]
        )
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") >= 2
