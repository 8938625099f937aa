"""The optional browser: pages whose content appears only after scripts have run (`crawl.browser`).

In: an HTML `Page` as the server sent it. Out: the same page with the document as it is after its scripts.

The browser has no network. Every request that a script makes goes back to the fetch process, which answers it as any
other request: guard, robots.txt, pace of the host and limits hold without exception (`renderer`). Chromium and the
driver are in a process of their own (`chromium`), which may die or be killed at any moment; then the plain page counts.
`shell` decides which pages need it.
"""
