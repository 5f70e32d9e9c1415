"""Repairs: fitted once, saved, and applied to rows never seen."""

from isotrope.repairs.affine import Affine, Map
from isotrope.repairs.apply import apply_to_file, apply_to_store
from isotrope.repairs.centering import AllButTheTop, Centering
from isotrope.repairs.clusters import ClusterIsotropy
from isotrope.repairs.effects.risks import Gains, find_risks
from isotrope.repairs.flow import Flow
from isotrope.repairs.query_rounding import QueryRounding, measure_query_rounding
from isotrope.repairs.repair import REPAIRS, Repair, load_repair, named, repair
from isotrope.repairs.softdecay import ALPHAS, SoftDecay, search_alpha, soft_decay
from isotrope.repairs.whitening import Whitening
from isotrope.runs.saved_statistics import saved_moments, saved_summary
from isotrope.statistics.cutoff_transfer import CUTOFFS, Cutoff, translate

__all__ = [
    "ALPHAS",
    "CUTOFFS",
    "REPAIRS",
    "Affine",
    "AllButTheTop",
    "Centering",
    "ClusterIsotropy",
    "Cutoff",
    "Flow",
    "Gains",
    "Map",
    "QueryRounding",
    "Repair",
    "SoftDecay",
    "Whitening",
    "apply_to_file",
    "apply_to_store",
    "find_risks",
    "load_repair",
    "measure_query_rounding",
    "named",
    "repair",
    "saved_moments",
    "saved_summary",
    "search_alpha",
    "soft_decay",
    "translate",
]
