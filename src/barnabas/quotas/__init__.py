"""Client quotas: which one applies to a client, how fast the client is, and how long it has to wait.

Pure: times are passed in. All of it is soft state of one node, lost when it stops, and limited in size.
"""
