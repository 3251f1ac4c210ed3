"""Write ``docs/chairs.md`` and its figure: every re-created chair at five yaws, its author and its licence.

Run as ``python -m benchmarks.chairs``. The data set is rendered into the cache if it is not there.
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
from pyspar.paper.data.chairs.recreated import ANGLES, NAME, ChairSurface, sample_chair
from pyspar.paper.data.chairs.render import ELEVATION, SIZE, draw_picture

DOCS = Path(__file__).parents[1] / "docs"
SHEET = DOCS / "figures" / "chairs.png"
PAGE = DOCS / "chairs.md"
YAWS = (0.0, 22.5, 45.0, 67.5, 90.0)
BLOCKS = 4  # side by side on the sheet
NAMED = {
    "Kator Legaz": "Andrew Kator & Jennifer Legaz",
    "Scopia": "Emmanuel Puybaret / eTeks and Scopia Visual Interfaces Systems",
}
LOW_BITS = np.uint8(7)  # set in every value of the figure: invisible, and the file is half as large
HEAD = 14  # pixels above each block for its yaws

TEXT = """# Chairs

The task is to predict the yaw of a chair from one image. The training part has yaws between 15° and 75°, the test part
between 0° and 90°, so the target has labels beyond those of the source. Four fifths of the training images are for
training and one fifth for validation. The test part has other images of the same chairs, at most 25 per angle. Images
are uint8 of shape (3, 64, 64), labels are degrees, and there are no groups. [Data sets](data.md) describes how data
sets are found and loaded. `python -m benchmarks.chairs` writes this page.

## `chair-angles-tails`: the original

The paper uses ChairAngles-Tails (Gustafsson, Danelljan and Schön 2023), a split of RC-49 (Ding et al. 2021). No package
contains it. Put one of these files into a folder and pass the folder as `PYSPAR_DATA` or `folder=`:

- `RC-49_64x64.h5` as published by the authors of CcGAN, with `images` of shape (n, 3, 64, 64), `labels` in degrees and
  `indx_train`. It requires h5py (`pip install '.[paper]'`).
- `RC-49_64x64.npz` with the same three arrays.
- `chair-angles-tails.npz` with arrays that are already split, such as those in the pickles of Gustafsson et al.:
  `images_train`, `labels_train`, `images_val`, `labels_val`, `images_test`, `labels_test`.

Pickles are not read, because unpickling executes code. Open pickles that you trust yourself, and store their arrays
with `numpy.savez`.

## `chair-angles-recreated`: a re-creation

This data set has the same split and is rendered from the furniture of Sweet Home 3D (`apt-get install
sweethome3d-furniture`, or the `*.sh3f` files in your folder). It differs from the original:

- It has {n_chairs} other models instead of the 49 of RC-49. Each is rendered {n_learn} times between 15° and 75° and
  {n_judge} times between 0° and 90°, at random, evenly spread yaws instead of steps of 0.1°. There are {n_train} images
  for training, {n_val} for validation and {n_test} for the test.
- It uses another renderer: orthographic from {elevation:.0f}° above the horizon, a light near the viewer, no shadows,
  white background. At yaw 0° the chair faces the viewer. With increasing yaw it turns to the viewer's right.

Compare methods on this data set, but do not compare its numbers with published ones. Rendering took
{milliseconds:.1f} ms of one core per image when this page was written. The data set is cached ({megabytes:.1f} MB), and
the same machine renders identical bytes. `load("{name}", rows=96)` renders a small version.

![Every chair at yaws 0°, 22.5°, 45°, 67.5° and 90°](figures/chairs.png)

### Models that are not used

A model is not used if its image at 0° differs from that at 45° or at 90° by less than two of 255 grey levels on
average, because its yaw is not visible.

{left_out}

### Models, authors, licences

The figure has the order of this list, block by block from the left. "Contrast" is the difference defined above.

{models}

CC0: <https://creativecommons.org/publicdomain/zero/1.0/>; CC BY 3.0: <https://creativecommons.org/licenses/by/3.0/>,
US: <https://creativecommons.org/licenses/by/3.0/us/>. Emmanuel Puybaret prepared the models of Blend Swap. The models
were only rendered as images. Their authors do not endorse this project.
"""


def main() -> None:
    surfaces = {chair: sample_chair(chair) for chair in chair_models()}
    kept = {chair: surface for chair, surface in surfaces.items() if surface.is_yaw_visible}
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
            left_out=table({chair: surface for chair, surface in surfaces.items() if not surface.is_yaw_visible}),
            models=table(kept),
        ),
        encoding="utf-8",
    )
    print(f"wrote {SHEET} and {PAGE}")


def milliseconds(surfaces: list[ChairSurface]) -> float:
    """Return the processor time of one image in milliseconds, averaged over the chairs."""
    start = time.process_time()
    for surface in surfaces:
        draw_picture(surface.cloud, 33.0)
    return 1000 * (time.process_time() - start) / len(surfaces)


def contact_sheet(surfaces: list[ChairSurface]) -> NDArray[np.uint8]:
    """Return an image with one chair per row, in blocks side by side, with the yaws above."""
    deep = -(-len(surfaces) // BLOCKS)
    sheet = np.full((HEAD + deep * SIZE, BLOCKS * len(YAWS) * SIZE, 3), 255, np.uint8)
    for number, surface in enumerate(surfaces):
        block, row = divmod(number, deep)
        top = HEAD + row * SIZE
        for column, yaw in enumerate(YAWS, block * len(YAWS)):
            image = draw_picture(surface.cloud, yaw).transpose(1, 2, 0)
            sheet[top : top + SIZE, column * SIZE : (column + 1) * SIZE] = image
    image = Image.fromarray(sheet)
    pen = ImageDraw.Draw(image)
    for column in range(BLOCKS * len(YAWS)):
        pen.text((column * SIZE + SIZE // 2, 1), f"{YAWS[column % len(YAWS)]:g}°", fill=(90, 90, 90), anchor="ma")
    for block in range(1, BLOCKS):
        pen.line([(block * len(YAWS) * SIZE - 1, 0), (block * len(YAWS) * SIZE - 1, len(sheet))], fill=(200, 200, 200))
    return np.asarray(image)


def table(surfaces: dict[ChairModel, ChairSurface]) -> str:
    """Return a table of the models with their names, authors and licences."""
    lines = ["| model | name | author | licence | contrast |", "|---|---|---|---|---|"]
    for chair, surface in surfaces.items():
        cells = (chair.id, chair.name, author(chair), licence(chair), f"{surface.contrast:.1f}")
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def author(chair: ChairModel) -> str:
    """Return the author of a model. The licence files of two catalogues prescribe the name."""
    return NAMED.get(chair.creator, chair.creator)


def licence(chair: ChairModel) -> str:
    """Return the short name of the licence. The catalogue's "public domain" is CC0 according to its licence file."""
    if "Public domain" in chair.licence:
        return "CC0"
    if "Attribution 3.0" not in chair.licence:
        raise SystemExit(f"unknown licence of {chair.id}: {chair.licence!r}")
    return "CC BY 3.0 US" if re.search("United States", chair.licence) else "CC BY 3.0"


if __name__ == "__main__":
    main()
