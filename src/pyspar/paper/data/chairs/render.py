"""Draw a model as a small picture: its surface as a dense cloud of points, the nearest point winning each pixel.

A cloud is made once for a model and then turned to any yaw. Its points lie in cells of at most 0.7 by 0.7 fine pixels,
so every fine pixel that a surface covers holds a point: a grid of pitch p has a point in every disc of radius p/√2, a
pixel holds a disc of radius 1/2, and turning or tilting a surface only draws its points closer. Pictures are
orthographic, drawn finer than asked and averaged. The light stays with the viewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyspar.paper.data.chairs.models import Floats, Mesh

SIZE = 64
ELEVATION = 20.0  # degrees above the horizon
FINE = 3  # fine pixels along each side of a pixel

_PITCH = 0.7  # fine pixels between points
_FILL = 0.94  # of the picture's side
_AMBIENT = 0.35
_DARKEST = 0.1  # no chair swallows all light, and a pure black one would be a flat shadow
_LIGHT = np.array([-0.35, 0.6, 0.72])  # from the upper left, in front
_FAR = np.int64(-1)
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points of a surface, in a frame whose picture spans [-1, 1], with the surface's normal and colour at each."""

    at: NDArray[np.float32]
    normal: NDArray[np.float32]
    colour: NDArray[np.float32]


def cloud_of(mesh: Mesh, *, size: int = SIZE, elevation: float = ELEVATION, fine: int = FINE) -> Cloud:
    """Cover a mesh with points, close enough for pictures of this size, centred and scaled to fit at every yaw."""
    corners = _fitted(mesh.corners, elevation)
    pitch = _PITCH * 2 / (size * fine)
    triangle, weights = _grid(corners, pitch)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), _TINY)
    at = np.einsum("nk,nkd->nd", weights, corners[triangle])
    where = np.einsum("nk,nkd->nd", weights, mesh.texture_at[triangle])
    colour = np.empty_like(at)
    for number, texture in enumerate(mesh.textures):
        here = mesh.material[triangle] == number
        height, width = texture.shape[:2]
        column, row = np.floor(where[here] * (width, height)).astype(np.int64).T
        colour[here] = _DARKEST + (1 - _DARKEST) * texture[row % height, column % width]
    return Cloud(at.astype(np.float32), normals[triangle].astype(np.float32), colour.astype(np.float32))


def picture(
    cloud: Cloud, yaw: float, *, size: int = SIZE, elevation: float = ELEVATION, fine: int = FINE
) -> NDArray[np.uint8]:
    """Draw a cloud turned by ``yaw`` degrees, as channels, height and width; the background is white.

    At yaw 0 the front faces the viewer; as the yaw grows it turns to the viewer's right.
    """
    side = size * fine
    turn = _turn(yaw, elevation)
    seen = cloud.at @ turn.T.astype(np.float32)
    column = ((seen[:, 0] + 1) * (side / 2)).astype(np.int32)
    row = ((1 - seen[:, 1]) * (side / 2)).astype(np.int32)
    inside = (column >= 0) & (column < side) & (row >= 0) & (row < side)
    # One number holds the depth above the point's row, so that the largest of a pixel names its nearest point.
    depth = ((seen[:, 2] + 4) * 2**24).astype(np.int64)
    key = (depth << 32) | np.arange(len(depth))
    nearest = np.full(side * side, _FAR)
    np.maximum.at(nearest, (row * side + column)[inside], key[inside])
    drawn = np.flatnonzero(nearest != _FAR)
    point = nearest[drawn] & 0xFFFFFFFF
    normal = cloud.normal[point] @ turn.T
    normal *= np.where(normal[:, 2:] < 0, -1, 1)  # many models leave open which side of a face is its front
    light = _AMBIENT + (1 - _AMBIENT) * np.maximum(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0)
    shown = np.ones((side * side, 3))
    shown[drawn] = cloud.colour[point] * light[:, None]
    coarse = shown.reshape(size, fine, size, fine, 3).mean(axis=(1, 3))
    levels: NDArray[np.uint8] = np.round(255 * coarse.clip(0, 1)).astype(np.uint8)
    return levels.transpose(2, 0, 1)


