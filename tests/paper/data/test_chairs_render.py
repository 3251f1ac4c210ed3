"""Chair models and their images: the catalogue, faces, colours, the sense of rotation, and surfaces."""

import zipfile

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.chairs.render import FOLDER, chair_models, draw_picture, read_triangles, sample_surface

MATERIALS = "newmtl red\nKd 1 0 0\nnewmtl green\nKd 0 1 0\n"


def box(low, high, material, first):
    """Return a box as OBJ text. ``first`` is the number of its first corner."""
    corners = [
        [(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)
    ]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"usemtl {material}"]
    return "\n".join(lines + ["f " + " ".join(f"{first + i}/1" for i in quad) for quad in quads]) + "\n"


BODY = box((-1, -1, -1), (1, 1, 1), "red", 1)
NOSE = box((-0.2, -0.2, 1), (0.2, 0.2, 2), "green", 9)


def write_model(folder, obj, rotation="1 0 0 0 1 0 0 0 1"):
    """Write a catalogue with a chair and a table, and return the chair."""
    listed = f"id#1=a\nname#1=Oak \\\n  chair\nmodel#1=/m/a.obj\nmodelRotation#1={rotation}\n"
    listed += "id#2=b\nname#2=Table\nmodel#2=/m/a.obj\n"
    with zipfile.ZipFile(folder / "test.sh3f", "w") as archive:
        archive.writestr("PluginFurnitureCatalog.properties", listed)
        archive.writestr("m/a.obj", "mtllib a.mtl\n" + obj)
        archive.writestr("m/a.mtl", MATERIALS)
    (chair,) = chair_models(folder)
    assert (chair.id, chair.name) == ("a", "Oak chair")
    return chair


def silhouette(image):
    return (image < 255).any(axis=0)


def columns_of(image, channel):
    """Return the columns where a colour dominates."""
    others = [c for c in range(3) if c != channel]
    return np.flatnonzero((image[channel].astype(int) > image[others].max(axis=0).astype(int) + 60).any(axis=0))


def test_faces_become_triangles_with_colours_and_the_rotation_is_applied(tmp_path):
    corners, colours = read_triangles(write_model(tmp_path, BODY + NOSE, "0 0 1 0 1 0 -1 0 0"))
    assert corners.shape == (24, 3, 3)
    np.testing.assert_array_equal(colours[[0, -1]], [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(corners[12:].max(axis=(0, 1)), [2, 0.2, 0.2])  # x' = z: the nose points to the right
    relative, _ = read_triangles(write_model(tmp_path, "v 0 0 0\nv 1 0 0\nv 1 1 0\nf -3 -2 -1\n"))
    np.testing.assert_array_equal(relative[0], [[0, 0, 0], [1, 0, 0], [1, 1, 0]])
    with pytest.raises(InputError, match="no faces"):
        read_triangles(write_model(tmp_path, "v 0 0 0\n"))


def test_the_front_faces_the_viewer_at_yaw_0_turns_to_the_right_and_hides_behind(tmp_path):
    cloud = sample_surface(write_model(tmp_path, BODY + NOSE))
    middles = [columns_of(draw_picture(cloud, yaw), 1).mean() for yaw in (0, 30, 60, 90)]
    assert abs(middles[0] - 31.5) < 1  # the middle of 64 columns, up to one pixel
    assert np.all(np.diff(middles) > 2)
    assert columns_of(draw_picture(cloud, 180), 1).size == 0
    np.testing.assert_array_equal(draw_picture(cloud, 12.3), draw_picture(cloud, 12.3))


@pytest.mark.parametrize("yaw", [0, 33, 90])
def test_every_yaw_fits_into_the_image_and_has_few_holes(tmp_path, yaw):
    core = box((-0.9, -2.9, -0.4), (0.9, 2.9, 2.4), "green", 9)
    image = draw_picture(sample_surface(write_model(tmp_path, box((-1, -3, -0.5), (1, 3, 2.5), "red", 1) + core)), yaw)
    filled = silhouette(image)
    assert filled.mean() > 0.15
    assert not filled[[0, -1]].any()
    assert not filled[:, [0, -1]].any()
    green = image[1].astype(int) > image[0].astype(int)
    assert (green & filled).mean() < 0.05 * filled.mean()  # the core, seen through a hole


def test_the_upper_box_is_above_the_lower_box(tmp_path):
    obj = box((-1, 0, -1), (1, 1, 1), "red", 1) + box((-1, 1, -1), (1, 2, 1), "green", 9)
    image = draw_picture(sample_surface(write_model(tmp_path, obj)), 0)
    rows = [np.flatnonzero((image[c].astype(int) > image[1 - c].astype(int) + 60).any(axis=1)).mean() for c in (0, 1)]
    assert rows[1] < rows[0]


def test_missing_and_broken_catalogues_raise(tmp_path):
    with pytest.raises(MissingDataError, match="apt-get install sweethome3d-furniture"):
        chair_models(tmp_path)
    (tmp_path / "broken.sh3f").write_bytes(b"not a zip")
    with pytest.raises(InputError, match=r"broken\.sh3f"):
        chair_models(tmp_path)


@pytest.mark.skipif(not any(FOLDER.glob("*.sh3f")), reason="needs the Debian package sweethome3d-furniture")
def test_the_chairs_of_the_package_are_upright():
    chairs = chair_models()
    assert len(chairs) > 50
    oak = read_triangles(next(c for c in chairs if c.id.endswith("#oakChair")))[0].reshape(-1, 3)
    width, height, depth = np.ptp(oak, axis=0)
    # The catalogue has width, depth and height 49.1, 61.2 and 117.8 cm. The OBJ file has another scale.
    np.testing.assert_allclose([width / height, depth / height], [49.1 / 117.8, 61.2 / 117.8], rtol=0.01)
