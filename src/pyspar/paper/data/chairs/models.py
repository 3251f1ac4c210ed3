"""Chair models as triangles, read from the furniture catalogues of Sweet Home 3D.

A catalogue is a zip file (``.sh3f``). Its ``PluginFurnitureCatalog.properties`` lists the pieces of furniture, each
with its author, a Wavefront OBJ model, and the rotation to an upright position with the front towards the viewer: x to
the right, y up, z towards the viewer. Materials have a diffuse colour and may have a texture.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError, need
from pyspar.paper.data.files import list_names

FOLDER = Path("/usr/share/sweethome3d/furniture")
INSTALL = "apt-get install sweethome3d-furniture"

_CHAIR_NAME = re.compile(r"chair|stool|class seat", re.IGNORECASE)
_MIN_OPACITY = 0.05  # materials below are construction helpers, not surfaces
_TEXTURE_SIDE = 64  # texels; enough for images of 64 pixels

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ChairModel:
    """One piece of furniture in a catalogue: the path of its model, its rotation, author and licence."""

    archive: Path
    id: str
    name: str
    creator: str
    licence: str
    path: str
    rotation: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles with a position (n, 3, 3) and a texture coordinate (n, 3, 2) at each corner, and a material (n,).

    There is one texture (height, width, 3) for each material, with values in [0, 1]; a uniform colour has one texel.
    """

    corners: Floats
    texture_at: Floats
    material: NDArray[np.int64]
    textures: tuple[Floats, ...]


def chair_models(folder: Path | str = FOLDER) -> tuple[ChairModel, ...]:
    """List the chairs, armchairs and stools of the catalogues in a folder, in a fixed order."""
    archives = [Path(folder) / name for name in list_names(Path(folder)) if name.endswith(".sh3f")]
    if not archives:
        raise MissingDataError(f"no furniture catalogues (*.sh3f) in {str(folder)!r}; install them with: {INSTALL}")
    pieces = [piece for archive in archives for piece in _read_catalogue(archive)]
    return tuple(sorted((p for p in pieces if _CHAIR_NAME.search(p.name)), key=lambda p: p.id))


def read_mesh(model: ChairModel) -> Mesh:
    """Read the triangles of a model, upright and with the front towards the viewer."""
    with zipfile.ZipFile(model.archive) as archive:
        return _parse_mesh(archive, model)


def _read_catalogue(path: Path) -> Iterable[ChairModel]:
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read("PluginFurnitureCatalog.properties").decode("latin-1")
    except (zipfile.BadZipFile, KeyError) as error:
        raise InputError(
            f"cannot read {str(path)!r}: not a furniture catalogue ({error}); install it again with: {INSTALL}"
        ) from error
    shared, pieces = _parse_properties(text)
    for piece in pieces.values():
        if {"id", "name", "model"} <= piece.keys():
            creator, licence = piece.get("creator", "unknown"), piece.get("license", shared.get("license", "unknown"))
            rotation = tuple(float(v) for v in piece.get("modelRotation", "1 0 0 0 1 0 0 0 1").split())
            model = piece["model"].lstrip("/")
            yield ChairModel(path, piece["id"], piece["name"], creator, licence, model, rotation)


def _parse_properties(text: str) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    r"""Parse ``key=value`` and ``key#number=value``. A backslash at the end of a line continues it.

    >>> _parse_properties("license=CC0\nname#7=Oak \\\n  chair\nid#7=oak")
    ({'license': 'CC0'}, {7: {'name': 'Oak chair', 'id': 'oak'}})
    """
    shared: dict[str, str] = {}
    pieces: dict[int, dict[str, str]] = defaultdict(dict)
    text = re.sub(r"\\\r?\n\s*", "", text)
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)
    for key, number, value in re.findall(r"^(\w+)(?:#(\d+))?\s*=[ \t]*(.*?)[ \t\r]*$", text, re.MULTILINE):
        (pieces[int(number)] if number else shared)[key] = value
    return shared, dict(pieces)


