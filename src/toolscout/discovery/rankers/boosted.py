"""`boosted`: (cosine + 1) / 2 + 0.05 x (5 path + 3 name + 2 description + 1.5 tag), not clamped.

A field counts once if a word of the query stands in it. The best services are chosen by their best tool, and only
their tools are returned, as the finder of the registry does (`top_k_services`).
"""

from __future__ import annotations

from toolscout.models import Candidates, Facets, Ranked
from toolscout.text import fold, has_part, query_words, spell_out

BOOST_SCALE = 0.05
PATH, NAME, DESCRIPTION, TAG = 5.0, 3.0, 2.0, 1.5
TOP_K_SERVICES = 3


def rank_boosted(query: str, candidates: Candidates, top_k_services: int = TOP_K_SERVICES) -> list[Ranked]:
    """Score every candidate and return the tools of the best services."""
    words = query_words(query)
    ranked = []
    for facets, cosine in zip(candidates.facets, candidates.cosine[0].tolist(), strict=True):
        matched = _matched(words, facets)
        boost = sum(weight for weight, _ in matched)
        parts = {"cosine": cosine, "boost": boost, "matched_fields": [field for _, field in matched]}
        ranked.append(Ranked(facets=facets, score=(cosine + 1) / 2 + BOOST_SCALE * boost, parts=parts))
    best: dict[str, float] = {}
    for item in ranked:
        best[item.facets.server] = max(best.get(item.facets.server, 0.0), item.score)
    services = sorted(best, key=lambda server: (-best[server], server))[:top_k_services]
    return [item for item in ranked if item.facets.server in services]


def _matched(words: list[str], facets: Facets) -> list[tuple[float, str]]:
    fields = (
        (PATH, "path", spell_out(facets.server_title)),
        (NAME, "name", spell_out(facets.name)),
        (DESCRIPTION, "description", fold(facets.description)),
        (TAG, "tags", fold(" ".join(facets.tags))),
    )
    return [(weight, field) for weight, field, text in fields if any(has_part(word, text) for word in words)]
