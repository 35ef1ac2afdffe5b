"""The Model Context Protocol, spoken over stdio and HTTP alike, whoever has the tools.

Written here rather than taken from its SDK. The tools need four methods of the protocol; the SDK takes half a second of
processor time to import and 25 MB to keep, which neither a server that a client waits for nor an idle service has to
spare. Its client is in the tests, and says whether this is the protocol.
"""
