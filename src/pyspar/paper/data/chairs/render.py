"""Render a model as a small image: its surface is a dense point cloud, and each pixel shows the nearest point.

A cloud is computed once per model and then rotated to any yaw. Its points are in cells of at most 0.7 by 0.7 subpixels,
so every subpixel that a surface covers contains a point: a grid of pitch p has a point in every disc of radius p/√2, a
subpixel contains a disc of radius 1/2, and rotating or tilting a surface only moves its points closer together. Images
are orthographic, rendered at a higher resolution and averaged. The light moves with the viewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyspar.paper.data.chairs.models import Floats, Mesh

SIZE = 64
ELEVATION = 20.0  # degrees above the horizon
FINE = 3  # subpixels along each side of a pixel

_PITCH = 0.7  # subpixels between points
_FILL = 0.94  # of the side of the image
_AMBIENT = 0.35
_MIN_COLOUR = 0.1  # a pure black chair would be a flat silhouette
_LIGHT = np.array([-0.35, 0.6, 0.72])  # from the upper left, in front
_NO_POINT = np.int64(-1)
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points of a surface with normals and colours. The image shows the coordinates in [-1, 1]."""

    points: NDArray[np.float32]
    normal: NDArray[np.float32]
    colour: NDArray[np.float32]


def sample_surface(mesh: Mesh, *, size: int = SIZE, elevation: float = ELEVATION, fine: int = FINE) -> Cloud:
    """Cover a mesh with points, dense enough for images of this size. It is centred and fits at every yaw."""
    corners = _fit_to_image(mesh.corners, elevation)
    pitch = _PITCH * 2 / (size * fine)
    triangle, weights = _make_grid(corners, pitch)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), _TINY)
    points = np.einsum("nk,nkd->nd", weights, corners[triangle])
    texture_at = np.einsum("nk,nkd->nd", weights, mesh.texture_at[triangle])
    colour = np.empty_like(points)
    for number, texture in enumerate(mesh.textures):
        selected = mesh.material[triangle] == number
        height, width = texture.shape[:2]
        column, row = np.floor(texture_at[selected] * (width, height)).astype(np.int64).T
        colour[selected] = _MIN_COLOUR + (1 - _MIN_COLOUR) * texture[row % height, column % width]
    return Cloud(points.astype(np.float32), normals[triangle].astype(np.float32), colour.astype(np.float32))


def draw_picture(
    cloud: Cloud, yaw: float, *, size: int = SIZE, elevation: float = ELEVATION, fine: int = FINE
) -> NDArray[np.uint8]:
    """Return the image of a cloud at ``yaw`` degrees as channels, height and width. The background is white.

    At yaw 0 the front faces the viewer. With increasing yaw it turns to the viewer's right.
    """
    side = size * fine
    rotation = _make_rotation(yaw, elevation)
    rotated = cloud.points @ rotation.T.astype(np.float32)
    column = ((rotated[:, 0] + 1) * (side / 2)).astype(np.int32)
    row = ((1 - rotated[:, 1]) * (side / 2)).astype(np.int32)
    inside = (column >= 0) & (column < side) & (row >= 0) & (row < side)
    # One integer has the depth in its high bits and the point's index in its low bits, so a maximum finds the nearest.
    depth = ((rotated[:, 2] + 4) * 2**24).astype(np.int64)
    key = (depth << 32) | np.arange(len(depth))
    nearest = np.full(side * side, _NO_POINT)
    np.maximum.at(nearest, (row * side + column)[inside], key[inside])
    drawn = np.flatnonzero(nearest != _NO_POINT)
    point = nearest[drawn] & 0xFFFFFFFF
    normal = cloud.normal[point] @ rotation.T
    normal *= np.where(normal[:, 2:] < 0, -1, 1)  # in many models the orientation of a face is arbitrary
    light = _AMBIENT + (1 - _AMBIENT) * np.maximum(normal @ (_LIGHT / np.linalg.norm(_LIGHT)), 0)
    fine_image = np.ones((side * side, 3))
    fine_image[drawn] = cloud.colour[point] * light[:, None]
    coarse = fine_image.reshape(size, fine, size, fine, 3).mean(axis=(1, 3))
    levels: NDArray[np.uint8] = np.round(255 * coarse.clip(0, 1)).astype(np.uint8)
    return levels.transpose(2, 0, 1)


