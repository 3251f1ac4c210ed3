"""Render chair models of Sweet Home 3D as small images.

A catalogue (``.sh3f``) is a zip file that lists pieces of furniture, each with a Wavefront OBJ model and the rotation
to an upright position with the front towards the viewer: x to the right, y up, z towards the viewer. Textures are
ignored. The surface of a model is a dense cloud of random points, with a fixed seed. It is rotated to a yaw, and each
subpixel shows its nearest point. Images are orthographic, drawn at twice the resolution and averaged.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.files import list_names

FOLDER = Path("/usr/share/sweethome3d/furniture")
INSTALL = "apt-get install sweethome3d-furniture"
SIZE, FINE = 64, 2
"""Pixels along a side of the image, and subpixels along a side of a pixel."""

_CHAIR_NAME = re.compile(r"chair|class seat", re.IGNORECASE)
_ELEVATION = 20.0  # degrees above the horizon
_POINTS = 120_000  # about ten on each subpixel that a chair covers
_FILL = 0.94  # of the side of the image
_AMBIENT, _MIN_COLOUR = 0.35, 0.1  # a pure black chair would be a flat silhouette
_LIGHT = np.array([-0.35, 0.6, 0.72])  # from the upper left, in front
_GREY = (0.8, 0.8, 0.8)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ChairModel:
    """One piece of furniture in a catalogue: the path of its model and its rotation."""

    archive: Path
    id: str
    name: str
    path: str
    rotation: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points of a surface with normals and colours. The image shows the coordinates in [-1, 1]."""

    points: Floats
    normal: Floats
    colour: Floats


def chair_models(folder: Path | str = FOLDER) -> tuple[ChairModel, ...]:
    """List the chairs of the catalogues in a folder, in a fixed order. The yaw of a stool is not visible."""
    archives = [Path(folder) / name for name in list_names(Path(folder)) if name.endswith(".sh3f")]
    if not archives:
        raise MissingDataError(f"no furniture catalogues (*.sh3f) in {str(folder)!r}; install them with: {INSTALL}")
    pieces = [piece for archive in archives for piece in _read_catalogue(archive)]
    return tuple(sorted((p for p in pieces if _CHAIR_NAME.search(p.name)), key=lambda p: p.id))


def _read_catalogue(path: Path) -> Iterable[ChairModel]:
    try:
        with zipfile.ZipFile(path) as archive:
            text = archive.read("PluginFurnitureCatalog.properties").decode("latin-1")
    except (zipfile.BadZipFile, KeyError) as error:
        raise InputError(
            f"cannot read {str(path)!r}: not a furniture catalogue ({error}); install it again with: {INSTALL}"
        ) from error
    pieces: dict[str, dict[str, str]] = defaultdict(dict)
    text = re.sub(r"\\\r?\n\s*", "", text)  # a backslash at the end of a line continues it
    for key, number, value in re.findall(r"^(\w+)#(\d+)\s*=[ \t]*(.*?)[ \t\r]*$", text, re.MULTILINE):
        pieces[number][key] = value
    for piece in pieces.values():
        if {"id", "name", "model"} <= piece.keys():
            rotation = tuple(float(v) for v in piece.get("modelRotation", "1 0 0 0 1 0 0 0 1").split())
            yield ChairModel(path, piece["id"], piece["name"], piece["model"].lstrip("/"), rotation)


