"""Characters that hide: those that show nothing, and those that look like other letters."""

from __future__ import annotations

import unicodedata

_INVISIBLE = (
    *range(0x200B, 0x2010),
    *range(0x2060, 0x2070),
    *range(0x202A, 0x202F),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE01F0),
    *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0),
)
_TWINS = (
    ("абвгдеёзікмнопрсту", "a6brde33ikmhonpcty"),
    ("хѕјһԁԛԝьѵґѐї", "xsjhdqwbvrei"),
    ("αβγδεζηικλμνοπρστυχωϲ", "abydezniklmvonpotuxwc"),
    ("ɑɡɩıɪɴɢʀʙʜʟᴀᴄᴅᴇᴊᴋᴍᴏᴘꜱᴛᴜᴠᴡʏᴢꜰ", "agiiingrbhlacdejkmopstuvwyzf"),
    ("օսհցոԁյ", "ouhgndj"),
    ("ⅼƽðłøđħʼ’‘“”‐‑‒–—", "lsdlodh'''\"\"-----"),
)

IGNORABLE: dict[int, None] = dict.fromkeys(_INVISIBLE)
"""What is left out before words are looked for, as `str.translate` takes it."""

CONFUSABLE: dict[int, str] = {
    ord(twin): letter for twins, letters in _TWINS[:5] for twin, letter in zip(twins, letters, strict=True)
}
"""Letters of other scripts that are taken for Latin ones, lower case."""

LATIN: dict[int, str | None] = {
    **{code: None for code in range(0x300, 0x370) if unicodedata.category(chr(code)) == "Mn"},
    **{ord(twin): letter for twins, letters in _TWINS for twin, letter in zip(twins, letters, strict=True)},
}
"""Folds look-alikes, marks and quotes to plain Latin, as `str.translate` takes it."""

LEET: dict[int, str] = str.maketrans("013457@$", "oieastas")
"""Digits and signs that stand for letters."""
