"""The records of alignment: labels choose among networks, and the page of results follows from the records."""

import numpy as np
import pytest

pytest.importorskip("benchmarks.align", reason="the benchmarks are not part of an installed package")
pytest.importorskip("torch")

from benchmarks.align.page import make_page
from benchmarks.align.records import Records, read
from benchmarks.align.run import LABELS, WITH_LABELS, WORST, use_labels
from benchmarks.records import RESULTS


def test_the_page_is_that_of_the_records():
    text = (RESULTS / "align.md").read_text(encoding="utf-8")
    assert text == make_page(read(RESULTS / "align.csv.gz"))


def test_labels_choose_the_better_network_and_are_not_judged_on_their_own_rows(rng):
    features = rng.normal(size=(400, 4))
    truth = rng.normal(size=400)  # no feature has anything to do with it
    noise = rng.normal(size=(2, 400)) * [[1.0], [0.1]]
    predictions = {"trained": truth + 3.0 + noise[0], "aligned": truth + noise[1], "spar": truth + 3.0 + noise[0]}
    errors = {name: (error, before) for name, error, before in use_labels(features, predictions, truth, seed=0)}
    assert set(errors) == {f"{w}{name}, {n} labels" for w in ("", WORST) for name in WITH_LABELS for n in LABELS}
    for n in LABELS:
        choice, both, alone = (errors[f"{name}, {n} labels"] for name in WITH_LABELS)
        assert choice == pytest.approx((0.1, np.sqrt(10.0)), rel=0.2)
        assert both[0] == pytest.approx(0.1, rel=0.3)
        assert 0.7 < alone[0] < 1.2, "the offset is corrected, the noise is not"
        assert all(
            errors[WORST + f"{name}, {n} labels"][0] >= 0.9 * errors[f"{name}, {n} labels"][0] for name in WITH_LABELS
        )


def test_records_are_appended_and_later_ones_replace_earlier_ones(tmp_path):
    row = next(row for row in read(RESULTS / "align.csv.gz") if row.method == "aligned" and row.part == "garments")
    records = Records(tmp_path / "align.csv.gz")
    records.add([row])
    records.add([row._replace(rmse=0.5)])
    assert records.has(*row[:6])
    assert read(records.path) == [row, row._replace(rmse=0.5)]
    assert records.sort() == [row._replace(rmse=0.5)] == read(records.path)
