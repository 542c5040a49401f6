"""A synthetic labelled data set that resembles MSLR-WEB30K.

Queries have terms, documents have hidden traits. The traits decide how often the terms occur in each stream of a
document: body, anchor texts, title and URL; the whole document is the fifth. From such counts come the statistics
that MSLR has of each stream, 5 x 25 features, and 11 more describe the document itself, not its text.
The label comes from the traits, not from the features: see `_usefulness`.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saferank.datasets.dataset import Dataset
from saferank.engine.errors import UsageError
from saferank.engine.ragged import offsets_of
from saferank.engine.types.ranking_data import RankingData

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Preset:
    """Size of a synthetic data set, and how much of its labels is noise."""

    queries: tuple[int, int, int]  # of the training, validation and test split
    mean_length: float  # documents per query
    noise: float  # share of the variance behind a query's labels that nothing explains


PRESETS = {
    "small": Preset((600, 200, 200), mean_length=40, noise=0.35),  # short lists: made in a third of a second
    "mslr10k": Preset((6_000, 2_000, 2_000), mean_length=120, noise=0.45),
    "mslr30k": Preset((18_900, 6_300, 6_300), mean_length=120, noise=0.45),
}

LONGEST_LIST, MOST_TERMS = 1_000, 5
BLOCK = 64
"""Queries made at a time, so that what is needed on the way stays small beside the features."""

FACTS = (
    *("url_slashes", "url_characters", "inlinks", "outlinks", "page_rank", "site_rank"),
    *("quality_score", "quality_score_2", "query_url_clicks", "url_clicks", "url_dwell_time"),
)
SUMMARIES = ("sum", "min", "max", "mean", "variance")
STATISTICS = (
    *("covered_terms", "covered_ratio", "length", "idf"),
    *(f"{count}_{summary}" for count in ("tf", "tf_per_word", "tf_idf") for summary in SUMMARIES),
    *("all_covered", "cosine", "bm25", "lm_absolute", "lm_dirichlet", "lm_jelinek_mercer"),
)
FEATURE_NAMES = (
    *(f"{stream}_{name}" for stream in ("body", "anchor", "title", "url", "whole") for name in STATISTICS),
    *FACTS,
)


def synthetic_dataset(preset: str, seed: int = 0) -> Dataset:
    """Make a preset: `small`, `mslr10k` or `mslr30k`. A seed may stand in the name, and then counts: `small@7`.

    The same preset and seed give the same bytes. Each split, and each block of queries in it, has a random stream
    of its own. `small` has 40 documents per query instead of 120.
    """
    name, at, seed_in_name = preset.partition("@")
    if name not in PRESETS:
        raise UsageError(f"no synthetic data set is called '{name}'; there are {', '.join(PRESETS)}.")
    if at and not seed_in_name.isdecimal():
        raise UsageError(f"'{preset}': a seed must follow the @, as in '{name}@7'.")
    seed = int(seed_in_name) if at else seed
    source = f"synthetic:{name}@{seed}"
    names, seeds = ("train", "validation", "test"), np.random.SeedSequence(seed).spawn(3)
    made = [
        _make_split(split, queries, PRESETS[name], split_seed, source)
        for split, queries, split_seed in zip(names, PRESETS[name].queries, seeds, strict=True)
    ]
    return Dataset(source, *made)


def _make_split(split: str, queries: int, preset: Preset, seed: np.random.SeedSequence, source: str) -> RankingData:
    lengths = _draw_lengths(np.random.default_rng(seed), queries, preset.mean_length)
    offsets = offsets_of(lengths)
    features = np.empty((offsets[-1], len(FEATURE_NAMES)), dtype=np.float32)
    labels = np.empty(offsets[-1], dtype=np.float32)

    def make_block(first: int, block_seed: np.random.SeedSequence) -> None:
        last = min(first + BLOCK, queries)
        rows = slice(offsets[first], offsets[last])
        world = _draw_world(np.random.default_rng(block_seed), lengths[first:last])
        labels[rows] = _draw_labels(world, preset.noise)
        np.stack(list(_draw_features(world)), axis=1, out=features[rows])

    starts = range(0, queries, BLOCK)
    with ThreadPoolExecutor() as threads:
        list(threads.map(make_block, starts, seed.spawn(len(starts))))
    query_ids = np.array([f"{split}-{query}" for query in range(queries)])
    return RankingData(features, offsets, labels, query_ids, feature_names=FEATURE_NAMES, source=source)


def _draw_lengths(rng: np.random.Generator, queries: int, mean: float) -> NDArray[np.int64]:
    """Return list lengths: gamma with a mean of its own for each query, so from 1 to about eight times the mean."""
    shape, tail = 2.0, 8.0
    drawn = rng.gamma(shape, mean / shape, queries) * (tail - 1.0) / rng.gamma(tail, 1.0, queries)
    return np.clip(drawn.round(), 1, LONGEST_LIST).astype(np.int64)


# What is hidden: queries and traits.

TRAITS = (
    "topic",  # how well the document meets the query's subject, in all its streams
    *("body", "anchor", "title", "url"),  # by how much the one stream is more to the point than the others
    *("wordiness", "authority", "quality", "popularity"),  # of the document, whatever the query
    "satisfaction",  # of those who visit it
)


@dataclass(frozen=True, eq=False)
class _World:
    """The truth about the documents of a block of queries; arrays hold one entry, or column, per document."""

    rng: np.random.Generator
    traits: dict[str, Array]  # standard normal
    navigational: Array  # of the query, in (0, 1): looks for a site rather than for information; short queries do
    leniency: Array  # of the query: raises or lowers all its labels
    terms: Array  # how many terms the query has
    asked: Array  # a row per possible term: 1 if the query has it, else 0
    idf: Array  # a row per possible term: its inverse document frequency; 0 if the query lacks it


def _draw_world(rng: np.random.Generator, lengths: NDArray[np.int64]) -> _World:
    queries, documents = len(lengths), int(lengths.sum())
    query = np.repeat(np.arange(queries), lengths)
    terms = 1 + np.minimum(rng.poisson(1.6, queries), MOST_TERMS - 1).astype(np.float32)
    asked = (np.arange(MOST_TERMS)[:, None] < terms).astype(np.float32)
    idf = asked * (0.3 + rng.gamma(2.0, 1.3, asked.shape)).astype(np.float32)
    navigational = _squash(1.8 - terms + 1.5 * rng.standard_normal(queries, dtype=np.float32))
    leniency = rng.standard_normal(queries, dtype=np.float32)
    traits = dict(zip(TRAITS, rng.standard_normal((len(TRAITS), documents), dtype=np.float32), strict=True))
    of_query = (values[..., query] for values in (navigational, leniency, terms, asked, idf))
    return _World(rng, traits, *of_query)


# How the label is made.

LABEL_THRESHOLDS = (0.146, 1.110, 2.264, 2.890)
"""Utility above which the label is 1, 2, 3 and 4, for shares of about 0.55, 0.30, 0.13, 0.015 and 0.006."""


def _usefulness(world: _World) -> Array:
    """Return how well each document serves its query: mean 0, standard deviation 1.

    Every term but the first is an interaction, and the third depends on the query; so a linear scorer falls
    clearly behind, and a network gains from more queries for long.
    """
    z = world.traits
    match = 0.75 * z["topic"] + 0.45 * z["title"] + 0.3 * z["body"] + 0.2 * z["url"] + 0.2 * z["anchor"]
    useful: Array = (
        0.5 * match
        + 0.5 * np.logaddexp(0.0, 2.0 * match) * np.tanh(z["quality"])  # quality counts where there is a match
        + z["authority"] * (world.navigational * (z["topic"] + z["url"]) - 0.3)  # the site that was looked for
        + 0.7 * np.maximum(z["popularity"], 0.0) * z["satisfaction"]  # visits speak for it if they please
        - 0.35 * z["wordiness"] * (z["wordiness"] - 1.4 * z["body"])  # no stub, no tome, unless to the point
    )
    return (useful + 0.35) / 1.32


def _draw_labels(world: _World, noise: float) -> Array:
    """Return labels 0 to 4: utility = sqrt(1 - noise) usefulness + sqrt(noise) error + leniency, cut in five."""
    error = world.rng.standard_normal(len(world.terms), dtype=np.float32)
    utility = (1.0 - noise) ** 0.5 * _usefulness(world) + noise**0.5 * error + 0.5 * world.leniency
    labels: Array = np.searchsorted(LABEL_THRESHOLDS, utility).astype(np.float32)
    return labels


# What is seen: the features.


@dataclass(frozen=True)
class _Stream:
    """A text of a document, and how readily query terms occur in it."""

    name: str
    words: float  # median length, where there is such a text at all
    deviation: float  # standard deviation of log length
    missing: float  # share of documents without it
    density: float  # occurrences of a query term per word, in an average document
    rarity: float  # by how much the terms' IDF is higher here than in bodies


STREAMS = (
    _Stream("body", words=440, deviation=1.0, missing=0.02, density=0.015, rarity=0.0),
    _Stream("anchor", words=3, deviation=1.0, missing=0.73, density=0.20, rarity=3.6),
    _Stream("title", words=6, deviation=0.6, missing=0.03, density=0.12, rarity=3.0),
    _Stream("url", words=7, deviation=0.4, missing=0.0, density=0.03, rarity=3.3),
)


def _draw_features(world: _World) -> Iterator[Array]:
    """Yield the columns in the order of FEATURE_NAMES."""
    rng, z = world.rng, world.traits
    favour = world.asked * np.exp(0.6 * _normal(rng, world.asked) - 0.2 * world.idf)  # rare terms occur less
    whole_counts, whole_words = np.zeros_like(world.asked), np.zeros_like(world.terms)
    for stream in STREAMS:
        words = np.ceil(
            stream.words * np.exp(stream.deviation * (0.6 * z["wordiness"] + 0.8 * _normal(rng, world.terms)))
        )
        words *= rng.random(words.shape, dtype=np.float32) >= stream.missing
        odds = stream.density * favour * np.exp(0.7 * z["topic"] + 0.6 * z[stream.name])
        counts = rng.poisson(words * odds / (1.0 + odds.sum(axis=0))).astype(np.float32)
        words = np.maximum(words, counts.sum(axis=0))
        whole_counts += counts
        whole_words += words
        yield from _statistics(world, counts, words, stream.words, world.idf + world.asked * stream.rarity)
    yield from _statistics(world, whole_counts, whole_words, 460.0, world.idf)
    yield from _draw_facts(world)


def _statistics(world: _World, counts: Array, words: Array, typical_words: float, idf: Array) -> Iterator[Array]:
    """Yield what is computed of one stream from its term counts, in the order of STATISTICS."""
    covered = np.count_nonzero(counts, axis=0).astype(np.float32)
    yield covered
    yield covered / world.terms
    yield words
    yield idf.sum(axis=0)
    some_words = np.maximum(words, 1.0)
    per_word, weighted = counts / some_words, counts * idf
    for values in (counts, per_word, weighted):
        mean = values.sum(axis=0) / world.terms
        yield values.sum(axis=0)
        yield np.where(world.asked > 0, values, np.inf).min(axis=0)
        yield values.max(axis=0)
        yield mean
        yield (world.asked * (values - mean) ** 2).sum(axis=0) / world.terms
    yield (covered == world.terms).astype(np.float32)
    norms = np.sqrt((weighted**2).sum(axis=0) * (idf**2).sum(axis=0))
    yield (weighted * idf).sum(axis=0) / np.maximum(norms, 1e-6)
    yield (weighted * 2.2 / (counts + 0.3 + 0.9 * words / typical_words)).sum(axis=0)  # BM25: k1 = 1.2, b = 0.75
    background = 0.05 * np.exp(-idf)  # chance of the term in any text of this stream, for the language models
    for chance in (
        np.maximum(per_word - 0.7 / some_words, 0.0) + 0.3 * background,
        (counts + typical_words * background) / (words + typical_words),
        0.9 * per_word + 0.1 * background,
    ):
        yield (world.asked * np.log(chance)).sum(axis=0)


def _draw_facts(world: _World) -> Iterator[Array]:
    """Yield what is known about a document besides its text, in the order of FACTS."""
    rng, z = world.rng, world.traits

    def glimpse(trait: str, blur: float) -> Array:
        return z[trait] + blur * _normal(rng, world.terms)

    def happens(log_odds: Array) -> NDArray[np.bool_]:
        return rng.random(log_odds.shape, dtype=np.float32) < _squash(log_odds)

    yield 1.0 + rng.poisson(np.exp(0.3 + 0.4 * glimpse("wordiness", 1.0))).astype(np.float32)
    yield np.ceil(38.0 * np.exp(0.3 * glimpse("wordiness", 1.0)))
    yield np.floor(np.exp(1.2 + 2.2 * glimpse("authority", 1.0)))
    yield np.floor(np.exp(1.5 * glimpse("wordiness", 1.0)))
    yield np.floor(65_535.0 * _squash(1.6 * glimpse("authority", 0.4) - 1.2))
    yield np.floor(65_535.0 * _squash(1.6 * glimpse("authority", 0.8) + 0.3))
    yield np.ceil(254.0 * _squash(1.8 * glimpse("quality", 0.4) - 3.4))
    yield np.ceil(254.0 * _squash(1.8 * glimpse("quality", 0.7) - 3.2))
    found = happens(1.3 * (z["topic"] + z["popularity"]) - 5.2)
    yield found * np.ceil(np.exp(2.0 + 1.5 * glimpse("popularity", 0.5)))
    visited = happens(1.5 * z["popularity"] - 1.4)
    yield visited * np.ceil(np.exp(1.5 + 1.7 * glimpse("popularity", 0.5)))
    yield visited * np.exp(2.5 + 1.2 * glimpse("satisfaction", 0.4))


def _normal(rng: np.random.Generator, like: Array) -> Array:
    return rng.standard_normal(like.shape, dtype=np.float32)


def _squash(values: Array) -> Array:
    return (1.0 / (1.0 + np.exp(-values))).astype(np.float32)
