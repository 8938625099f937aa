"""Services and commands of the user: bodies of pages in, RDF or XML out.

One small process asks all of them for all transform workers, so that it can see who is free. In: `ServiceCall`s from
`workers.pool`. Out: `ServiceAnswer`s and the load of each instance. May import fetching, syntaxes and below.
"""
