"""Launch, supervise and end processes."""
