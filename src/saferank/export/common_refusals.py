"""What formats that score one document by itself cannot hold."""

from collections.abc import Collection

from saferank.export.refusal import CannotExport
from saferank.features.schema import FeatureSchema
from saferank.policy.scorers.parts import ScorerParts

HELD = "`--to onnx` holds it"
NO_TREES = "the model has no trees: it ranks as the current ranker does, so there is nothing to export."


def refuse_scaling(to: str, schema: FeatureSchema) -> None:
    """Refuse features that are scaled per query: the format sees one document at a time."""
    if schema.scaling == "per-query":
        raise CannotExport(
            to, "scaling", "features are scaled among the candidates of a query, and this format scores one document "
            f"by itself; {HELD}, or fit with --scaling none (certify shows what that costs).",
        )  # fmt: skip


def refuse_without_trees(to: str, parts: ScorerParts, network: str, starts: Collection[str] = ("none",)) -> None:
    """Refuse a neural network, with a message of what to do about it, and one of these starts without any tree."""
    if parts.start == "mlp":
        raise CannotExport(to, "start" if parts.forest.trees else "scorer", network)
    if parts.start in starts and not parts.forest.trees:
        raise CannotExport(to, "no trees", NO_TREES)


def refuse_missing(to: str, schema: FeatureSchema) -> None:
    """Refuse what the format cannot do about a missing value: there, it is 0."""
    if schema.indicators:
        message = f"the model has indicators of missing values, and in this format a missing value is 0; {HELD}"
        raise CannotExport(to, "indicators", f"{message}, or fit with --missing 0.")
    if schema.missing not in ("error", "indicator", 0):
        message = f"a missing value is {schema.missing:g} in the model, and 0 in this format; {HELD}"
        raise CannotExport(to, "missing", f"{message}, or fit with --missing 0.")
