"""Networks: features times coefficients, with hand-written jets."""

from cordes.networks.inputs import Inputs as Inputs
from cordes.networks.mlp import MLP as MLP
from cordes.networks.network import AbstractNetwork as AbstractNetwork
from cordes.networks.network import Frozen as Frozen
from cordes.networks.random_features import RandomFeatures as RandomFeatures