def _make_rotation(yaw: float, elevation: float) -> Floats:
    """Return the rotation from the axes of the model to right, up and towards the viewer."""
    c, s = np.cos(np.radians(yaw)), np.sin(np.radians(yaw))
    a, b = np.cos(np.radians(elevation)), np.sin(np.radians(elevation))
    rotation: Floats = np.array([[1, 0, 0], [0, a, -b], [0, b, a]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return rotation


def _fit_to_image(corners: Floats, elevation: float) -> Floats:
    """Centre the bounding box of a model and scale it to fit into the image at every yaw, with one scale."""
    points = corners.reshape(-1, 3)
    centred = corners - (points.min(axis=0) + points.max(axis=0)) / 2
    points = centred.reshape(-1, 3)
    radius = np.hypot(points[:, 0], points[:, 2])
    tilt = np.radians(elevation)
    half_height = (np.abs(points[:, 1]) * np.cos(tilt) + radius * np.sin(tilt)).max()
    fitted: Floats = centred * (_FILL / max(float(radius.max()), float(half_height)))
    return fitted


def _make_grid(corners: Floats, pitch: float) -> tuple[NDArray[np.int64], Floats]:
    """Return the triangle of each point and its weights on the corners. There is one point per cell of a grid.

    Rows of cells are parallel to the longest edge. If the centre of a cell is outside the triangle, its point is on the
    border; otherwise the sharp corners of a fan would leave a hole.
    """
    edges = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)  # edge k runs from corner k to k + 1
    first = edges.argmax(axis=1)
    longest = edges.max(axis=1)
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    solid = np.flatnonzero(area > 0)
    rows = np.ceil(area[solid] / longest[solid] / pitch).astype(np.int64)
    triangle, row = _repeat_and_number(solid, rows)
    n_rows = rows.repeat(rows)
    columns = np.ceil(longest[triangle] * (1 - row / n_rows) / pitch).astype(np.int64)
    of_row, column = _repeat_and_number(np.arange(len(triangle)), columns)
    triangle, row, n_rows = triangle[of_row], row[of_row], n_rows[of_row]
    # Coordinates: 0 to 1 along the longest edge, and 0 to 1 up to the third corner, which is above `foot`.
    foot = _find_foot(corners, first, longest)[triangle]
    along = row / n_rows * foot + (1 - row / n_rows) * (column + 0.5) / columns[of_row]
    border = np.where(along < foot, along / np.maximum(foot, _TINY), (1 - along) / np.maximum(1 - foot, _TINY))
    up = np.minimum((row + 0.5) / n_rows, border)
    weights = np.empty((len(triangle), 3))
    points = np.arange(len(triangle))
    weights[points, first[triangle]] = 1 - along - up * (1 - foot)
    weights[points, (first[triangle] + 1) % 3] = along - up * foot
    weights[points, (first[triangle] + 2) % 3] = up
    return triangle, weights


def _find_foot(corners: Floats, first: NDArray[np.int64], longest: Floats) -> Floats:
    """Return the position of the third corner along the longest edge, from 0 to 1."""
    triangles = np.arange(len(corners))
    start, end, third = (corners[triangles, (first + k) % 3] for k in range(3))
    dot = ((third - start) * (end - start)).sum(axis=1)
    foot: Floats = np.clip(dot / np.maximum(longest**2, _TINY), 0, 1)
    return foot


def _repeat_and_number(
    items: NDArray[np.int64], times: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Repeat each item, and number the repetitions from zero.

    >>> [a.tolist() for a in _repeat_and_number(np.array([7, 9]), np.array([1, 3]))]
    [[7, 9, 9, 9], [0, 0, 1, 2]]
    """
    numbers = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
    return items.repeat(times), numbers
