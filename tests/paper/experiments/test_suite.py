"""Suites are read from files, and unknown names in them raise errors."""

import pytest

from pyspar.errors import InputError
from pyspar.paper.experiments.suite import list_suite_names, parse_suite, read_suite
from pyspar.paper.runs.run_suite import Options

BLOCK = {"task": "skillcraft", "network": "mlp", "config": {"epochs": 1}, "methods": {"ERM": {}}}
RAW = {"title": "t", "kind": "methods", "about": "a", "seeds": 2, "block": [BLOCK]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"methods": {"CMixup": {}}}, "method in suite x: 'CMixup'.*'C-Mixup'"),
        ({"network": "resnet19"}, "network in suite x: 'resnet19'.*'resnet18'"),
        ({"netwrok": "mlp"}, "suite x: .*'netwrok'"),
    ],
)
def test_a_misspelt_name_in_a_block_raises_an_error(changed, message):
    with pytest.raises(InputError, match=message):
        parse_suite("x", {**RAW, "block": [{**BLOCK, **changed}]})


def test_every_suite_can_be_read_and_its_specs_have_different_keys():
    for name in list_suite_names():
        suite = read_suite(name)
        specs = suite.specs(suite.seeds, "cpu", lambda tasks: tasks[0])
        assert len({spec.key for spec in specs}) == len(specs)
        for block in suite.blocks:
            seeds = [spec.seed for spec in specs if spec.task in block.tasks]
            assert set(seeds) == set(range(suite.seeds))


def test_folds_are_assigned_to_the_seeds_in_turn():
    suite = read_suite("povertymap")
    specs = [s for s in suite.specs(7, "cpu", lambda tasks: tasks[0]) if s.objective == "ERM"]
    assert [(s.options["fold"], s.seed) for s in specs] == list(zip("ABCDEAB", range(7)))


def test_alpha_and_rank_cut_share_the_networks_of_tabular():
    options = Options()
    keys = {spec.key for spec in options.specs(read_suite("tabular"))}
    assert {spec.key for spec in options.specs(read_suite("alpha"))} < keys
    assert {spec.key for spec in options.specs(read_suite("rank-cut"))} == keys
