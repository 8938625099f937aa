"""A running crawl's report as the balance of its phases: what `status` and the monitor show."""

from __future__ import annotations

import os

from quadloom.crawl.balance import Balance, balance
from quadloom.crawl.report import CrawlReport


def balance_of(report: CrawlReport) -> Balance:
    workers = max(1, len(report.workers) - 1)  # all but the fetch process transform
    return balance(report.phases, report.cpu, report.rates, workers=workers, cores=os.cpu_count() or 1)
