"""Make published notebooks small: their pictures in at most 256 colours, which lines and text do not miss."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

from repro.files import write_bytes

COLOURS = 256


def squeeze(path: Path) -> bool:
    """Rewrite the PNG outputs of a notebook in a palette of their own; returns whether any was not yet.

    The figures' files keep every colour.  The same picture gives the same bytes.
    """
    book = json.loads(path.read_text(encoding="utf-8"))
    changed = False
    for cell in book["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                old = data["image/png"]  # a notebook may hold it as a list of lines
                old = old if isinstance(old, str) else "".join(old)
                data["image/png"] = _small(old)
                changed |= data["image/png"] != old
    if changed:
        text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
        write_bytes(path, text.encode())
    return changed


def _small(encoded: str) -> str:
    """A PNG in base64, in a palette; as it is where it has one, or where that saves nothing."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    old = base64.b64decode(encoded)
    with Image.open(io.BytesIO(old)) as picture:
        if picture.mode == "P":
            return encoded
        flat, said = picture.convert("RGB"), PngInfo()
        for name, text in picture.info.items():
            if isinstance(text, str):  # the figure's description in words
                said.add_itxt(str(name), text)
    new = io.BytesIO()
    flat.quantize(COLOURS, dither=Image.Dither.NONE).save(new, "PNG", optimize=True, pnginfo=said)
    return base64.b64encode(new.getvalue()).decode() if new.tell() < len(old) else encoded
