"""From the bytes of a source file to typed records, or to the draft of a contract."""
