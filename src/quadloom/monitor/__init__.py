"""What a crawl's figures mean: balance of phases and advice, freshness of pages, heartbeat of workers.

Figures in, small records out; who shows them (`/monitor`, `quadloom status`) is no matter of this package."""