def read_triangles(model: ChairModel) -> tuple[Floats, Floats]:
    """Return the corners (n, 3, 3) and colours (n, 3) of the triangles of a model, upright and facing the viewer."""
    positions: list[list[float]] = []
    faces: list[tuple[int, ...]] = []
    colours: list[tuple[float, ...]] = []
    materials: dict[str, tuple[float, ...]] = {}
    current: tuple[float, ...] = _GREY
    with zipfile.ZipFile(model.archive) as archive:
        for line in archive.read(model.path).decode("latin-1").splitlines():
            kind, _, rest = line.strip().partition(" ")
            if kind == "v":
                positions.append([float(v) for v in rest.split()[:3]])
            elif kind == "f":
                corners = [int(corner.split("/")[0]) for corner in rest.split()]
                corners = [c - 1 if c > 0 else len(positions) + c for c in corners]  # negative ones count from the end
                for second, third in pairwise(corners[1:]):  # a triangle fan around the first corner
                    faces.append((corners[0], second, third))
                    colours.append(current)
            elif kind == "usemtl":
                current = materials.get(rest.strip(), _GREY)
            elif kind == "mtllib":
                file = posixpath.join(posixpath.dirname(model.path), rest.strip())
                materials |= _read_materials(archive, file) if file in archive.namelist() else {}
    if not faces:
        raise InputError(f"{model.path!r} in {str(model.archive)!r} has no faces")
    rotated = np.array(positions) @ np.array(model.rotation).reshape(3, 3).T
    return rotated[np.array(faces)], np.array(colours)


def _read_materials(archive: zipfile.ZipFile, path: str) -> dict[str, tuple[float, ...]]:
    colours: dict[str, tuple[float, ...]] = {}
    name = ""
    for line in archive.read(path).decode("latin-1").splitlines():
        kind, _, rest = line.strip().partition(" ")
        if kind == "newmtl":
            name = rest.strip()
        elif kind == "Kd":
            colours[name] = tuple(float(v) for v in rest.split()[:3])
    return colours


def sample_surface(model: ChairModel) -> Cloud:
    """Cover the surface of a model with random points. It is centred and fits into the image at every yaw."""
    corners, colours = read_triangles(model)
    corners = corners - (corners.min(axis=(0, 1)) + corners.max(axis=(0, 1))) / 2
    radius, tilt = np.hypot(corners[..., 0], corners[..., 2]), np.radians(_ELEVATION)
    half_height = np.abs(corners[..., 1]) * np.cos(tilt) + radius * np.sin(tilt)
    corners = corners * (_FILL / max(radius.max(), half_height.max()))
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normals, axis=1)
    normals = normals / np.maximum(area, np.finfo(np.float64).tiny)[:, None]
    random = np.random.default_rng(zlib.crc32(model.id.encode()))
    triangle = np.searchsorted(np.cumsum(area), area.sum() * (np.arange(_POINTS) + 0.5) / _POINTS)
    u, v = random.random((2, _POINTS, 1))
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
    a, b, c = (corners[triangle, k] for k in range(3))
    return Cloud(a + u * (b - a) + v * (c - a), normals[triangle], _MIN_COLOUR + (1 - _MIN_COLOUR) * colours[triangle])


def draw_picture(cloud: Cloud, yaw: float) -> NDArray[np.uint8]:
    """Return the image of a cloud at ``yaw`` degrees as channels, height and width. The background is white. At yaw 0
    the front faces the viewer. With increasing yaw it turns to the viewer's right.
    """
    side = SIZE * FINE
    c, s = np.cos(np.radians(yaw)), np.sin(np.radians(yaw))
    a, b = np.cos(np.radians(_ELEVATION)), np.sin(np.radians(_ELEVATION))
    rotation = np.array([[1, 0, 0], [0, a, -b], [0, b, a]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    right, up, near = (cloud.points @ rotation.T).T
    pixel = ((1 - up) * (side / 2)).astype(np.int64) * side + ((right + 1) * (side / 2)).astype(np.int64)
    order = np.argsort(near, kind="stable")
    shown = np.full(side * side, -1)
    shown[pixel[order]] = order  # the nearest point of a subpixel is assigned last
    drawn = np.flatnonzero(shown >= 0)
    normal = cloud.normal[shown[drawn]] @ rotation.T
    normal *= np.where(normal[:, 2:] < 0, -1, 1)  # in many models the orientation of a face is arbitrary
    light = _AMBIENT + (1 - _AMBIENT) * np.maximum(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0)
    fine = np.ones((side * side, 3))
    fine[drawn] = cloud.colour[shown[drawn]] * light[:, None]
    coarse = fine.reshape(SIZE, FINE, SIZE, FINE, 3).mean(axis=(1, 3))
    levels: NDArray[np.uint8] = np.round(255 * coarse.clip(0, 1)).astype(np.uint8)
    return levels.transpose(2, 0, 1)
