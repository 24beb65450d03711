"""Singular functions in two dimensions: where solutions are rough although the data are not."""

from cordes.ansatz.singular.charts import curves as curves
from cordes.ansatz.singular.functions import SingularFunctions as SingularFunctions
from cordes.ansatz.singular.points import SingularPoint as SingularPoint
from cordes.ansatz.singular.points import find_singular_points as find_singular_points
