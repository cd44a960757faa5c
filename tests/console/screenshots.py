"""Take the screenshots of docs/console.md again, from a server with the demo's data.

python -m tests.console.screenshots
"""

from __future__ import annotations

import base64
import struct
import tempfile
import zlib
from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path

import httpx
from playwright.sync_api import Page, expect

from tests.console import sample
from tests.console.screens import opened
from tests.e2e.servers import serving, staged
from tests.support.browser import browsing
from tools.local_server import migrate
from tools.paths import PRODUCTION_CONFIG, ROOT

TENANT = "shop"
FOLDER = ROOT / "docs" / "console"
WIDTH, HEIGHTS = 1100, (360, 760)
"""The window: as high as the page, within these bounds."""
_PIXELS = """async (encoded) => {
  const bytes = Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const drawing = new OffscreenCanvas(picture.width, picture.height).getContext("2d", { alpha: false });
  drawing.drawImage(picture, 0, 0);
  const { data } = drawing.getImageData(0, 0, picture.width, picture.height);
  let text = "";
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
  return [picture.width, picture.height, btoa(text)];
}"""
"""Returns a picture's width, height, and pixels: red, green, blue and 255 of each."""
PHONE = 390
SHOWN = ("runs", "run", "reason", "memory", "history", "person", "recall", "compared", "evaluation", "operations")
"""The screens that the page shows."""
_SCROLLED = {"reason": ".step[open]"}
"""Screens of which a part is shown, each with its selector."""
DARK = ("recall", "operations")


def main() -> None:
    """Serve, fill, and write the pictures; print their sizes."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, staged("screenshots") as config:
        migrate(Path(folder), PRODUCTION_CONFIG)
        with serving(Path(folder), config) as server, httpx.Client(base_url=server.base_url, timeout=60) as api:
            sample.fill(server.base_url, TENANT)
            screens = {screen.name: screen for screen in sample.screens(api, TENANT)}
            with browsing() as browser:
                page, reading = browser.context.new_page(), browser.context.new_page()
                for name in SHOWN:
                    page.emulate_media(color_scheme="dark" if name in DARK else "light")
                    page.set_viewport_size({"width": WIDTH, "height": HEIGHTS[1]})
                    opened(page, server.base_url, TENANT, screens[name])
                    _picture(page, reading, name, WIDTH)
                page.emulate_media(color_scheme="light")
                page.set_viewport_size({"width": PHONE, "height": HEIGHTS[1]})
                opened(page, server.base_url, TENANT, screens["run"])
                _picture(page, reading, "phone", PHONE)
    print(f"{sum(path.stat().st_size for path in FOLDER.glob('*.png')) // 1000} KB in {FOLDER}")


def _picture(page: Page, reading: Page, name: str, width: int) -> None:
    """Take a picture of the screen. reading: an empty page, which reads its pixels."""
    page.mouse.move(0, 0)
    height = int(page.evaluate("document.documentElement.scrollHeight"))
    least, most = HEIGHTS
    page.set_viewport_size({"width": width, "height": min(most, max(least, height))})
    expect(page.get_by_text("Loading …")).to_have_count(0)
    if name in _SCROLLED:
        page.locator(_SCROLLED[name]).first.evaluate("one => one.scrollIntoView()")
    taken = base64.b64encode(page.screenshot()).decode()
    wide, high, pixels = reading.evaluate(_PIXELS, taken)
    (FOLDER / f"{name}.png").write_bytes(small_png(wide, high, base64.b64decode(pixels)))


def small_png(width: int, height: int, pixels: bytes) -> bytes:
    """Return a picture with a palette: its 256 most frequent colours, and for each other one the nearest of these.

    Source: https://www.w3.org/TR/png-3/
    """
    found = Counter(zip(pixels[0::4], pixels[1::4], pixels[2::4], strict=True))
    colours = [colour for colour, _ in found.most_common(256)]
    numbers = {colour: number for number, colour in enumerate(colours)}
    for other in found.keys() - numbers.keys():
        nearest = min(colours, key=partial(_distance, other))
        numbers[other] = numbers[nearest]
    indexes = bytes(map(numbers.__getitem__, zip(pixels[0::4], pixels[1::4], pixels[2::4], strict=True)))
    lines = b"".join(b"\0" + indexes[row * width : (row + 1) * width] for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", bytes(chain(*colours))), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def _distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((left - right) ** 2 for left, right in zip(one, other, strict=True))


if __name__ == "__main__":
    main()
