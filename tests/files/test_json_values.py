import json
import math

from saferank.files.json_values import finite


def test_numbers_that_json_lacks_become_null_at_any_depth() -> None:
    values = {"a": math.nan, "b": [1, -math.inf, {"c": (math.inf, 2.5, "nan", None, True)}]}
    assert finite(values) == {"a": None, "b": [1, None, {"c": [None, 2.5, "nan", None, True]}]}
    assert json.dumps(finite(values), allow_nan=False)
