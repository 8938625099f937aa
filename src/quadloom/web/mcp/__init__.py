"""The warehouse for agents: tools, resources and prompts of the Model Context Protocol.

In: the state of a site. Out: a server for `quadloom mcp` (stdio) and for `/mcp` of `quadloom serve`. Needs the extra
`mcp`; nothing else imports this package unless it is there.
"""