def _turn(yaw: float, elevation: float) -> Floats:
    """Return the rotation from the model's axes to right, up and towards the viewer."""
    c, s = np.cos(np.radians(yaw)), np.sin(np.radians(yaw))
    a, b = np.cos(np.radians(elevation)), np.sin(np.radians(elevation))
    turned: Floats = np.array([[1, 0, 0], [0, a, -b], [0, b, a]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return turned


def _fitted(corners: Floats, elevation: float) -> Floats:
    """Centre a model's box and scale it so that no yaw takes it out of the picture; the scale is the same at each."""
    points = corners.reshape(-1, 3)
    centred = corners - (points.min(axis=0) + points.max(axis=0)) / 2
    points = centred.reshape(-1, 3)
    radius = np.hypot(points[:, 0], points[:, 2])
    tilt = np.radians(elevation)
    half_height = (np.abs(points[:, 1]) * np.cos(tilt) + radius * np.sin(tilt)).max()
    fitted: Floats = centred * (_FILL / max(float(radius.max()), float(half_height)))
    return fitted


def _grid(corners: Floats, pitch: float) -> tuple[NDArray[np.int64], Floats]:
    """Return, for each point, its triangle and its weights on the triangle's corners: one in each cell of a grid.

    Rows of cells lie along the longest edge. A cell that the triangle fills only below its middle has its point on the
    triangle's border: without those, the sharp corners of a fan would leave a hole where they meet.
    """
    edges = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)  # edge k runs from corner k to k + 1
    first = edges.argmax(axis=1)
    longest = edges.max(axis=1)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    solid = np.flatnonzero(area > 0)
    rows = np.ceil(area[solid] / longest[solid] / pitch).astype(np.int64)
    triangle, row = _counted(solid, rows)
    n_rows = rows.repeat(rows)
    columns = np.ceil(longest[triangle] * (1 - row / n_rows) / pitch).astype(np.int64)
    of_row, column = _counted(np.arange(len(triangle)), columns)
    triangle, row, n_rows = triangle[of_row], row[of_row], n_rows[of_row]
    # Along the longest edge from 0 to 1, and up from it to the third corner at 1, which stands above `foot`.
    foot = _foot(corners, first, longest)[triangle]
    along = row / n_rows * foot + (1 - row / n_rows) * (column + 0.5) / columns[of_row]
    border = np.where(along < foot, along / np.maximum(foot, _TINY), (1 - along) / np.maximum(1 - foot, _TINY))
    up = np.minimum((row + 0.5) / n_rows, border)
    weights = np.empty((len(triangle), 3))
    points = np.arange(len(triangle))
    weights[points, first[triangle]] = 1 - along - up * (1 - foot)
    weights[points, (first[triangle] + 1) % 3] = along - up * foot
    weights[points, (first[triangle] + 2) % 3] = up
    return triangle, weights


def _foot(corners: Floats, first: NDArray[np.int64], longest: Floats) -> Floats:
    """Return where along the longest edge the third corner stands, from 0 to 1."""
    triangles = np.arange(len(corners))
    start, end, third = (corners[triangles, (first + k) % 3] for k in range(3))
    dot = ((third - start) * (end - start)).sum(axis=1)
    foot: Floats = np.clip(dot / np.maximum(longest**2, _TINY), 0, 1)
    return foot


def _counted(items: NDArray[np.int64], times: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Repeat each item, and number its repetitions from zero.

    >>> [a.tolist() for a in _counted(np.array([7, 9]), np.array([1, 3]))]
    [[7, 9, 9, 9], [0, 0, 1, 2]]
    """
    numbers = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
    return items.repeat(times), numbers
