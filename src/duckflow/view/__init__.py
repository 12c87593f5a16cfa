"""One view of what happened: events become items, and every front end draws those."""