def _parse_mesh(archive: zipfile.ZipFile, model: ChairModel) -> Mesh:
    text = archive.read(model.path).decode("latin-1")
    folder = posixpath.dirname(model.path)
    positions: list[list[float]] = []
    texture_at: list[list[float]] = [[0.0, 0.0]]  # for corners without a texture coordinate
    faces: list[tuple[int, int, int, int, int, int, int]] = []
    materials: dict[str, Floats | None] = {}
    names: dict[str, int] = {"": 0}
    current = 0
    for line in text.splitlines():
        kind, _, rest = line.strip().partition(" ")
        if kind == "v":
            positions.append([float(v) for v in rest.split()[:3]])
        elif kind == "vt":
            texture_at.append([float(v) for v in rest.split()[:2]])
        elif kind == "f":
            corner = [_parse_corner(c, len(positions), len(texture_at) - 1) for c in rest.split()]
            for second, third in pairwise(corner[1:]):  # a triangle fan around the first corner
                faces.append((*corner[0], *second, *third, current))
        elif kind == "usemtl":
            current = names.setdefault(rest.strip(), len(names))
        elif kind == "mtllib":
            materials |= _read_materials(archive, posixpath.join(folder, rest.strip()))
    if not faces:
        raise InputError(f"{model.path!r} in {str(model.archive)!r} has no faces")
    plain = np.full((1, 1, 3), 0.8)
    textures = [materials.get(name, plain) for name in names]
    table = np.array(faces, dtype=np.int64)
    visible = np.array([texture is not None for texture in textures])[table[:, 6]]
    table = table[visible]
    rotated = np.array(positions) @ np.array(model.rotation).reshape(3, 3).T
    return Mesh(
        corners=rotated[table[:, 0:6:2]],
        texture_at=np.array(texture_at)[table[:, 1:6:2]],
        material=table[:, 6],
        textures=tuple(plain if texture is None else texture for texture in textures),
    )


def _parse_corner(text: str, n_positions: int, n_textures: int) -> tuple[int, int]:
    """Return the indices of a corner's position and texture coordinate. Negative numbers count from the end.

    >>> _parse_corner("3/-1/4", 8, 5), _parse_corner("-1", 8, 5)
    ((2, 5), (7, 0))
    """
    position, *more = text.split("/")
    vertex, texture = int(position), int(more[0]) if more and more[0] else 0
    return vertex - 1 if vertex > 0 else n_positions + vertex, texture if texture >= 0 else n_textures + 1 + texture


def _read_materials(archive: zipfile.ZipFile, path: str) -> dict[str, Floats | None]:
    """Return the texture of each material, a uniform colour as one texel, or None if it is invisible."""
    if path not in archive.namelist():
        return {}
    textures: dict[str, Floats | None] = {}
    name = ""
    for line in archive.read(path).decode("latin-1").splitlines():
        kind, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if kind == "newmtl":
            name = rest
            textures[name] = np.full((1, 1, 3), 0.8)
        elif kind == "Kd":
            textures[name] = np.array([float(v) for v in rest.split()[:3]]).reshape(1, 1, 3)
        elif kind == "map_Kd":
            texture = posixpath.normpath(posixpath.join(posixpath.dirname(path), rest))
            if texture in archive.namelist():
                textures[name] = _decode_texture(archive.read(texture))
        elif kind == "d" and float(rest.split()[-1]) < _MIN_OPACITY:
            textures[name] = None
    return textures


def _decode_texture(content: bytes) -> Floats:
    """Return the colours of an image in [0, 1]. The first row is the bottom, as in texture coordinates."""
    image = need("PIL.Image", "paper").open(io.BytesIO(content)).convert("RGB")
    image.thumbnail((_TEXTURE_SIDE, _TEXTURE_SIDE))
    return np.asarray(image, dtype=np.float64)[::-1] / 255
