"""URLs of tables, as they may be shown and written."""

import re


def without_secrets(text: str) -> str:
    """Return a path as it is, and the URL of an engine without its password and its parameters.

    >>> without_secrets("postgres://team:p@ss/word@host:5432/shop/clicks?sslmode=require")
    'postgres://team@host:5432/shop/clicks'
    """
    scheme, found, rest = text.partition("://")
    if not found or scheme == "duckdb":
        return text
    user, at, place = rest.rpartition("@")
    return f"{scheme}://{re.split('[:/?]', user)[0]}{at}{place.partition('?')[0]}"
