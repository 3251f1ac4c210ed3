"""The renderer: where things appear, which way they turn, and that no surface has holes."""

import numpy as np
import pytest

from pyspar.paper.data.chairs.models import Mesh
from pyspar.paper.data.chairs.render import cloud_of, picture

RED, GREEN = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def box(low, high):
    """The twelve triangles of a box."""
    low, high = np.array(low, float), np.array(high, float)
    corner = [low + (high - low) * [i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return np.array([[corner[a], corner[b], corner[c]] for q in quads for a, b, c in (q[:3], (q[0], q[2], q[3]))])


def mesh(*coloured):
    """A mesh of (triangles, colour)."""
    corners = np.concatenate([triangles for triangles, _ in coloured])
    material = np.repeat(np.arange(len(coloured)), [len(triangles) for triangles, _ in coloured])
    textures = tuple(np.array(colour).reshape(1, 1, 3) for _, colour in coloured)
    return Mesh(corners, np.zeros((len(corners), 3, 2)), material, textures)


def silhouette(image):
    return (image < 255).any(axis=0)


def columns_of(image, channel):
    """Columns where a colour dominates."""
    others = [c for c in range(3) if c != channel]
    return np.flatnonzero((image[channel].astype(int) > image[others].max(axis=0).astype(int) + 60).any(axis=0))


@pytest.fixture(scope="module")
def nosed():
    """A red body with a green nose in front of it."""
    return cloud_of(mesh((box((-1, -1, -1), (1, 1, 1)), RED), (box((-0.2, -0.2, 1), (0.2, 0.2, 2)), GREEN)))


def test_the_front_faces_the_viewer_at_yaw_0_and_turns_to_the_right(nosed):
    middles = [columns_of(picture(nosed, yaw), 1).mean() for yaw in (0, 30, 60, 90)]
    assert abs(middles[0] - 31.5) < 1  # the middle of 64 columns; a pixel for antialiasing
    assert np.all(np.diff(middles) > 2)


def test_what_is_behind_is_hidden(nosed):
    assert columns_of(picture(nosed, 180, elevation=0), 1).size == 0


def test_up_is_up():
    image = picture(cloud_of(mesh((box((-1, 0, -1), (1, 1, 1)), RED), (box((-1, 1, -1), (1, 2, 1)), GREEN))), 0)
    rows = [np.flatnonzero((image[c] > image[1 - c]).any(axis=1)).mean() for c in (0, 1)]
    assert rows[1] < rows[0]


def test_a_quarter_turn_swaps_width_and_depth():
    # A box and the same with width and depth swapped; sizes that put no edge on the border of a fine pixel.
    wide = cloud_of(mesh((box((-1, -0.6, -0.37), (1, 0.6, 0.37)), RED)))
    deep = cloud_of(mesh((box((-0.37, -0.6, -1), (0.37, 0.6, 1)), RED)))
    np.testing.assert_array_equal(silhouette(picture(wide, 0)), silhouette(picture(deep, 90)))
    np.testing.assert_array_equal(silhouette(picture(wide, 90)), silhouette(picture(deep, 0)))


def test_from_above_a_quarter_turn_is_the_picture_turned():
    # An L of two boxes, off centre so that no symmetry hides a wrong sense; light comes from the viewer's left and
    # changes nothing on a flat top. Seen from above the front is at the bottom and turns to the right: rot90.
    shape = mesh((box((-1, 0, -0.9), (-0.45, 0.2, 0.93)), RED), (box((-0.45, 0, 0.4), (0.77, 0.2, 0.93)), RED))
    cloud = cloud_of(shape, elevation=90)
    at_0, at_90 = (silhouette(picture(cloud, yaw, elevation=90)) for yaw in (0, 90))
    assert (at_0 != at_90).mean() > 0.1
    # Points fall on borders of fine pixels from one side or the other: allow the outline's pixels, under 1 %.
    assert (np.rot90(at_0) != at_90).mean() < 0.01


@pytest.mark.parametrize("yaw", [0, 17, 45, 90])
@pytest.mark.parametrize("elevation", [0, 20])
def test_a_surface_has_no_holes(yaw, elevation):
    shell, core = box((-1, -1, -1), (1, 1, 1)), box((-0.97, -0.97, -0.97), (0.97, 0.97, 0.97))
    image = picture(
        cloud_of(mesh((shell, RED), (core, GREEN)), fine=1, size=192), yaw, elevation=elevation, fine=1, size=192
    )
    assert silhouette(image).mean() > 0.2
    assert columns_of(image, 1).size == 0  # green would shine through a single hole of one fine pixel


@pytest.mark.parametrize("spokes", [5, 24, 300])
def test_the_needles_of_a_fan_meet_without_a_hole(spokes):
    turn = np.linspace(0, 2 * np.pi, spokes + 1)
    rim = np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
    disc = np.stack([0 * rim[1:], rim[:-1], rim[1:]], axis=1)
    drawn = {"size": 192, "fine": 1, "elevation": 0.0}
    behind = box((-0.5, -0.5, -0.3), (0.5, 0.5, -0.1))
    image = picture(cloud_of(mesh((disc, RED), (behind, GREEN)), **drawn), 0, **drawn)
    assert columns_of(image, 1).size == 0
    assert columns_of(image, 0).size > 100


def test_a_sliver_is_covered_along_its_length():
    sliver = np.array([[[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.004, 0.0]]])
    image = picture(cloud_of(mesh((sliver, RED))), 0, elevation=0)
    assert silhouette(image).any(axis=0)[3:-3].all()


@pytest.mark.parametrize("yaw", [0, 33, 90])
def test_every_yaw_fits_into_the_picture(yaw):
    image = picture(cloud_of(mesh((box((-1, -3, -0.5), (1, 3, 2.5)), RED))), yaw)
    filled = silhouette(image)
    assert not filled[[0, -1]].any()
    assert not filled[:, [0, -1]].any()


def test_the_same_cloud_gives_the_same_bytes(nosed):
    np.testing.assert_array_equal(picture(nosed, 12.3), picture(nosed, 12.3))
