"""Write ``docs/chairs.md`` and its contact sheet: every re-created chair at five yaws, its author and its licence.

Run as ``python -m benchmarks.chairs``; draws the set into the cache if that was never done.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from pyspar.paper.data import load, where
from pyspar.paper.data.chairs.models import ChairModel, chair_models
from pyspar.paper.data.chairs.recreated import ANGLES, NAME, Sight, sight_of
from pyspar.paper.data.chairs.render import ELEVATION, SIZE, picture

DOCS = Path(__file__).parents[1] / "docs"
SHEET = DOCS / "figures" / "chairs.png"
PAGE = DOCS / "chairs.md"
YAWS = (0.0, 22.5, 45.0, 67.5, 90.0)
BLOCKS = 4  # side by side on the sheet
NAMED = {
    "Kator Legaz": "Andrew Kator & Jennifer Legaz",
    "Scopia": "Emmanuel Puybaret / eTeks and Scopia Visual Interfaces Systems",
}
LOW_BITS = np.uint8(7)  # set in every value of the sheet: not seen, and the file is half as large
HEAD = 14  # pixels above each block for its yaws

TEXT = """# Chairs

Tell from one picture how far a chair is turned. Learn from yaws between 15° and 75°, be judged between 0° and 90°: the
labels of the target go beyond those of the source. Of the training images four fifths are learned from and one fifth
validates; the test has other images of the same chairs, at most 25 of an angle. Images are uint8 of shape (3, 64, 64),
labels are degrees, and there are no groups. How sets are found and loaded: [data](data.md). This page is written by
`python -m benchmarks.chairs`.

## `chair-angles-tails`: the original

The paper uses ChairAngles-Tails (Gustafsson, Danelljan and Schön 2023), a cut of RC-49 (Ding et al. 2021). No package
ships it. Put one of these into a folder that you name by `PYSPAR_DATA` or `folder=`:

- `RC-49_64x64.h5` as the authors of CcGAN publish it, with `images` of shape (n, 3, 64, 64), `labels` in degrees and
  `indx_train`; reading it takes h5py (`pip install 'pyspar[bench]'`);
- `RC-49_64x64.npz` with the same three arrays;
- `chair-angles-tails.npz` with arrays that are already cut, such as those in the pickles of Gustafsson et al.:
  `images_train`, `labels_train`, `images_val`, `labels_val`, `images_test`, `labels_test`.

Pickles themselves are not read, because reading one runs what is in it; open those you trust yourself and keep their
arrays with `numpy.savez`.

## `chair-angles-recreated`: drawn by us

A re-creation, with the same cut, from the furniture of Sweet Home 3D (`apt-get install sweethome3d-furniture`, or the
`*.sh3f` files in a folder of yours). What differs from the original:

- {n_chairs} other models instead of the 49 of RC-49, each drawn {n_learn} times between 15° and 75° and {n_judge} times
  between 0° and 90°, at random yaws spread evenly instead of steps of 0.1°: {n_train} images to learn from, {n_val} to
  validate on, {n_test} to be judged on;
- our own renderer: orthographic from {elevation:.0f}° above the horizon, a light beside the viewer, no shadows, white
  background. At yaw 0° the chair faces the viewer, and it turns to the viewer's right.

So compare methods on it, not its numbers with published ones. Drawing takes {milliseconds:.1f} ms of one core an image
where this page was made; the set is kept in the cache ({megabytes:.1f} MB), and the same machine draws the same bytes
again. `load("{name}", rows=96)` draws a miniature.

![Every chair at yaws 0°, 22.5°, 45°, 67.5° and 90°](figures/chairs.png)

### Left out

A model is left out where its image at 0° differs from that at 45° or at 90° by less than two grey levels of 255 on
average: its yaw cannot be seen.

{left_out}

### Models, authors, licences

The sheet follows this list, block by block from the left. "Contrast" is the difference just named.

{models}

