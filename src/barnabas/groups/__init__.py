"""Groups of consumers: who belongs to them, what each member reads, and the offsets they commit."""
