"""Records as text: parsing input, formatting output, reading and writing many of them."""
