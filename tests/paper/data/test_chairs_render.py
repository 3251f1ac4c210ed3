"""The renderer: positions, the sense of rotation, and surfaces without holes."""

import numpy as np
import pytest

from pyspar.paper.data.chairs.models import Mesh
from pyspar.paper.data.chairs.render import draw_picture, sample_surface

RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def box(low, high):
    """Return the twelve triangles of a box."""
    low, high = np.array(low, float), np.array(high, float)
    corner = [low + (high - low) * [i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return np.array([[corner[a], corner[b], corner[c]] for q in quads for a, b, c in (q[:3], (q[0], q[2], q[3]))])


def mesh(*coloured):
    """Return a mesh of pairs (triangles, colour)."""
    corners = np.concatenate([triangles for triangles, _ in coloured])
    material = np.repeat(np.arange(len(coloured)), [len(triangles) for triangles, _ in coloured])
    textures = tuple(np.array(colour).reshape(1, 1, 3) for _, colour in coloured)
    return Mesh(corners, np.zeros((len(corners), 3, 2)), material, textures)


def silhouette(image):
    return (image < 255).any(axis=0)


def columns_of(image, channel):
    """Return the columns where a colour dominates."""
    others = [c for c in range(3) if c != channel]
    return np.flatnonzero((image[channel].astype(int) > image[others].max(axis=0).astype(int) + 60).any(axis=0))


@pytest.fixture(scope="module")
def box_with_nose():
    """A red body with a green nose in front of it."""
    return sample_surface(mesh((box((-1, -1, -1), (1, 1, 1)), RED), (box((-0.2, -0.2, 1), (0.2, 0.2, 2)), GREEN)))


def test_the_front_faces_the_viewer_at_yaw_0_and_turns_to_the_right(box_with_nose):
    middles = [columns_of(draw_picture(box_with_nose, yaw), 1).mean() for yaw in (0, 30, 60, 90)]
    assert abs(middles[0] - 31.5) < 1  # the middle of 64 columns, up to one pixel of antialiasing
    assert np.all(np.diff(middles) > 2)


def test_parts_behind_the_surface_are_hidden(box_with_nose):
    assert columns_of(draw_picture(box_with_nose, 180, elevation=0), 1).size == 0


def test_the_upper_box_is_above_the_lower_box():
    image = draw_picture(
        sample_surface(mesh((box((-1, 0, -1), (1, 1, 1)), RED), (box((-1, 1, -1), (1, 2, 1)), GREEN))), 0
    )
    rows = [np.flatnonzero((image[c] > image[1 - c]).any(axis=1)).mean() for c in (0, 1)]
    assert rows[1] < rows[0]


def test_a_quarter_turn_swaps_width_and_depth():
    # A box, and a box with width and depth exchanged. The sizes put no edge on the border of a subpixel.
    wide = sample_surface(mesh((box((-1, -0.6, -0.37), (1, 0.6, 0.37)), RED)))
    deep = sample_surface(mesh((box((-0.37, -0.6, -1), (0.37, 0.6, 1)), RED)))
    np.testing.assert_array_equal(silhouette(draw_picture(wide, 0)), silhouette(draw_picture(deep, 90)))
    np.testing.assert_array_equal(silhouette(draw_picture(wide, 90)), silhouette(draw_picture(deep, 0)))


def test_from_above_a_quarter_turn_rotates_the_image():
    # An asymmetric L of two boxes, so that a wrong sense of rotation is detected. Light has no effect on a flat top.
    # Seen from above, the front is at the bottom and turns to the right: rot90.
    shape = mesh((box((-1, 0, -0.9), (-0.45, 0.2, 0.93)), RED), (box((-0.45, 0, 0.4), (0.77, 0.2, 0.93)), RED))
    cloud = sample_surface(shape, elevation=90)
    at_0, at_90 = (silhouette(draw_picture(cloud, yaw, elevation=90)) for yaw in (0, 90))
    assert (at_0 != at_90).mean() > 0.1
    # Points on the borders of subpixels may be on either side, which affects less than 1 % of the pixels.
    assert (np.rot90(at_0) != at_90).mean() < 0.01


@pytest.mark.parametrize("yaw", [0, 17, 45, 90])
@pytest.mark.parametrize("elevation", [0, 20])
def test_a_surface_has_no_holes(yaw, elevation):
    shell, core = box((-1, -1, -1), (1, 1, 1)), box((-0.97, -0.97, -0.97), (0.97, 0.97, 0.97))
    image = draw_picture(
        sample_surface(mesh((shell, RED), (core, GREEN)), fine=1, size=192), yaw, elevation=elevation, fine=1, size=192
    )
    assert silhouette(image).mean() > 0.2
    assert columns_of(image, 1).size == 0  # green would be visible through a hole of one subpixel


@pytest.mark.parametrize("spokes", [5, 24, 300])
def test_a_fan_of_thin_triangles_has_no_hole(spokes):
    turn = np.linspace(0, 2 * np.pi, spokes + 1)
    rim = np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
    disc = np.stack([0 * rim[1:], rim[:-1], rim[1:]], axis=1)
    options = {"size": 192, "fine": 1, "elevation": 0.0}
    behind = box((-0.5, -0.5, -0.3), (0.5, 0.5, -0.1))
    image = draw_picture(sample_surface(mesh((disc, RED), (behind, GREEN)), **options), 0, **options)
    assert columns_of(image, 1).size == 0
    assert columns_of(image, 0).size > 100


def test_a_thin_triangle_is_covered_along_its_length():
    sliver = np.array([[[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.004, 0.0]]])
    image = draw_picture(sample_surface(mesh((sliver, RED))), 0, elevation=0)
    assert silhouette(image).any(axis=0)[3:-3].all()


@pytest.mark.parametrize("yaw", [0, 33, 90])
def test_every_yaw_fits_into_the_image(yaw):
    image = draw_picture(sample_surface(mesh((box((-1, -3, -0.5), (1, 3, 2.5)), RED))), yaw)
    filled = silhouette(image)
    assert not filled[[0, -1]].any()
    assert not filled[:, [0, -1]].any()


def test_equal_clouds_give_equal_bytes(box_with_nose):
    np.testing.assert_array_equal(draw_picture(box_with_nose, 12.3), draw_picture(box_with_nose, 12.3))
