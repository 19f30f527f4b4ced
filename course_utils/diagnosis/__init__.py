"""Say what an attention layer computes, from one call: ``diagnose(layer, *args)``."""

from collections.abc import Callable

from course_utils.diagnosis.departures import find_departures
from course_utils.diagnosis.facts import read_facts
from course_utils.diagnosis.report import Report
from course_utils.diagnosis.roles import find_sites, find_source
from course_utils.diagnosis.steps import first_difference
from course_utils.diagnosis.watch import watch

__all__ = ["Report", "diagnose"]


def diagnose(layer: Callable, *args: object, **kwargs: object) -> Report:
    """Watch a copy of ``layer`` run once, and report what it computes.

    Args:
        layer: any module or function with one attention in it.
        args: what it is called with; it gets copies.
        kwargs: the same, by name.

    Returns:
        A report. What one call does not show is None in its facts. With fewer than three tokens,
        columns cannot be told apart, and less is known.
    """
    calls, output = watch(layer, args, kwargs)
    sites = find_sites(calls)
    if len(sites) != 1 or sites[0].value is None:
        return Report("unknown", first_difference="scores")
    (site,) = sites
    roles = {"query": site.query, "key": site.key, "value": site.value}
    sources = {name: find_source(role, calls, site.start) for name, role in roles.items()}
    if sources["query"] is None and len(site.leading) != 2:  # heads cannot be told from sequences
        return Report("unknown", first_difference="query")
    facts, owners, weights = read_facts(site, calls, sources)
    departures, evidence = find_departures(facts, owners)
    unknown = first_difference(site, calls, output, sources, facts["scale"])
    verdict = "unknown" if unknown else "departs" if departures else "attention"
    return Report(verdict, facts, departures, evidence, unknown, weights)
