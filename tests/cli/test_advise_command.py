"""isotrope advise: words, a table, JSON, and the repair saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from command import Command, one_sentence


def test_on_the_command_line(isotrope: Command) -> None:
    rng = np.random.default_rng(0)
    np.save("drift.npy", (rng.normal(size=(600, 16)) + 5).astype(np.float32))
    np.save("even.npy", rng.normal(size=(600, 16)).astype(np.float32))
    result = isotrope("advise", "drift.npy", "-o", "repair")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Repair it by Centering()")
    assert "isotrope repair show repair" in result.out
    assert isotrope("repair", "apply", "repair", "drift.npy", "-o", "out.npy").code == 0
    document = isotrope("advise", "--vectors", "even.npy", "--json", "-o", "none").json
    assert (document["advice"], document["evidence"], document["rows"]) == ("none", "geometry", 600)
    assert not Path("none").exists()
    assert "never written over" in one_sentence(isotrope("advise", "drift.npy", "-o", "repair"))
    assert "600 rows" not in one_sentence(isotrope("advise", "nosuch.npy"))
    assert "neither" in one_sentence(isotrope("advise"))