CC0: <https://creativecommons.org/publicdomain/zero/1.0/>; CC BY 3.0: <https://creativecommons.org/licenses/by/3.0/>,
US: <https://creativecommons.org/licenses/by/3.0/us/>. Blend Swap's models were made ready by Emmanuel Puybaret.
The models were turned into pictures, nothing else; their authors do not endorse this.
"""


def main() -> None:
    sights = {chair: sight_of(chair) for chair in chair_models()}
    kept = {chair: sight for chair, sight in sights.items() if sight.tells_yaw}
    sheet = contact_sheet(list(kept.values()))
    Image.fromarray(sheet | LOW_BITS).save(SHEET, optimize=True)
    task = load(NAME)
    PAGE.write_text(
        TEXT.format(
            name=NAME,
            n_chairs=len(kept),
            n_learn=ANGLES[0],
            n_judge=ANGLES[1],
            n_train=len(task.train),
            n_val=len(task.val),
            n_test=len(task.test),
            elevation=ELEVATION,
            milliseconds=milliseconds(list(kept.values())),
            megabytes=where(NAME).path.stat().st_size / 1e6,
            left_out=table({chair: sight for chair, sight in sights.items() if not sight.tells_yaw}),
            models=table(kept),
        ),
        encoding="utf-8",
    )
    print(f"wrote {SHEET} and {PAGE}")


def milliseconds(sights: list[Sight]) -> float:
    """Return the processor time of one picture, averaged over the chairs; a busy machine does not change it much."""
    start = time.process_time()
    for sight in sights:
        picture(sight.cloud, 33.0)
    return 1000 * (time.process_time() - start) / len(sights)


def contact_sheet(sights: list[Sight]) -> NDArray[np.uint8]:
    """Lay the chairs out, one a row, in blocks side by side, with the yaws above."""
    deep = -(-len(sights) // BLOCKS)
    sheet = np.full((HEAD + deep * SIZE, BLOCKS * len(YAWS) * SIZE, 3), 255, np.uint8)
    for number, sight in enumerate(sights):
        block, row = divmod(number, deep)
        top = HEAD + row * SIZE
        for column, yaw in enumerate(YAWS, block * len(YAWS)):
            sheet[top : top + SIZE, column * SIZE : (column + 1) * SIZE] = picture(sight.cloud, yaw).transpose(1, 2, 0)
    image = Image.fromarray(sheet)
    pen = ImageDraw.Draw(image)
    for column in range(BLOCKS * len(YAWS)):
        pen.text((column * SIZE + SIZE // 2, 1), f"{YAWS[column % len(YAWS)]:g}°", fill=(90, 90, 90), anchor="ma")
    for block in range(1, BLOCKS):
        pen.line([(block * len(YAWS) * SIZE - 1, 0), (block * len(YAWS) * SIZE - 1, len(sheet))], fill=(200, 200, 200))
    return np.asarray(image)


def table(sights: dict[ChairModel, Sight]) -> str:
    """List models as the catalogues name them, with whom to thank."""
    lines = ["| model | name | author | licence | contrast |", "|---|---|---|---|---|"]
    for chair, sight in sights.items():
        cells = (chair.id, chair.name, author(chair), licence(chair), f"{sight.contrast:.1f}")
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def author(chair: ChairModel) -> str:
    """Return the model's author; two catalogues say in their licence files whom to name."""
    return NAMED.get(chair.creator, chair.creator)


def licence(chair: ChairModel) -> str:
    """Return the licence's short name; the catalogue's "public domain" is CC0 in the licence file beside it."""
    if "Public domain" in chair.licence:
        return "CC0"
    if "Attribution 3.0" not in chair.licence:
        raise SystemExit(f"{chair.id} has a licence that this page does not know: {chair.licence!r}")
    return "CC BY 3.0 US" if re.search("United States", chair.licence) else "CC BY 3.0"


if __name__ == "__main__":
    main()
