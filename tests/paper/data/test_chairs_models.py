"""Furniture catalogues: the list of chairs, and the rotation, faces and materials of a model."""

import io
import zipfile

import numpy as np
import pytest

from pyspar.errors import InputError, MissingDataError
from pyspar.paper.data.chairs.models import FOLDER, chair_models, read_mesh

CUBE = """
mtllib cube.mtl
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
v 0 0 1
v 1 0 1
v 1 1 1
v 0 1 1
vt 0.25 0.5
usemtl red
f 1/1 2/1 3/1 4/1
f -4 -3 -2 -1
usemtl blue
f 1 2 6 5
f 2 3 7 6
usemtl ghost
f 3 4 8 7
usemtl pattern
f 4/-1/1 1/-1/1 5/-1/1 8/-1/1
"""
COLOURS = """
newmtl red
Kd 1 0 0
newmtl blue
Kd 0 0 1
newmtl ghost
d 0
newmtl pattern
Kd 1 1 1
map_Kd half.png
"""
PIECES = """
license=Creative \\
  Commons Zero
id#1=Test#cube
name#1=Cubic chair
creator#1=Zo\\u00eb
model#1=/cube/cube.obj
modelRotation#1=0 0 1 0 1 0 -1 0 0
id#2=Test#table
name#2=Table
model#2=/cube/cube.obj
"""


@pytest.fixture
def folder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    half = np.zeros((4, 4, 3), np.uint8)
    half[:2] = 255  # white above black
    picture = io.BytesIO()
    image.fromarray(half).save(picture, "PNG")
    with zipfile.ZipFile(tmp_path / "test.sh3f", "w") as archive:
        archive.writestr("PluginFurnitureCatalog.properties", PIECES)
        archive.writestr("cube/cube.obj", CUBE)
        archive.writestr("cube/cube.mtl", COLOURS)
        archive.writestr("cube/half.png", picture.getvalue())
    return tmp_path


def test_only_chairs_are_listed_with_author_and_licence(folder):
    (chair,) = chair_models(folder)
    assert (chair.id, chair.name, chair.creator) == ("Test#cube", "Cubic chair", "Zoë")
    assert chair.licence == "Creative Commons Zero"


def test_faces_with_four_corners_become_two_triangles_and_invisible_faces_are_dropped(folder):
    mesh = read_mesh(chair_models(folder)[0])
    assert mesh.corners.shape == (2 * 5, 3, 3)
    area = np.linalg.norm(
        np.cross(mesh.corners[:, 1] - mesh.corners[:, 0], mesh.corners[:, 2] - mesh.corners[:, 0]), axis=1
    )
    np.testing.assert_array_equal(area / 2, 0.5)


def test_a_negative_number_counts_corners_from_the_end(folder):
    corners = read_mesh(chair_models(folder)[0]).corners[2:4].reshape(-1, 3)
    np.testing.assert_array_equal(corners[:, 0], 1)  # the face z = 1 in the file is rotated to x = 1


def test_the_rotation_of_the_catalogue_is_applied_row_by_row(folder):
    points = read_mesh(chair_models(folder)[0]).corners.reshape(-1, 3)
    np.testing.assert_array_equal(points.min(axis=0), [0, 0, -1])  # x' = z, y' = y, z' = -x
    np.testing.assert_array_equal(points.max(axis=0), [1, 1, 0])


def test_a_material_is_a_colour_or_a_texture_whose_first_row_is_the_bottom(folder):
    mesh = read_mesh(chair_models(folder)[0])
    np.testing.assert_array_equal(mesh.textures[mesh.material[0]], [[[1, 0, 0]]])
    np.testing.assert_array_equal(mesh.textures[mesh.material[4]], [[[0, 0, 1]]])
    pattern = mesh.textures[mesh.material[-1]]
    np.testing.assert_array_equal(pattern[:, 0, 0], [0, 0, 1, 1])
    np.testing.assert_array_equal(mesh.texture_at[-1], [[0.25, 0.5]] * 3)


def test_a_folder_without_catalogues_raises_with_the_install_command(tmp_path):
    with pytest.raises(MissingDataError, match="apt-get install sweethome3d-furniture"):
        chair_models(tmp_path)


def test_a_file_that_is_not_a_catalogue_raises(tmp_path):
    (tmp_path / "broken.sh3f").write_bytes(b"not a zip")
    with pytest.raises(InputError, match=r"broken\.sh3f"):
        chair_models(tmp_path)


@pytest.mark.skipif(not any(FOLDER.glob("*.sh3f")), reason="needs the Debian package sweethome3d-furniture")
def test_every_chair_of_the_package_has_an_author_and_is_upright():
    chairs = chair_models()
    assert len(chairs) == 66
    assert all("Public domain" in c.licence or "Creative Commons Attribution 3.0" in c.licence for c in chairs)
    assert all(c.creator != "unknown" for c in chairs)
    oak = read_mesh(next(c for c in chairs if c.id.endswith("#oakChair"))).corners.reshape(-1, 3)
    width, height, depth = np.ptp(oak, axis=0)
    # The catalogue has width, depth and height 49.1, 61.2 and 117.8 cm. The OBJ file has another scale.
    np.testing.assert_allclose([width / height, depth / height], [49.1 / 117.8, 61.2 / 117.8], rtol=0.01)
