"""Noisy views of tables and images, and the random numbers behind them."""

import math

import pytest

torch = pytest.importorskip("torch", reason="needs: pip install 'pyspar[torch]'")

from pyspar import InputError  # noqa: E402
from pyspar.paper.objectives.augment import (  # noqa: E402
    ImageNoise,
    TableNoise,
    choose_view,
    draw_normals,
    draw_uniforms,
)


def clean(x, seed, stream):
    return x


def test_random_numbers_are_uniform_or_normal_and_uncorrelated():
    """With 20,000 draws, means are within five standard errors, and lags and neighbouring seeds are uncorrelated."""
    n = 20_000
    u, v = draw_uniforms(torch.tensor([1, 2]), (n,)).double()
    assert ((u > 0) & (u < 1)).all()
    assert abs(float(u.mean()) - 0.5) < 5 / math.sqrt(12 * n)
    counts = torch.histc(u, bins=20, min=0, max=1)
    assert float(((counts - n / 20) ** 2 / (n / 20)).sum()) < 50  # chi-squared with 19 degrees: 50 is beyond 0.9999
    for other in (v, u.roll(1), draw_uniforms(torch.tensor(1), (n,), 1).double()):
        assert abs(float(torch.corrcoef(torch.stack([u, other]))[0, 1])) < 5 / math.sqrt(n)
    z = draw_normals(torch.tensor(1), (n,)).double()
    assert abs(float(z.mean())) < 5 / math.sqrt(n)
    assert abs(float(z.var()) - 1) < 5 * math.sqrt(2 / n)


def test_a_seed_draws_the_same_alone_and_stacked_and_as_float32():
    seeds = torch.tensor([2**24 - 1, 5])
    together = draw_uniforms(seeds, (4, 3), 2)
    assert torch.equal(together[0], draw_uniforms(seeds[0], (4, 3), 2))
    assert torch.equal(together, draw_uniforms(seeds.float(), (4, 3), 2))


def test_table_noise_is_proportional_to_the_spread_of_each_feature():
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1e-3, 1.0, 1e3])
    x[:, 1] = 5.0  # a constant feature must not change
    seed = torch.tensor(1)
    change = TableNoise(noise=0.2, mask=0.0)(x, seed) - x
    torch.testing.assert_close(change[:, [0, 2]].std(dim=0), 0.2 * x[:, [0, 2]].std(dim=0), rtol=0.06, atol=0)
    assert (change[:, 1] == 0).all()
    masked = TableNoise(noise=0.0, mask=0.3)(x, seed)
    share = (masked[:, 0] != x[:, 0]).float().mean()
    assert abs(float(share) - 0.3) < 5 * math.sqrt(0.21 / 4000)
    assert torch.equal(TableNoise(0.0, 0.0)(x, seed), x)


def test_image_noise_of_zero_returns_the_image():
    x = torch.rand(5, 2, 12, 9, generator=torch.Generator().manual_seed(0))
    view = ImageNoise(crop=1.0, shift=0.0, jitter=0.0)
    torch.testing.assert_close(view(x, torch.tensor(3)), x, rtol=0, atol=1e-5)
    pixels = (x * 255).to(torch.uint8)
    assert torch.equal(view(pixels, torch.tensor(3)), pixels)


def test_image_noise_shifts_and_mirrors_and_keeps_the_range():
    x = torch.rand(40, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    mirrored = ImageNoise(crop=1.0, shift=0.0, flip=True, jitter=0.0)(x, torch.tensor(0))
    same = [torch.allclose(a, b, atol=1e-5) for a, b in zip(mirrored, x)]
    flipped = [torch.allclose(a, b.flip(-1), atol=1e-5) for a, b in zip(mirrored, x)]
    assert all(s != t for s, t in zip(same, flipped))
    assert 8 < sum(flipped) < 32  # 20 of 40 are expected; five standard deviations are 16
    pixels = (x * 255).to(torch.uint8)
    noisy = ImageNoise(jitter=2.0)(pixels, torch.tensor(0))
    assert noisy.dtype == torch.uint8
    assert noisy.shape == pixels.shape
    assert not torch.equal(noisy, pixels)


def test_stacked_images_equal_each_alone():
    x = torch.rand(2, 4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    seeds, view = torch.tensor([1, 2]), ImageNoise(flip=True)
    torch.testing.assert_close(view(x, seeds, 1)[1], view(x[1], seeds[1], 1))


def test_the_default_view_depends_on_the_shape_of_the_inputs():
    assert choose_view(torch.zeros(4, 3), 0) == TableNoise()
    assert choose_view(torch.zeros(2, 4, 3), 1) == TableNoise()
    assert choose_view(torch.zeros(4, 3, 8, 8), 0) == ImageNoise()
    assert choose_view(torch.zeros(4, 3), 0, clean) is clean
    with pytest.raises(InputError, match=r"\(4, 3, 2\).*augment="):
        choose_view(torch.zeros(4, 3, 2), 0)
    with pytest.raises(InputError, match=r"crop .*0"):
        ImageNoise(crop=0.0)
    with pytest.raises(InputError, match="mask "):
        TableNoise(mask=2.0)
