"""The loop that every replicated machine shares: decide, append, apply, wait for the high watermark."""
