"""`RemoteModule`."""
