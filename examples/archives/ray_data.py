"""The titles and types of all pages of many archives, by Ray Data: python ray_data.py crawl-*.warc.gz

Needs `pip install 'quadloom[ray,parquet]'`. `quadloom bulk --ray` does the whole work, with all tables, and survives
hostile pages; this is for questions of your own.
"""

import sys

import ray

from quadloom.documents.archives import read_archive


def pages_of(row: dict[str, str]) -> list[dict[str, object]]:
    return [
        {"url": page.url, "title": said.title, "types": list(said.types)} for page, said in read_archive(row["item"])
    ]


if __name__ == "__main__":
    ray.data.from_items(sys.argv[1:], override_num_blocks=len(sys.argv) - 1).flat_map(pages_of).write_parquet("pages")
