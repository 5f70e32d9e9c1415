"""Every claim of a study gets its outcome from the rule for verdicts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import isotrope

STUDIES = Path(isotrope.__file__).parent / "studies"
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(STUDIES.rglob("*.py"))}

#: Outcomes that need no evidence.
WITHOUT_EVIDENCE = {"note", "misprint", "undecided"}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


#: Functions and methods of the studies that return an outcome.
JUDGES = {
    node.name
    for tree in TREES.values()
    for node in functions(tree)
    if node.returns is not None and ast.unparse(node.returns) == "Outcome"
}


def judged_names(tree: ast.Module) -> set[str]:
    """Names in a module that hold an outcome: parameters that are annotated so, and results of judges."""
    arguments = [arg for node in functions(tree) for arg in (*node.args.args, *node.args.kwonlyargs)]
    found = {arg.arg for arg in arguments if arg.annotation is not None and ast.unparse(arg.annotation) == "Outcome"}
    for node in [*ast.walk(tree), *ast.walk(tree)]:  # again, as a name may be given on to another
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_judged(node.value, found):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {ast.unparse(target) for target in targets}
    return found


def is_judged(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.IfExp):
        return is_judged(node.body, names) and is_judged(node.orelse, names)
    if isinstance(node, ast.Constant):
        return node.value in WITHOUT_EVIDENCE
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in JUDGES
    return isinstance(node, ast.Name) and node.id in names


def claims(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Claim" and node.args:
            yield node


def test_no_claim_has_an_outcome_of_its_own() -> None:
    wrong = [
        f"{path.relative_to(STUDIES)}:{call.lineno}: {ast.unparse(call.args[0])}"
        for path, tree in TREES.items()
        for call in claims(tree)
        if not is_judged(call.args[0], judged_names(tree))
    ]
    assert wrong == []


def test_claims_and_judges_are_found_at_all() -> None:
    assert sum(1 for tree in TREES.values() for _ in claims(tree)) > 60
    assert {"judge_interval", "judge_equal", "judge_test", "judge_exact", "judge_print"} <= JUDGES
    (made,) = claims(ast.parse("Claim('agrees', 'text')"))
    assert not is_judged(made.args[0], set())
