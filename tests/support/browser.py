"""What the tests in a browser share: opening a page, moving the mouse, and looking at pixels."""

import io

import numpy as np
from PIL import Image


def shown(driver, folder, width=1440, dark=False):
    """Open the page of a folder at a width, in the light theme unless told, with nothing left in
    the logs of earlier pages."""
    for kind in ("browser", "performance"):
        driver.get_log(kind)
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.get((folder / "report.html").as_uri())
    settle(driver)


def settle(driver):
    """Wait until what was asked for is drawn: two frames."""
    driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => "
        "done()));"
    )


def point(driver, element, x=0.5, y=0.5):
    """Move the mouse to a place of an element, given as shares of its width and height."""
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    # The page may still be scrolling, which hides what the pointer reads.
    settle(driver)
    box = driver.execute_script(
        "const b = arguments[0].getBoundingClientRect(); return [b.left, b.top, b.width, b.height]",
        element,
    )
    place = {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **place})
    settle(driver)
    return place


def pixels(driver, element):
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )
    return np.asarray(Image.open(io.BytesIO(element.screenshot_as_png)).convert("RGB")).astype(int)


def colours(image):
    """How many colours a picture has, eight shades of each primary."""
    return len(np.unique((image // 32).reshape(-1, 3), axis=0))


def numbers(value):
    if isinstance(value, dict | list):
        entries = value.values() if isinstance(value, dict) else value
        return set().union(*(numbers(entry) for entry in entries)) if value else set()
    return (
        {float(value)} if isinstance(value, int | float) and not isinstance(value, bool) else set()
    )


def found(facts, path):
    """What stands at `a.b.0` in nested facts."""
    for key in path.split("."):
        facts = facts[int(key)] if isinstance(facts, list) else facts[key]
    return facts


def brightness(driver):
    colour = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]) / 3


def surface(driver):
    canvas = driver.find_element("css selector", "#surface-view canvas")
    driver.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas
    )
    return canvas


def press(driver, words):
    for button in driver.find_elements("css selector", "#surface-view button"):
        if button.text.startswith(words):
            button.click()
            settle(driver)
            return
    raise AssertionError(f"There is no button {words}.")


def changed(one, two):
    """The share of the pixels that differ."""
    return float(np.mean(np.max(np.abs(one - two), axis=2) > 40))


def drag(driver, canvas):
    place = point(driver, canvas, 0.5, 0.5)
    for kind, shift in (("mousePressed", 0), ("mouseMoved", 60), ("mouseReleased", 60)):
        event = {
            "type": kind,
            "x": place["x"] + shift,
            "y": place["y"],
            "button": "left",
            "buttons": 1,
            "clickCount": 1,
        }
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    point(driver, driver.find_element("css selector", "h1"))
