"""`quadloom bench importance`: the importance computation compared with scipy's sparse product, and under a limit."""

from __future__ import annotations

from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom_lab.scheduling.importance_speed import Comparison, LimitedFixpoint, compare, count_sweeps, under_limit

_COUNTED_PAGES = 100_000


def importance(
    *,
    pages: int = 2_000_000,
    links: int = 10,
    limited: bool = False,
) -> None:
    """Time importance on random links against scipy's sparse product in the same run; 20 million pages need 5 GB.

    Parameters
    ----------
    pages
        pages of the random web
    links
        links per page
    limited
        compute from disk instead, in a process that may allocate less memory than the matrix needs (Linux)
    """
    s = session()
    if pages < 1 or links < 1:
        raise UsageError("pages and links must be positive", hint="the defaults are 2000000 and 10")
    if limited:
        proof = under_limit(pages, links)
        s.emit(proof) if s.json else s.write(_limited_text(proof))
        return
    found = compare(pages, links)
    counts = count_sweeps(min(pages, _COUNTED_PAGES), links)
    if s.json:
        s.emit({"speed": found, "cpu_ratio": found.cpu_ratio, "wall_ratio": found.wall_ratio, "sweeps": counts})
        return
    s.write(_text(found))
    s.write(f"sweeps to {counts.tolerance:g}, random links\t{counts.random_blocks} (Jacobi {counts.random_jacobi})")
    s.write(f"sweeps to {counts.tolerance:g}, links of sites\t{counts.near_blocks} (Jacobi {counts.near_jacobi})")


def _text(found: Comparison) -> str:
    lines = [f"{found.pages:,} pages, {found.links:,} links"]
    for name, seconds in (
        ("scipy's product", found.product),
        ("power step with scipy", found.power_step),
        ("sweep", found.sweep),
    ):
        lines.append(f"{name}\t{seconds.cpu:.3f} s CPU\t{seconds.wall:.3f} s wall")
    lines += [
        f"as fast as scipy's product\t{found.cpu_ratio:.2f} × per CPU second\t{found.wall_ratio:.2f} × per wall second",
        f"cutting into blocks, once\t{found.cutting:.2f} s CPU",
        f"matrix\t{found.own_matrix:,.0f} MiB (scipy's {found.scipy_matrix:,.0f} MiB)",
        f"peak memory, scipy's matrix included\t{found.peak:,.0f} MiB",
    ]
    return "\n".join(lines)


def _limited_text(proof: LimitedFixpoint) -> str:
    return "\n".join(
        [
            f"matrix\t{proof.own_matrix:,.0f} MiB in blocks, {proof.scipy_matrix:,.0f} MiB in scipy",
            f"limit\t{proof.limit:,.0f} MiB beyond the libraries, {proof.whole:,.0f} MiB with them",
            f"sweeps\t{proof.sweeps}, {proof.seconds:.3f} s CPU each",
            f"sum of importance\t{proof.total:.9f}",
        ]
    )
