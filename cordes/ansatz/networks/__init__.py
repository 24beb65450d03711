"""Networks: features times coefficients, with hand-written jets."""

from cordes.ansatz.networks.inputs import Inputs as Inputs
from cordes.ansatz.networks.mlp import MLP as MLP
from cordes.ansatz.networks.network import AbstractNetwork as AbstractNetwork
from cordes.ansatz.networks.network import Frozen as Frozen
from cordes.ansatz.networks.random_features import RandomFeatures as RandomFeatures
