"""From the bytes of a source file to typed records."""
