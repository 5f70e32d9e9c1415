"""Public names for type checkers: `isotrope/nn/__init__.py` loads them when they are first used."""

from isotrope.nn.monitor import GeometryMonitor as GeometryMonitor
from isotrope.nn.regularizers import ExpDecay as ExpDecay
from isotrope.nn.regularizers import IsoScoreStar as IsoScoreStar
from isotrope.nn.regularizers import MeanCosineLoss as MeanCosineLoss
from isotrope.nn.regularizers import WhiteningLoss as WhiteningLoss
from isotrope.nn.regularizers import regularize as regularize
from isotrope.nn.soft_quantizer import PatchinessLoss as PatchinessLoss
from isotrope.nn.soft_quantizer import soft_kmeans as soft_kmeans
from isotrope.softdecay.attach import attach as attach
from isotrope.softdecay.attach import detach as detach
from isotrope.softdecay.layer import SoftDecay as SoftDecay
from isotrope.softdecay.layer import parameter_groups as parameter_groups
from isotrope.softdecay.restore import restore as restore
from isotrope.softdecay.spectral import soft_decay as soft_decay
