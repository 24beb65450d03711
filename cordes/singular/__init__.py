"""Singular functions in two dimensions: where solutions are rough although the data are not."""

from cordes.singular.charts import curves as curves
from cordes.singular.functions import SingularFunctions as SingularFunctions
from cordes.singular.points import SingularPoint as SingularPoint
from cordes.singular.points import find_singular_points as find_singular_points
