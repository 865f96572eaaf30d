"""OAuth bearer tokens: their claims, and how they are made and checked. No I/O, no clock: the time is passed.

`claims` reads a token, `unsecured` makes and checks tokens without a signature, as Kafka does by default, and `signed` checks
signatures against a set of keys. No error and no repr shows a token.
"""
