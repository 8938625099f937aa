"""The rivals of `kills.py`: the same small crawl with Scrapy and with crawlee-python, each as its manual says that it
resumes.

    python rival_kills.py scrapy|crawlee PORT FOLDER

Scrapy has its queue and its filter in `JOBDIR`; crawlee has its request queue in its storage folder, which is not
purged at the start. Both follow every link, once, with 16 requests in flight, and neither is limited per site.
"""

from __future__ import annotations

import sys
from pathlib import Path

IN_FLIGHT = 16


def run_scrapy(port: str, folder: Path) -> None:
    import scrapy
    from scrapy.crawler import CrawlerProcess

    class Links(scrapy.Spider):
        name = "links"
        start_urls = (f"http://127.0.0.1:{port}/page/0",)

        def parse(self, response):  # type: ignore[no-untyped-def]
            for link in response.xpath("//a/@href").getall():
                yield response.follow(link)

    settings = {
        "JOBDIR": str(folder / "job"),
        "CONCURRENT_REQUESTS": IN_FLIGHT,
        "CONCURRENT_REQUESTS_PER_DOMAIN": IN_FLIGHT,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_ENABLED": False,
    }
    process = CrawlerProcess(settings)
    process.crawl(Links)
    process.start()


def run_crawlee(port: str, folder: Path) -> None:
    import asyncio

    from crawlee import ConcurrencySettings
    from crawlee.configuration import Configuration
    from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
    from crawlee.storage_clients import FileSystemStorageClient

    async def crawl() -> None:
        crawler = ParselCrawler(
            configuration=Configuration(storage_dir=str(folder / "storage"), purge_on_start=False),
            storage_client=FileSystemStorageClient(),
            concurrency_settings=ConcurrencySettings(
                min_concurrency=IN_FLIGHT, desired_concurrency=IN_FLIGHT, max_concurrency=IN_FLIGHT
            ),
            configure_logging=False,
        )

        async def handle(context: ParselCrawlingContext) -> None:
            await context.enqueue_links()

        crawler.router.default_handler(handle)
        await crawler.run([f"http://127.0.0.1:{port}/page/0"])

    asyncio.run(crawl())


if __name__ == "__main__":
    {"scrapy": run_scrapy, "crawlee": run_crawlee}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
