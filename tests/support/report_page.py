"""A page taken apart, and a problem file that makes one."""

import base64
import html
import json
import re
from html.parser import HTMLParser

import numpy as np

LARGEST = 3_000_000
HOSTILE = "<script>alert('x')</script> & \"co\""
DISK = """
schema = 1
kind = "linear"
name = '''NAME'''
[domain]
type = "ball"
center = [0, 0]
radius = 1
[definitions]
k = "1 + x1**2"
[equation]
A = [["2 + k", "0.5"], ["0.5", "2"]]
f = "2*(2 + k) + 2*2"
exact = "x1**2 + x2**2 - 1"
"""


class Page(HTMLParser):
    """The tags of a page, the numbers that name a fact, the embedded data, and whatever refers to
    something outside."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.facts, self.outside, self.tags, self.scripts = {}, [], [], []
        self._script = None
        self.feed(self.text)
        self.data = json.loads(
            next(body for kind, body in self.scripts if kind == "application/json")
        )

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        if "data-fact" in found:
            self.facts.setdefault(found["data-fact"], []).append(json.loads(found["data-value"]))
        self.outside += [
            value
            for name, value in attributes
            if name in ("src", "href", "action", "xlink:href")
            and not value.startswith(("#", "data:"))
        ]
        if tag == "script":
            self._script = [found.get("type"), ""]

    def handle_data(self, data):
        if self._script is not None:
            self._script[1] += data

    def handle_endtag(self, tag):
        if tag == "script":
            self.scripts.append(tuple(self._script))
            self._script = None

    def words(self):
        """What a person reads."""
        body = re.sub(r"<(script|style)\b.*?</\1>", "", self.text, flags=re.DOTALL)
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", body)))

    def check(self, facts):
        """Every number on the page that names a fact is that fact, and nothing is asked of the
        network."""
        assert self.facts
        for place, values in self.facts.items():
            expected = facts
            for key in place.split("."):
                expected = expected[int(key)] if isinstance(expected, list) else expected[key]
            assert all(value == expected for value in values), place
        assert self.outside == []
        assert "default-src 'none'" in self.text
        assert not re.search(r"https?://|@import|url\((?!data:)", self.text)
        assert len(self.text.encode()) < LARGEST

    def values(self, key):
        """The values of a map, and its points."""
        kept = self.data["maps"][key]
        values = np.frombuffer(base64.b64decode(kept["values"]), dtype="<f4").reshape(kept["shape"])
        axes = [
            a + (np.arange(n) + 0.5) / n * (b - a)
            for a, b, n in zip(kept["lower"], kept["upper"], kept["shape"], strict=True)
        ]
        return values, np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
