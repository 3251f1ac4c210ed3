"""The theorems and rules of the paper as functions.

Start from the spectra of source and target, ``Spectrum.of(X)`` and ``Spectrum.of(Z)``:

================================  ==================================================================
``variance_terms``, ``bias_terms``  the expected error of keeping, and of removing, each target direction
``ols_risk``                      Theorem 1: the expected target error of least squares
``projected_risk``                Theorem 2: the same after removing a set of directions
``oracle_rule``                   Theorem 3: the best set, given the true weights
``spectral_inflation``            the quantity of the spectral inflation figure
``chi2_rule``, ``top_k_rule``     sets that do not need the true weights
``inclusion_probability``         Proposition 1 and Lemma 1: the probability that the rule removes a direction
``level_with_mle``                the same for a direction of weight zero, if the noise estimate is RSS / N
``flat_belief``, ``ridge_belief``   an estimate of the weights with its uncertainty: least squares, or ridge
``outside_share``                 the share of each target direction outside the span of the source
================================  ==================================================================

>>> import numpy as np
>>> from pyspar.theory import Spectrum, ols_risk
>>> source, target = np.diag([5.0, 0.01]), np.diag([1.0, 6.0])
>>> ols_risk(Spectrum.of(source), Spectrum.of(target), sigma2=1.0).round(2)    # 6^2 / 0.01^2 + 1^2 / 5^2
array([360000.04])
"""

from pyspar.core.adapt import Adaptation, adapt
from pyspar.core.belief import FlatBelief, flat_belief
from pyspar.core.evidence import Evidence
from pyspar.core.moments import Moments
from pyspar.core.ridge import RidgeBelief, ridge_belief
from pyspar.core.risk import (
    bias_terms,
    inclusion_probability,
    level_with_mle,
    ols_risk,
    oracle_rule,
    projected_risk,
    spectral_inflation,
    variance_terms,
)
from pyspar.core.rules import Terms, chi2_rule, keep_rule, terms_of, top_k_rule
from pyspar.core.spectrum import Spectrum, outside_share

__all__ = [
    "Adaptation",
    "Evidence",
    "FlatBelief",
    "Moments",
    "RidgeBelief",
    "Spectrum",
    "Terms",
    "adapt",
    "bias_terms",
    "chi2_rule",
    "flat_belief",
    "inclusion_probability",
    "keep_rule",
    "level_with_mle",
    "ols_risk",
    "oracle_rule",
    "outside_share",
    "projected_risk",
    "ridge_belief",
    "spectral_inflation",
    "terms_of",
    "top_k_rule",
    "variance_terms",
]
