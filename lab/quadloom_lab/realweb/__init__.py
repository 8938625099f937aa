"""A web whose pages resemble real ones, for benchmarks: sizes with a long tail, a thousand nodes, menus, scripts, data.

In: a seed and a number of pages, or a folder of HTML files whose markup becomes the bodies. Out: pages by URL, and a
server of them on loopback. `quadloom bench real` crawls it. May import nothing of Quadloom.
"""
