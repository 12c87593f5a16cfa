"""One view of a session for all front ends: events become items, and every front end draws those."""
