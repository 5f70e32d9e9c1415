"""Parameters in groups for an optimizer: the number of a SoftDecay layer learns at a rate of its own."""

from __future__ import annotations

from typing import Any

from isotrope.softdecay.layer import SoftDecay


def parameter_groups(
    model: Any, lr: float = 2e-5, softdecay_lr: float = 2e-3, weight_decay: float = 0.0
) -> list[dict[str, Any]]:
    """Groups for any optimizer of torch: matrices with weight decay, vectors without, and α of SoftDecay.

    Frozen parameters are left out. The rates are the paper's: one number has farther to go than a pretrained matrix,
    and a decay would pull it to −0.5. Paper: Yan et al. 2022, Appendix B.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 3), SoftDecay())
    >>> groups = parameter_groups(model, weight_decay=0.1)
    >>> [(len(group["params"]), group["lr"], group["weight_decay"]) for group in groups]
    [(1, 2e-05, 0.1), (1, 2e-05, 0.0), (1, 0.002, 0.0)]
    """
    own = {id(p) for module in model.modules() if isinstance(module, SoftDecay) for p in module.parameters()}
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        ([p for p in trained if p.ndim > 1], lr, weight_decay),
        ([p for p in trained if p.ndim <= 1 and id(p) not in own], lr, 0.0),
        ([p for p in trained if id(p) in own], softdecay_lr, 0.0),
    ]
    return [{"params": params, "lr": rate, "weight_decay": decay} for params, rate, decay in groups if params]
